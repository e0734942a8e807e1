# SPDX-License-Identifier: Apache-2.0

#' Energy envelope: least and greatest E_A over payload sizes, per transport and load
#'
#' Hollow runs (device model extrapolated) are left out, and cells of which most
#' runs are below the meter's resolution; of other cells all runs count, because
#' the mean of the resolved ones would be too high. A band is `complete` when every
#' payload size of the campaign is still in it; an incomplete band is narrower than
#' the truth and is not filled in figures.
#'
#' @param campaign from [read_campaign()].
#' @return data.table node, meter_id, device_model, power_source, radio_source,
#'   transport, direction, offered_rate_mbps (Mb/s), payload_sizes, complete,
#'   payload_bytes_least, ea_least_j_per_mbit with 95 % interval, and the same of
#'   the greatest; n_runs, runs_left_out, below_resolution_n (runs of the band).
#' @examples
#' ea_envelope(example_campaign())
#' @export
ea_envelope <- function(campaign) {
  rows <- usable_results(campaign$results)
  if (nrow(rows) == 0L) {
    return(empty_rows("envelope", envelope_columns))
  }
  rows <- rows[transport != "null"]
  rows[, limit := mostly_below(sum(below_resolution), length(unique(block_key))), by = c(cell_keys(campaign))]
  rows[, kept := !hollow & !limit & !is.na(ea)]
  keys <- setdiff(cell_keys(campaign), "payload_bytes")
  left_out <- rows[, list(runs_left_out = sum(!kept)), by = keys]
  per_block <- rows[kept == TRUE, list(
    ea = mean(ea), runs = .N, below = sum(below_resolution)
  ), by = c(cell_keys(campaign), "block_key")]
  cells <- per_block[, c(
    mean_interval(ea)[c("mean", "low", "high")], list(runs = sum(runs), below = sum(below))
  ), by = c(cell_keys(campaign))]
  sizes <- length(unique(rows$payload_bytes))
  band <- cells[, envelope_of(.SD, sizes), by = keys]
  band <- left_out[band, on = keys]
  band <- band[order(
    meter_id, pacing != "absolute", pacing, window_us, gso, transport_factor(transport), direction, offered_rate_mbps
  )]
  setcolorder(band, envelope_columns)
  band[]
}

envelope_columns <- c(
  "node", "meter_id", "device_model", "power_source", "radio_source", "transport", "direction", "offered_rate_mbps",
  "payload_sizes", "complete", "payload_bytes_least", "ea_least_j_per_mbit", "ea_least_ci95_low", "ea_least_ci95_high",
  "payload_bytes_greatest", "ea_greatest_j_per_mbit", "ea_greatest_ci95_low", "ea_greatest_ci95_high", "n_runs",
  "runs_left_out", "pacing", "window_us", "gso", "below_resolution_n"
)

envelope_of <- function(cells, sizes) {
  least <- cells[which.min(mean)]
  greatest <- cells[which.max(mean)]
  list(
    payload_sizes = nrow(cells), complete = nrow(cells) == sizes,
    payload_bytes_least = least$payload_bytes, ea_least_j_per_mbit = least$mean, ea_least_ci95_low = least$low,
    ea_least_ci95_high = least$high, payload_bytes_greatest = greatest$payload_bytes,
    ea_greatest_j_per_mbit = greatest$mean, ea_greatest_ci95_low = greatest$low,
    ea_greatest_ci95_high = greatest$high, n_runs = sum(cells$runs), below_resolution_n = sum(cells$below)
  )
}
