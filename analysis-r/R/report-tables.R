# SPDX-License-Identifier: Apache-2.0

# The report's tables: what was computed across runs, rounded, an estimate and its interval in one cell. The files in
# tables/ hold the same with all digits and more columns.

#' @param parts from [table_parts()].
#' @noRd
section_tables <- function(parts) {
  tag$section(
    id = "tables", tag$h2("Tables"),
    tag$p(
      "Rounded; square brackets hold 95 % intervals unless the line over a table says otherwise. The same with all ",
      "digits, and what is left out here, is in ", tag$code("tables/*.csv", .noWS = "after"), "."
    ),
    lapply(names(parts), function(name) {
      part <- parts[[name]]
      folded(
        part$title, list(part$download, part$content), part$rows, paste0("tables/", name, ".csv"),
        open = name == "ea_summary" && part$rows <= most_printed_rows, id = paste0("table-", name),
        printed = name %in% printed_tables && part$rows <= most_printed_rows
      )
    })
  )
}

# The others are named on paper with their files.
printed_tables <- "ea_summary"

#' Which part of the page shows a table
#' @noRd
table_anchors <- function(parts, tables) {
  c(
    stats::setNames(sprintf("table-%s", names(parts)), names(parts)),
    if (!is.null(tables$pacer_verdict)) c(pacer_verdict = "pacer"),
    if (!is.null(tables$fairness)) c(fairness = "fairness")
  )
}

#' The tables of the page in their order
#'
#' @return named list, table -> list(title, build: function of rows and source line, per_meter: whether each meter has
#'   one of its own, once: another builder, for what all meters share).
#' @noRd
shown_tables <- function() {
  one <- function(title, build, per_meter = FALSE, once = NULL) {
    list(title = title, build = build, per_meter = per_meter, once = once)
  }
  list(
    contrasts = one("Transports over all loads", contrasts_html),
    ea_summary = one("Energy, floor and flow by cell", cell_html, TRUE, sender_html),
    delta_ea = one("Energy against UDP by cell", delta_html, TRUE),
    delta_goodput = one("Goodput against UDP by cell", goodput_html),
    envelope = one("Energy envelope", envelope_html, TRUE),
    ea_uncertainty = one("Uncertainty by cell", uncertainty_html, TRUE),
    model_parameters = one("Parameters of the device models", parameters_html),
    model_fit = one("Power model", fit_html),
    model_residuals = one("Residuals of the power model", residuals_html, TRUE),
    ea_drift = one("Drift over the campaign", drift_html),
    ea_drift_sessions = one("Drift by session", sessions_html), outliers = one("Flagged runs", outliers_html),
    pacing_overview = one("Pacing certificates by cell", pacing_html),
    phy_rates = one("PHY rates by load", phy_html), runs = one("Every run that counts", runs_html)
  )
}

#' The tables that the campaign has, as parts of the page
#'
#' @return named list, table -> list(title, rows, download, content).
#' @noRd
table_parts <- function(campaign, tables) {
  shown <- shown_tables()
  shown <- shown[vapply(names(shown), function(name) NROW(tables[[name]]) > 0L, NA)]
  lapply(stats::setNames(names(shown), names(shown)), function(name) {
    list(
      title = shown[[name]]$title, rows = nrow(tables[[name]]), download = csv_link(tables[[name]], name),
      content = table_content(
        campaign, tables, name, shown[[name]]
      )
    )
  })
}

# Bytes of a table that the page carries for download; a larger one is named with its file alone.
most_csv_bytes <- 2e5L

#' The whole table with all digits, out of the page itself: RFC 2397
#' @noRd
csv_link <- function(rows, name) {
  # To the console fwrite() would print the text as a format, in which "% le" is a number.
  path <- tempfile(fileext = ".csv")
  on.exit(unlink(path))
  as_csv(rows, path)
  bytes <- readBin(path, "raw", file.size(path))
  if (length(bytes) <= most_csv_bytes) {
    tag$p(class = "tools", tag$a(
      href = paste0("data:text/csv;charset=utf-8;base64,", gsub("\n", "", jsonlite::base64_enc(bytes), fixed = TRUE)),
      download = paste0(name, ".csv"), paste0("Download ", name, ".csv, all digits")
    ))
  }
}

table_content <- function(campaign, tables, name, one) {
  rows <- tables[[name]]
  csv <- paste0("tables/", name, ".csv")
  ids <- campaign$meters$meter_id
  outside <- if (one$per_meter) outside_meters(campaign, tables$ea_summary)
  held <- function(id) held_words(rows, tables$model_parameters, id)
  list(
    if (one$per_meter) {
      lapply(setdiff(ids, outside), function(id) {
        cut_table(rows[meter_id == id], one$build, paste0(held(id), meter_source(campaign, id)), csv)
      })
    } else {
      source <- paste0(unlist(lapply(ids, held)), collapse = "")
      cut_table(rows, one$build, paste0(source, source_line(campaign, NULL, 10000L)), csv)
    },
    lapply(outside, function(id) tag$p(outside_words(campaign, tables$ea_summary, id, csv))),
    if (!is.null(one$once)) cut_table(rows[meter_id == ids[1]], one$once, source_line(campaign, NULL, 10000L), csv)
  )
}

outside_words <- function(campaign, summary, id, csv) {
  cells <- nrow(summary[meter_id == id & transport != "null"])
  sprintf(
    "%s (meter %s): all %s lie outside the device model's validity; they are in %s.", meter_title(campaign, id), id,
    cell_words(cells), csv
  )
}

# Only what is shown is put into words: all rows of a large campaign would take longer than their analysis.
cut_table <- function(rows, build, source, csv) {
  if (nrow(rows) > 0L) {
    list(build(utils::head(rows, most_rows), source), left_out_words(nrow(rows) - most_rows, csv))
  }
}

# Source of one meter's numbers, with its name in front where a campaign has several.
meter_source <- function(campaign, id) {
  several <- nrow(campaign$meters) > 1L
  paste0(if (several) paste0(meter_title(campaign, id), " (meter ", id, "). "), source_line(campaign, id, 10000L))
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

drift_html <- function(rows, source) {
  shown <- data.table(
    quantity = rows$quantity, meter = rows$meter_id, mini_blocks = rows$mini_blocks_n, span = rows$span_s / 60,
    change = range_words(rows$change_percent, rows$change_ci95_low, rows$change_ci95_high),
    trend = range_words(rows$trend_percent_per_hour, rows$trend_ci95_low, rows$trend_ci95_high),
    verdict = gsub("_", " ", rows$verdict, fixed = TRUE)
  )
  html_table(shown, c(
    quantity = "quantity", meter = "meter", "mini-blocks" = "mini_blocks", "span min" = "span",
    "change %" = "change", "% per hour" = "trend", verdict = "verdict"
  ), paste("Trend over the campaign.", source))
}

outliers_html <- function(rows, source) {
  rows <- with_cell_names(rows)
  html_table(rows, c(
    run = "run_id", meter = "meter_id", cell = "cell", quantity = "quantity", value = "value",
    "median of its cell" = "cell_median", "robust standard deviations away" = "distance_sd"
  ), paste("Flagged runs; they stay in every number.", source))
}

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

parameters_html <- function(rows, source) {
  shown <- copy(rows)[, reason := unname(held_reasons[reason])]
  html_table(shown, c(
    parameter = "parameter", meter = "meter_id", "device model" = "device_model", value = "parameter_value",
    "relative standard uncertainty" = "relative_uncertainty_ratio", drawn = "drawn",
    filled(shown, c("not drawn for" = "reason"))
  ), paste("Parameters of the device models; those that are not drawn are held at their value.", source))
}

runs_html <- function(rows, source) {
  rows <- with_cell_names(rows)
  html_table(rows, c(
    run = "run_id", meter = "meter_id", cell = "cell", block = "block", "P_A W" = "p_a_w",
    "P_I W" = "p_i_w", "T_A Mb/s" = "t_a_mbps", "E_A J/Mb" = "ea_j_per_mbit", "u95 J/Mb" = "u95_ea_j_per_mbit",
    filled(rows, c("empty for" = "ea_reason", loss = "loss_ratio", "floor W" = "floor_w", grade = "grade"))
  ), paste("Runs that count, as result.json gives them.", source))
}
