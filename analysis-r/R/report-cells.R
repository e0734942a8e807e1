# SPDX-License-Identifier: Apache-2.0

# The report's tables of cells: one row per transport, size and load.

#' Name of each row's cell: transport, size, load, and what else distinguishes the rows
#' @noRd
with_cell_names <- function(rows) {
  rows <- copy(rows)
  text <- paste0(
    transport_label(as.character(rows$transport)), ", ", number_text(rows$payload_bytes), " B, ",
    number_text(rows$offered_rate_mbps), " Mb/s", variant_note(rows)
  )
  set(rows, j = "cell", value = text)[]
}

# Direction, pacing and flows, where the rows have several.
variant_note <- function(rows) {
  several <- function(column) column %in% names(rows) && length(unique(rows[[column]])) > 1L
  paste0(
    if (several("direction")) paste0(", ", rows$direction) else "",
    if (any(vapply(pacing_keys, several, NA))) paste0(", ", variant_words(rows)) else "",
    if ("flows_at_once" %in% names(rows)) paste0(", ", plain_text(rows$flows_at_once, 200L)) else ""
  )
}

# Which pacing a row is of, as columns of its own, where a campaign has several.
pacing_column <- function(rows) {
  variants <- pacing_variants(rows)
  if (nrow(variants) > 1L) {
    c(
      pacing = "pacing", if (any(variants$window_us > 0)) c("window us" = "window_us"),
      if (any(variants$gso)) c(offload = "gso")
    )
  }
}

#' An estimate with its interval, both with the same decimals: "1.230 [1.198 to 1.262]"; alone where it has none
#'
#' @param unit what stands behind the estimate, with its space.
#' @noRd
range_words <- function(value, low, high, unit = "") {
  unit <- rep_len(unit, length(value))
  vapply(seq_along(value), function(i) {
    if (is.na(value[i])) {
      NA_character_
    } else if (is.na(low[i]) || is.na(high[i])) {
      paste0(short(without_rounding(value[i])), unit[i])
    } else {
      text <- same_decimals(value[i], low[i], high[i])
      sprintf("%s%s [%s to %s]", text[1], unit[i], text[2], text[3])
    }
  }, "")
}

#' An estimate and the ends of its interval as texts with the same decimals
#'
#' Two digits of the interval's shorter side, at most four of the estimate; zeros that all of them end in are cut. What
#' is no interval about the estimate (its longer side is over 20 times the shorter), or smaller than any decimals that
#' one reads, is rounded each by itself.
#' @noRd
same_decimals <- function(value, low, high) {
  x <- without_rounding(c(value, low, high))
  sides <- sort(c(x[1] - x[2], x[3] - x[1]))
  width <- sides[2]
  size <- if (x[1] == 0) max(abs(x)) else abs(x[1])
  if (size == 0 || sides[1] < 0 || width > 20 * max(sides[1], 0.01 * size)) {
    return(short(x))
  }
  place <- function(of, digits) digits - 1L - floor(log10(of))
  decimals <- min(place(size, 4L), if (sides[1] > 0) place(sides[1], 2L))
  if (decimals > 6L) {
    return(short(x))
  }
  text <- formatC(round(x, decimals), format = "f", digits = max(0L, decimals))
  while (all(grepl("\\.[0-9]*0$", text))) text <- sub("\\.?0$", "", text)
  sub("^-(0[.0]*)$", "\\1", text)
}

span_of <- function(low, high) ifelse(is.na(low), NA_character_, paste(number_text(low), "to", number_text(high)))

# Columns that the rows have and that have something in any row: on a phone an empty one only takes room.
filled <- function(rows, columns) {
  columns <- columns[columns %in% names(rows)]
  columns[vapply(columns, function(column) any(!is.na(rows[[column]]) & rows[[column]] != ""), NA)]
}

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
