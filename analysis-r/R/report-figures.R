# SPDX-License-Identifier: Apache-2.0

# The report's figures: the campaign's own SVG files, written into the page.

# Bytes of drawings in the page together; what comes after them is named with its file. A campaign of the widest shape
# (five arms, 48 cells, two meters) has about 2 MB.
most_inlined_bytes <- 6e6

#' Every figure as a part of the page, in their order
#'
#' @param tables of the campaign: a figure in which all is the same is folded, with a sentence that says so.
#' @param anchors named character vector: table -> part of the page that shows it.
#' @param most_bytes see `most_inlined_bytes`.
#' @noRd
figure_parts <- function(campaign, figures, tables = list(), anchors = character(), most_bytes = most_inlined_bytes) {
  titles <- figure_titles(campaign, figures)
  paths <- file.path(campaign$dir, "figures", sprintf("%s.svg", figure_ids(figures)))
  # Each is drawn twice, wide and narrow.
  same <- of_load(campaign, "same_words", function(name, campaign, tables) NULL)
  inlined <- find_room(2 * file.size(paths), most_bytes)
  lapply(seq_along(figures), function(i) {
    one <- figures[[i]]
    words <- paste0(figure_alt(one$plot), " Source: ", figure_source(one$plot), ".")
    drawing <- if (inlined[i]) both_drawings(one, paths[i], words, i)
    figure_html(one, titles[i], drawing, anchors, same(one$name, campaign, tables))
  })
}

#' A figure as wide as on a desk and as narrow as on a phone; the style sheet shows one of them
#' @noRd
both_drawings <- function(one, path, alt, index) {
  narrow <- withr::local_tempfile(fileext = ".svg")
  small <- narrow_figure(one)
  write_svg(small, narrow, small$drawn)
  list(inline_svg(path, alt, index, "wide"), inline_svg(narrow, alt, paste0(index, "n"), "narrow"))
}

#' @param parts from figure_parts().
#' @param elsewhere which of them stand in the summary.
#' @noRd
section_figures <- function(figures, titles, parts, elsewhere = rep(FALSE, length(figures)), note = NULL) {
  ids <- figure_ids(figures)
  tag$section(
    id = "figures", tag$h2("Figures"),
    if (length(figures) > 3L) {
      tag$ol(class = "contents", lapply(seq_along(figures), function(i) {
        tag$li(tag$a(href = paste0("#figure-", ids[i]), gsub("^Figure [0-9]+\\. |\\.$", "", titles[i])))
      }))
    },
    if (any(elsewhere)) tag$p("Figure 1 stands in the ", tag$a(href = "#summary", "summary", .noWS = "after"), "."),
    parts[!elsewhere & !is_diagnostic(ids)], if (!is.null(note)) tag$p(note)
  )
}

# Figures of the measurement itself, not of what work cost: they stand in the appendix.
is_diagnostic <- function(ids) grepl("^(pacing|phy-rates|power|ea-order|model-fit|model-residuals)($|-)", ids)

diagnostics_part <- function(figures, words) {
  if (length(figures) > 0L) {
    list(tag$h3("Figures of the measurement itself"), folded(words, figures, id = "diagnostics", printed = FALSE))
  }
}

figure_ids <- function(figures) vapply(figures, function(one) one$name, "")

# "Figure 2. Goodput."; with its meter where the campaign has several.
figure_titles <- function(campaign, figures) {
  vapply(seq_along(figures), function(i) {
    one <- figures[[i]]
    of_meter <- nrow(campaign$meters) > 1L && !is.na(one$meter_id)
    paste0("Figure ", i, ". ", one$title, if (of_meter) paste0(" (meter ", one$meter_id, ")"), ".")
  }, "")
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

#' One figure of the page
#'
#' @param drawing its SVG, which bears its source line; NULL where the page has no room for it.
#' @param same what it shows where that is the same in every cell, as a sentence: the drawing is then folded, on paper
#'   too.
#' @param file where the drawing stands beside the page.
#' @noRd
figure_html <- function(one, title, drawing, anchors, same = NULL, file = paste0("figures/", one$name, ".svg")) {
  plot <- if (!is.null(drawing)) {
    list(
      tag$p(class = "hint", `aria-hidden` = "true", "Tap the drawing to enlarge it."),
      tag$div(class = "scroll plot", tabindex = "0", role = "group", `aria-label` = title, drawing)
    )
  }
  shown <- !is.null(drawing) && is.null(same)
  tag$figure(
    id = paste0("figure-", one$name),
    if (shown) {
      plot
    } else if (!is.null(drawing)) {
      list(tag$p(class = "same", prose(same)), tag$details(class = "many", tag$summary("The drawing"), plot))
    },
    tag$figcaption(
      tag$strong(title), " ",
      # The drawing itself bears the same words for a screen reader.
      tag$span(`aria-hidden` = if (!is.null(drawing)) "true", said_at_head(figure_alt(one$plot))),
      if (is.null(drawing)) sprintf(" This page would grow too large with it: see %s.", file),
      tag$p(
        class = "source", if (!shown) list(figure_source(one$plot), " \u00b7 "),
        if (!is.null(file)) tag$code(file),
        if (length(one$tables) > 0L) list(" \u00b7 Numbers: ", table_references(one$tables, anchors))
      )
    )
  )
}

# The tables behind a figure: a link where the page shows one, else the name of its file.
table_references <- function(tables, anchors) {
  references <- lapply(tables, function(name) {
    file <- tag$code(paste0("tables/", name, ".csv"), .noWS = "outside")
    if (name %in% names(anchors)) tag$a(href = paste0("#", anchors[[name]]), file, .noWS = "after") else file
  })
  separators <- c(rep(list(", "), length(tables) - 1L), list(""))
  Map(list, references, separators)
}

#' Our own SVG inlined: identifiers made unique per figure, described for screen readers
#' @noRd
inline_svg <- function(path, alt, index, class) {
  id <- paste0("f", index)
  text <- paste(short_styles(readLines(path, warn = FALSE, encoding = "UTF-8"), id), collapse = "\n")
  text <- sub("^<\\?xml[^>]*\\?>\\s*", "", text)
  text <- gsub("id='", paste0("id='", id, "-"), text, fixed = TRUE)
  text <- gsub("url(#", paste0("url(#", id, "-"), text, fixed = TRUE)
  # The tooltip of the whole figure would cover what one points at; the label takes its place.
  text <- sub("<title>.*?</title>\n<desc>.*?</desc>\n", "", text, perl = TRUE)
  label <- htmltools::htmlEscape(enc2utf8(alt), attribute = TRUE)
  label <- gsub("'", "&#39;", label, fixed = TRUE)
  opening <- paste0("<svg role='img' aria-label='", label, "' id='", id, "' ")
  text <- sub("class='svglite'", paste0("class='svglite ", class, "'"), text, fixed = TRUE)
  text <- sub("<svg role='img' ", opening, text, fixed = TRUE)
  htmltools::HTML(gsub("(fill|stroke): #([0-9A-F]{6})", "\\1: var(--c\\2, #\\2)", text, perl = TRUE))
}

#' A drawing whose elements have classes for the styles that they share: half of its size were these
#'
#' @param lines of our own SVG: each element begins one, and no word in it has a "<".
#' @param id that the drawing gets.
#' @noRd
short_styles <- function(lines, id) {
  own <- "^(<[a-z]+ [^<>]*)style='([^'<>&]*)'"
  styled <- grep(own, lines, perl = TRUE)
  style <- sub(paste0(own, ".*"), "\\2", lines[styled], perl = TRUE)
  shared <- unique(style[duplicated(style)])
  class <- match(style, shared)
  at <- styled[!is.na(class)]
  shorter <- lines[at]
  places <- regexpr("style='[^']*'", shorter)
  regmatches(shorter, places) <- paste0("class='s", stats::na.omit(class), "'")
  lines[at] <- shorter
  rules <- sprintf("    #%s .s%d { %s }\n", id, seq_along(shared), shared)
  lines <- sub("class='mark' class='", "class='mark ", lines, fixed = TRUE)
  sub("  ]]></style>", paste0(paste(rules, collapse = ""), "  ]]></style>"), lines, fixed = TRUE)
}

#' Style that gives the colours of drawings their counterparts on a dark ground
#'
#' Greys are turned over, other colours made light enough; the drawings refer to each by name, inline_svg().
#'
#' @param html the page's text or its drawings.
#' @noRd
dark_colours <- function(html) {
  # Black is what a drawing leaves unsaid.
  # By bytes: to count characters up to each of ten thousand names takes minutes.
  found <- gregexpr("(?<=var\\(--c)[0-9A-F]{6}", html, perl = TRUE, useBytes = TRUE)
  names <- union("000000", unlist(regmatches(html, found)))
  lab <- grDevices::convertColor(t(grDevices::col2rgb(paste0("#", names))) / 255, "sRGB", "Lab")
  grey <- sqrt(lab[, 2]^2 + lab[, 3]^2) < 8
  # The page's dark ground has lightness 8, its ink 92.
  lab[, 1] <- ifelse(grey, 92 - 0.84 * lab[, 1], pmax(lab[, 1], 62))
  dark <- grDevices::rgb(pmin(pmax(grDevices::convertColor(lab, "Lab", "sRGB"), 0), 1))
  paste0(
    "@media screen and (prefers-color-scheme: dark) { :root { ", paste0("--c", names, ": ", dark, ";", collapse = " "),
    " } }"
  )
}
