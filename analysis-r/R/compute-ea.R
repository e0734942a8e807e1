# SPDX-License-Identifier: Apache-2.0

# An independent second computation of the per-run numbers. The numbers that the
# tables show are those of runs/<id>/result.json; these hold them to account.

# CSV times carry 6 decimals, so two roundings of one instant differ by at most 1e-6 s; twice that is allowed.
edge_tolerance_s <- 2e-6

# Readings must fill a window to within a tenth, else the window is not measured.
coverage_limits <- c(0.9, 1.1)

overrange_flags <- c("overrange", "peak_over")

#' Compute E_A of one run and one meter from raw readings and intervals
#'
#' `E_A = (P_A - P_I) / T_A`. A reading logged at t stands for the mean power of
#' `[t - lag - update interval, t - lag]` and counts by its overlap with a window.
#' P_I is the line through the idle windows before and after, taken at the middle
#' of the effective measure window, which is the longest contiguous span of whole
#' receiver intervals inside the measure window. Nothing is clipped: an E_A that
#' cannot be given (nothing arrived, power below idle, no readings) is NA.
#'
#' @param readings data.table t_s (s), power_w (W), flag ("" when good), in time order.
#' @param intervals receiver intervals: t_start_s, t_end_s (s), bytes (first copies);
#'   no rows for the transport null.
#' @param windows named list idle_before, measure, tail, idle_after, each c(start_s, end_s).
#' @param update_interval_s the meter's averaging time in s.
#' @param lag_s how long after its interval a reading is logged, in s.
#' @return one-row data.table: window_t_start_s, window_t_end_s, p_a_w, p_i_before_w,
#'   p_i_after_w, p_i_w, delta_p_w, t_a_mbps, ea_j_per_mbit, coverage, tail_energy_j,
#'   reasons (codes joined by ";", "" when none).
#' @export
compute_ea <- function(readings, intervals, windows, update_interval_s, lag_s) {
  effective <- effective_window(intervals, windows$measure)
  span <- effective$span
  mean_over <- function(window) mean_power(readings, window, update_interval_s, lag_s)
  active <- mean_over(span)
  before <- mean_over(windows$idle_before)
  after <- mean_over(windows$idle_after)
  tail <- mean_over(windows$tail)
  p_i <- idle_power(before$power_w, after$power_w, windows$idle_before, windows$idle_after, mean(span))
  t_a <- 8e-6 * effective$bytes / diff(span)
  delta <- active$power_w - p_i
  data.table(
    window_t_start_s = span[1], window_t_end_s = span[2],
    p_a_w = active$power_w, p_i_before_w = before$power_w, p_i_after_w = after$power_w, p_i_w = p_i,
    delta_p_w = delta, t_a_mbps = t_a, ea_j_per_mbit = ea_or_na(delta, t_a), coverage = active$coverage,
    tail_energy_j = tail_energy(tail, p_i, windows$tail),
    reasons = window_reasons(list(active, before, after))
  )
}

ea_or_na <- function(delta_p_w, t_a_mbps) {
  given <- !is.na(delta_p_w) & !is.na(t_a_mbps) & t_a_mbps > 0 & delta_p_w >= 0
  ifelse(given, delta_p_w / t_a_mbps, NA_real_)
}

#' Mean power of a window, each reading weighted by its overlap
#'
#' @return list power_w (NA without a usable reading), coverage, overrange (TRUE
#'   when such a reading touches the window).
#' @noRd
mean_power <- function(readings, window, update_interval_s, lag_s) {
  first <- findInterval(window[1] + lag_s, readings$t_s) + 1L
  last <- findInterval(window[2] + lag_s + update_interval_s, readings$t_s)
  index <- if (first <= last) first:last else integer()
  covers_end <- readings$t_s[index] - lag_s
  overlap <- pmin(covers_end, window[2]) - pmax(covers_end - update_interval_s, window[1])
  touching <- overlap > 0
  flag <- readings$flag[index]
  power <- readings$power_w[index]
  used <- touching & flag == "" & !is.na(power)
  weight <- sum(overlap[used])
  list(
    power_w = if (weight > 0) sum(overlap[used] * power[used]) / weight else NA_real_,
    coverage = weight / diff(window),
    overrange = any(flag[touching] %in% overrange_flags)
  )
}

#' Longest contiguous span of whole receiver intervals inside the measure window
#'
#' @return list span = c(start_s, end_s), bytes; without a whole interval inside,
#'   the measure window itself and NA: nothing is known of what arrived.
#' @noRd
effective_window <- function(intervals, measure) {
  inside <- intervals$t_start_s >= measure[1] - edge_tolerance_s & intervals$t_end_s <= measure[2] + edge_tolerance_s
  rows <- intervals[inside]
  if (nrow(rows) == 0L) {
    return(list(span = measure, bytes = NA_real_))
  }
  setorderv(rows, "t_start_s")
  joined <- abs(rows$t_start_s[-1] - rows$t_end_s[-nrow(rows)]) <= edge_tolerance_s
  piece <- cumsum(c(TRUE, !joined))
  pieces <- rows[, list(start = t_start_s[1], end = t_end_s[.N], bytes = sum(bytes)), by = list(piece)]
  best <- pieces[which.max(pieces$end - pieces$start)]
  list(span = c(best$start, best$end), bytes = best$bytes)
}

# Line through the middles of both idle windows.
idle_power <- function(before_w, after_w, idle_before, idle_after, at_s) {
  t0 <- mean(idle_before)
  t1 <- mean(idle_after)
  before_w + (after_w - before_w) * (at_s - t0) / (t1 - t0)
}

tail_energy <- function(tail, p_i_w, window) {
  if (!covered(tail)) {
    return(NA_real_)
  }
  (tail$power_w - p_i_w) * diff(window)
}

covered <- function(measured) {
  # Coverage is a quotient of sums of doubles: its last digits are rounding, not missing readings.
  slack <- 1e-9
  measured$coverage >= coverage_limits[1] - slack && measured$coverage <= coverage_limits[2] + slack
}

window_reasons <- function(measured) {
  codes <- c(
    if (!all(vapply(measured, covered, NA))) "meter_gap",
    if (any(vapply(measured, function(m) m$overrange, NA))) "meter_overrange"
  )
  paste(codes, collapse = ";")
}
