# SPDX-License-Identifier: Apache-2.0

#' Share of measured time at each PHY rate, per cell
#'
#' Radio samples inside the measure windows of usable runs, counted per node,
#' transport, payload and load. Samples without a rate are counted apart.
#'
#' @param campaign from [read_campaign()].
#' @return data.table node, radio_source, transport, payload_bytes, offered_rate_mbps,
#'   phy_rate_mbps (Mb/s), mcs, streams, width_mhz, guard_interval_ns, samples, share.
#' @examples
#' phy_rate_shares(example_campaign())
#' @export
phy_rate_shares <- function(campaign) {
  cell <- c("transport", "payload_bytes", "offered_rate_mbps")
  read <- radio_readings(campaign, campaign$runs[transport != "null"], needed_columns$radio, c("radio_source", cell))
  if (is.null(read) || all(is.na(read$phy_rate_mbps))) {
    return(table_of("phy_rates"))
  }
  counted <- read[!is.na(phy_rate_mbps), list(samples = .N), by = c("node", "radio_source", cell, mode_columns)]
  counted[, share := samples / sum(samples), by = c("node", cell)]
  setorderv(counted, c("node", cell, "phy_rate_mbps"))[]
}

#' Readings of each node's radio inside the measure windows of usable runs
#'
#' @param runs of these alone.
#' @param columns of the readings; of_run: of the run that each lies in.
#' @return data.table node, columns, of_run; NULL without readings or runs.
#' @noRd
radio_readings <- function(campaign, runs, columns, of_run) {
  ids <- runs[usable == TRUE & measurable == TRUE, run_id]
  read <- lapply(by_block(campaign), function(one) {
    readings_of_folder(one, one$runs[run_id %in% ids], columns, of_run)
  })
  read <- Filter(Negate(is.null), read)
  if (length(read) > 0L) rbindlist(read, fill = TRUE)
}

readings_of_folder <- function(campaign, runs, columns, of_run) {
  paths <- list.files(file.path(campaign$dir, "radio"), pattern = "\\.csv$", full.names = TRUE)
  if (length(paths) == 0L || nrow(runs) == 0L) {
    return(NULL)
  }
  names(paths) <- sub("\\.csv$", "", basename(paths))
  windows <- runs[, c(mget(of_run), list(from = measure_start_s, to = measure_end_s))]
  rbindlist(lapply(paths, function(path) {
    rows <- read_contract_csv(path, "radio", campaign$contracts, columns)$rows
    rows[, at_s := t_s]
    rows[windows, on = list(at_s >= from, at_s < to), nomatch = NULL, mget(c(of_run, intersect(columns, names(rows))))]
  }), idcol = "node", fill = TRUE)
}
