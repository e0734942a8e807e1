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
        open = name %in% printed_tables && part$rows <= most_printed_rows, id = paste0("table-", name),
        printed = name %in% printed_tables && part$rows <= most_printed_rows
      )
    })
  )
}

# The others are named on paper with their files.
printed_tables <- c("ea_summary", "energy_summary")

#' Which part of the page shows a table
#' @noRd
table_anchors <- function(parts, tables) {
  c(
    stats::setNames(sprintf("table-%s", names(parts)), names(parts)),
    if (!is.null(tables$pacer_verdict)) c(pacer_verdict = "pacer"),
    if (!is.null(tables$fairness)) c(fairness = "fairness")
  )
}

#' A table of the page
#'
#' @param build function of rows and source line; per_meter whether each meter has one of its own; once another builder,
#'   for what all meters share.
#' @noRd
shown_table <- function(title, build, per_meter = FALSE, once = NULL) {
  list(title = title, build = build, per_meter = per_meter, once = once)
}

#' The tables that the campaign has, as parts of the page
#'
#' @return named list, table -> list(title, rows, download, content).
#' @noRd
table_parts <- function(campaign, tables) {
  shown <- of_load(campaign, "shown_tables", energy_shown_tables)()
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
  outside <- if (one$per_meter) outside_meters(campaign, headline(tables))
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
    lapply(outside, function(id) tag$p(outside_words(campaign, headline(tables), id, csv))),
    if (!is.null(one$once)) cut_table(rows[meter_id == ids[1]], one$once, source_line(campaign, NULL, 10000L), csv)
  )
}

outside_words <- function(campaign, summary, id, csv) {
  cells <- nrow(without_control(summary[meter_id == id], campaign))
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

drift_html <- function(rows, source) {
  shown <- copy(rows)[, `:=`(span = span_s / 60, verdict = spaced(verdict))]
  html_table(shown, c(
    quantity = "quantity", meter = "meter_id", filled(shown, c(session = "session")), "mini-blocks" = "mini_blocks_n",
    "span min" = "span", filled(shown, c("mean %" = "mean_percent")), "change %" = "change_percent ~ change_ci95",
    if (!"session" %in% names(shown)) c("% per hour" = "trend_percent_per_hour ~ trend_ci95"), verdict = "verdict"
  ), paste(if ("session" %in% names(shown)) {
    "Deviation from the means of cells, and its change within each session."
  } else {
    "Trend over the campaign."
  }, source))
}

outliers_html <- function(rows, source) {
  html_table(rows, c(
    run = "run_id", meter = "meter_id", filled(rows, c(cell = "cell")), quantity = "quantity", value = "value",
    "median of its cell" = "cell_median", "robust standard deviations away" = "distance_sd"
  ), paste("Flagged runs; they stay in every number.", source))
}

parameters_html <- function(rows, source) {
  shown <- copy(rows)[, reason := unname(held_reasons[reason])]
  html_table(shown, c(
    parameter = "parameter", meter = "meter_id", "device model" = "device_model", value = "parameter_value",
    "relative standard uncertainty" = "relative_uncertainty_ratio", drawn = "drawn",
    filled(shown, c("not drawn for" = "reason"))
  ), paste("Parameters of the device models; those that are not drawn are held at their value.", source))
}
