# SPDX-License-Identifier: Apache-2.0

# Figures that compare two campaigns: a panel per transport and size, a colour per campaign.

overlay_colours <- c("#0072B2", "#D55E00")
overlay_most_columns <- 4L

overlay_figures <- function(campaigns, pairs) {
  figures <- c(
    lapply(pairs, function(pair) {
      points <- overlay_points(pair$cells, ea_points)
      overlay_figure("ea", "Energy per megabit", expression(E[A] ~ "(J/Mb)"), points, campaigns, pair)
    }),
    list(
      overlay_figure(
        "goodput", "Goodput", "Goodput (Mb/s)",
        overlay_flow(pairs[[1]]$cells, "goodput_mbps", "goodput"), campaigns
      ),
      overlay_figure(
        "loss", "Messages lost", "Messages lost (%)", overlay_loss(pairs[[1]]$cells), campaigns
      )
    )
  )
  figures <- Filter(Negate(is.null), figures)
  tag$section(id = "figures", tag$h2("Figures"), lapply(seq_along(figures), function(i) {
    one <- figures[[i]]
    wide <- withr::local_tempfile(fileext = ".svg")
    write_svg(one, wide)
    words <- paste0(figure_alt(one$plot), " Source: ", figure_source(one$plot), ".")
    title <- sprintf("Figure %d. %s.", i, one$title)
    figure_html(one, title, both_drawings(one, wide, words, i), character(), file = NULL)
  }))
}

#' @param points from overlay_points().
#' @param pair of overlay_pairs() where it is about a meter.
#' @return figure(), NULL without points.
#' @noRd
overlay_figure <- function(name, title, axis, points, campaigns, pair = NULL) {
  if (nrow(points) == 0L) {
    return(NULL)
  }
  several <- !is.null(pair) && pair$ids[1] != campaigns[[1]]$meters$meter_id[1]
  columns <- min(overlay_most_columns, length(unique(as.character(points$flow))))
  plot <- overlay_plot(points, title, axis, columns, campaigns, pair)
  rows <- ceiling(nlevels(points$panel) / columns)
  figure(paste0(name, if (several) paste0("-", pair$ids[1])), title, plot, 2.4 + 2.2 * rows, pair$ids[1])
}

overlay_plot <- function(points, title, axis, columns, campaigns, pair) {
  labels <- names(campaigns)
  points[, `:=`(flow = NULL, transport = factor(labels[side], levels = labels), payload_bytes = as.integer(panel))]
  points <- settle_lows(spread_loads(points))
  points[, told := paste0(
    arm, ", ", panel, ", ", number_text(at), " Mb/s: ",
    range_words(value, fifelse(low_open, NA_real_, low), high)
  )]
  look <- function(values) stats::setNames(values, labels)
  sources <- paste0(c("A: ", "B: "), vapply(seq_along(campaigns), function(i) {
    source_line(campaigns[[i]], pair$ids[i], 115L)
  }, ""))
  looks <- list(
    scale_colour_manual(name = NULL, values = look(overlay_colours)),
    scale_fill_manual(name = NULL, values = look(overlay_colours), guide = "none"),
    scale_shape_manual(name = NULL, values = look(c(21, 24))),
    scale_linetype_manual(name = NULL, values = look(c("solid", "42"))),
    guides(colour = guide_legend(
      override.aes = list(fill = overlay_colours), nrow = if (sum(nchar(labels)) > 34L) 2L else 1L
    ))
  )
  plot <- sweep_plot(
    points, facet_wrap(ggplot2::vars(panel), ncol = columns), load_axis(points$at),
    value_axis(points$value, axis, attr(points, "foot")),
    title = paste0(title, ", two campaigns compared"),
    subtitle = paste(strwrap(paste(
      c("Cells of both. Mean and 95 % interval over blocks.", point_words(points)), collapse = " "
    ), 102L), collapse = "\n"),
    caption = paste(sources, collapse = "\n"), scales = looks
  )
  with_alt(plot, sprintf(
    "%s against offered load of %s, a panel per transport and message size (%s). Values: %s.", title,
    paste(labels, collapse = " and "), paste(levels(points$panel), collapse = "; "),
    paste(unique(short(range(points$value, na.rm = TRUE))), collapse = " to ")
  ))
}

overlay_flow <- function(cells, value, ends) overlay_points(cells, function(rows) flow_points(rows, value, ends))

# Where nothing was lost there is nothing to see.
overlay_loss <- function(cells) {
  points <- overlay_points(cells, loss_points)
  if (all(points$value == 0)) points[0] else points
}

# Panel by panel and campaign by campaign, for the points do not bear what distinguishes the panels.
overlay_points <- function(cells, points_of) {
  parts <- split(cells, by = c("panel", "side"))
  points <- rbindlist(lapply(parts, function(rows) {
    points_of(rows)[, `:=`(panel = rows$panel[1], side = rows$side[1], flow = as.character(transport))]
  }), fill = TRUE)
  if (nrow(points) > 0L) points <- hide_unplottable(points[, transport := as.character(transport)])
  points[]
}
