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
    ea_drift_sessions = shown_table("Drift by session", sessions_html),
    outliers = shown_table("Flagged runs", function(rows, source) outliers_html(with_cell_names(rows), source)),
    pacing_overview = shown_table("Pacing certificates by cell", pacing_html),
    phy_rates = shown_table("PHY rates by load", phy_html), runs = shown_table("Every run that counts", runs_html)
  )
}

contrasts_html <- function(rows, source) {
  shown <- data.table(
    pair = paste0(
      transport_label(rows$transport), " against ", transport_label(rows$reference), ", ",
      number_text(rows$payload_bytes), " B", variant_note(rows)
    ),
    meter = rows$meter_id, part = ifelse(rows$in_family, "main comparison", "exploratory"), blocks = rows$blocks_n,
    loads = rows$loads_n, hollow = count_cell(rows$loads_hollow_n), no_ea = count_cell(rows$loads_no_ea_n),
    incomplete = count_cell(rows$loads_incomplete_n), by_p_a = count_cell(rows$loads_by_p_a_n),
    percent = range_words(rows$difference_percent, rows$difference_ci95_low, rows$difference_ci95_high),
    drawn = range_words(rows$difference_percent, rows$difference_model_ci95_low, rows$difference_model_ci95_high),
    p = p_words(rows$p_value), p_holm = p_words(rows$p_holm), verdict = gsub("_", " ", rows$verdict, fixed = TRUE),
    watts = range_words(rows$difference_p_a_w, rows$difference_p_a_ci95_low, rows$difference_p_a_ci95_high),
    busy = count_cell(rows$loads_core_busy_n),
    unbusy = ifelse(rows$loads_core_busy_n > 0L, short(rows$difference_without_core_busy_percent), NA),
    above = range_words(
      rows$difference_above_floor_percent, rows$difference_above_floor_ci95_low, rows$difference_above_floor_ci95_high
    ),
    above_loads = count_cell(rows$loads_above_floor_n)
  )
  shown[!drawn_wider(rows), drawn := NA_character_]
  html_table(shown, c(
    compared = "pair", meter = "meter", part = "part", blocks = "blocks", loads = "loads", "E_A, more %" = "percent",
    filled(shown, c(
      "E_A, more %, model parameters drawn" = "drawn", p = "p", "p after Holm" = "p_holm", verdict = "verdict",
      "loads with a core over 90 % busy" = "busy", "more % without those loads" = "unbusy",
      "more % above the floor, exploratory" = "above", "loads above the floor" = "above_loads",
      "loads below resolution" = "by_p_a", "P_A more, W (loads below resolution)" = "watts",
      "loads extrapolated (hollow)" = "hollow",
      "loads without E_A above 0" = "no_ea", "loads without all pairs" = "incomplete"
    ))
  ), paste(
    "Transports over all loads; +: more energy per megabit than the reference. It is of the geometric mean of the",
    "ratios of E_A; cells have the mean of their pairs' percent.", source
  ))
}

# A count that is said only where there is one.
count_cell <- function(count) ifelse(count > 0L, count, NA_integer_)

p_words <- function(p) vapply(p, function(one) if (is.na(one)) NA_character_ else p_text(one), "")

pacing_html <- function(rows, source) {
  shown <- with_cell_names(rows)
  shown[, `:=`(
    p50 = range_words(error_p50_us, error_p50_least_us, error_p50_greatest_us),
    p99 = range_words(error_p99_us, error_p99_least_us, error_p99_greatest_us),
    cpu = range_words(cpu_ratio, cpu_least_ratio, cpu_greatest_ratio),
    held_back = fifelse(held_back_greatest_ratio > 0, range_words(
      held_back_ratio, held_back_least_ratio, held_back_greatest_ratio
    ), NA_character_)
  )]
  html_table(shown, c(
    cell = "cell", certificates = "certificates_n", passed = "passed_n", failed = "failed_n",
    "not judged" = "unjudged_n", "median error us" = "p50", "99th percentile us" = "p99",
    "greatest us" = "error_max_us", "sender's CPU, cores" = "cpu", filled(shown, c("held back, share" = "held_back"))
  ), paste("Departure errors of senders: median over runs, in brackets least and greatest.", source))
}

phy_html <- function(rows, source) {
  rows <- copy(rows)[, cell := paste0(
    transport_label(transport), ", ", number_text(payload_bytes), " B, ", number_text(offered_rate_mbps), " Mb/s"
  )]
  html_table(rows, c(
    cell = "cell", node = "node", "PHY rate Mb/s" = "phy_rate_mbps", filled(rows, c(
      MCS = "mcs", streams = "streams", "width MHz" = "width_mhz", "guard interval ns" = "guard_interval_ns"
    )), samples = "samples", share = "share"
  ), paste("Share of measured time.", source))
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
