# SPDX-License-Identifier: Apache-2.0

# An independent second computation of the per-run numbers. The numbers that the
# tables show are those of runs/<id>/result.json; these hold them to account.

# CSV times carry 6 decimals, so two roundings of one instant differ by at most 1e-6 s; twice that is allowed.
edge_tolerance_s <- 2e-6

# What a byte of payload is of a megabit.
mbit_per_byte <- 8e-6

# Readings must fill a window to within a tenth, else the window is not measured.
coverage_limits <- c(0.9, 1.1)

overrange_flags <- c("overrange", "peak_over")

# A touch of rounding size is no overlap.
touch_s <- 1e-9

# Neighbours further apart than so many update intervals have lost something between them.
instant_spacing <- 1.5
count_spacing <- 3

#' Compute E_A of one run and one meter from raw readings and intervals
#'
#' `E_A = (P_A - P_I) / T_A`. What a reading logged at t stands for is the meter's
#' semantics: interval_mean, the mean power of `[t - lag - update interval, t - lag]`,
#' which counts by its overlap with a window; instantaneous, the power at t - lag,
#' joined to its neighbours by trapezoids; energy_counter, a count of energy at
#' t - lag, of which differences are taken.
#' P_I is the line through the idle windows before and after, taken at the middle
#' of the effective measure window, which is the longest contiguous span of whole
#' receiver intervals inside the measure window. Nothing is clipped: an E_A that
#' cannot be given (nothing arrived, power below idle, no readings) is NA.
#'
#' @param readings data.table t_s (s), power_w (W), flag ("" when good), in time order;
#'   energy_j (J) of an energy counter.
#' @param intervals receiver intervals: t_start_s, t_end_s (s), bytes (first copies);
#'   no rows for a control run.
#' @param windows named list idle_before, measure, tail, idle_after, each c(start_s, end_s).
#' @param update_interval_s the meter's averaging time in s.
#' @param lag_s how long after its interval a reading is logged, in s.
#' @param semantics interval_mean, instantaneous or energy_counter.
#' @param counter_modulus_j where an energy counter starts again from 0, in J; NA when unknown.
#' @param own intervals of the flows that the meter's node moved, where these are not all: T_A is
#'   then theirs, in the window of all; NULL takes `intervals`.
#' @return one-row data.table: window_t_start_s, window_t_end_s, p_a_w, p_i_before_w,
#'   p_i_after_w, p_i_w, delta_p_w, t_a_mbps, ea_j_per_mbit, coverage, tail_energy_j,
#'   reasons (codes joined by ";", "" when none).
#' @examples
#' # 8 W of idle power, 9 W while 2 Mb/s arrive.
#' readings <- data.table::data.table(t_s = 1:30, power_w = rep(c(8, 9, 8), each = 10), flag = "")
#' intervals <- data.table::data.table(t_start_s = 11:18, t_end_s = 12:19, bytes = 250000)
#' windows <- list(idle_before = c(0, 10), measure = c(11, 19), tail = c(20, 21), idle_after = c(21, 30))
#' compute_ea(readings, intervals, windows, update_interval_s = 1, lag_s = 0)
#' @export
compute_ea <- function(readings, intervals, windows, update_interval_s, lag_s, semantics = "interval_mean",
                       counter_modulus_j = NA_real_, own = NULL) {
  effective <- effective_window(intervals, windows$measure)
  arrived <- list(
    span = effective$span, work = mbit_per_byte * effective$bytes,
    own_work = if (!is.null(own)) mbit_per_byte * bytes_within(own, effective$span)
  )
  meter <- list(
    update_interval_s = update_interval_s, lag_s = lag_s, semantics = semantics, counter_modulus_j = counter_modulus_j
  )
  as.data.table(ea_of_run(as.list(readings), arrived, windows, meter))
}

#' The same from what is known of the intervals
#'
#' @param readings list of vectors t_s, power_w, flag, of an energy counter energy_j.
#' @param arrived list span (s), work, own_work (NULL where the node's part is all of it).
#' @param meter list update_interval_s, lag_s, semantics, counter_modulus_j.
#' @return list of one row's values.
#' @noRd
ea_of_run <- function(readings, arrived, windows, meter) {
  span <- arrived$span
  mean_over <- function(window) mean_power(readings, window, meter)
  active <- mean_over(span)
  before <- mean_over(windows$idle_before)
  after <- mean_over(windows$idle_after)
  tail <- mean_over(windows$tail)
  p_i <- idle_power(before$power_w, after$power_w, windows$idle_before, windows$idle_after, mean(span))
  # Nothing arrived anywhere, as in a null run: then nobody's share of it is known either.
  of_all <- is.null(arrived$own_work) || is.na(arrived$work)
  t_a <- (if (of_all) arrived$work else arrived$own_work) / diff(span)
  delta <- active$power_w - p_i
  list(
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

#' Mean power of a window, each reading weighted by the time that it stands for
#'
#' @param meter list update_interval_s, lag_s, semantics, counter_modulus_j.
#' @return list power_w (NA without a usable reading), coverage, overrange (TRUE
#'   when such a reading touches the window).
#' @noRd
mean_power <- function(readings, window, meter) {
  # Plain vectors: a window takes microseconds, and a campaign has a hundred thousand of them.
  at <- nearby(readings$t_s, window, meter)
  near <- lapply(readings, `[`, at)
  shares <- switch(meter$semantics,
    interval_mean = interval_shares(near, window, meter),
    instantaneous = trapezoid_shares(near, window, meter),
    energy_counter = count_shares(near, window, meter),
    abort_invalid_data("The meter semantics ", meter$semantics, " is not known to this netjoule.")
  )
  weight <- sum(shares$seconds)
  beyond <- which(near$flag %in% overrange_flags)
  list(
    power_w = if (weight > 0) shares$joules / weight else NA_real_,
    coverage = weight / diff(window),
    overrange = length(beyond) > 0L && any(stands_for(lapply(near, `[`, beyond), window, meter))
  )
}

# Rows that can stand for any part of the window, and enough neighbours of them.
nearby <- function(t_s, window, meter) {
  reach <- (count_spacing + 1) * meter$update_interval_s
  first <- findInterval(window[1] + meter$lag_s - reach, t_s) + 1L
  last <- findInterval(window[2] + meter$lag_s + reach, t_s)
  if (first <= last) first:last else integer()
}

stands_for <- function(readings, window, meter) {
  to <- readings$t_s - meter$lag_s
  from <- to - meter$update_interval_s
  if (meter$semantics == "instantaneous") to <- to + meter$update_interval_s
  pmin(to, window[2]) - pmax(from, window[1]) > touch_s
}

# Readings without a flag that have a value, as list of vectors.
good_rows <- function(readings, value) {
  good <- which(readings$flag == "" & !is.na(readings[[value]]))
  lapply(readings[c("t_s", value)], `[`, good)
}

overlap_shares <- function(from, to, power, window) {
  overlap <- pmax(pmin(to, window[2]) - pmax(from, window[1]), 0)
  overlap[overlap <= touch_s] <- 0
  list(seconds = overlap, joules = sum(overlap * power))
}

interval_shares <- function(readings, window, meter) {
  good <- good_rows(readings, "power_w")
  to <- good$t_s - meter$lag_s
  overlap_shares(to - meter$update_interval_s, to, good$power_w, window)
}

# Straight lines between neighbours; the integral is the value at the middle of the part inside the window.
trapezoid_shares <- function(readings, window, meter) {
  good <- good_rows(readings, "power_w")
  n <- length(good$t_s)
  at <- good$t_s - meter$lag_s
  width <- diff(at)
  from <- pmax(at[-n], window[1])
  to <- pmin(at[-1], window[2])
  inside <- to - from > touch_s & width > touch_s & width <= instant_spacing * meter$update_interval_s + touch_s
  middle <- ((from + to) / 2 - at[-n]) / width
  power <- good$power_w[-n] + middle * diff(good$power_w)
  list(seconds = (to - from)[inside], joules = sum(((to - from) * power)[inside]))
}

# A count below the one before has passed the modulus, unless the way round is over half of it: then it began anew.
count_shares <- function(readings, window, meter) {
  good <- good_rows(readings, "energy_j")
  n <- length(good$t_s)
  at <- good$t_s - meter$lag_s
  width <- diff(at)
  counted <- diff(good$energy_j)
  usable <- width > touch_s & width <= count_spacing * meter$update_interval_s + touch_s
  if (!is.na(meter$counter_modulus_j)) {
    counted <- ifelse(counted < 0, counted + meter$counter_modulus_j, counted)
    usable <- usable & counted < meter$counter_modulus_j / 2
  }
  usable <- usable & counted >= 0
  overlap_shares(at[-n][usable], at[-1][usable], (counted / width)[usable], window)
}

#' Longest contiguous span of whole receiver intervals inside the measure window
#'
#' @return list span = c(start_s, end_s), bytes; without a whole interval inside,
#'   the measure window itself and NA: nothing is known of what arrived.
#' @noRd
effective_window <- function(intervals, measure) {
  inside <- which(
    intervals$t_start_s >= measure[1] - edge_tolerance_s & intervals$t_end_s <= measure[2] + edge_tolerance_s
  )
  n <- length(inside)
  if (n == 0L) {
    return(list(span = measure, bytes = NA_real_))
  }
  inside <- inside[order(intervals$t_start_s[inside])]
  starts <- intervals$t_start_s[inside]
  ends <- intervals$t_end_s[inside]
  apart <- abs(starts[-1] - ends[-n]) > edge_tolerance_s
  first <- which(c(TRUE, apart))
  last <- which(c(apart, TRUE))
  best <- which.max(ends[last] - starts[first])
  list(
    span = c(starts[first[best]], ends[last[best]]), bytes = sum(intervals$bytes[inside][first[best]:last[best]])
  )
}

# Line through the middles of both idle windows.
idle_power <- function(before_w, after_w, idle_before, idle_after, at_s) {
  t0 <- mean(idle_before)
  t1 <- mean(idle_after)
  before_w + (after_w - before_w) * (at_s - t0) / (t1 - t0)
}

tail_energy <- function(tail, p_i_w, window) {
  if (diff(window) %in% 0) {
    return(0)
  }
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
