# SPDX-License-Identifier: Apache-2.0

# Did anything but the transports change E_A while the campaign ran? Each run is set against the mean of its own cell,
# so that loads, sizes and transports do not matter, and what is left is looked at in the order of the campaign.

order_columns <- c(
  "run_id", "node", "meter_id", "device_model", "power_source", "radio_source", "transport", "direction",
  "payload_bytes", "offered_rate_mbps", "pacing", "window_us", "gso", "block", "mini_block", "attempt", "position",
  "t_s", "ea_j_per_mbit", "cell_ea_j_per_mbit", "deviation_percent"
)

#' E_A of each run in the order of the campaign, as deviation from its cell's mean
#'
#' Hollow runs, runs below the meter's resolution, null runs and cells with fewer than
#' two mini-blocks tell nothing of drift and are left out.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per run and meter: position (1 is the first run listed of
#'   its meter), t_s (middle of the window, campaign time in s), deviation_percent of
#'   E_A from cell_ea_j_per_mbit.
#' @export
ea_order <- function(campaign) {
  rows <- usable_results(campaign$results)
  if (nrow(rows) == 0L) {
    return(empty_rows("ea_order", order_columns))
  }
  rows[, t_s := (window_t_start_s + window_t_end_s) / 2]
  rows <- rows[transport != "null" & !hollow & !below_resolution & !is.na(ea) & !is.na(t_s)]
  if (nrow(rows) == 0L) {
    return(empty_rows("ea_order", order_columns))
  }
  rows[, `:=`(cell_ea_j_per_mbit = mean(ea), mini_blocks = length(unique(mini_block))), by = cell_keys]
  rows <- rows[cell_ea_j_per_mbit > 0 & mini_blocks > 1L]
  setorderv(rows, c("meter_id", "t_s"))
  rows[, `:=`(
    ea_j_per_mbit = ea, deviation_percent = percent_of(ea, cell_ea_j_per_mbit),
    position = as.numeric(rowid(meter_id))
  )]
  rows[, order_columns, with = FALSE]
}

# Nine decimals: what is left of equal numbers by rounding is no deviation.
percent_of <- function(value, reference) round(100 * (value / reference - 1), 9L)

drift_columns <- c(
  "node", "meter_id", "device_model", "power_source", "radio_source", "quantity", "runs_n", "mini_blocks_n", "cells_n",
  "t_first_s", "span_s", "trend_percent_per_hour", "trend_ci95_low", "trend_ci95_high", "change_percent",
  "change_ci95_low", "change_ci95_high", "autocorrelation_ratio", "freedom", "verdict", "reason"
)

#' Trend of E_A and of P_I over the campaign
#'
#' The mini-block is the unit: its runs share minutes and idle windows, so that their
#' deviations count once, by their mean. Deviations of E_A are from the means of cells
#' (payload, load, direction, pacing), those of P_I from the campaign's mean; the trend
#' is [within_trend()]'s. `change_percent` is the trend times the time from the first to
#' the last run.
#'
#' @param listed from [ea_order()].
#' @param campaign from [read_campaign()], for P_I.
#' @return data.table, one row per meter and quantity (E_A, P_I): percent per hour and
#'   over the campaign with 95 % interval; verdict drift, no_drift_seen or cannot_tell.
#' @export
ea_drift <- function(listed, campaign) {
  sources <- c("node", "meter_id", "device_model", "power_source", "radio_source")
  series <- rbindlist(list(
    energy_series(listed, sources), idle_series(usable_results(campaign$results), sources)
  ))
  if (nrow(series) == 0L) {
    return(empty_rows("ea_drift", drift_columns))
  }
  drift <- series[, drift_of(.SD), by = c(sources, "quantity")]
  setcolorder(drift, drift_columns)
  drift[order(match(meter_id, campaign$meters$meter_id), quantity)]
}

# One value per mini-block: t_s, the mean deviation, and the cell that it deviates from.
energy_series <- function(listed, sources) {
  if (nrow(listed) == 0L) {
    return(NULL)
  }
  cell <- c("payload_bytes", "offered_rate_mbps", "direction", "pacing", "window_us", "gso")
  series <- listed[, list(t_s = mean(t_s), y = mean(deviation_percent), runs = .N), by = c(
    sources, cell, "mini_block", "attempt"
  )]
  series[, group := .GRP, by = cell]
  series[, quantity := rep("E_A", .N)]
  series[, c(sources, "quantity", "t_s", "y", "group", "runs"), with = FALSE]
}

idle_series <- function(rows, sources) {
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  rows <- rows[!is.na(p_i_w) & p_i_w > 0 & !is.na(window_t_start_s)]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  series <- rows[, list(
    t_s = mean((window_t_start_s + window_t_end_s) / 2), p_i_w = mean(p_i_w), runs = .N
  ), by = c(sources, "mini_block", "attempt")]
  series[, y := percent_of(p_i_w, mean(p_i_w)), by = sources]
  series[, `:=`(group = rep(1L, .N), quantity = rep("P_I", .N))]
  series[, c(sources, "quantity", "t_s", "y", "group", "runs"), with = FALSE]
}

drift_of <- function(series) {
  hours <- series$t_s / 3600
  trend <- within_trend(hours, series$y, series$group)
  span <- diff(range(hours))
  list(
    runs_n = sum(series$runs), mini_blocks_n = nrow(series), cells_n = trend$groups, t_first_s = min(series$t_s),
    span_s = 3600 * span, trend_percent_per_hour = trend$slope, trend_ci95_low = trend$low,
    trend_ci95_high = trend$high, change_percent = trend$slope * span, change_ci95_low = trend$low * span,
    change_ci95_high = trend$high * span, autocorrelation_ratio = trend$autocorrelation, freedom = trend$freedom,
    verdict = drift_verdict(trend), reason = if (is.na(trend$low)) "few_mini_blocks" else NA_character_
  )
}

drift_verdict <- function(trend) {
  if (is.na(trend$low)) {
    "cannot_tell"
  } else if (trend$low > 0 || trend$high < 0) {
    "drift"
  } else {
    "no_drift_seen"
  }
}

#' Straight line over time, the same slope in groups that have means of their own
#'
#' Least squares within groups. Neighbours in time that err alike say less than
#' independent ones: a positive autocorrelation r of the residuals at lag 1, in the order
#' of time, leaves (1 - r) / (1 + r) of the degrees of freedom (Santer et al., J. Geophys.
#' Res. 105 (2000) 7337), at least one.
#'
#' @param t times, any unit.
#' @param y values.
#' @param group what each value belongs to.
#' @return list groups, slope with 95 % interval low and high (unit of y per unit of t),
#'   autocorrelation, freedom; NA where there are too few values or one time only.
#' @noRd
within_trend <- function(t, y, group) {
  sorted <- order(t)
  group <- group[sorted]
  x <- t[sorted] - stats::ave(t[sorted], group)
  y <- y[sorted] - stats::ave(y[sorted], group)
  groups <- length(unique(group))
  freedom <- length(y) - groups - 1
  spread <- sum(x^2)
  if (freedom < 1 || spread == 0) {
    return(list(
      groups = groups, slope = NA_real_, low = NA_real_, high = NA_real_, autocorrelation = NA_real_,
      freedom = NA_real_
    ))
  }
  slope <- sum(x * y) / spread
  residuals <- y - slope * x
  r <- max(0, lag_one_correlation(residuals))
  freedom <- max(1, freedom * (1 - r) / (1 + r))
  half <- qt(0.975, freedom) * sqrt(sum(residuals^2) / freedom / spread)
  list(
    groups = groups, slope = slope, low = slope - half, high = slope + half, autocorrelation = r, freedom = freedom
  )
}

lag_one_correlation <- function(residuals) {
  power <- sum(residuals^2)
  if (power == 0) 0 else sum(residuals[-1] * residuals[-length(residuals)]) / power
}
