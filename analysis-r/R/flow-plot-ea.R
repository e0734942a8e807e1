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
  parts <- ea_parts(of_meter(summary, meter_id), campaign, meter_id, parameters)
  draw_listed(entry_of(campaign, "ea_j_per_mbit"), parts, campaign, meter_id)
}

ea_parts <- function(rows, campaign, id, parameters) {
  points <- ea_points(rows)
  if (nrow(points) == 0L) {
    return(NULL)
  }
  drawn <- settle_lows(with_inner_bars(spread_loads(rbind(points, floor_per_mbit(rows), fill = TRUE))))
  above <- large_floor_points(rows, drawn)
  total <- points[!is.na(low), total]
  parts <- flow_parts(
    drawn, rows, campaign, id, value_axis(c(drawn$value, above$above), ea_axis_label(above), attr(drawn, "foot")),
    c(
      interval_words(campaign, id, points$n, total = total, held = held_names(parameters, id)), point_words(drawn),
      floor_words(rows), held_back_words(rows)
    ), "E_A, the energy per megabit,", "J/Mb",
    over = large_floor_layers(above)
  )
  # The lines above the drawing have no room for what is hidden.
  told <- alt_ea(points, campaign, id, "E_A, the energy per megabit,")
  parts$alt <- paste(c(told, large_floor_words(above)), collapse = " ")
  parts
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
  cross <- function(...) geom_point(aes(y = above), above, shape = 4, show.legend = FALSE, ...)
  if (nrow(above) > 0L) {
    list(
      geom_linerange(aes(ymin = above, ymax = value), above, linewidth = 0.3, linetype = "dotted", show.legend = FALSE),
      # On a ground of their own, or an interval of the same colour hides them.
      cross(size = 1.9, stroke = 2, colour = "white"), cross(size = 1.7, stroke = 0.7)
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

# A floor that the meter cannot resolve in most of its runs is drawn nowhere: it has no upper limit.
floor_resolved <- function(rows) {
  rows$transport == "null" & !is.na(rows$floor_w) & !mostly_below(rows$below_resolution_n, rows$n)
}

floor_words <- function(rows) {
  hidden <- sum(rows$transport == "null" & !is.na(rows$floor_w)) - sum(floor_resolved(rows))
  if (hidden > 0L) sprintf("Floor of %s below resolution: in the table only.", cell_words(hidden))
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
  if (cells > 0L) paste(cell_words(cells), "held back by congestion control.")
}

floor_points <- function(rows) {
  rows <- rows[floor_resolved(rows)]
  flow_points(rows, "floor_w", "floor")[, below_n := rows$below_resolution_n][]
}

floor_per_mbit <- function(rows) {
  columns <- c("value", "low", "high")
  floor_points(rows)[, (columns) := lapply(.SD, `/`, offered_rate_mbps), .SDcols = columns][]
}
