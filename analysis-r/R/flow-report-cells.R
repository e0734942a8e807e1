# SPDX-License-Identifier: Apache-2.0

# The report's tables of cells: one row per transport, size and load.

cell_html <- function(rows, source) {
  floor <- floor_html(rows, source)
  list(energy_html(rows, source), if (!is.null(floor)) folded("Generator floor by cell", floor, printed = FALSE))
}

energy_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  shown[, `:=`(
    ea = range_words(ea_j_per_mbit_mean, ea_ci95_low, ea_ci95_high), extrapolated = ifelse(hollow, "yes", NA),
    below = ifelse(below_resolution_n > 0, below_resolution_n, NA), empty = ifelse(no_goodput_n > 0, no_goodput_n, NA)
  )]
  if ("ea_total_ci95_low" %in% names(shown)) {
    shown[!is.na(ea_total_ci95_low), total := range_words(ea_j_per_mbit_mean, ea_total_ci95_low, ea_total_ci95_high)]
  }
  html_table(shown, c(
    cell = "cell", blocks = "n", "E_A J/Mb" = "ea", filled(shown, c(
      "metering + model parameters" = "total", "u95 meter J/Mb" = "u95_meter",
      "upper limit J/Mb" = "ea_upper_limit_j_per_mbit"
    )), "P_A W" = "p_a_w", "P_I W" = "p_i_w", "P_A - P_I W" = "delta_p_w",
    filled(shown, c(
      "runs below resolution" = "below", "runs without goodput" = "empty", "hollow (extrapolated)" = "extrapolated"
    ))
  ), paste("E_A per cell; intervals over blocks, uncorrected: exploratory.", source))
}

floor_html <- function(rows, source) {
  rows <- rows[transport != "null" & (!is.na(floor_w) | !is.na(floor_reason))]
  if (nrow(rows) == 0L || all(rows$floor_reason %in% "no_null_run")) {
    return(NULL)
  }
  shown <- with_cell_names(rows)
  shown[, `:=`(
    floor = range_words(floor_w, floor_ci95_low, floor_ci95_high), share = 100 * floor_ratio,
    above = range_words(ea_above_floor_j_per_mbit, ea_above_floor_ci95_low, ea_above_floor_ci95_high)
  )]
  html_table(shown, c(
    cell = "cell", "floor W" = "floor", "u95 W" = "u95_floor_w", "% of P_A - P_I" = "share",
    "E_A above floor J/Mb" = "above", "u95 J/Mb" = "u95_ea_above_floor_j_per_mbit",
    if (any(!is.na(shown$floor_reason))) c("runs with a floor" = "floor_n", "the others' reason" = "floor_reason"),
    filled(shown, c(
      "wake-ups per message" = "wake_ups_per_message",
      "runs with other wake-ups than null" = "wake_ups_differ_n"
    ))
  ), paste("Generator floor per cell, and what is left of E_A above it.", source))
}

# What the flow tells is the same at every meter: the rows of one stand for all.
flow_html <- function(rows, source) {
  rows <- rows[transport != "null"]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  shown <- with_cell_names(rows)
  shown[, `:=`(
    goodput = range_words(goodput_mbps, goodput_ci95_low, goodput_ci95_high),
    loss = range_words(loss_ratio, loss_ci95_low, loss_ci95_high)
  )]
  html_table(shown, c(
    cell = "cell", "goodput Mb/s" = "goodput", "sent / asked" = "achieved_ratio", loss = "loss",
    filled(shown, c(
      "jitter ms" = "jitter_ms", "frames per message" = "frames_per_message",
      "mean IP packet B" = "mean_ip_packet_bytes", if (length(unique(rows$generator)) > 1L) c(generator = "generator")
    ))
  ), paste("Flow per cell.", source))
}

delta_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  shown[, `:=`(
    percent = range_words(difference_percent, difference_ci95_low, difference_ci95_high),
    joules = range_words(difference_j_per_mbit, difference_j_ci95_low, difference_j_ci95_high),
    power = range_words(difference_p_a_w, difference_p_a_ci95_low, difference_p_a_ci95_high),
    method = gsub("_", " ", method, fixed = TRUE)
  )]
  html_table(shown, c(
    cell = "cell", pairs = "n_pairs", "compared by" = "method", "E_A, more %" = "percent",
    "E_A, more J/Mb" = "joules",
    filled(shown, c("u95 of both J/Mb" = "u95_difference_j_per_mbit")), "P_A, more W" = "power"
  ), paste("Against UDP, pairs inside mini-blocks; +: more than UDP. Exploratory.", source))
}

goodput_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  shown[, `:=`(
    mbps = range_words(shortfall_mbps, shortfall_mbps_ci95_low, shortfall_mbps_ci95_high),
    percent = range_words(shortfall_percent, shortfall_percent_ci95_low, shortfall_percent_ci95_high)
  )]
  html_table(shown, c(
    cell = "cell", filled(shown, c(node = "node")), pairs = "n_pairs", "goodput Mb/s" = "goodput_mbps",
    "UDP's Mb/s" = "reference_goodput_mbps", "shortfall Mb/s" = "mbps", "shortfall %" = "percent"
  ), paste(
    "UDP's goodput minus this transport's, pairs inside mini-blocks; +: less arrives than with UDP. Exploratory.",
    source
  ))
}

envelope_html <- function(rows, source) {
  shown <- copy(rows)
  shown[, `:=`(
    band = paste0(transport_label(transport), ", ", number_text(offered_rate_mbps), " Mb/s", variant_note(rows)),
    least = range_words(ea_least_j_per_mbit, ea_least_ci95_low, ea_least_ci95_high),
    greatest = range_words(ea_greatest_j_per_mbit, ea_greatest_ci95_low, ea_greatest_ci95_high)
  )]
  html_table(shown, c(
    band = "band", sizes = "payload_sizes", complete = "complete", "least J/Mb" = "least",
    "at B" = "payload_bytes_least", "greatest J/Mb" = "greatest", "at B" = "payload_bytes_greatest", runs = "n_runs",
    "runs left out" = "runs_left_out"
  ), paste("Energy envelope.", source))
}

uncertainty_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  shown[!is.na(ea_total_ci95_low), total := range_words(ea_j_per_mbit_mean, ea_total_ci95_low, ea_total_ci95_high)]
  html_table(shown, c(
    cell = "cell", blocks = "n", "E_A J/Mb" = "ea_j_per_mbit_mean", "u95 runs" = "u95_runs_j_per_mbit",
    "u95 meter" = "u95_meter_j_per_mbit", filled(shown, c(
      "u95 model parameters" = "u95_model_j_per_mbit", "E_A with all three" = "total"
    ))
  ), paste("Half-widths in J/Mb, source by source.", source))
}

fit_html <- function(rows, source) {
  shown <- copy(rows)
  shown[, `:=`(
    flow = paste0(transport_label(transport), variant_note(rows)), p0 = range_words(p0_w, p0_ci95_low, p0_ci95_high),
    a = range_words(1e6 * packet_energy_j, 1e6 * packet_energy_ci95_low, 1e6 * packet_energy_ci95_high),
    b = range_words(1e3 * bit_energy_j_per_mbit, 1e3 * bit_energy_ci95_low, 1e3 * bit_energy_ci95_high),
    loads = span_of(offered_rate_least_mbps, offered_rate_greatest_mbps),
    form = gsub("_", " ", form, fixed = TRUE),
    reason = gsub("_", " ", gsub(";", ", ", reason, fixed = TRUE), fixed = TRUE)
  )]
  html_table(shown, c(
    transport = "flow", meter = "meter_id", terms = "form", filled(shown, c(reason = "reason")), "P0 W" = "p0",
    "a uJ per packet" = "a", "b mJ/Mb" = "b", cells = "cells_n", "runs left out (extrapolated)" = "extrapolated_n",
    "residual W (rms)" = "residual_rms_w", "residuals are noise" = "residuals_are_noise", "loads Mb/s" = "loads"
  ), paste(
    "P_A - P_I = P0 + a x packets/s + b x Mb/s; it holds over the loads that it was fitted to.",
    "Intervals of cells and blocks; metering is not in them.", source
  ))
}

residuals_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  html_table(shown, c(
    cell = "cell", "packets/s" = "packets_pps", "IP Mb/s" = "ip_mbps", "P_A - P_I W" = "delta_p_w",
    "fitted W" = "fitted_w", "left W" = "residual_w"
  ), paste("What the power model leaves of each cell.", source))
}
