# SPDX-License-Identifier: Apache-2.0

# The floor: what a control run took, and what is left without it.

greatest_floor_ratio <- 0.2

# Codes that say that there is nothing to compare with, rather than that the comparison would be unfair.
without_null <- c("no_null_run", "null_run_invalid")

#' Numbers of the floor: P_null - P_I, and what is left of E_A without it
#'
#' @param own,null rows of [compute_ea()]: run and null run of the same mini-block and meter.
#' @param reason from [floor_refusal()] or a code of `without_null`; NA when the floor may be used.
#' @param until_done whether the run worked until it was done.
#' @return data.table p_null_w, floor_w (W), ea_above_floor_j_per_mbit, floor_reason.
#' @noRd
floor_quantities <- function(own, null, reason, until_done = FALSE) {
  given <- is.na(reason)
  # Of work until it is done the control run's energy for as much of it.
  watts <- fifelse(rep_len(until_done, nrow(own)), null$delta_p_w / null$t_a_mbps * own$t_a_mbps, null$delta_p_w)
  floor_w <- fifelse(given, watts, NA_real_)
  arrived <- !is.na(own$t_a_mbps) & own$t_a_mbps > 0
  data.table(
    p_null_w = fifelse(given, null$p_a_w, NA_real_), floor_w = floor_w,
    ea_above_floor_j_per_mbit = fifelse(arrived, (own$delta_p_w - floor_w) / own$t_a_mbps, NA_real_),
    floor_reason = reason
  )
}
