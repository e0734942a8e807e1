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

#' What the page shows of each table: title, line over it, columns with their headings, in the order of the page
#' @noRd
report_tables <- function() {
  jsonlite::fromJSON(system.file("report-tables.json", package = "netjoule", mustWork = TRUE), simplifyVector = FALSE)
}

#' The tables that the campaign has, as parts of the page
#'
#' @return named list, table -> list(title, rows, download, content).
#' @noRd
table_parts <- function(campaign, tables) {
  shown <- Filter(function(one) !is.null(one$title), report_tables())
  shown <- shown[vapply(names(shown), function(name) NROW(tables[[name]]) > 0L, NA)]
  Map(function(name, one) {
    list(
      title = one$title, rows = nrow(tables[[name]]), download = csv_link(tables[[name]], name),
      content = table_content(campaign, tables, name, one)
    )
  }, names(shown), shown)
}

# How a column's values are said.
said_as <- list(
  count = function(x) ifelse(x > 0L, x, NA_integer_), words = function(x) spaced(x),
  yes = function(x) ifelse(x, "yes", NA),
  p = function(x) vapply(x, function(p) if (is.na(p)) NA_character_ else p_text(p), "")
)

#' A table of report-tables.json; NULL where none of its rows is to be shown
#'
#' @param name of the table; the function told_<name>, if there is one, adds to its rows or leaves some out.
#' @param source behind the caption.
#' @param more columns by name, which take the place of "*name".
#' @param ... of html_table().
#' @noRd
table_html <- function(name, rows, source = NULL, more = list(), ...) {
  told <- get0(paste0("told_", name), mode = "function", ifnotfound = identity)
  rows <- told(copy(rows))
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  spec <- report_tables()[[name]]
  shows <- vapply(spec$columns, `[[`, "", "shows")
  if ("cell" %in% setdiff(shows, names(rows))) rows <- with_cell_names(rows)
  for (one in spec$columns) {
    say <- if (!is.null(one$said_as)) said_as[[one$said_as]] else if (!is.null(one$times)) function(x) x * one$times
    if (!is.null(say)) {
      columns <- intersect(shown_columns(one$shows), names(rows))
      rows[, (columns) := lapply(.SD, say), .SDcols = columns]
    }
  }
  columns <- lapply(spec$columns, function(one) {
    own <- startsWith(one$shows, "*")
    found <- if (own) more[[substring(one$shows, 2L)]] else stats::setNames(one$shows, one$heading)
    if (isTRUE(one$filled)) filled(rows, found) else found
  })
  long <- shows[vapply(spec$columns, function(one) isTRUE(one$long), NA)]
  caption <- c(spec$caption, source)
  html_table(rows, unlist(columns), if (length(caption) > 0L) paste(caption, collapse = " "), long, ...)
}

# Tables that are folded together under one title.
folded_tables <- function(spec, rows, source) {
  parts <- lapply(unlist(spec$tables), table_html, rows, source)
  if (any(lengths(parts) > 0L)) folded(spec$title, parts, printed = FALSE)
}

# Bytes of a table that the page carries for download; a larger one is named with its file alone.
most_csv_bytes <- 2e5L

#' The whole table with all digits, out of the page itself: RFC 2397
#' @noRd
csv_link <- function(rows, name) {
  # To the console fwrite() would print the text as a format, in which "% le" is a number.
  path <- withr::local_tempfile(fileext = ".csv")
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
  per_meter <- isTRUE(one$per_meter)
  outside <- if (per_meter) outside_meters(campaign, headline(tables))
  held <- function(id) held_words(rows, tables$model_parameters, id)
  build <- function(rows, source) {
    more <- more_columns(name, rows)
    list(table_html(name, rows, source, more), folded_tables(one$folded, rows, source))
  }
  list(
    if (per_meter) {
      lapply(setdiff(ids, outside), function(id) {
        cut_table(rows[meter_id == id], build, paste0(held(id), meter_source(campaign, id)), csv)
      })
    } else {
      source <- paste0(unlist(lapply(ids, held)), collapse = "")
      cut_table(rows, build, paste0(source, source_line(campaign, NULL, 10000L)), csv)
    },
    lapply(outside, function(id) tag$p(outside_words(campaign, headline(tables), id, csv))),
    if (!is.null(one$folded_once)) {
      once <- function(rows, source) folded_tables(one$folded_once, rows, source)
      cut_table(rows[meter_id == ids[1]], once, source_line(campaign, NULL, 10000L), csv)
    }
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

told_ea_drift <- told_ea_drift_sessions <- function(rows) rows[, span_min := span_s / 60]

told_model_parameters <- function(rows) rows[, reason := unname(held_reasons[reason])]

told_measure_contrasts <- function(rows) {
  rows[, `:=`(pair = paste(arm_label(arm), "against", arm_label(reference)), measure = gsub("_", " ", measure))]
}

# What saves nothing is the same for every f and P_s: once is enough.
told_router_energy <- function(rows) {
  rows[, `:=`(arm = arm_label(arm), same = all(saving_ratio == 0), first = seq_len(.N) == 1L), by = list(arm, cell)]
  rows <- rows[!same | first]
  rows[same == TRUE, `:=`(form = "any", static_ratio = NA_real_)][]
}

told_arm_shares <- function(rows) rows[, arm := arm_label(arm)]

told_arm_contrasts <- function(rows) {
  rows[, `:=`(pair = paste(arm_label(arm), "against", arm_label(reference)), part = part_words(in_family))]
}

part_words <- function(in_family) ifelse(in_family, "main comparison", "exploratory")

# Columns that name a row, whatever its table has that is neither of a meter nor a number of results, and those of what
# the load measured.
more_columns <- function(name, rows) {
  if (!name %in% c("energy_summary", "energy_runs", "transfer_summary")) {
    return(list())
  }
  before <- names(rows)[seq_len(match(if (name == "transfer_summary") "n" else "kind", names(rows)) - 1L)]
  named <- setdiff(before, c("run_id", meter_keys, "order", "attempt", "mini_block"))
  of_load <- setdiff(sub("_ci95_low$", "", grep("_ci95_low$", names(rows), value = TRUE)), names(energy_columns))
  spoken <- function(names) gsub("_", " ", names, fixed = TRUE)
  list(
    names = stats::setNames(named, spoken(named)),
    measured = stats::setNames(sprintf("%s ~ %s_ci95", of_load, of_load), spoken(of_load))
  )
}
