# SPDX-License-Identifier: Apache-2.0

# The readings of one mini-block: what a window of a run looks like at the meter.

# More readings than this are drawn as means of neighbours, with their least and greatest.
most_trace_points <- 1000

trace_columns <- c(
  "node", "meter_id", "device_model", "power_source", "radio_source", "mini_block", "attempt", "t_s", "power_w",
  "power_least_w", "power_greatest_w", "readings_n", "window", "run_id"
)

#' Readings of one mini-block of each meter, with the windows that they lie in
#'
#' Of each meter a mini-block with the most runs that count, of the cell with the greatest
#' power above idle, where the windows are best distinguished; of these the one
#' whose P_A lie nearest to the medians of their cells.
#' A reading is placed where it belongs in time: its meter's lag is taken off, and of a
#' meter that averages, half an update interval.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per reading or, of more than 1,000, per few neighbours:
#'   t_s (s), power_w (mean, W) with the least and greatest reading, window (idle,
#'   warm_up, measure, tail, or empty between them), run_id and the arm, by the name of its factor (empty when
#'   idle: an idle window belongs to the runs on both sides).
#' @examples
#' power_trace(example_campaign())
#' @export
power_trace <- function(campaign) {
  traces <- lapply(split(campaign$meters, by = "meter_id"), function(meter) trace_of_meter(campaign, meter))
  types <- c(schema_columns("power_trace"), factor_columns(campaign$arm, campaign$contracts))
  rbindlist(c(list(empty_rows(types[c(trace_columns, campaign$arm)])), traces))
}

trace_of_meter <- function(campaign, meter) {
  shown <- shown_mini_block(campaign, meter$meter_id)
  if (is.null(shown)) {
    return(NULL)
  }
  campaign <- Find(function(one) any(one$runs$run_id %in% shown$run_id), by_block(campaign))
  meter <- campaign$meters[meter_id == meter$meter_id]
  runs <- campaign$runs[run_id %in% shown$run_id]
  spans <- trace_windows(runs)
  delay_s <- meter$lag_s + if (meter$semantics == "interval_mean") meter$update_interval_s / 2 else 0
  if (!file.exists(file.path(campaign$dir, "meters", paste0(meter$meter_id, ".csv")))) {
    return(NULL)
  }
  readings <- read_meter(campaign, meter$meter_id)[, t_s := t_s - delay_s]
  readings <- readings[t_s >= min(spans$from_s) & t_s <= max(spans$to_s) & flag == "" & !is.na(power_w)]
  if (nrow(readings) == 0L) {
    return(NULL)
  }
  trace <- label_windows(thinned(readings, most_trace_points), spans)
  first <- shown[1]
  for (column in c(meter_keys, "mini_block", "attempt")) {
    set(trace, j = column, value = rep(first[[column]], nrow(trace)))
  }
  setnames(trace[, c(trace_columns, "arm"), with = FALSE], "arm", campaign$arm)
}

# Results of the mini-block to show at a meter; NULL when none can be shown.
shown_mini_block <- function(campaign, id) {
  rows <- usable_results(campaign$results)
  runs <- campaign$runs
  whole <- runs$run_id[!is.na(runs$idle_before_start_s) & !is.na(runs$idle_after_end_s) & !is.na(runs$measure_end_s)]
  rows <- rows[meter_id == id & run_id %in% whole & !is.na(p_a_w)]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  rows[, apart_w := abs(p_a_w - stats::median(p_a_w)), by = c(cell_keys(campaign))]
  # Rounded: distances that differ by rounding alone are ties.
  blocks <- rows[, list(
    runs = .N, power_w = mean(delta_p_w), apart_w = round(max(apart_w), 9L)
  ), by = c("mini_block", "attempt", campaign$factors)]
  blocks <- blocks[runs == max(runs)]
  blocks[, power_w := mean(power_w), by = c(campaign$factors)]
  best <- blocks[order(-power_w, apart_w, mini_block, attempt)][1]
  rows[mini_block == best$mini_block & attempt == best$attempt]
}

# Windows of runs in long form; idle windows bear no run.
trace_windows <- function(runs) {
  spans <- rbindlist(lapply(window_names, function(name) {
    idle <- grepl("^idle", name)
    data.table(
      window = if (idle) "idle" else name, run_id = if (idle) NA_character_ else runs$run_id,
      arm = if (idle) NA_character_ else as.character(runs$arm), from_s = runs[[paste0(name, "_start_s")]],
      to_s = runs[[paste0(name, "_end_s")]]
    )
  }))
  unique(spans[!is.na(from_s) & !is.na(to_s)])
}

# Means of neighbouring readings, with their least and greatest; each reading for itself where there are few.
thinned <- function(readings, most) {
  together <- ceiling(nrow(readings) / most)
  readings[, bin := (seq_len(.N) - 1L) %/% together]
  binned <- readings[, list(
    t_s = mean(t_s), power_w = mean(power_w), power_least_w = min(power_w), power_greatest_w = max(power_w),
    readings_n = .N
  ), by = bin]
  binned[, bin := NULL]
  binned[]
}

label_windows <- function(trace, spans) {
  trace[, `:=`(window = NA_character_, run_id = NA_character_, arm = NA_character_)]
  for (i in seq_len(nrow(spans))) {
    inside <- which(trace$t_s >= spans$from_s[i] & trace$t_s < spans$to_s[i])
    for (column in c("window", "run_id", "arm")) set(trace, inside, column, spans[[column]][i])
  }
  trace[]
}

#' Power of a node's radio whose states are modelled, in the windows of runs
#'
#' @param rows results of runs of one block, with their run_id and node.
#' @return data.table run_id, window, t_s (s), power_w (W, mean of a step); NULL where no log tells it.
#' @noRd
radio_trace <- function(campaign, rows) {
  campaign <- Find(function(one) any(one$runs$run_id %in% rows$run_id), by_block(campaign))
  path <- file.path(campaign$dir, "radio", paste0(rows$node[1], ".csv"))
  if (nrow(rows) == 0L || !file.exists(path)) {
    return(NULL)
  }
  log <- read_contract_csv(path, "radio", campaign$contracts, c("t_s", "state_energy_j"))$rows
  if (!"state_energy_j" %in% names(log)) {
    return(NULL)
  }
  spans <- trace_windows(campaign$runs[run_id %in% rows$run_id])
  log[, power_w := state_energy_j / (t_s - shift(t_s))]
  log <- log[t_s >= min(spans$from_s) & t_s <= max(spans$to_s) & !is.na(power_w)]
  if (nrow(log) > 0L) label_windows(thinned(log, most_trace_points), spans)
}
