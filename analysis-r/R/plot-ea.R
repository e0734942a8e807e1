# SPDX-License-Identifier: Apache-2.0

#' Plot E_A against offered load, with the generator floor
#'
#' The floor is drawn as floor_w over the offered load: what the sender alone
#' (messages built, timed and dropped) costs per megabit. Where it is a large part
#' of P_A - P_I, a cross below the point is E_A above it.
#'
#' @param summary from [summarise_ea()].
#' @param campaign from [read_campaign()], for the labels.
#' @param meter_id which meter.
#' @param parameters table model_parameters of the campaign: what its intervals hold; NULL where there is none.
#' @return a ggplot with alt text, or NULL when the meter has no E_A.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' plot_ea(summary, campaign, meter)
#' @export
plot_ea <- function(summary, campaign, meter_id, parameters = NULL) {
  chosen <- meter_id
  rows <- summary[meter_id == chosen]
  points <- ea_points(rows)
  if (nrow(points) == 0L) {
    return(NULL)
  }
  floor <- floor_per_mbit(rows)
  drawn <- settle_lows(with_inner_bars(spread_loads(rbind(points, floor, fill = TRUE))))
  above <- large_floor_points(rows, drawn)
  plot <- ggplot(drawn, cell_aes()) +
    cell_layers(drawn) +
    large_floor_layers(above) +
    payload_facets(rows) +
    load_axis(drawn$offered_rate_mbps) +
    value_axis(c(drawn$value, above$above), ea_axis_label(above), attr(drawn, "foot")) +
    transport_scales() +
    netjoule_theme() +
    labs(
      title = "Energy per megabit against offered load",
      subtitle = subtitle_words(
        campaign, chosen,
        interval_words(
          campaign, chosen, points$n,
          total = points[!is.na(low), total], held = held_names(parameters, chosen)
        ),
        point_words(drawn), floor_words(rows), held_back_words(rows)
      ),
      caption = source_line(campaign, chosen)
    )
  # The lines above the drawing have no room for it.
  alt <- c(alt_ea(points, campaign, chosen, "E_A, the energy per megabit,"), large_floor_words(above))
  with_alt(plot, paste(alt, collapse = " "))
}

#' E_A above the floor of cells of which the floor takes a large part, each at the place of its E_A
#'
#' @param drawn points with `x` and `value`.
#' @return those points with `above`; NA where a logarithmic axis has no place for it.
#' @noRd
large_floor_points <- function(rows, drawn) {
  name_of <- function(cells) paste(cells$transport, cells$payload_bytes, cells$offered_rate_mbps)
  large <- floor_large_cells(rows)
  found <- copy(drawn[limit == FALSE & !is.na(value)])
  found[, above := large$ea_above_floor_j_per_mbit[match(name_of(found), name_of(large))]]
  found <- found[!is.na(above)]
  found[spans_decades(drawn$value) & above <= 0, above := NA_real_]
  found[]
}

large_floor_layers <- function(above) {
  above <- above[!is.na(above)]
  if (nrow(above) > 0L) {
    list(
      geom_linerange(
        data = above, aes(ymin = above, ymax = value), linewidth = 0.3, linetype = "dotted", show.legend = FALSE
      ),
      # On a ground of their own, or an interval of the same colour hides them.
      geom_point(
        data = above, aes(y = above), shape = 4, size = 1.9, stroke = 2, colour = "white", show.legend = FALSE
      ),
      geom_point(data = above, aes(y = above), shape = 4, size = 1.7, stroke = 0.7, show.legend = FALSE)
    )
  }
}

ea_axis_label <- function(above) {
  if (nrow(above) > 0L) {
    expression(E[A] ~ "(J/Mb);" ~ "\u00d7" ~ "above a floor of over 20 %")
  } else {
    expression(E[A] ~ "(J/Mb)")
  }
}

large_floor_words <- function(above) {
  hidden <- sum(is.na(above$above))
  if (hidden > 0L) sprintf("E_A above floor of %s not positive: in the table only.", cell_words(hidden))
}

subtitle_words <- function(campaign, meter_id, ...) {
  whose <- if (!is.null(meter_id)) paste0(meter_title(campaign, meter_id), "\n")
  pacing <- if (!is.null(campaign$pacing_words)) start_sentence("", paste0(campaign$pacing_words, "."))
  paste0(whose, paste(strwrap(paste(c(pacing, ...), collapse = " "), 102L), collapse = "\n"))
}

# What an unusual point means, said only when there is one.
point_words <- function(points) {
  c(
    open_words(points),
    if (any(points$limit)) "Downward triangles: upper limits.",
    if (any(points$low_open)) "Bars to the foot include zero.",
    if (any(points$unshown)) {
      paste(cell_words(sum(points$unshown)), "not positive: in the table only.")
    }
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

#' Points of a figure of E_A: means with intervals, upper limits where most runs are below resolution
#' @noRd
ea_points <- function(rows) {
  rows <- with_drawn_intervals(rows)
  points <- rows[transport != "null", list(
    transport, payload_bytes, offered_rate_mbps, n, hollow, below_n = below_resolution_n,
    limit = mostly_below(below_resolution_n, n) & !is.na(ea_upper_limit_j_per_mbit),
    value = ea_j_per_mbit_mean, low = ea_drawn_low, high = ea_drawn_high, upper = ea_upper_limit_j_per_mbit, total,
    inner_low = ea_ci95_low, inner_high = ea_ci95_high
  )]
  points[limit == TRUE, `:=`(value = upper, low = NA_real_, high = NA_real_, below_n = 0L)]
  hide_unplottable(points[!is.na(value)])
}

# A logarithmic axis has no place for zero and below: such points are counted, not dropped in silence.
hide_unplottable <- function(points) {
  logarithmic <- spans_decades(points$value)
  points[, unshown := logarithmic & value <= 0]
  points[unshown == TRUE, value := NA_real_]
  points[, transport := transport_factor(transport)]
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

# A floor that the meter cannot resolve in most of its runs is drawn nowhere: it has no upper limit.
floor_resolved <- function(rows) {
  rows$transport == "null" & !is.na(rows$floor_w) & !mostly_below(rows$below_resolution_n, rows$n)
}

floor_words <- function(rows) {
  hidden <- sum(rows$transport == "null" & !is.na(rows$floor_w)) - sum(floor_resolved(rows))
  if (hidden > 0L) {
    sprintf("Floor of %s below resolution: in the table only.", cell_words(hidden))
  }
}

#' Cells whose transport, not its sender, sent less than was asked
#' @noRd
held_back <- function(rows) {
  styles <- transport_looks()
  controlled <- styles$transport[styles$controlled]
  rows[transport %in% controlled & !is.na(achieved_ratio) & achieved_ratio < least_achieved_ratio]
}

held_back_words <- function(rows) {
  cells <- nrow(held_back(rows))
  if (cells > 0L) {
    paste(cell_words(cells), "held back by congestion control.")
  }
}

floor_per_mbit <- function(rows) {
  floor <- rows[floor_resolved(rows), list(
    transport = transport_factor(transport), payload_bytes, offered_rate_mbps, n, below_n = below_resolution_n,
    value = floor_w / offered_rate_mbps, low = floor_ci95_low / offered_rate_mbps,
    high = floor_ci95_high / offered_rate_mbps
  )]
  floor <- plain_points(floor)
  floor
}

# Points that are neither hollow nor limits nor hidden (set apart: a constant inside list() makes a row out of none).
plain_points <- function(points) points[, `:=`(hollow = FALSE, limit = FALSE, unshown = FALSE)][]

cell_aes <- function() {
  aes(
    x = x, y = value, ymin = low, ymax = high, colour = transport, shape = transport, linetype = transport,
    group = transport
  )
}

#' Lines, intervals and points of cells; filled, open, or upper limits
#' @noRd
cell_layers <- function(points) {
  limit_shape <- 25
  # Many loads leave a point little room.
  size <- if (length(unique(points$offered_rate_mbps)) > 12L) 1.4 else 2.1
  limits <- points[limit == TRUE & !is.na(value)]
  open <- points[limit == FALSE & is_open(points) & !is.na(value)]
  whole <- points[limit == FALSE & !is_open(points) & !is.na(value)]
  list(
    geom_line(data = joinable(points), aes(group = interaction(transport, piece)), linewidth = 0.55),
    geom_linerange(
      data = points[!is.na(low) & !is.na(value)], linewidth = 0.6, linetype = "solid", show.legend = FALSE
    ),
    inner_bars(points),
    geom_point(data = whole, aes(fill = transport), size = size, stroke = 0.5),
    if (nrow(open) > 0L) geom_point(data = open, fill = "white", size = size, stroke = 0.8, show.legend = FALSE),
    if (any(limits$hollow)) {
      geom_point(
        data = limits[hollow == TRUE], shape = limit_shape, fill = "white", size = size + 0.3, stroke = 0.9,
        show.legend = FALSE
      )
    },
    if (!all(limits$hollow)) {
      geom_point(
        data = limits[hollow == FALSE], aes(fill = transport), shape = limit_shape, size = size + 0.3, stroke = 0.5,
        show.legend = FALSE
      )
    },
    # A transport of which no point can be shown has no place in the legend either.
    transport_legend(points$transport[!is.na(points$value)])
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

# A line needs two points in its panel, and never crosses a load that has no plain point of its own.
joinable <- function(points) {
  loads <- sort(unique(points$offered_rate_mbps))
  points <- points[limit == FALSE & !is.na(value)]
  setorderv(points, c("transport", "payload_bytes", "offered_rate_mbps"))
  points[, piece := cumsum(c(1L, diff(match(offered_rate_mbps, loads))) != 1L), by = list(transport, payload_bytes)]
  points[points[, .I[.N > 1L], by = list(transport, payload_bytes, piece)]$V1]
}

# Names of all transports side by side, in more rows where one is not wide enough.
transport_legend <- function(transport) {
  guides(colour = guide_legend(override.aes = list(fill = legend_fill(transport)), nrow = legend_rows(transport)))
}

# In points: a letter of the legend's text, a key with its margins, and what a figure is wide inside its own.
legend_rows <- function(transport) {
  shown <- transport_label(levels(droplevels(transport_factor(as.character(transport)))))
  max(1, ceiling(sum(5.2 * nchar(shown) + 44) / 580))
}

legend_fill <- function(transport) {
  shown <- levels(droplevels(transport_factor(as.character(transport))))
  # A transport that no contract knows is drawn grey and has no key.
  fill <- style_values("colour")[shown]
  unname(fill[!is.na(fill)])
}
