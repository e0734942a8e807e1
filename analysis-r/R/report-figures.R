# SPDX-License-Identifier: Apache-2.0

# The report's figures: the campaign's own SVG files, written into the page.

# Bytes of drawings in the page together; what comes after them is named with its file. A campaign of the widest shape
# (four transports and null, two sizes, 24 loads, two meters) has about 2 MB.
most_inlined_bytes <- 6e6

#' @param anchors named character vector: table -> part of the page that shows it.
#' @param most_bytes see `most_inlined_bytes`.
#' @noRd
section_figures <- function(campaign, figures, anchors = character(), most_bytes = most_inlined_bytes) {
  ids <- vapply(figures, function(one) one$name, "")
  titles <- vapply(seq_along(figures), function(i) figure_title(campaign, figures[[i]], i), "")
  paths <- file.path(campaign$dir, "figures", sprintf("%s.svg", ids))
  inlined <- find_room(file.size(paths), most_bytes)
  tag$section(
    id = "figures", tag$h2("Figures"),
    if (length(figures) > 3L) {
      tag$ol(class = "contents", lapply(seq_along(figures), function(i) {
        tag$li(tag$a(href = paste0("#figure-", ids[i]), gsub("^Figure [0-9]+\\. |\\.$", "", titles[i])))
      }))
    },
    lapply(seq_along(figures), function(i) {
      drawing <- if (inlined[i]) inline_svg(paths[i], figure_alt(figures[[i]]$plot), i)
      figure_html(figures[[i]], titles[i], drawing, anchors)
    }),
    if (!any(startsWith(ids, "floor"))) {
      tag$p("There is no figure of the generator floor: no mini-block of this campaign has a usable null run.")
    }
  )
}

# Which sizes have room in turn: one that has none is left out, and those after it have their chance.
find_room <- function(sizes, most) {
  used <- 0
  vapply(sizes, function(size) {
    fits <- used + size <= most
    if (fits) used <<- used + size
    fits
  }, NA)
}

figure_title <- function(campaign, one, number) {
  of_meter <- nrow(campaign$meters) > 1L && !is.na(one$meter_id)
  paste0("Figure ", number, ". ", one$title, if (of_meter) paste0(" (meter ", one$meter_id, ")"), ".")
}

figure_html <- function(one, title, drawing, anchors) {
  tag$figure(
    id = paste0("figure-", one$name),
    if (!is.null(drawing)) {
      tag$div(class = "scroll plot", tabindex = "0", role = "group", `aria-label` = title, drawing)
    },
    tag$figcaption(
      tag$strong(title), " ",
      # The drawing itself bears the same words for a screen reader.
      tag$span(`aria-hidden` = if (!is.null(drawing)) "true", figure_alt(one$plot)),
      if (is.null(drawing)) sprintf(" This page would grow too large with it: see figures/%s.svg.", one$name),
      tag$p(class = "source", figure_source(one$plot), " \u00b7 ", tag$code(paste0("figures/", one$name, ".svg"))),
      if (length(one$tables) > 0L) tag$p(class = "source", "Numbers: ", table_references(one$tables, anchors))
    )
  )
}

# The tables behind a figure: a link where the page shows one, else the name of its file.
table_references <- function(tables, anchors) {
  references <- lapply(tables, function(name) {
    file <- tag$code(paste0("tables/", name, ".csv"))
    if (name %in% names(anchors)) tag$a(href = paste0("#", anchors[[name]]), file) else file
  })
  separators <- c(rep(list(", "), length(tables) - 1L), list(""))
  Map(list, references, separators)
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
