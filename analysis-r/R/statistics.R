# SPDX-License-Identifier: Apache-2.0

# Names of the tables above; a campaign has those that there is something for.
statistics_tables <- c("contrasts", "ea_uncertainty", "outliers", "model_parameters", "held_parameters")

#' Add the interval with the model's parameters to the cells, where there is one
#'
#' @param summary from [summarise_ea()] or [table_iv()]; uncertainty: from ea_uncertainty() or NULL.
#' @return summary, with ea_total_ci95_low and ea_total_ci95_high where any cell has them.
#' @noRd
with_total_intervals <- function(summary, uncertainty) {
  if (is.null(uncertainty) || all(is.na(uncertainty$ea_total_ci95_low))) {
    return(summary)
  }
  keys <- setdiff(intersect(names(uncertainty), names(summary)), c("n", "ea_j_per_mbit_mean"))
  totals <- uncertainty[, c(keys, "ea_total_ci95_low", "ea_total_ci95_high"), with = FALSE]
  totals[summary, on = keys][, c(names(summary), "ea_total_ci95_low", "ea_total_ci95_high"), with = FALSE]
}

# The interval that is shown with an E_A: with the model's parameters where a cell has it (total), else over blocks
# alone.
with_drawn_intervals <- function(summary) {
  rows <- copy(summary)
  if (!"ea_total_ci95_low" %in% names(rows)) rows[, `:=`(ea_total_ci95_low = NA_real_, ea_total_ci95_high = NA_real_)]
  rows[, `:=`(
    total = !is.na(ea_total_ci95_low), ea_drawn_low = fcoalesce(ea_total_ci95_low, ea_ci95_low),
    ea_drawn_high = fcoalesce(ea_total_ci95_high, ea_ci95_high)
  )]
  rows[]
}

# More tests than this would leave none of them with power.
most_tests <- 6L

# The least number of blocks at which six tests can reach 0.05 after Holm: 6 x 2 / 2^8 = 0.047.
least_blocks_tested <- 8L

# Below this no single test can: 2 / 2^5 = 0.0625.
least_blocks_attainable <- 6L

default_alpha <- 0.05

#' What a workload says of its statistics, with defaults
#'
#' @param workload effective workload as nested lists (campaign.json has it).
#' @return list alpha (of the whole family), margin_percent (NA: equivalence is not asked).
#' @noRd
statistics_settings <- function(workload) {
  list(
    alpha = fcoalesce(pick_number(workload, "statistics", "alpha"), default_alpha),
    margin_percent = pick_number(workload, "statistics", "equivalence_margin_percent")
  )
}

#' Fewest blocks with which a family of tests can reach its level after Holm, and which are tested at all
#' @noRd
least_blocks_for <- function(tests, alpha) {
  attainable <- ceiling(1 + log2(tests / alpha) - 1e-9)
  max(least_blocks_tested, attainable)
}

# Tests that nobody reads are not made: over 40 blocks each takes a third of a second.
tests_of <- function(d, context, tested) {
  margin <- as.numeric(context$design$margin_percent)
  test <- if (tested) sign_flip_test(d, context$seed) else list(p = NA_real_, method = NA)
  list(
    p_value = test$p, p_method = as.character(test$method), margin_percent = margin,
    p_equivalence = if (tested && !is.na(margin)) tost(d, margin)$p else NA_real_
  )
}

# A mean of logarithms as a difference in percent: positive when the arm takes more than the reference.
as_percent <- function(log_ratio) 100 * expm1(log_ratio)

ratio_interval <- function(d) {
  lapply(interval_columns(d, "difference_percent", "difference"), as_percent)
}

# Mean over blocks that all have the same loads, as of the ratio.
power_difference <- function(pairs) {
  grid <- complete_grid(pair_grid(pairs, pairs$p_a_w - pairs$p_a_w_ref))
  c(list(places_n = ncol(grid)), interval_columns(rowMeans(grid), "difference_p_a_w", "difference_p_a"))
}

#' Tests of the family: what can be reached, Holm, verdicts
#' @noRd
with_tests <- function(found, design) {
  family <- found$in_family
  tested <- family & found$blocks_n >= design$least_blocks
  attainable <- family & !tested & found$blocks_n >= least_blocks_attainable
  found[, inference := fcase(
    tested, "tested", attainable, "attainable_only", family, "intervals_only",
    default = "exploratory"
  )]
  found[, `:=`(
    family_tests_n = fifelse(family, design$tests, NA_integer_), least_p = fifelse(family, least_p(blocks_n), NA_real_)
  )]
  found[, least_p_holm := pmin(1, design$tests * least_p)]
  found[!family, margin_percent := NA_real_]
  found[, `:=`(p_holm = holm(p_value, design$tests), p_equivalence_holm = holm(p_equivalence, design$tests))]
  found[, verdict := fcase(
    is.na(p_holm), NA_character_, p_holm > design$alpha, "no_clear_difference", log_ratio_mean < 0, "less",
    default = "more"
  )]
  found[, equivalence := fcase(
    is.na(p_equivalence_holm), NA_character_, p_equivalence_holm <= design$alpha, "equivalent",
    default = "not_shown"
  )]
  found[]
}

# 97.5 % quantile of the normal distribution, for uncertainties that do not shrink with the number of blocks.
normal_97_5 <- 1.96
