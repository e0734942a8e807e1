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
  files <- list.files(file.path(campaign$dir, "radio"), pattern = "\\.csv$")
  runs <- campaign$runs[usable == TRUE & measurable == TRUE & transport != "null"]
  if (length(files) == 0L || nrow(runs) == 0L) {
    return(table_of("phy_rates"))
  }
  samples <- rbindlist(lapply(files, function(file) {
    path <- file.path(campaign$dir, "radio", file)
    cbind(
      node = sub("\\.csv$", "", file),
      read_contract_csv(path, "radio", campaign$contracts, needed_columns$radio)$rows
    )
  }))
  windows <- runs[, list(
    radio_source, transport, payload_bytes, offered_rate_mbps,
    from = measure_start_s, to = measure_end_s
  )]
  hits <- samples[windows,
    on = list(t_s >= from, t_s < to), nomatch = NULL,
    list(
      node, radio_source, transport, payload_bytes, offered_rate_mbps, phy_rate_mbps, mcs, streams, width_mhz,
      guard_interval_ns
    )
  ]
  hits <- hits[!is.na(phy_rate_mbps)]
  if (nrow(hits) == 0L) {
    return(table_of("phy_rates"))
  }
  counted <- hits[, list(samples = .N), by = eval(names(hits))]
  counted[, share := samples / sum(samples), by = list(node, transport, payload_bytes, offered_rate_mbps)]
  setorderv(counted, c("node", "transport", "payload_bytes", "offered_rate_mbps", "phy_rate_mbps"))[]
}
