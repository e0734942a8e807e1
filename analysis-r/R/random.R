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
  withr::with_seed(as.integer(seed %% 2147483647), code, "Mersenne-Twister", "Inversion", "Rejection")
}

#' Seed of a campaign's statistics, another one for each purpose
#' @noRd
campaign_seed <- function(campaign, purpose) {
  seed <- fcoalesce(pick_number(campaign$meta, "seed"), 0)
  (seed + sum(utf8ToInt(purpose) * seq_len(nchar(purpose)))) %% 2147483647
}
