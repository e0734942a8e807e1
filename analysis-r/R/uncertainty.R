# SPDX-License-Identifier: Apache-2.0

# What the mean of a cell is uncertain by, source by source: run-to-run spread, metering, and in a modelled
# campaign the parameters of the device model.

#' Uncertainty of each cell's E_A, by source
#'
#' `u95_runs` is the half-width of the 95 % t interval over blocks: it shrinks with more blocks. `u95_meter` is that of
#' one run's metering: most of it (gain, range error) is common to all runs of an instrument and does not shrink, so
#' it is separate. In a modelled campaign `u95_model` is what the device model's parameters add, by Monte Carlo over
#' their stated uncertainties, and the total interval holds all three: t over blocks, normal metering, drawn
#' parameters (JCGM 101). A cell with a run that the device stream does not cover, or without u95_meter, has no total.
#' Parameters whose source states no uncertainty are held and are in no interval. All cells share their draws, so each
#' interval is right by itself and what chance makes of one it makes of all.
#'
#' @param campaign from [read_campaign()].
#' @param model from model_sensitivity(); NULL: no parameters are drawn.
#' @return data.table by the contract ea_uncertainty.table.json, one row per meter and cell with an E_A; NULL when
#'   the campaign has none. All half-widths in J/Mb.
#' @noRd
ea_uncertainty <- function(campaign, model = NULL) {
  rows <- usable_results(campaign$results)
  if (all(is.na(rows$ea))) {
    return(NULL)
  }
  rows <- without_control(rows, campaign)[!is.na(ea)]
  seed <- campaign_seed(campaign, "ea_uncertainty")
  cells <- in_cell_order(rows[, cell_uncertainty(.SD, model[[.BY$meter_id]], seed), by = c(cell_keys(campaign))])
  setcolorder(cells, cell_keys(campaign))
  cells[]
}

cell_uncertainty <- function(rows, model, seed) {
  per_block <- block_means(rows, rows$ea)
  runs <- mean_interval(per_block)
  meter <- mean_or_na(rows$u95_ea_j_per_mbit)
  shifts <- cell_shifts(rows, model)
  total <- total_interval(per_block, meter, shifts, seed)
  list(
    n = runs$n, ea_j_per_mbit_mean = runs$mean,
    sd_runs_j_per_mbit = if (runs$n > 1L) sd(per_block) else NA_real_,
    u95_runs_j_per_mbit = runs$high - runs$mean, u95_meter_j_per_mbit = meter,
    u95_model_j_per_mbit = if (is.null(shifts)) NA_real_ else diff(limits_95(shifts)) / 2,
    ea_total_ci95_low = total[1], ea_total_ci95_high = total[2]
  )
}

#' What each draw of the parameters moves a cell's mean by
#'
#' @return numeric vector in J/Mb, one per draw; NULL where it is not known of every run.
#' @noRd
cell_shifts <- function(rows, model) {
  place <- match(rows$run_id, model$runs)
  if (anyNA(place)) {
    return(NULL)
  }
  moved <- model$watts[place, , drop = FALSE] / rows$t_a_mbps
  of_blocks <- rowsum(moved, rows$block) / as.vector(table(rows$block))
  as.vector(colMeans(of_blocks) %*% model$draws)
}

# No total without a model's parameters: what a meter is wrong by in common stays apart from the scatter of runs. And
# none without metering, which it says to hold.
total_interval <- function(per_block, u95_meter, shifts, seed) {
  n <- length(per_block)
  if (is.null(shifts) || n < 2L || is.na(u95_meter)) {
    return(c(NA_real_, NA_real_))
  }
  u_meter <- u95_meter / normal_97_5
  drawn <- with_seed(seed, {
    stratified_t(length(shifts), n - 1) * sd(per_block) / sqrt(n) + u_meter * stratified(stats::qnorm, length(shifts))
  })
  limits_95(mean(per_block) + drawn + shifts)
}

stratified_t <- function(draws, freedom) stratified(function(p) qt(p, freedom), draws)

limits_95 <- function(x) stats::quantile(x, c(0.025, 0.975), names = FALSE)

#' Interval of a contrast with the device model's parameters
#'
#' The parameters are common to both arms of a pair: each draw moves both, and much of it cancels in the ratio.
#' Metering is not added: a gain error cancels in the ratio, and what runs have of their own is in their scatter.
#'
#' @param d block means of the log-ratio; used: the pairs behind them; keys, context: see contrast_of().
#' @return list difference_model_ci95_low, difference_model_ci95_high in percent; NA without a model.
#' @noRd
model_interval <- function(d, used, keys, context) {
  model <- context$model[[keys$meter_id]]
  shifts <- if (length(d) > 1L) log_ratio_shifts(model, used)
  if (is.null(shifts)) {
    return(list(difference_model_ci95_low = NA_real_, difference_model_ci95_high = NA_real_))
  }
  scatter <- with_seed(context$seed, stratified_t(length(shifts), length(d) - 1)) * sd(d) / sqrt(length(d))
  ends <- limits_95(mean(d) + scatter + shifts)
  list(difference_model_ci95_low = as_percent(ends[1]), difference_model_ci95_high = as_percent(ends[2]))
}

log_ratio_shifts <- function(model, used) {
  own <- match(used$run_id, model$runs)
  reference <- match(used$run_id_ref, model$runs)
  if (anyNA(own) || anyNA(reference)) {
    return(NULL)
  }
  # A draw that leaves no energy has no logarithm.
  moved <- function(place) {
    relative <- model$watts[place, , drop = FALSE] / model$delta_p_w[place]
    log1p(pmax(relative %*% model$draws, -0.999))
  }
  colMeans(moved(own) - moved(reference))
}
