# SPDX-License-Identifier: Apache-2.0

# A small HTML writer. Text and attributes pass through htmltools, which escapes them, or, cell by cell of a long
# table, through escaped(); only our own style sheet, our own script and our own SVG are taken as they are.

tag <- htmltools::tags

# Rows of a table on the page, and of one that is printed although it is folded; longer ones stand whole in their file.
most_rows <- 300L
most_printed_rows <- 60L
# Characters of a cell or a definition.
most_cell_characters <- 500L

report_css <- function() package_text("report.css")
report_script <- function() package_text("report.js")

package_text <- function(name) {
  paste(readLines(system.file(name, package = "netjoule"), encoding = "UTF-8"), collapse = "\n")
}

#' What the page may do: run this one script and nothing else, fetch nothing
#'
#' A second wall behind the escaping: a script that came in by a name would not run. Drawings carry their style in
#' attributes, so styles cannot be held to digests. Content Security Policy Level 3, section 2.3 (hash sources).
#'
#' @param script text of the one script, ASCII.
#' @noRd
content_policy <- function(script) {
  hash <- jsonlite::base64_enc(digest::digest(script, algo = "sha256", serialize = FALSE, raw = TRUE))
  paste0(
    "default-src 'none'; script-src 'sha256-", hash, "'; style-src 'unsafe-inline'; img-src data:; ",
    "base-uri 'none'; form-action 'none'"
  )
}

escaped <- function(text) htmltools::htmlEscape(enc2utf8(text))

#' HTML table of a data.table
#'
#' Written as text, column by column: tables of a large campaign have tens of thousands of cells, and a tag object
#' for each would take longer than the analysis.
#'
#' @param rows data.table; beyond `most_rows` the rest is named, not shown.
#' @param columns named character vector, heading -> column; values are shown with
#'   three significant digits, missing ones as a dash. The first column names the row. "x ~ y": x with its interval,
#'   from y_low to y_high; "x ~! y": nothing where there is no interval.
#' @param caption line over the table; its first sentence names the table to a screen reader.
#' @param long columns of long text, which may break.
#' @param csv file that holds all rows.
#' @noRd
html_table <- function(rows, columns, caption = NULL, long = character(), csv = "tables/*.csv") {
  shown <- utils::head(rows, most_rows)
  values <- lapply(columns, column_values, shown)
  texts <- lapply(values, cell_text)
  classes <- vapply(seq_along(columns), function(i) {
    cell_class(texts[[i]], is.numeric(values[[i]]), columns[i] %in% long)
  }, "")
  # What is set to the right is numbers, and no name that a reader may want to copy.
  texts <- Map(function(text, class) if (class == "") true_minus(text) else text, texts, classes)
  head <- paste0("<th scope=\"col\"", classes, ">", escaped(names(columns)), "</th>", collapse = "")
  table <- paste0(
    "<table><thead><tr>", head, "</tr></thead>\n<tbody>\n", table_body(texts, classes), "\n</tbody></table>"
  )
  # By its columns' names, so that the page has no second table with this name and others.
  class <- paste0("t", substr(digest::digest(names(columns), algo = "sha1"), 1L, 8L))
  list(
    # Above the scrolling box, not a caption element: that would be as wide as the widest table.
    if (!is.null(caption)) tag$p(class = "source", caption),
    tag$div(
      class = paste("scroll rows", class), tabindex = "0", role = "group",
      `aria-label` = if (is.null(caption)) "Table" else sub("\\. .*", "", caption),
      tag$style(card_names(class, columns)),
      htmltools::HTML(table)
    ),
    left_out_words(nrow(rows) - nrow(shown), csv)
  )
}

column_values <- function(column, rows) {
  names <- shown_columns(column)
  value <- rows[[names[1]]]
  if (length(names) == 1L) {
    return(value)
  }
  low <- rows[[names[2]]]
  if (grepl("~!", column, fixed = TRUE)) value <- fifelse(is.na(low), NA_real_, value)
  range_words(value, low, rows[[names[3]]])
}

# Columns behind "x", "x ~ y" and "x ~! y": x, or x, y_low and y_high.
shown_columns <- function(column) {
  parts <- strsplit(column, " ~!? ")[[1]]
  c(parts[1], if (length(parts) > 1L) paste0(parts[2], c("_low", "_high")))
}

# What each column is called where a row is a card (report.css).
card_names <- function(class, columns) {
  # In a CSS string any character may stand as its number.
  quoted <- vapply(enc2utf8(names(columns)), function(name) {
    paste0(sprintf("\\%06x", utf8ToInt(name)), collapse = "")
  }, "")
  plain <- grepl("^[A-Za-z0-9 _/%().,:+-]*$", names(columns))
  quoted[plain] <- names(columns)[plain]
  rules <- sprintf(".%s td:nth-child(%d)::before{content:\"%s\"}", class, seq_along(columns), quoted)
  htmltools::HTML(paste0("@media screen and (max-width:48rem){", paste(rules[-1], collapse = ""), "}"))
}

left_out_words <- function(count, csv) {
  if (count > 0L) tag$p(class = "source", sprintf("%d more rows are in %s.", count, csv))
}

table_body <- function(texts, classes) {
  if (length(texts[[1]]) == 0L) {
    return("")
  }
  cells <- lapply(seq_along(texts), function(i) {
    ends <- if (i == 1L) c("<th scope=\"row\"", "</th>") else c("<td", "</td>")
    paste0(ends[1], classes[i], ">", escaped(texts[[i]]), ends[2])
  })
  paste0("<tr>", do.call(paste0, cells), "</tr>", collapse = "\n")
}

# Sentences for the page: a number keeps its percent sign on its line, and a minus is no hyphen.
prose <- function(text) true_minus(gsub("(?<=[0-9\\]]) %", "\u202f%", said_at_head(text), perl = TRUE))

# That all of it is a model stands at the head of the page and in each source line: a sentence need not say it again.
said_at_head <- function(text) {
  text <- gsub("^In this model, ([a-z]?)", "\\U\\1", text, perl = TRUE)
  gsub(",? in this model\\b| In this model\\.", "", text, perl = TRUE)
}

true_minus <- function(text) gsub("(?<=^|[ \\[(])-(?=[0-9])", "\u2212", text, perl = TRUE)

# A number, with or without its interval, or none.
figures_only <- "^([-+]?[0-9][-+.0-9e]*( \\[[^]]*\\])?|\u2013)$"

# Numbers stand to the right, with their intervals too.
cell_class <- function(text, numeric, long) {
  words <- long || !(numeric || all(grepl(figures_only, text)))
  if (words) sprintf(" class=\"text%s\"", if (long) " long" else "") else ""
}

cell_text <- function(values) {
  text <- if (is.logical(values)) {
    ifelse(values, "yes", "no")
  } else if (is.numeric(values)) {
    number_text(without_rounding(values))
  } else {
    values <- as.character(values)
    ifelse(is.na(values), NA_character_, plain_text(values, most_cell_characters))
  }
  ifelse(is.na(text) | text == "", "\u2013", text)
}

# What is left where equal numbers were subtracted is no number to read: nothing on the page is as small as that.
without_rounding <- function(values) fifelse(abs(values) < 1e-9, 0, as.numeric(values))

definition_list <- function(terms, meanings) {
  tag$dl(Map(function(term, meaning) list(tag$dt(term), tag$dd(meaning)), terms, meanings))
}

#' A part that unfolds
#'
#' @param summary its name; content what it holds.
#' @param rows number of rows of the table that it holds; long ones stay folded in print, named with their file.
#' @param csv file that holds the whole table.
#' @param printed whether it is printed although it is folded.
#' @noRd
folded <- function(summary, content, rows = 0L, csv = NULL, open = FALSE, id = NULL,
                   printed = rows <= most_printed_rows) {
  counted <- c(if (rows > 0L) sprintf("%d %s", rows, plural("row", rows)), csv)
  tag$details(
    id = id, class = if (!printed) "many", open = if (open) NA,
    tag$summary(
      summary, if (length(counted) > 0L) list(" ", tag$span(class = "source", paste(counted, collapse = ", ")))
    ),
    content
  )
}

#' Nested lists as "a.b.c" -> text, for the environment section
#' @noRd
flatten <- function(x, prefix = NULL) {
  scalars <- is.list(x) && is.null(names(x)) && all(vapply(x, is.atomic, NA))
  if (!is.list(x) || scalars) {
    text <- paste(vapply(unlist(x), scalar_text, ""), collapse = ", ")
    text <- if (nzchar(text)) plain_text(text, most_cell_characters) else "\u2013"
    return(stats::setNames(text, if (!is.null(prefix)) plain_text(prefix, most_cell_characters)))
  }
  keys <- if (is.null(names(x))) as.character(seq_along(x)) else names(x)
  parts <- Map(function(key, value) flatten(value, paste(c(prefix, key), collapse = ".")), keys, x)
  unlist(unname(parts))
}

scalar_text <- function(value) {
  if (is.numeric(value)) format(value, digits = 15, scientific = FALSE) else as.character(value)
}
