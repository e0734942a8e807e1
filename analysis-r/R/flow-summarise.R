# SPDX-License-Identifier: Apache-2.0

#' Summarise E_A per cell: mean and 95 % interval over blocks
#'
#' The block is the unit of replication: several runs of a cell in a block count
#' once, by their mean. `u95_meter` is the mean meter uncertainty of one run,
#' kept apart from the run-to-run interval because most of it is common to all.
#'
#' @param campaign from [read_campaign()], or what [compute_campaign_ea()] gave, whole: then energies are those that
#'   it recomputed, and the rest is the campaign's.
#' @return data.table with the columns of tables/ea_summary.csv, ordered by cell.
#' @examples
#' summarise_ea(example_campaign())[, c("transport", "payload_bytes", "offered_rate_mbps", "ea_j_per_mbit_mean")]
#' @export
summarise_ea <- function(campaign) {
  source <- if (is.data.frame(campaign)) attr(campaign, "campaign") else campaign
  rows <- usable_results(if (is.data.frame(campaign)) recomputed_results(campaign) else campaign$results)
  keys <- cell_keys(source)
  rows <- without_selected_floors(null_floor(with_wake_ups_differ(rows)), keys)
  in_cell_order(table_of("ea_summary", rows[, summarise_cell(.SD), by = keys]))
}

#' Results of a campaign with the energies that were recomputed
#' @noRd
recomputed_results <- function(recomputed) {
  campaign <- attr(recomputed, "campaign")
  if (is.null(campaign)) {
    abort_netjoule(
      "summarise_ea() takes a campaign, or the rows of compute_campaign_ea() as they are: these are other rows.",
      exit_code = exit_codes$usage
    )
  }
  keys <- c("run_id", "meter_id")
  columns <- setdiff(intersect(names(recomputed), names(campaign$results)), c(keys, names(campaign$plan)))
  results <- copy(campaign$results)
  places <- recomputed[results[, keys, with = FALSE], on = keys, which = TRUE]
  found <- which(!is.na(places))
  for (column in columns) set(results, found, column, recomputed[[column]][places[found]])
  results
}

# Rows by these columns; of pacings absolute first, transports in the order of the legends, null last.
in_cell_order <- function(rows, by = cell_order) {
  columns <- lapply(by[by %in% names(rows)], function(name) {
    values <- rows[[name]]
    switch(name,
      pacing = list(values != "absolute", values),
      transport = list(transport_factor(as.character(values))),
      list(values)
    )
  })
  rows[do.call(order, unlist(columns, recursive = FALSE))]
}

cell_order <- c(
  "meter_id", "pacing", "window_us", "gso", "payload_bytes", "offered_rate_mbps", "transport", "direction"
)

# Columns of cells that are means over their runs, and those over blocks, without intervals.
means_of_runs <- c(
  "frames_per_message", "p_a_w", "p_i_w", "delta_p_w", "mean_ip_packet_bytes", "achieved_ratio", "tail_energy_j",
  "u95_floor_w", "u95_ea_above_floor_j_per_mbit"
)
means_of_blocks <- c("jitter_ms", "wake_ups_per_message", message_costs)

summarise_cell <- function(rows) {
  interval <- function(column, ...) interval_columns(block_means(rows, rows[[column]]), ...)
  c(
    list(n = uniqueN(rows$block)), interval("ea", "ea_j_per_mbit_mean", "ea"),
    interval("t_a_mbps", "goodput_mbps", "goodput"), interval("loss_ratio", "loss_ratio", "loss"),
    interval("floor_w", "floor_w", "floor"),
    interval("ea_above_floor_j_per_mbit", "ea_above_floor_j_per_mbit", "ea_above_floor"),
    lapply(rows[, means_of_runs, with = FALSE], mean_or_na), means_over_blocks(rows, means_of_blocks),
    list(
      u95_meter = mean_or_na(rows$u95_ea_j_per_mbit), below_resolution_n = sum(rows$below_resolution),
      ea_upper_limit_j_per_mbit = mean_or_na(rows$ea_upper_limit_j_per_mbit[rows$below_resolution]),
      hollow = any(rows$hollow), no_goodput_n = sum(is.na(rows$ea) & rows$t_a_mbps == 0, na.rm = TRUE),
      generator = listed(rows$generator), generator_version = listed(rows$generator_version),
      floor_ratio = floor_ratio_of(rows), floor_reason = codes_text(rows$floor_reason),
      wake_ups_differ_n = count_or_na(rows$wake_ups_differ), floor_n = sum(rows$has_floor)
    )
  )
}

# Share of P_A - P_I that the floor takes; none of a difference that the meter does not resolve.
floor_ratio_of <- function(rows) {
  with_floor <- rows[!is_null & !is.na(floor_w)]
  added <- mean_or_na(with_floor$delta_p_w)
  if (any(rows$below_resolution) || is.na(added) || added <= 0) NA_real_ else mean(with_floor$floor_w) / added
}

# Whether a run with a floor and the null run that gave it had different rates of wake-ups (NA where unknown).
with_wake_ups_differ <- function(rows) {
  of_null <- rows$wake_ups_per_message[match(rows$floor_run_id, rows$run_id)]
  differ <- wake_ups_differ(rows$wake_ups_per_message, of_null)
  rows[, wake_ups_differ := fifelse(transport != "null" & !is.na(floor_w), differ, NA)]
  rows[]
}

#' Give null runs the floor that the transports of their mini-block used, or why none did
#' @noRd
null_floor <- function(rows) {
  rows[, is_null := transport == "null"]
  used <- rows[is_null == FALSE & !is.na(floor_run_id), list(
    floor_w = floor_w[!is.na(floor_w)][1], u95_floor_w = u95_floor_w[!is.na(floor_w)][1],
    floor_reason = if (all(is.na(floor_w))) codes_text(floor_reason) else NA_character_
  ), by = list(meter_id, run_id = floor_run_id)]
  own <- used[rows, on = list(meter_id, run_id)]
  for (column in c("floor_w", "u95_floor_w", "floor_reason")) {
    set(rows, which(rows$is_null), column, own[[column]][rows$is_null])
  }
  rows[]
}

#' Leave the floor of a cell empty when one of its runs was refused one for its outcome
#'
#' Null runs that fill their core are those that draw most: the mean of the rest would be too low. Other reasons, such
#' as an invalid null run, leave the mean of the runs that have a floor.
#' @noRd
without_selected_floors <- function(rows, keys) {
  rows[, has_floor := !is.na(floor_w)]
  rows[, selected := any(floor_reason %in% outcome_refusals), by = keys]
  for (column in floor_numbers) set(rows, which(rows$selected), column, NA_real_)
  rows[]
}
