# SPDX-License-Identifier: Apache-2.0

# Chance in statistics comes from a seed that is an argument, so that an analysis gives the same numbers
# every time, and leaves the random numbers of whoever called it alone.

#' Evaluate code with random numbers from a seed
#'
#' @param seed whole number; only its remainder by 2^31 - 1 counts, as R's seeds are 32 bits.
#' @param code evaluated with Mersenne Twister, inversion and rejection, whatever the session has chosen.
#' @return value of `code`; the session's generator is as it was before.
#' @noRd
with_seed <- function(seed, code) {
  session <- globalenv()
  before <- session[[".Random.seed"]]
  kind <- RNGkind()
  on.exit({
    suppressWarnings(do.call(RNGkind, as.list(kind))) # it warns of sample.kind "Rounding", which is not our choice
    if (is.null(before)) {
      rm(list = ".Random.seed", envir = session)
    } else {
      assign(".Random.seed", before, envir = session)
    }
  })
  set.seed(
    as.integer(seed %% 2147483647),
    kind = "Mersenne-Twister", normal.kind = "Inversion", sample.kind = "Rejection"
  )
  force(code)
}

#' Seed of a campaign's statistics, another one for each purpose
#' @noRd
campaign_seed <- function(campaign, purpose) {
  seed <- pick_number(campaign$meta, "seed")
  if (is.na(seed)) seed <- 0
  (seed + sum(utf8ToInt(purpose) * seq_len(nchar(purpose)))) %% 2147483647
}
