# SPDX-License-Identifier: Apache-2.0

# Transports compared over all loads: the primary family with its tests, every other pair with its interval.

contrast_groups <- c(
  "node", "meter_id", "device_model", "power_source", "radio_source", "direction", "pacing", "window_us", "gso"
)

#' Compare transports over loads: one contrast per pair of transports and payload size
#'
#' The unit is the block: the mean over loads of ln(E_A of the transport / E_A of the reference), from pairs inside
#' mini-blocks. Its mean over blocks has a 95 % t interval. The contrasts of the primary family, at the first meter
#' and the plan's first pacing, are tested from 8 blocks on: sign-flip test, Holm over the family's size. With 6 or 7
#' blocks the least p that a test could give is told and none is made; below, and outside of the family, there are
#' intervals alone. Loads with a run below the meter's resolution have no ratio: for them the difference of P_A
#' stands apart. Hollow loads are left out.
#'
#' @param campaign from [read_campaign()].
#' @param margin_percent margin of equivalence in percent, NA or NULL: not asked; by default the workload's.
#' @param outliers from [outlier_runs()].
#' @param model from model_sensitivity(): adds the device model's parameters to the intervals; NULL without.
#' @return data.table by the contract contrasts.table.json, family first; NULL when the campaign has no E_A.
#' @export
transport_contrasts <- function(campaign, margin_percent = NULL, outliers = outlier_runs(campaign), model = NULL) {
  rows <- usable_results(campaign$results)
  if (nrow(rows) == 0L || all(is.na(rows$ea))) {
    return(NULL)
  }
  design <- contrast_design(campaign, margin_percent)
  if (nrow(design$contrasts) == 0L) {
    return(NULL)
  }
  context <- list(
    outliers = outliers, model = model, seed = campaign_seed(campaign, "contrasts"), design = design
  )
  found <- rows[transport != "null", contrasts_of(.SD, .BY, context), by = contrast_groups]
  found <- with_tests(found, design)
  found[, words := contrast_words(found, campaign)]
  found <- found[order(
    !in_family, match(meter_id, campaign$meters$meter_id), pacing != "absolute", pacing, window_us, gso, direction,
    place
  )]
  found[, contrast_columns, with = FALSE]
}

contrast_columns <- c(
  contrast_groups, "reference", "transport", "payload_bytes", "in_family", "inference", "blocks_n", "loads_n",
  "log_ratio_mean", "log_ratio_sd", "dea_percent", "dea_ci95_low", "dea_ci95_high", "dea_model_ci95_low",
  "dea_model_ci95_high", "outlier_n", "dea_without_outliers_percent", "loads_by_p_a_n", "dp_a_w", "dp_a_ci95_low",
  "dp_a_ci95_high", "loads_hollow_n", "family_tests_n", "least_p", "least_p_holm", "p_value", "p_method", "p_holm",
  "verdict", "margin_percent", "p_equivalence", "p_equivalence_holm", "equivalence", "words"
)

#' What is compared and how: the workload's rule, at the first meter and the plan's first pacing
#' @noRd
contrast_design <- function(campaign, margin_percent = NULL) {
  workload <- campaign$meta$workload
  settings <- statistics_settings(workload)
  if (!is.null(margin_percent)) settings$margin_percent <- margin_percent
  family <- family_of(workload, campaign$plan)
  candidates <- workload_contrasts(workload, campaign$plan)
  others <- candidates[!contrast_key(candidates) %in% contrast_key(family$contrasts)]
  plan <- campaign$plan
  if (!all(pacing_keys %in% names(plan))) plan <- copy(plan)[, `:=`(pacing = "absolute", window_us = 0, gso = FALSE)]
  c(settings, family[c("named", "others")], list(
    contrasts = rbind(family$contrasts, others), tests = nrow(family$contrasts), meter_id = campaign$meters$meter_id[1],
    variant = pacing_variants(plan)[1], direction = plan$direction[1]
  ))
}

#' All contrasts of one meter, pacing and direction
#' @noRd
contrasts_of <- function(rows, keys, context) {
  design <- context$design
  primary <- identical(keys$meter_id, design$meter_id) && identical(keys$direction, design$direction) &&
    all(vapply(pacing_keys, function(key) keys[[key]] == design$variant[[key]], NA))
  found <- lapply(seq_len(nrow(design$contrasts)), function(place) {
    asked <- as.list(design$contrasts[place])
    c(asked, list(place = place, in_family = primary && place <= design$tests), contrast_of(rows, asked, keys, context))
  })
  rbindlist(found)
}

#' Numbers of one contrast
#'
#' @param rows of one meter, pacing and direction; asked: reference, transport, payload_bytes.
#' @return list, the columns of one row that need no other contrast.
#' @noRd
contrast_of <- function(rows, asked, keys, context) {
  pairs <- contrast_pairs(rows, asked)
  loads <- load_methods(pairs)
  by_ratio <- pairs[offered_rate_mbps %in% loads[how == "ratio", offered_rate_mbps]]
  grid <- complete_grid(log_ratio_grid(by_ratio))
  used <- by_ratio[block %in% rownames(grid) & offered_rate_mbps %in% colnames(grid)]
  d <- unname(rowMeans(grid))
  by_power <- pairs[offered_rate_mbps %in% loads[how == "p_a_difference", offered_rate_mbps]]
  margin <- context$design$margin_percent
  flagged <- context$outliers$run_id[context$outliers$meter_id == keys$meter_id]
  test <- if (length(d) >= least_blocks_tested) sign_flip_test(d, context$seed) else list(p = NA_real_, method = NA)
  c(
    list(
      blocks_n = length(d), loads_n = ncol(grid), log_ratio_mean = if (length(d) > 0L) mean(d) else NA_real_,
      log_ratio_sd = if (length(d) > 1L) sd(d) else NA_real_
    ),
    ratio_interval(d), model_interval(d, used, keys, context), without_outliers(grid, used, flagged),
    power_difference(by_power),
    list(
      loads_hollow_n = sum(loads$how == "hollow"), p_value = test$p, p_method = as.character(test$method),
      margin_percent = as.numeric(margin),
      p_equivalence = if (length(d) >= least_blocks_tested && !is.na(margin)) tost(d, margin)$p else NA_real_
    )
  )
}

# A mean of logarithms as a difference in percent: positive when the transport takes less than the reference.
as_percent_less <- function(log_ratio) -100 * expm1(log_ratio)

ratio_interval <- function(d) {
  interval <- mean_interval(d)
  list(
    dea_percent = as_percent_less(interval$mean), dea_ci95_low = as_percent_less(interval$high),
    dea_ci95_high = as_percent_less(interval$low)
  )
}

# What the estimate becomes when blocks with a flagged run are left out: how much hangs on them.
without_outliers <- function(grid, used, outliers) {
  flagged <- unique(used[run_id %in% outliers | run_id_ref %in% outliers, block])
  kept <- grid[!rownames(grid) %in% flagged, , drop = FALSE]
  runs <- unique(c(used$run_id, used$run_id_ref))
  list(
    outlier_n = sum(runs %in% outliers),
    dea_without_outliers_percent = if (nrow(kept) > 0L) as_percent_less(mean(rowMeans(kept))) else NA_real_
  )
}

power_difference <- function(pairs) {
  per_block <- pairs[, list(value = mean(p_a_w_ref - p_a_w)), by = block]$value
  interval <- mean_interval(per_block)
  list(
    loads_by_p_a_n = length(unique(pairs$offered_rate_mbps)), dp_a_w = interval$mean, dp_a_ci95_low = interval$low,
    dp_a_ci95_high = interval$high
  )
}

#' Tests of the family: what can be reached, Holm, verdicts
#' @noRd
with_tests <- function(found, design) {
  family <- found$in_family
  tested <- family & found$blocks_n >= least_blocks_tested
  attainable <- family & !tested & found$blocks_n >= least_blocks_attainable
  found[, inference := fcase(
    tested, "tested", attainable, "attainable_only", family, "intervals_only",
    default = "exploratory"
  )]
  found[, `:=`(
    family_tests_n = fifelse(family, design$tests, NA_integer_), least_p = fifelse(family, least_p(blocks_n), NA_real_)
  )]
  found[, least_p_holm := pmin(1, design$tests * least_p)]
  found[!tested, `:=`(p_value = NA_real_, p_method = NA_character_)]
  found[!family | !tested, p_equivalence := NA_real_]
  found[!family, margin_percent := NA_real_]
  found[, `:=`(p_holm = holm(p_value, design$tests), p_equivalence_holm = holm(p_equivalence, design$tests))]
  found[, verdict := fcase(
    is.na(p_holm), NA_character_, p_holm > design$alpha, "not_told_apart", log_ratio_mean < 0, "less",
    default = "more"
  )]
  found[, equivalence := fcase(
    is.na(p_equivalence_holm), NA_character_, p_equivalence_holm <= design$alpha, "equivalent",
    default = "not_shown"
  )]
  found[]
}
