# SPDX-License-Identifier: Apache-2.0

#' How often each PHY mode was read in each run
#'
#' Radio readings inside the measure windows of usable runs, counted per run, node
#' and direction: tx is the last frame that the node had sent at each reading, rx
#' the last one it had received. Readings without a rate are a row without one; a
#' direction that was never read (iwconfig tells none received) has no rows.
#'
#' @param campaign from [read_campaign()].
#' @return data.table run_id, node, direction (tx, rx), phy_rate_mbps (Mb/s), mcs,
#'   streams, width_mhz, guard_interval_ns, share (of the run's readings of this node
#'   and direction), readings.
#' @examples
#' mcs_histogram(example_campaign())
#' @export
mcs_histogram <- function(campaign) {
  received <- paste0("rx_", mode_columns)
  read <- radio_readings(campaign, campaign$runs, c("t_s", mode_columns, received), "run_id")
  # A direction without columns, as in files of earlier versions, was never read.
  of <- function(modes) {
    if (all(modes %in% names(read))) setnames(read[, c("run_id", "node", modes), with = FALSE], modes, mode_columns)
  }
  told <- rbindlist(list(tx = of(mode_columns), rx = of(received)), idcol = "direction")
  if (nrow(told) == 0L) {
    return(table_of("mcs_histogram"))
  }
  counted <- told[, list(readings = .N), by = c("run_id", "node", "direction", mode_columns)]
  counted <- counted[counted[, .I[!all(is.na(phy_rate_mbps))], by = list(run_id, node, direction)]$V1]
  counted[, share := readings / sum(readings), by = list(run_id, node, direction)]
  counted <- table_of("mcs_histogram", counted)
  setorderv(counted, c("run_id", "node", "direction", mode_columns))[]
}

mode_columns <- c("phy_rate_mbps", "mcs", "streams", "width_mhz", "guard_interval_ns")
