# SPDX-License-Identifier: Apache-2.0

# How many blocks find a difference of a given size, by what a pilot campaign scattered.

# Power of the sign-flip test is simulated where few patterns make its p coarse; beyond, the t test's is the same.
most_blocks_simulated <- 14L
power_draws <- 1000L
# Nobody runs more, and a search has to end.
most_blocks_planned <- 100000L
# One-sided confidence with which the scatter of a pilot of few blocks is bounded from above (Browne 1995).
pilot_confidence <- 0.8
default_power <- 0.8

#' Blocks that a design needs to find a difference, given a pilot
#'
#' For each of the workload's main comparisons: the least number of blocks with which the sign-flip test at
#' the family's level over the number of its tests (what Holm asks of the first) finds a difference of `mde_percent`
#' in E_A with probability `power`, when blocks scatter as the pilot's did. A pilot's scatter is itself uncertain:
#' `blocks_upper_n` is the same for its upper 80 % confidence limit. The pilot's loads stand for the design's: those
#' that both have, all of the pilot's where they share none.
#'
#' @param pilot from [read_campaign()].
#' @param workload effective workload as nested lists, whose blocks are to be planned.
#' @param mde_percent least difference that is to be found, in percent of the reference's E_A.
#' @param power probability with which it is to be found.
#' @return list contrasts (data.table reference, transport, payload_bytes, pilot_blocks_n, pilot_loads_n,
#'   log_ratio_sd, blocks_n, blocks_upper_n), blocks_n and blocks_upper_n (the greatest of them), design_blocks_n,
#'   least_blocks_n (for the level alone), least_p, least_p_holm (of the design's blocks), tests_n, alpha,
#'   mde_percent, power. Stops with exit code 4 when the pilot has no contrast of the family in 2 blocks.
#' @examples
#' campaign <- example_campaign()
#' blocks_needed(campaign, campaign$meta$workload, mde_percent = 3)
#' @export
blocks_needed <- function(pilot, workload, mde_percent, power = default_power) {
  alpha <- statistics_settings(workload)$alpha
  contrasts <- family_of(workload)$contrasts
  tests <- nrow(contrasts)
  least <- least_blocks_for(max(tests, 1L), alpha)
  found <- pilot_scatter(pilot, workload, contrasts)
  usable <- found[pilot_blocks_n >= 2L]
  if (nrow(usable) == 0L) {
    abort_invalid_data(
      "The pilot ", pilot$dir, " has no two blocks in which a pair of the workload's transports can be compared by ",
      "ratio of E_A: run a pilot with at least 5 blocks and the workload's transports and sizes."
    )
  }
  effect <- log1p(mde_percent / 100)
  seed <- campaign_seed(pilot, "blocks_needed")
  blocks <- function(sds) {
    vapply(sds, function(one) blocks_for(effect, one, alpha / tests, power, least, seed), 0)
  }
  upper <- sd_upper(usable$log_ratio_sd, usable$pilot_blocks_n)
  usable[, `:=`(blocks_n = blocks(log_ratio_sd), blocks_upper_n = blocks(upper))]
  planned <- pick_number(workload, "blocks")
  list(
    contrasts = usable, blocks_n = max(usable$blocks_n), blocks_upper_n = max(usable$blocks_upper_n),
    design_blocks_n = planned, least_blocks_n = least, least_p = least_p(planned),
    least_p_holm = pmin(1, tests * least_p(planned)), tests_n = tests, alpha = alpha, mde_percent = mde_percent,
    power = power, pilot = pilot$name, missing_n = tests - nrow(usable)
  )
}

#' Scatter of the block means of each contrast in a pilot, at its first meter and pacing
#' @noRd
pilot_scatter <- function(pilot, workload, contrasts) {
  design <- contrast_design(pilot)
  rows <- usable_results(pilot$results)
  rows <- of_variant(rows[meter_id == design$meter_id & direction == design$direction], design$variant)
  wanted <- as.numeric(unlist(pick(workload, "offered_rate_mbps", default = list())))
  if (any(rows$offered_rate_mbps %in% wanted)) rows <- rows[offered_rate_mbps %in% wanted]
  scatter <- lapply(seq_len(nrow(contrasts)), function(place) {
    grid <- compared(flow_pairs(rows, as.list(contrasts[place])))$grid
    list(pilot_blocks_n = nrow(grid), pilot_loads_n = ncol(grid), log_ratio_sd = sd(unname(rowMeans(grid))))
  })
  cbind(contrasts, rbindlist(scatter))
}

# Upper limit of a standard deviation that was estimated from n values, one-sided.
sd_upper <- function(sd, n, confidence = pilot_confidence) sd * sqrt((n - 1) / stats::qchisq(1 - confidence, n - 1))

#' Least number of blocks that finds an effect
#'
#' @param effect,sd mean and standard deviation of the block means of the log-ratio.
#' @param level two-sided level of the test; power: to be reached.
#' @param least number of blocks to begin with.
#' @return number of blocks, Inf beyond 100,000.
#' @noRd
blocks_for <- function(effect, sd, level, power, least, seed) {
  enough <- function(n) {
    # A coarse p costs power, so the t test's is needed first.
    t_power(n, effect, sd, level) >= power &&
      (n > most_blocks_simulated || sign_flip_power(n, effect, sd, level, seed) >= power)
  }
  low <- least
  while (!enough(low)) {
    # Steps of one where p is coarse, then of 5 %, walked back below.
    before <- low
    low <- if (low <= most_blocks_simulated) low + 1 else ceiling(1.05 * low)
    if (low > most_blocks_planned) {
      return(Inf)
    }
    if (enough(low)) {
      while (low - 1 > before && enough(low - 1)) low <- low - 1
    }
  }
  low
}

#' Power of the two-sided one-sample t test
#'
#' @return probability; 1 for a scatter of 0.
#' @noRd
t_power <- function(n, effect, sd, level) {
  if (sd == 0) {
    return(1)
  }
  limit <- qt(1 - level / 2, n - 1)
  shift <- effect * sqrt(n) / sd
  # At great non-centrality pt() warns of lost precision in a tail that is 0 or 1 anyway.
  suppressWarnings(
    stats::pt(limit, n - 1, ncp = shift, lower.tail = FALSE) + stats::pt(-limit, n - 1, ncp = shift)
  )
}

#' Power of the exact sign-flip test of normal values, by simulation
#' @noRd
sign_flip_power <- function(n, effect, sd, level, seed, draws = power_draws) {
  # One sign may stay; all patterns of the others.
  flips <- cbind(1, as.matrix(expand.grid(rep(list(c(1, -1)), n - 1L))))
  values <- with_seed(seed, matrix(stats::rnorm(n * draws, effect, sd), n))
  limits <- apply(values, 2L, tie_limit)
  chunks <- split(seq_len(draws), (seq_len(draws) - 1L) %/% 100L)
  p <- unlist(lapply(chunks, function(chunk) {
    colMeans(abs(flips %*% values[, chunk, drop = FALSE]) >= rep(limits[chunk], each = nrow(flips)))
  }))
  mean(p <= level * (1 + 1e-9))
}

#' Tell how many blocks are needed, and of a design that can never reach its level so
#' @noRd
tell_blocks_needed <- function(options, tell) {
  if (is.null(options$workload) || !file.exists(options$workload)) {
    abort_netjoule(
      "The option --mde needs --workload FILE, the effective workload as JSON.",
      exit_code = exit_codes$usage
    )
  }
  workload <- tryCatch(jsonlite::fromJSON(options$workload, simplifyVector = FALSE), error = function(e) {
    abort_netjoule("The workload ", options$workload, " is not a whole JSON document.", exit_code = exit_codes$usage)
  })
  workload <- lift_workload(workload)
  pilot <- read_campaign(options$campaign_dir)
  assert_transports(pilot)
  if (nrow(family_of(workload)$contrasts) == 0L) {
    abort_netjoule(
      "The workload has a single transport beside null: there is no pair to compare.",
      exit_code = exit_codes$usage
    )
  }
  power <- if (is.null(options$power)) default_power else options$power
  found <- blocks_needed(pilot, workload, options$mde_percent, power)
  tell(c(list(event = "blocks_needed", words = c(blocks_words(found), unattainable_words(found))), found))
}

# Of a design whose blocks cannot reach its level; none of one that can.
unattainable_words <- function(found) {
  if (found$least_p_holm > found$alpha) {
    sprintf(
      paste(
        "As it is, the workload finds nothing: %g %s can give p = %s at least, %s after Holm over %d %s, which is",
        "above its level %s; it needs %d blocks or more (field blocks)."
      ),
      found$design_blocks_n, plural("block", found$design_blocks_n), p_text(found$least_p), p_text(found$least_p_holm),
      found$tests_n, plural("test", found$tests_n), number_text(found$alpha), found$least_blocks_n
    )
  }
}

blocks_words <- function(found) {
  each <- sprintf(
    "%s against %s at %g bytes: %s (scatter of block means %s %%, from %d blocks and %d %s of the pilot)",
    transport_label(found$contrasts$transport), transport_label(found$contrasts$reference),
    found$contrasts$payload_bytes, block_count(found$contrasts$blocks_n),
    number_text(signif(100 * found$contrasts$log_ratio_sd, 2)), found$contrasts$pilot_blocks_n,
    found$contrasts$pilot_loads_n, ifelse(found$contrasts$pilot_loads_n == 1L, "load", "loads")
  )
  c(
    sprintf(
      paste(
        "%s blocks find a difference of %s %% with %s %% probability at level %s over %d %s (Holm); %s if the pilot",
        "happened to scatter little (80 %% confidence). The workload has %g."
      ),
      block_count(found$blocks_n), number_text(found$mde_percent), number_text(100 * found$power),
      number_text(found$alpha), found$tests_n, plural("test", found$tests_n), block_count(found$blocks_upper_n),
      found$design_blocks_n
    ),
    each,
    if (found$missing_n > 0L) {
      sprintf(
        "%d of %d contrasts of the workload cannot be determined from this pilot: no two blocks have a pair by ratio.",
        found$missing_n, found$tests_n
      )
    },
    if (found$design_blocks_n < least_blocks_tested) {
      sprintf("With under %d blocks no test is made at all.", least_blocks_tested)
    }
  )
}

block_count <- function(n) ifelse(is.finite(n), number_text(n), paste("over", number_text(most_blocks_planned)))
