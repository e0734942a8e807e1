# SPDX-License-Identifier: Apache-2.0

# The report's tables of cells: one row per transport, size and load.

# A table whose rows are cells; `...`: what stands over it.
cell_table <- function(rows, columns, ...) html_table(with_cell_names(rows), c(cell = "cell", columns), paste(...))

cell_html <- function(rows, source) {
  floor <- floor_html(rows, source)
  list(energy_html(rows, source), if (!is.null(floor)) folded("Generator floor by cell", floor, printed = FALSE))
}

energy_html <- function(rows, source) {
  shown <- copy(rows)[, `:=`(
    extrapolated = ifelse(hollow, "yes", NA), below = count_cell(below_resolution_n), empty = count_cell(no_goodput_n)
  )]
  cell_table(shown, c(
    blocks = "n", "E_A J/Mb" = "ea_j_per_mbit_mean ~ ea_ci95", filled(shown, c(
      "metering + model parameters" = "ea_j_per_mbit_mean ~! ea_total_ci95", "u95 meter J/Mb" = "u95_meter",
      "upper limit J/Mb" = "ea_upper_limit_j_per_mbit"
    )), "P_A W" = "p_a_w", "P_I W" = "p_i_w", "P_A - P_I W" = "delta_p_w",
    filled(shown, c(
      "runs below resolution" = "below", "runs without goodput" = "empty", "hollow (extrapolated)" = "extrapolated"
    ))
  ), "E_A per cell; intervals over blocks, uncorrected: exploratory.", source)
}

floor_html <- function(rows, source) {
  rows <- rows[transport != "null" & (!is.na(floor_w) | !is.na(floor_reason))]
  if (nrow(rows) == 0L || all(rows$floor_reason %in% "no_null_run")) {
    return(NULL)
  }
  shown <- copy(rows)[, share := 100 * floor_ratio]
  cell_table(shown, c(
    "floor W" = "floor_w ~ floor_ci95", "u95 W" = "u95_floor_w", "% of P_A - P_I" = "share",
    "E_A above floor J/Mb" = "ea_above_floor_j_per_mbit ~ ea_above_floor_ci95",
    "u95 J/Mb" = "u95_ea_above_floor_j_per_mbit",
    if (any(!is.na(shown$floor_reason))) c("runs with a floor" = "floor_n", "the others' reason" = "floor_reason"),
    filled(shown, c(
      "wake-ups per message" = "wake_ups_per_message",
      "runs with other wake-ups than null" = "wake_ups_differ_n"
    ))
  ), "Generator floor per cell, and what is left of E_A above it.", source)
}

# What the flow tells is the same at every meter: the rows of one stand for all.
flow_html <- function(rows, source) {
  rows <- rows[transport != "null"]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  cell_table(rows, c(
    "goodput Mb/s" = "goodput_mbps ~ goodput_ci95", "sent / asked" = "achieved_ratio", loss = "loss_ratio ~ loss_ci95",
    filled(rows, c(
      "jitter ms" = "jitter_ms", "frames per message" = "frames_per_message",
      "mean IP packet B" = "mean_ip_packet_bytes", if (length(unique(rows$generator)) > 1L) c(generator = "generator")
    ))
  ), "Flow per cell.", source)
}

delta_html <- function(rows, source) {
  shown <- copy(rows)[, method := spaced(method)]
  cell_table(shown, c(
    pairs = "n_pairs", "compared by" = "method", "E_A, more %" = "difference_percent ~ difference_ci95",
    "E_A, more J/Mb" = "difference_j_per_mbit ~ difference_j_ci95",
    filled(shown, c("u95 of both J/Mb" = "u95_difference_j_per_mbit")),
    "P_A, more W" = "difference_p_a_w ~ difference_p_a_ci95"
  ), "Against UDP, pairs inside mini-blocks; +: more than UDP. Exploratory.", source)
}

goodput_html <- function(rows, source) {
  cell_table(
    rows, c(
      filled(rows, c(node = "node")), pairs = "n_pairs", "goodput Mb/s" = "goodput_mbps",
      "UDP's Mb/s" = "reference_goodput_mbps", "shortfall Mb/s" = "shortfall_mbps ~ shortfall_mbps_ci95",
      "shortfall %" = "shortfall_percent ~ shortfall_percent_ci95"
    ),
    "UDP's goodput minus this transport's, pairs inside mini-blocks; +: less arrives than with UDP. Exploratory.",
    source
  )
}

envelope_html <- function(rows, source) {
  shown <- copy(rows)[, band := paste0(
    transport_label(transport), ", ", number_text(offered_rate_mbps), " Mb/s", variant_note(rows)
  )]
  html_table(shown, c(
    band = "band", sizes = "payload_sizes", complete = "complete", "least J/Mb" = "ea_least_j_per_mbit ~ ea_least_ci95",
    "at B" = "payload_bytes_least", "greatest J/Mb" = "ea_greatest_j_per_mbit ~ ea_greatest_ci95",
    "at B" = "payload_bytes_greatest", runs = "n_runs", "runs left out" = "runs_left_out"
  ), paste("Energy envelope.", source))
}

uncertainty_html <- function(rows, source) {
  cell_table(rows, c(
    blocks = "n", "E_A J/Mb" = "ea_j_per_mbit_mean", "u95 runs" = "u95_runs_j_per_mbit",
    "u95 meter" = "u95_meter_j_per_mbit", filled(rows, c(
      "u95 model parameters" = "u95_model_j_per_mbit", "E_A with all three" = "ea_j_per_mbit_mean ~! ea_total_ci95"
    ))
  ), "Half-widths in J/Mb, source by source.", source)
}

fit_html <- function(rows, source) {
  shown <- copy(rows)
  packet <- grep("^packet_energy", names(shown), value = TRUE)
  bit <- grep("^bit_energy", names(shown), value = TRUE)
  shown[, (packet) := lapply(.SD, `*`, 1e6), .SDcols = packet]
  shown[, (bit) := lapply(.SD, `*`, 1e3), .SDcols = bit]
  shown[, `:=`(
    flow = paste0(transport_label(transport), variant_note(rows)),
    loads = span_of(offered_rate_least_mbps, offered_rate_greatest_mbps), form = spaced(form), reason = spaced(reason)
  )]
  html_table(shown, c(
    transport = "flow", meter = "meter_id", terms = "form", filled(shown, c(reason = "reason")),
    "P0 W" = "p0_w ~ p0_ci95",
    "a uJ per packet" = "packet_energy_j ~ packet_energy_ci95", "b mJ/Mb" = "bit_energy_j_per_mbit ~ bit_energy_ci95",
    cells = "cells_n", "runs left out (extrapolated)" = "extrapolated_n", "residual W (rms)" = "residual_rms_w",
    "residuals are noise" = "residuals_are_noise", "loads Mb/s" = "loads"
  ), paste(
    "P_A - P_I = P0 + a x packets/s + b x Mb/s; it holds over the loads that it was fitted to.",
    "Intervals of cells and blocks; metering is not in them.", source
  ))
}

residuals_html <- function(rows, source) {
  cell_table(rows, c(
    "packets/s" = "packets_pps", "IP Mb/s" = "ip_mbps", "P_A - P_I W" = "delta_p_w", "fitted W" = "fitted_w",
    "left W" = "residual_w"
  ), "What the power model leaves of each cell.", source)
}
