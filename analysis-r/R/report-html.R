# SPDX-License-Identifier: Apache-2.0

# A small HTML writer. Everything passes through htmltools tags, which escape
# text and attributes; only our own style sheet and our own SVG are taken as is.

tag <- htmltools::tags

report_css <- function() {
  paste(readLines(system.file("report.css", package = "netjoule"), encoding = "UTF-8"), collapse = "\n")
}

#' HTML table of a data.table
#'
#' @param rows data.table.
#' @param columns named character vector, heading -> column; values are shown with
#'   three significant digits, missing ones as a dash.
#' @noRd
html_table <- function(rows, columns, caption = NULL, long = character()) {
  text <- vapply(columns, function(column) !is.numeric(rows[[column]]), NA)
  class_of <- function(i) if (columns[i] %in% long) "text long" else if (text[i]) "text"
  head <- tag$tr(lapply(seq_along(columns), function(i) {
    tag$th(scope = "col", class = class_of(i), names(columns)[i])
  }))
  shown <- lapply(columns, function(column) cell_text(rows[[column]]))
  body <- lapply(seq_len(nrow(rows)), function(r) {
    tag$tr(lapply(seq_along(columns), function(i) tag$td(class = class_of(i), shown[[i]][r])))
  })
  list(
    # Above the scrolling box, not a caption element: that would be as wide as the widest table.
    if (!is.null(caption)) tag$p(class = "source", caption),
    tag$div(class = "scroll", tabindex = "0", tag$table(tag$thead(head), tag$tbody(body)))
  )
}

cell_text <- function(values) {
  text <- if (is.logical(values)) {
    ifelse(values, "yes", "no")
  } else if (is.numeric(values)) {
    number_text(signif(values, 4))
  } else {
    enc2utf8(as.character(values))
  }
  ifelse(is.na(text) | text == "", "\u2013", text)
}

definition_list <- function(terms, meanings) {
  tag$dl(Map(function(term, meaning) list(tag$dt(term), tag$dd(meaning)), terms, meanings))
}

#' Nested lists as "a.b.c" -> text, for the environment section
#' @noRd
flatten <- function(x, prefix = NULL) {
  scalars <- is.list(x) && is.null(names(x)) && all(vapply(x, is.atomic, NA))
  if (!is.list(x) || scalars) {
    text <- paste(vapply(unlist(x), scalar_text, ""), collapse = ", ")
    return(stats::setNames(enc2utf8(if (nzchar(text)) text else "\u2013"), prefix))
  }
  keys <- if (is.null(names(x))) as.character(seq_along(x)) else names(x)
  parts <- Map(function(key, value) flatten(value, paste(c(prefix, key), collapse = ".")), keys, x)
  unlist(unname(parts))
}

scalar_text <- function(value) {
  if (is.numeric(value)) format(value, digits = 15, scientific = FALSE) else as.character(value)
}

#' Our own SVG inlined: identifiers made unique per figure, described for screen readers
#' @noRd
inline_svg <- function(path, alt, index) {
  text <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  text <- sub("^<\\?xml[^>]*\\?>\\s*", "", text)
  prefix <- paste0("f", index, "-")
  text <- gsub("id='", paste0("id='", prefix), text, fixed = TRUE)
  text <- gsub("url(#", paste0("url(#", prefix), text, fixed = TRUE)
  # The tooltip of the whole figure would cover what one points at; the label takes its place.
  text <- sub("<title>.*?</title>\n<desc>.*?</desc>\n", "", text, perl = TRUE)
  label <- htmltools::htmlEscape(enc2utf8(alt), attribute = TRUE)
  label <- gsub("'", "&#39;", label, fixed = TRUE)
  opening <- paste0("<svg role='img' aria-label='", label, "' ")
  text <- sub("<svg role='img' ", opening, text, fixed = TRUE)
  htmltools::HTML(text)
}
