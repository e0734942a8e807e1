# SPDX-License-Identifier: Apache-2.0

# Lines, intervals and points of cells: what every figure over a factor is made of. Points have `arm` (factor), `at`
# (place on the x axis before arms are set side by side), `panel`, `value`, `low`, `high`, and say what is unusual of
# them: `hollow`, `limit`, `unshown`, `below_n`.

subtitle_words <- function(campaign, meter_id, ...) {
  whose <- if (!is.null(meter_id) && !is_unpowered(campaign)) paste0(meter_title(campaign, meter_id), "\n")
  variant <- if (!is.null(campaign$variant)) start_sentence("", paste0(campaign$variant, "."))
  paste0(whose, paste(strwrap(paste(c(variant, ...), collapse = " "), 102L), collapse = "\n"))
}

# What an unusual point means, said only when there is one.
point_words <- function(points) {
  c(
    open_words(points),
    if (any(points$limit)) "Downward triangles: upper limits.",
    if (any(points$low_open)) "Bars to the foot include zero.",
    if (any(points$unshown)) paste(cell_words(sum(points$unshown)), "not positive: in the table only.")
  )
}

# Why points have no fill; both reasons may meet in a figure.
open_words <- function(points) {
  below <- below_of(points)
  most <- max(0L, below)
  why <- c(
    if (any(points$hollow)) "device model extrapolated",
    if (most > 0L) {
      paste0(if (any(below > 0L & below < most)) "up to ", most, " ", plural("run", most), " below resolution")
    }
  )
  if (length(why) > 0L) {
    paste0(if (any(points$hollow)) "Hollow" else "Open", " points: ", paste(why, collapse = ", or "), ".")
  }
}

# Runs below resolution behind each point; figures of goodput, loss or pacing have none.
below_of <- function(points) {
  if (is.null(points$below_n)) rep(0L, nrow(points)) else fcoalesce(as.integer(points$below_n), 0L)
}

is_open <- function(points) points$hollow | below_of(points) > 0L

# A logarithmic axis has no place for zero and below: such points are counted, not dropped in silence.
hide_unplottable <- function(points) {
  logarithmic <- spans_decades(points$value)
  points[, unshown := logarithmic & value <= 0]
  points[unshown == TRUE, value := NA_real_]
  points[]
}

#' Draw intervals that reach zero down to the foot of a logarithmic panel
#'
#' @return points with `low` settled, `low_open`, and the foot as attribute (NULL: no such interval).
#' @noRd
settle_lows <- function(points) {
  points[, low_open := spans_decades(points$value) & !is.na(low) & low <= 0 & !is.na(value)]
  foot <- NULL
  if (any(points$low_open)) {
    drawn <- c(points$value, points$low)
    foot <- min(drawn[is.finite(drawn) & drawn > 0]) / 1.5
    points[low_open == TRUE, low := foot]
    if ("inner_low" %in% names(points)) points[, inner_low := pmax(inner_low, foot)]
  }
  setattr(points, "foot", foot)
  points[]
}

# Points that are neither hollow nor limits nor hidden (set apart: a constant inside list() makes a row out of none).
plain_points <- function(points) points[, `:=`(hollow = FALSE, limit = FALSE, unshown = FALSE)][]

cell_aes <- function() {
  aes(
    x = x, y = value, ymin = low, ymax = high, colour = arm, shape = arm, linetype = arm, group = arm
  )
}

#' Lines, intervals and points of cells; filled, open, or upper limits
#' @noRd
cell_layers <- function(points) {
  limit_shape <- 25
  # Many loads leave a point little room.
  size <- if (length(unique(points$at)) > 12L) 1.4 else 2.1
  some <- function(data, ...) if (nrow(data) > 0L) geom_point(data = data, ..., show.legend = FALSE)
  limits <- points[limit == TRUE & !is.na(value)]
  open <- points[limit == FALSE & is_open(points) & !is.na(value)]
  whole <- points[limit == FALSE & !is_open(points) & !is.na(value)]
  list(
    geom_line(data = joinable(points), aes(group = interaction(arm, piece)), linewidth = 0.55),
    geom_linerange(
      data = points[!is.na(low) & !is.na(value)], linewidth = 0.6, linetype = "solid", show.legend = FALSE
    ),
    inner_bars(points),
    geom_point(data = whole, aes(fill = arm), size = size, stroke = 0.5),
    some(open, fill = "white", size = size, stroke = 0.8),
    some(limits[hollow == TRUE], shape = limit_shape, fill = "white", size = size + 0.3, stroke = 0.9),
    some(limits[hollow == FALSE], aes(fill = arm), shape = limit_shape, size = size + 0.3, stroke = 0.5),
    # An arm of which no point can be shown has no place in the legend either.
    arm_legend(points$arm[!is.na(points$value)])
  )
}

# Where some intervals include metering and model parameters, the part of each that is run to run: all of it for others.
with_inner_bars <- function(points) {
  if (!any(points$total %in% TRUE)) {
    return(points[, c("inner_low", "inner_high") := NULL][])
  }
  points[!total %in% TRUE, `:=`(inner_low = low, inner_high = high)]
  points[is.na(low), `:=`(inner_low = NA_real_, inner_high = NA_real_)]
  points[]
}

inner_bars <- function(points) {
  if ("inner_low" %in% names(points)) {
    geom_linerange(
      data = points[!is.na(inner_low) & !is.na(value)], aes(ymin = inner_low, ymax = inner_high), linewidth = 1.5,
      linetype = "solid", show.legend = FALSE
    )
  }
}

# A line needs two points in its panel, and never crosses a place that has no plain point of its own.
joinable <- function(points) {
  places <- sort(unique(points$at))
  points <- points[limit == FALSE & !is.na(value)]
  setorderv(points, c("arm", "panel", "at"))
  points[, piece := cumsum(c(1L, diff(match(at, places))) != 1L), by = list(arm, panel)]
  points[points[, .I[.N > 1L], by = list(arm, panel, piece)]$V1]
}

# Names of all arms side by side, in more rows where one is not wide enough.
arm_legend <- function(arms) {
  shown <- if (is.factor(arms)) levels(droplevels(arms)) else unique(arms)
  # An arm that nobody knows is drawn grey and has no key.
  fill <- arm_values(shown, "colour")[shown]
  guides(colour = guide_legend(override.aes = list(fill = unname(fill[!is.na(fill)])), nrow = legend_rows(shown)))
}

# In points: a letter of the legend's text, a key with its margins, and what a figure is wide inside its own.
legend_rows <- function(arms) max(1, ceiling(sum(5.2 * nchar(arm_label(arms)) + 44) / 580))

panel_columns <- function(panels) if (panels %in% c(2L, 4L)) 2L else min(3L, panels)

#' Place the arms of one place side by side, a few per cent of the axis away from each other
#'
#' The offset belongs to the arm, so that lines, intervals and points of one arm meet whatever subset of rows a layer
#' draws.
#'
#' @param points with arm (factor) and at.
#' @return points with `x` added, in the unit of `at`.
#' @noRd
spread_arms <- function(points) {
  places <- sort(unique(points$at))
  logarithmic <- spans_decades(places)
  positions <- if (logarithmic) log10(places) else places
  width <- if (length(places) < 2L) {
    0.08 * places
  } else {
    min(0.35 * min(diff(positions)), 0.04 * diff(range(positions)))
  }
  present <- droplevels(points$arm)
  count <- nlevels(present)
  offset <- width * ((as.integer(present) - (count + 1) / 2) / max(1, count - 1))
  points[, x := if (logarithmic) 10^(log10(at) + offset) else at + offset]
  points[]
}

# "0.5 to 30"; "30" where both ends are printed alike.
span_words <- function(values, digits = 3L) {
  paste(unique(number_text(signif(range(values), digits))), collapse = " to ")
}

#' A figure of cells over a factor
#'
#' @param points of cells, from spread_arms().
#' @param facets,x,y of the figure; scales of its arms.
#' @param behind,over layers under and over those of the cells.
#' @param ... words: title, subtitle, caption.
#' @noRd
sweep_plot <- function(points, facets, x, y, ..., behind = NULL, over = NULL, scales = arm_scales(points$arm)) {
  # Panel by panel where these are words: a line must not go from one to the next.
  parts <- if (is.factor(points$panel)) split(points, by = "panel") else list(points)
  layers <- unname(unlist(lapply(parts, cell_layers), recursive = FALSE))
  ggplot(points, cell_aes()) + behind + layers + arm_legend(points$arm[!is.na(points$value)]) + over + facets + x + y +
    scales + netjoule_theme() + labs(...)
}

# Panels that stand below each other, whose arms, panels and places are named once.
named_once <- function(panels) {
  for (i in seq_along(panels)[-1]) {
    panels[[i]] <- panels[[i]] + theme(legend.position = "none", strip.text = element_blank())
  }
  for (i in seq_len(length(panels) - 1L)) panels[[i]] <- panels[[i]] + theme(axis.title.x = element_blank())
  panels
}

#' Panels below each other under one title
#'
#' @param words below the title; `...`: title, and heights of the rows.
#' @noRd
stacked_figure <- function(panels, campaign, id, words, title, alt, caption = source_line(campaign, id),
                           heights = NULL) {
  plot <- patchwork::wrap_plots(panels, ncol = 1L, heights = heights) + patchwork::plot_annotation(
    title = title, subtitle = subtitle_words(campaign, id, words), caption = caption, theme = netjoule_theme()
  )
  with_alt(plot, alt)
}

zero_line <- function() geom_hline(yintercept = 0, colour = "grey50", linewidth = 0.4)
