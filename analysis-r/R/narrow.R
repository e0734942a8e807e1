# SPDX-License-Identifier: Apache-2.0

# Figures for a narrow screen: panels below each other, words in shorter lines. The page carries each figure as wide
# and as narrow, and its style sheet shows one.

# A window of 390 pixels shows 4.1 inches with letters of 10 pixels and more.
narrow_width_in <- 4.1
narrow_panel_in <- 1.9
# Characters that fit: of the title, of the lines below it and over a panel, of the source line.
narrow_characters <- c(title = 38L, words = 47L, strip = 48L, caption = 60L)

#' A figure as it is on a narrow screen
#'
#' @param one from figure().
#' @return the same with another plot, width and height; `drawn` is laid_out() of it.
#' @noRd
narrow_figure <- function(one) {
  # Words are measured by a device; this one writes nothing.
  ragg::agg_capture(width = narrow_width_in, height = narrow_width_in, units = "in")
  on.exit(grDevices::dev.off())
  one$plot <- narrow_plot(one$plot)
  one$width_in <- narrow_width_in
  one$height_in <- narrow_width_in
  one$drawn <- laid_out(one)
  one$height_in <- if (inherits(one$plot, "patchwork")) {
    stacked_height(one$plot)
  } else {
    natural_height(one$drawn$grob)
  }
  one
}

narrow_plot <- function(plot) {
  if (inherits(plot, "patchwork")) {
    return(narrow_patchwork(plot))
  }
  plot$labels <- narrow_words(plot$labels)
  plot$facet <- narrow_facet(plot$facet)
  if (!is.null(plot$guides$colour$override.aes)) {
    plot$guides$colour$nrow <- NULL
    plot$guides$colour$ncol <- 2L
  }
  plot + theme(
    legend.direction = "vertical", legend.key.width = unit(20, "pt"), plot.title = element_text(size = rel(1.05)),
    plot.margin = margin(8, 6, 6, 4), panel.spacing.y = unit(6, "pt"), plot.caption = element_text(size = rel(0.78))
  )
}

# Names of panels that stood once above a column are needed over each panel of it.
narrow_patchwork <- function(plot) {
  annotation <- plot$patches$annotation
  panels <- lapply(seq_len(part_count(plot)), function(i) narrow_plot(plot[[i]]) + theme(strip.text = panel_names()))
  heights <- vapply(panels, function(panel) natural_height(ggplot2::ggplotGrob(panel)), 0)
  words <- narrow_words(annotation[c("title", "subtitle", "caption")])
  stacked <- patchwork::wrap_plots(panels, ncol = 1L) + patchwork::plot_layout(heights = heights) +
    patchwork::plot_annotation(
      title = words$title, subtitle = words$subtitle, caption = words$caption,
      theme = netjoule_theme() + theme(plot.title = element_text(size = rel(1.05)))
    )
  with_alt(stacked, figure_alt(plot))
}

panel_names <- function() {
  element_text(hjust = 0, vjust = 1, size = rel(0.85), lineheight = 1.1, margin = margin(b = 4, t = 2))
}

narrow_words <- function(labels) {
  for (name in intersect(c("title", "subtitle", "caption"), names(labels))) {
    width <- narrow_characters[[if (name == "subtitle") "words" else name]]
    if (is.character(labels[[name]])) labels[[name]] <- narrow_lines(labels[[name]], width)
  }
  labels
}

# Lines that were broken for want of room run on; others stay lines of their own.
narrow_lines <- function(text, width) {
  lines <- strsplit(gsub("\u00a0", " ", text, fixed = TRUE), "\n", fixed = TRUE)[[1]]
  runs_on <- c(FALSE, utils::head(nchar(lines) > 60L, -1L))
  whole <- vapply(split(lines, cumsum(!runs_on)), paste, "", collapse = " ")
  paste(unlist(lapply(whole, strwrap, width)), collapse = "\n")
}

narrow_facet <- function(facet) {
  params <- facet$params
  labeller <- params$labeller
  if (inherits(facet, "FacetWrap")) params[c("ncol", "nrow")] <- list(1L, NULL)
  if (is.function(labeller)) {
    params$labeller <- structure(function(labels, ...) {
      lapply(labeller(labels, ...), function(text) vapply(text, narrow_lines, "", narrow_characters[["strip"]]))
    }, class = class(labeller))
  }
  ggproto(NULL, facet, params = params)
}

#' Inches that a plot needs where each row of its panels is narrow_panel_in high
#' @noRd
natural_height <- function(grob) {
  heights <- grob$heights
  flexible <- grid::unitType(heights) == "null"
  sum(flexible) * narrow_panel_in + sum(grid::convertHeight(heights[!flexible], "in", valueOnly = TRUE))
}

# Of plots below each other: of each, and of the words around them.
stacked_height <- function(plot) {
  labels <- plot$patches$annotation
  points <- c(title = 14, subtitle = 13.5, caption = 9.5)
  lines <- lengths(strsplit(unlist(labels[names(points)]), "\n", fixed = TRUE))
  sum(plot$patches$layout$heights) + (30 + sum(lines * points)) / 72.27
}
