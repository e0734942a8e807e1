# SPDX-License-Identifier: Apache-2.0

#' Plot the generator floor in W and E_A above it
#'
#' Above: floor_w, the power of the same schedule sent to the transport null.
#' Below: ea_above_floor, what is left of E_A without it. Floors that the meter does
#' not resolve in most of their runs are not drawn, as in [plot_ea()].
#'
#' @inheritParams plot_ea
#' @return a patchwork with alt text, or NULL when the campaign has no floor that the meter resolves.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' plot_floor(summary, campaign, meter)
#' @export
plot_floor <- function(summary, campaign, meter_id) {
  rows <- of_meter(summary, meter_id)
  floor <- floor_points(rows)
  above <- above_floor_points(rows)
  if (nrow(floor) == 0L || nrow(above) == 0L) {
    return(NULL)
  }
  notes <- c(floor_words(rows), floor_empty_words(rows))
  # The title says of what.
  notes <- start_sentence("", sub("E_A above floor is ", "", notes, fixed = TRUE))
  words <- c(
    interval_words(campaign, meter_id, above$n, up_to = any(above$part)), point_words(rbind(above, floor, fill = TRUE)),
    if (length(notes) > 0L) notes else "Floor: the sender alone (null)."
  )
  stacked_figure(
    list(floor_panel(floor, rows), above_panel(above, rows)), campaign, meter_id, words,
    "Generator floor, and energy per megabit above it",
    paste0(
      "Two rows of panels. Above, the generator floor, ", span_words(floor$value), " W. Below: ",
      alt_ea(above, campaign, meter_id, "E_A above the generator floor")
    ),
    heights = c(1, 1.4)
  )
}

# A device model without CPU has no floor; the difference of two sums leaves 1e-16 W, and that would get an axis.
to_nanowatt <- function(power_w) round(power_w, 9L)

above_floor_points <- function(rows) {
  rows <- rows[transport != "null" & !is.na(ea_above_floor_j_per_mbit)]
  points <- flow_points(rows, "ea_above_floor_j_per_mbit", "ea_above_floor")
  # A difference may be zero or less; it stays on a linear axis then, where everything can be shown.
  points[, `:=`(hollow = rows$hollow, below_n = rows$below_resolution_n, part = !is.na(rows$floor_reason))][]
}

floor_panel <- function(floor, rows) {
  floor <- spread_loads(floor)
  facets <- facet_wrap(
    ggplot2::vars(payload_bytes),
    labeller = as_labeller(function(size) paste0(size, "-byte messages")), ncol = facet_columns(rows),
    scales = "free_y"
  )
  watts <- scale_y_continuous(name = "Generator floor (W)", labels = apart_text)
  sweep_plot(floor, facets, load_axis(floor$at, NULL), watts)
}

above_panel <- function(above, rows) {
  above <- spread_loads(above)
  positive <- all(c(above$value, above$low) > 0, na.rm = TRUE)
  axis <- if (positive) above$value else above$value[0]
  # Of another meter the same quantity may stand on a logarithmic axis.
  label <- if (!positive && spans_decades(above$value)) {
    expression(E[A] ~ "above floor (J/Mb), linear")
  } else {
    expression(E[A] ~ "above floor (J/Mb)")
  }
  sweep_plot(
    above, payload_facets(rows, scales = "free_y"), load_axis(above$at), value_axis(axis, label),
    behind = if (!positive) geom_hline(yintercept = 0, colour = "grey60", linewidth = 0.4)
  )
}
