# SPDX-License-Identifier: Apache-2.0

# Did anything but the arms change E_A while the campaign ran? Each run is set against the mean of its own cell,
# so that cells and arms do not matter, and what is left is looked at in the order of the campaign.

order_columns <- function(campaign) {
  c(
    "run_id", cell_keys(campaign), "block", "mini_block", "attempt", "position", "t_s", "ea_j_per_mbit",
    "cell_ea_j_per_mbit", "deviation_percent"
  )
}

#' E_A of each run in the order of the campaign, as deviation from its cell's mean
#'
#' Hollow runs, runs below the meter's resolution, null runs and cells with fewer than
#' two mini-blocks tell nothing of drift and are left out.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per run and meter: position (1 is the first run listed of
#'   its meter), t_s (middle of the window, campaign time in s), deviation_percent of
#'   E_A from cell_ea_j_per_mbit.
#' @examples
#' ea_order(example_campaign())
#' @export
ea_order <- function(campaign) {
  rows <- usable_results(campaign$results)
  rows[, t_s := (window_t_start_s + window_t_end_s) / 2]
  rows <- without_control(rows, campaign)[!hollow & !below_resolution & !is.na(ea) & !is.na(t_s)]
  rows[, `:=`(cell_ea_j_per_mbit = mean(ea), mini_blocks = length(unique(mini_block))), by = c(cell_keys(campaign))]
  rows <- rows[cell_ea_j_per_mbit > 0 & mini_blocks > 1L]
  if (is_simulated(campaign)) rows <- rows[0]
  setorderv(rows, c("meter_id", "t_s"))
  rows[, `:=`(
    ea_j_per_mbit = ea, deviation_percent = percent_of(ea, cell_ea_j_per_mbit),
    position = as.numeric(rowid(meter_id))
  )]
  rows[, order_columns(campaign), with = FALSE]
}

# Nine decimals: what is left of equal numbers by rounding is no deviation.
percent_of <- function(value, reference) round(100 * (value / reference - 1), 9L)

#' Trend of E_A and of P_I over the campaign
#'
#' The mini-block is the unit: its runs share minutes and idle windows, so that their
#' deviations count once, by their mean. Deviations of E_A are from the means of cells,
#' those of P_I from the campaign's mean; the trend
#' is `within_trend()`'s. `change_percent` is the trend times the time from the first to
#' the last run. `within_percent_per_hour` is the trend when each session has a mean of its
#' own, so that a pause has no part in it. Idle power of a modelled meter that is one
#' number, within the meter's least step, is called constant and not tested.
#'
#' @param listed from [ea_order()].
#' @param campaign from [read_campaign()], for P_I and the sessions.
#' @return data.table, one row per meter and quantity (E_A, P_I): percent per hour and
#'   over the campaign with 95 % interval; verdict drift, no_drift_seen, cannot_tell or
#'   constant.
#' @examples
#' campaign <- example_campaign()
#' ea_drift(ea_order(campaign), campaign)
#' @export
ea_drift <- function(listed, campaign) {
  drift_table(listed, campaign, drift_of, "ea_drift")
}

# What a function tells of each meter and quantity, in the campaign's order of meters.
drift_table <- function(listed, campaign, told_of, name) {
  # Simulated runs have no order in time.
  series <- if (is_simulated(campaign)) data.table() else drift_series(listed, campaign)
  if (nrow(series) == 0L) {
    return(table_of(name))
  }
  rows <- table_of(name, series[, told_of(.SD), by = c(meter_keys, "quantity")])
  rows[order(match(meter_id, campaign$meters$meter_id), quantity)]
}

#' Level and trend of E_A and of P_I in each session
#'
#' @inheritParams ea_drift
#' @return data.table, one row per meter, quantity and session (1 is the first session of campaign.json): the mean
#'   deviation of its runs, and its own trend beside the means of cells and sessions.
#' @noRd
ea_drift_sessions <- function(listed, campaign) {
  drift_table(listed, campaign, sessions_of, "ea_drift_sessions")
}

# When each session but the first began, campaign time in s.
later_sessions_s <- function(campaign) {
  starts <- vapply(pick(campaign$meta, "sessions", default = list()), pick_number, 0, "t_start_s")
  sort(starts[!is.na(starts)])[-1]
}

# Number of the session that a time lies in.
session_of <- function(t_s, campaign) findInterval(t_s, later_sessions_s(campaign)) + 1L

# Both quantities: one value per mini-block with the cell and the session that it lies in.
drift_series <- function(listed, campaign) {
  idle <- idle_series(usable_results(campaign$results), campaign)
  listed <- copy(listed)[, rig := campaign$runs$rig[match(run_id, campaign$runs$run_id)]]
  series <- rbindlist(list(energy_series(listed, campaign$factors), idle))
  if (nrow(series) > 0L) series[, session := session_of(t_s, campaign)]
  series[]
}

series_columns <- c(meter_keys, "quantity", "t_s", "y", "group", "runs", "constant")

# One value per mini-block: t_s, the mean deviation, and the cell, on its rig, that it deviates from.
energy_series <- function(listed, cell) {
  if (nrow(listed) == 0L) {
    return(NULL)
  }
  series <- listed[, list(t_s = mean(t_s), y = mean(deviation_percent), runs = .N), by = c(
    meter_keys, cell, "rig", "mini_block", "attempt"
  )]
  series[, group := .GRP, by = c(cell, "rig")]
  series[, `:=`(quantity = rep("E_A", .N), constant = rep(FALSE, .N))]
  series[, series_columns, with = FALSE]
}

idle_series <- function(rows, campaign) {
  rows <- rows[!is.na(p_i_w) & p_i_w > 0 & !is.na(window_t_start_s)]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  rows[, constant := constant_idle(p_i_w, power_source[1], .BY$meter_id, campaign), by = meter_id]
  series <- rows[, list(
    t_s = mean((window_t_start_s + window_t_end_s) / 2), p_i_w = mean(p_i_w), runs = .N, constant = constant[1]
  ), by = c(meter_keys, "rig", "mini_block", "attempt")]
  series[, y := percent_of(p_i_w, mean(p_i_w)), by = meter_keys]
  series[, `:=`(group = .GRP, quantity = rep("P_I", .N)), by = rig]
  series[, series_columns, with = FALSE]
}

# Whether the idle power of a modelled meter is one number, within its least step: it then cannot show drift.
constant_idle <- function(p_i_w, power_source, id, campaign) {
  passport <- Find(
    function(one) identical(pick_text(one, "meter_id"), id), pick(campaign$meta, "meters", default = list())
  )
  step_w <- pick_number(passport, "resolution")
  agree <- length(p_i_w) > 1L && diff(range(p_i_w)) <= (if (is.na(step_w)) 0 else step_w) + least_noise_w
  power_source %in% "modelled" && agree
}

drift_of <- function(series) {
  hours <- series$t_s / 3600
  constant <- series$constant[1]
  trend <- within_trend(hours, series$y, series$group)
  within <- within_trend(hours, series$y, series$group, series$session)
  if (constant) trend <- within <- no_trend(trend$groups, 1L)
  span <- diff(range(hours))
  list(
    runs_n = sum(series$runs), mini_blocks_n = nrow(series), cells_n = trend$groups, t_first_s = min(series$t_s),
    span_s = 3600 * span, trend_percent_per_hour = trend$slope, trend_ci95_low = trend$low,
    trend_ci95_high = trend$high, change_percent = trend$slope * span, change_ci95_low = trend$low * span,
    change_ci95_high = trend$high * span, autocorrelation_ratio = trend$autocorrelation, freedom = trend$freedom,
    verdict = drift_verdict(trend, constant), reason = fcoalesce(
      drift_reason(trend, constant), if (is.na(within$low)) "few_in_sessions" else NA_character_
    ),
    sessions_n = uniqueN(series$session), within_percent_per_hour = within$slope, within_ci95_low = within$low,
    within_ci95_high = within$high
  )
}

sessions_of <- function(series) {
  constant <- series$constant[1]
  rows <- series[, list(
    runs_n = sum(runs), mini_blocks_n = .N, t_first_s = min(t_s), span_s = diff(range(t_s)),
    mean_percent = sum(runs * y) / sum(runs)
  ), keyby = session]
  trend <- within_trend(series$t_s / 3600, series$y, series$group, series$session, each = TRUE)
  if (constant) trend <- no_trend(trend$groups, nrow(rows))
  hours <- rows$span_s / 3600
  rows[, `:=`(
    trend_percent_per_hour = trend$slope, trend_ci95_low = trend$low, trend_ci95_high = trend$high,
    change_percent = trend$slope * hours, change_ci95_low = trend$low * hours, change_ci95_high = trend$high * hours,
    verdict = drift_verdict(trend, constant), reason = drift_reason(trend, constant)
  )]
  rows[]
}

drift_verdict <- function(trend, constant) {
  fcase(
    rep(constant, length(trend$low)), "constant",
    is.na(trend$low), "cannot_tell",
    trend$low > 0 | trend$high < 0, "drift",
    default = "no_drift_seen"
  )
}

drift_reason <- function(trend, constant) {
  fifelse(is.na(trend$low), if (constant) "constant_in_model" else "few_mini_blocks", NA_character_)
}

#' Straight line over time, the same slope in groups that have means of their own
#'
#' Least squares beside the means of groups and of sessions. Neighbours in time that err
#' alike say less than independent ones: a positive autocorrelation r of the residuals at
#' lag 1, in the order of time, leaves (1 - r) / (1 + r) of the degrees of freedom (Santer
#' et al., J. Geophys. Res. 105 (2000) 7337), at least one.
#'
#' @param t times, any unit.
#' @param y values.
#' @param group,session what each value belongs to.
#' @param each a slope for each session, in their order, instead of one for all.
#' @return list groups, slope with 95 % interval low and high (unit of y per unit of t),
#'   autocorrelation, freedom; NA where there are too few values or one time only.
#' @noRd
within_trend <- function(t, y, group, session = rep(1L, length(t)), each = FALSE) {
  sorted <- order(t)
  t <- t[sorted]
  group <- group[sorted]
  session <- session[sorted]
  means <- qr(mean_columns(group, session))
  x <- qr.resid(means, if (each) t * outer(session, sort(unique(session)), `==`) else cbind(t))
  y <- qr.resid(means, y[sorted])
  told <- colSums(x^2) > 1e-20 * sum(t^2)
  found <- no_trend(length(unique(group)), ncol(x))
  freedom <- length(y) - means$rank - sum(told)
  if (freedom < 1 || !any(told)) {
    return(found)
  }
  solved <- qr(x[, told, drop = FALSE])
  if (solved$rank < sum(told)) {
    return(found)
  }
  residuals <- qr.resid(solved, y)
  r <- max(0, lag_one_correlation(residuals))
  freedom <- max(1, freedom * (1 - r) / (1 + r))
  half <- qt(0.975, freedom) * sqrt(sum(residuals^2) / freedom * diag(chol2inv(qr.R(solved))))
  found$slope[told] <- unname(qr.coef(solved, y))
  found$low[told] <- found$slope[told] - half
  found$high[told] <- found$slope[told] + half
  found$autocorrelation <- r
  found$freedom <- freedom
  found
}

# A column for each mean that is taken off: of all values, and what each further group and session has beside it.
mean_columns <- function(group, session) {
  cbind(
    rep(1, length(group)), outer(group, unique(group)[-1], `==`), outer(session, unique(session)[-1], `==`)
  )
}

no_trend <- function(groups, slopes) {
  unknown <- rep(NA_real_, slopes)
  list(groups = groups, slope = unknown, low = unknown, high = unknown, autocorrelation = NA_real_, freedom = NA_real_)
}

lag_one_correlation <- function(residuals) {
  power <- sum(residuals^2)
  if (power == 0) 0 else sum(residuals[-1] * residuals[-length(residuals)]) / power
}
