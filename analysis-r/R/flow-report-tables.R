# SPDX-License-Identifier: Apache-2.0

# The tables of flows in the report.

#' The tables of a report of flows in their order
#' @noRd
flow_shown_tables <- function() {
  list(
    contrasts = shown_table("Transports over all loads", contrasts_html),
    ea_summary = shown_table("Energy, floor and flow by cell", cell_html, TRUE, sender_html),
    delta_ea = shown_table("Energy against UDP by cell", delta_html, TRUE),
    delta_goodput = shown_table("Goodput against UDP by cell", goodput_html),
    envelope = shown_table("Energy envelope", envelope_html, TRUE),
    ea_uncertainty = shown_table("Uncertainty by cell", uncertainty_html, TRUE),
    model_parameters = shown_table("Parameters of the device models", parameters_html),
    model_fit = shown_table("Power model", fit_html),
    model_residuals = shown_table("Residuals of the power model", residuals_html, TRUE),
    ea_drift = shown_table("Drift over the campaign", drift_html),
    ea_drift_sessions = shown_table("Drift by session", drift_html),
    outliers = shown_table("Flagged runs", function(rows, source) outliers_html(with_cell_names(rows), source)),
    pacing_overview = shown_table("Pacing certificates by cell", pacing_html),
    phy_rates = shown_table("PHY rates by load", phy_html), runs = shown_table("Every run that counts", runs_html)
  )
}

contrasts_html <- function(rows, source) {
  shown <- copy(rows)[, `:=`(
    pair = paste0(
      transport_label(transport), " against ", transport_label(reference), ", ", number_text(payload_bytes), " B",
      variant_note(rows)
    ),
    part = ifelse(in_family, "main comparison", "exploratory"), p = p_words(p_value), p_holm = p_words(p_holm),
    verdict = spaced(verdict),
    unbusy = ifelse(loads_core_busy_n > 0L, short(difference_without_core_busy_percent), NA)
  )]
  counts <- grep("^loads_.*_n$", names(shown), value = TRUE)
  shown[, (counts) := lapply(.SD, count_cell), .SDcols = counts]
  shown[!drawn_wider(rows), difference_model_ci95_low := NA_real_]
  html_table(shown, c(
    compared = "pair", meter = "meter_id", part = "part", blocks = "blocks_n", loads = "loads_n",
    "E_A, more %" = "difference_percent ~ difference_ci95",
    filled(shown, c(
      "E_A, more %, model parameters drawn" = "difference_percent ~! difference_model_ci95", p = "p",
      "p after Holm" = "p_holm", verdict = "verdict", "loads with a core over 90 % busy" = "loads_core_busy_n",
      "more % without those loads" = "unbusy",
      "more % above the floor, exploratory" = "difference_above_floor_percent ~ difference_above_floor_ci95",
      "loads above the floor" = "loads_above_floor_n", "loads below resolution" = "loads_by_p_a_n",
      "P_A more, W (loads below resolution)" = "difference_p_a_w ~ difference_p_a_ci95",
      "loads extrapolated (hollow)" = "loads_hollow_n", "loads without E_A above 0" = "loads_no_ea_n",
      "loads without all pairs" = "loads_incomplete_n"
    ))
  ), paste(
    "Transports over all loads; +: more energy per megabit than the reference. It is of the geometric mean of the",
    "ratios of E_A; cells have the mean of their pairs' percent.", source
  ))
}

p_words <- function(p) vapply(p, function(one) if (is.na(one)) NA_character_ else p_text(one), "")

pacing_html <- function(rows, source) {
  # Least and greatest, where others have the ends of an interval.
  shown <- setnames(copy(rows), function(names) sub("_greatest_.*", "_high", sub("_least_.*", "_low", names)))
  shown[, held := fifelse(held_back_high > 0, held_back_ratio, NA_real_)]
  cell_table(shown, c(
    certificates = "certificates_n", passed = "passed_n", failed = "failed_n", "not judged" = "unjudged_n",
    "median error us" = "error_p50_us ~ error_p50", "99th percentile us" = "error_p99_us ~ error_p99",
    "greatest us" = "error_max_us", "sender's CPU, cores" = "cpu_ratio ~ cpu",
    filled(shown, c("held back, share" = "held ~ held_back"))
  ), "Departure errors of senders: median over runs, in brackets least and greatest.", source)
}

phy_html <- function(rows, source) {
  cell_table(rows, c(
    node = "node", "PHY rate Mb/s" = "phy_rate_mbps", filled(rows, c(
      MCS = "mcs", streams = "streams", "width MHz" = "width_mhz", "guard interval ns" = "guard_interval_ns"
    )), samples = "samples", share = "share"
  ), "Share of measured time.", source)
}

runs_html <- function(rows, source) {
  rows <- with_cell_names(rows)
  html_table(rows, c(
    run = "run_id", meter = "meter_id", cell = "cell", block = "block", "P_A W" = "p_a_w",
    "P_I W" = "p_i_w", "T_A Mb/s" = "t_a_mbps", "E_A J/Mb" = "ea_j_per_mbit", "u95 J/Mb" = "u95_ea_j_per_mbit",
    filled(rows, c("empty for" = "ea_reason", loss = "loss_ratio", "floor W" = "floor_w", grade = "grade"))
  ), paste("Runs that count, as result.json gives them.", source))
}

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
