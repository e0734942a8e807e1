# SPDX-License-Identifier: Apache-2.0

#' Difference of E_A in J/Mb over the pairs of a cell, with the uncertainty of both kinds
#'
#' The percentage tells how transports compare, this how much more energy a megabit takes. A cell with a run below
#' the meter's resolution has none. The interval is over blocks; the metering uncertainty of one pair is added
#' in quadrature, since blocks do not average most of it out. What they do average is then in both: the
#' half-width is rather too wide.
#'
#' @param pairs from mini_block_pairs(), one cell.
#' @return list difference_j_per_mbit (E_A - E_A of UDP), difference_j_ci95_low and _high (t over blocks), the
#'   metering's u95_meter_difference_j_per_mbit, and u95_difference_j_per_mbit, the half-width of both; all J/Mb, NA
#'   where there is none.
#' @noRd
joules_of <- function(pairs) {
  resolved <- !any(pairs$below_resolution | pairs$below_resolution_ref)
  more <- if (resolved) pairs$ea - pairs$ea_ref else rep(NA_real_, nrow(pairs))
  over <- interval_columns(block_means(pairs, more), "difference_j_per_mbit", "difference_j")
  metering <- mean_or_na(pair_metering(pairs)[!is.na(more)])
  half <- over$difference_j_ci95_high - over$difference_j_per_mbit
  c(over, list(u95_meter_difference_j_per_mbit = metering, u95_difference_j_per_mbit = sqrt(half^2 + metering^2)))
}

#' Metering uncertainty of the difference of two runs of one meter, J/Mb
#'
#' Both are read through the same gain, whose error therefore acts on their difference (JCGM 100, F.1.2.3);
#' what is left of each u95 is taken as independent. Where the gain's part is unknown nothing cancels, which
#' makes the result too wide rather than too narrow.
#'
#' @return numeric per pair; NA where a run has no u95.
#' @noRd
pair_metering <- function(pairs) {
  gain <- function(part, ea) sign(ea) * fcoalesce(part, 0)
  rest <- function(u95, part) pmax(u95^2 - fcoalesce(part, 0)^2, 0)
  common <- gain(pairs$u95_gain, pairs$ea) - gain(pairs$u95_gain_ref, pairs$ea_ref)
  sqrt(
    common^2 + rest(pairs$u95_ea_j_per_mbit_ref, pairs$u95_gain_ref) + rest(pairs$u95_ea_j_per_mbit, pairs$u95_gain)
  )
}
