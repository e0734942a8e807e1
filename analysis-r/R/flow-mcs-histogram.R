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
  runs <- campaign$runs[usable == TRUE & measurable == TRUE]
  files <- list.files(file.path(campaign$dir, "radio"), pattern = "\\.csv$")
  counted <- lapply(files, function(file) {
    columns <- c("t_s", mode_columns, paste0("rx_", mode_columns))
    rows <- read_contract_csv(file.path(campaign$dir, "radio", file), "radio", campaign$contracts, columns)$rows
    count_modes(rows, sub("\\.csv$", "", file), runs)
  })
  counted <- rbindlist(c(list(table_of("mcs_histogram")), counted))
  setorderv(counted, c("run_id", "node", "direction", mode_columns))[]
}

mode_columns <- c("phy_rate_mbps", "mcs", "streams", "width_mhz", "guard_interval_ns")

count_modes <- function(rows, node, runs) {
  if (nrow(runs) == 0L) {
    return(NULL)
  }
  read <- rbindlist(list(tx = modes(rows, ""), rx = modes(rows, "rx_")), idcol = "direction")
  windows <- runs[, list(run_id, from = measure_start_s, to = measure_end_s)]
  hits <- read[windows,
    on = list(t_s >= from, t_s < to), nomatch = NULL,
    c(list(run_id = run_id, node = node, direction = direction), mget(mode_columns))
  ]
  counted <- hits[, list(readings = .N), by = c("run_id", "node", "direction", mode_columns)]
  # Counted before they are looked through: there are a hundred readings to a mode.
  counted[, told := !all(is.na(phy_rate_mbps)), by = list(run_id, node, direction)]
  counted <- counted[told == TRUE]
  if (nrow(counted) == 0L) {
    return(NULL)
  }
  counted[, share := readings / sum(readings), by = list(run_id, node, direction)]
  table_of("mcs_histogram", counted[, told := NULL])
}

# Times and modes of one direction; NULL when the file has no columns for it, as those of earlier versions.
modes <- function(rows, prefix) {
  columns <- paste0(prefix, mode_columns)
  if (!all(columns %in% names(rows))) {
    return(NULL)
  }
  stats::setNames(rows[, c("t_s", columns), with = FALSE], c("t_s", mode_columns))
}
