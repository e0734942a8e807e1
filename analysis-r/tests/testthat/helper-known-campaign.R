# SPDX-License-Identifier: Apache-2.0

#' A campaign of scripts/bench/netjoule_synthetic, whole in every file, with the truth of each cell
#'
#' @param ... its options, e.g. "--blocks", 8; numbers and texts.
#' @return list dir, truth (data.table: meter_id, transport, payload_bytes, offered_rate_mbps,
#'   delta_p_w, goodput_mbps, ea_j_per_mbit, floor_w, ...).
known_campaign <- function(...) {
  root <- normalizePath(file.path(contracts_dir(), "..", ".."))
  python <- Sys.getenv("NETJOULE_PYTHON", file.path(root, ".venv", "bin", "python"))
  if (!file.exists(python)) {
    stop("There is no ", python, ", which writes synthetic campaigns: run make setup, or set NETJOULE_PYTHON.")
  }
  rooms <- c("scripts/bench", "orchestrator/src", "meters/src", "energy/src", "protocols/contracts/python")
  places <- file.path(root, rooms)
  dir <- tempfile("known")
  truth <- tempfile(fileext = ".csv")
  log <- tempfile()
  ended <- system2(
    python, c("-m", "netjoule_synthetic", dir, "--truth", truth, as.character(c(...))),
    env = paste0("PYTHONPATH=", paste(places, collapse = ":")), stdout = log, stderr = log
  )
  if (ended != 0L) stop(paste(readLines(log), collapse = "\n"))
  list(dir = dir, truth = data.table::fread(truth))
}
