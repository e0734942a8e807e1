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
  rows <- rows[transport != "null"]
  rows[, limit := mostly_below(sum(below_resolution), uniqueN(block)), by = c(cell_keys(campaign))]
  rows[, kept := !hollow & !limit & !is.na(ea)]
  keys <- setdiff(cell_keys(campaign), "payload_bytes")
  left_out <- rows[, list(runs_left_out = sum(!kept)), by = keys]
  cells <- rows[kept == TRUE, c(
    mean_interval(block_means(.SD, ea)), list(runs = .N, below = sum(below_resolution))
  ), by = c(cell_keys(campaign))]
  band <- left_out[cells[, envelope_of(.SD, uniqueN(rows$payload_bytes)), by = keys], on = keys]
  in_cell_order(table_of("envelope", band), c(
    "meter_id", "pacing", "window_us", "gso", "transport", "direction", "offered_rate_mbps"
  ))
}

envelope_of <- function(cells, sizes) {
  end <- function(cell, name) {
    ea <- sprintf(c("payload_bytes_%s", "ea_%s_j_per_mbit", "ea_%s_ci95_low", "ea_%s_ci95_high"), name)
    stats::setNames(as.list(cell[, c("payload_bytes", "mean", "low", "high"), with = FALSE]), ea)
  }
  c(
    list(payload_sizes = nrow(cells), complete = nrow(cells) == sizes),
    end(cells[which.min(mean)], "least"), end(cells[which.max(mean)], "greatest"),
    list(n_runs = sum(cells$runs), below_resolution_n = sum(cells$below))
  )
}
