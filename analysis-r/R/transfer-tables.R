# SPDX-License-Identifier: Apache-2.0

# What transfers have beside what every load has: energies per 100 MB and per file, the break point, and their figures.

register_load("transfer",
  tables = function(...) transfer_tables(...),
  figures = function(...) transfer_campaign_figures(...),
  rare_tables = c("transfer_summary", "transfer_published")
)

# The studies print energy per 100 MB, MB of 10^6 bytes: work is in Mb.
mbit_per_100_mb <- 800

#' @return tables of every load, transfer_summary and, where a published ratio can be compared, transfer_published.
#' @noRd
transfer_tables <- function(campaign, margin_percent = NULL) {
  tables <- energy_tables(campaign, margin_percent)
  rows <- transfer_rows(campaign)
  tables$transfer_summary <- transfer_summary(campaign, rows)
  published <- transfer_published(campaign, rows)
  if (nrow(published) > 0L) tables$transfer_published <- published
  tables
}

#' Runs that count, with their energies per 100 MB and per file
#'
#' E_b is idle power over the window, E_d what is above it, E_t both; the tail after the window is in none of them and
#' is paid once a run, however often the set was fetched in it. The radio's, of the factor access, are of its own model
#' and in none of the others.
#'
#' @return data.table of energy_rows(), more columns in J, throughput_mbps in Mb/s and throughput_efficiency in Mb/s per
#'   J (of E_d per 100 MB); NA where nothing arrived or nothing tells the energy.
#' @noRd
transfer_rows <- function(campaign) {
  rows <- without_control(energy_rows(campaign), campaign)
  rows[, `:=`(
    tail_e_j = tail_energy_j, e_b_j = e_t_j - e_d_j, u95_e_d_j = normal_97_5 * u_delta_p_w * window_s,
    hundreds = fifelse(work > 0, work / mbit_per_100_mb, NA_real_),
    files = fifelse(files_verified > 0, files_verified * repeats, NA_real_)
  )]
  rows[, `:=`(cpu_s_per_100_mb = cpu_s * repeats / hundreds, radio_e_per_100_mb_j = radio_e_j / hundreds)]
  for (name in c("e_b", "e_d", "e_t", "tail_e", "u95_e_d")) {
    energy <- rows[[paste0(name, "_j")]]
    set(rows, j = paste0(name, "_per_100_mb_j"), value = energy / rows$hundreds)
    set(rows, j = paste0(name, "_per_file_j"), value = energy / rows$files)
  }
  rows[, throughput_efficiency := fifelse(e_d_per_100_mb_j > 0, throughput_mbps / e_d_per_100_mb_j, NA_real_)][]
}

# Columns with an interval over blocks.
transfer_measures <- c(
  "throughput_mbps", "throughput_efficiency", "cpu_s_per_100_mb",
  paste0(c("e_b", "e_d", "e_t", "tail_e"), "_per_100_mb_j"), paste0(c("e_b", "e_d", "e_t", "tail_e"), "_per_file_j"),
  "radio_e_per_100_mb_j", "radio_tail_e_j"
)

#' Throughput and energies of each arm and cell, by the contract transfer_summary.table.json
#' @noRd
transfer_summary <- function(campaign, rows) {
  cells <- rows[, {
    values <- lapply(transfer_measures, function(name) interval_columns(block_means(.SD, .SD[[name]]), name))
    c(list(n = uniqueN(block), runs_n = .N), unlist(values, recursive = FALSE), list(
      u95_e_d_per_100_mb_j = mean_or_na(u95_e_d_per_100_mb_j), u95_e_d_per_file_j = mean_or_na(u95_e_d_per_file_j),
      hollow = any(hollow), below_resolution_n = sum(below_resolution)
    ))
  }, by = c(cell_keys(campaign))]
  cells <- cells[in_arm_order(campaign, cells, cells[[campaign$arm]])]
  with_break_points(cells, swept_factors(campaign))
}
