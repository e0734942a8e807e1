# SPDX-License-Identifier: Apache-2.0

#' Plot power above idle of a spinning against a sleeping pacer
#'
#' One row of panels per message size, pacing absolute on the left, spin on the
#' right, on one scale. A flat line is constant power: E_A falls as 1 over load.
#'
#' @param verdict from [pacer_verdict()].
#' @inheritParams plot_ea
#' @return a ggplot with alt text, or NULL when the meter has nothing to show.
#' @examples
#' campaign <- example_campaign()
#' verdict <- pacer_verdict(campaign)
#' if (NROW(verdict) > 0L) plot_pacer(verdict, campaign, campaign$meters$meter_id[1])
#' @export
plot_pacer <- function(verdict, campaign, meter_id) {
  points <- pacer_points(of_meter(verdict, meter_id))
  if (nrow(points) == 0L || all(is.na(points$value))) {
    return(NULL)
  }
  drawn <- settle_lows(spread_loads(points))
  power_label <- expression(P[A] - P[I] ~ "=" ~ E[A] %.% T[A] ~ "(W)") # nolint: T_and_F_symbol_linter.
  plot <- sweep_plot(
    drawn, facet_wrap(ggplot2::vars(panel), ncol = 2L), load_axis(drawn$at),
    value_axis(drawn$value, power_label, attr(drawn, "foot")),
    title = "Power above idle: a pacer that sleeps against one that spins",
    subtitle = subtitle_words(
      campaign, meter_id, pacer_interval_words(of_meter(verdict, meter_id)),
      "Flat: constant power, so that E_A falls as 1 over load.", point_words(drawn)
    ),
    caption = source_line_with(
      campaign, meter_id, campaign$results[usable == TRUE & transport %in% verdict$transport]
    )
  )
  with_alt(plot, alt_pacer(of_meter(verdict, meter_id), drawn, campaign, meter_id))
}

pacer_interval_words <- function(rows) {
  blocks <- max(c(rows$n_spin, rows$n_absolute), na.rm = TRUE)
  if (blocks < 2L) {
    return("Single block: no interval can be given.")
  }
  sprintf("Mean and 95 %% interval, up to %d blocks: t over blocks and metering together.", blocks)
}

# Both arms in long form; what the meter does not resolve is the upper end of its interval.
pacer_points <- function(rows) {
  points <- rbindlist(lapply(pacer_arms, function(arm) {
    column <- function(name) rows[[sprintf(name, arm)]]
    data.table(
      transport = rows$transport, payload_bytes = rows$payload_bytes, offered_rate_mbps = rows$offered_rate_mbps,
      pacing = arm, window_us = rows$window_us, gso = rows$gso, n = column("n_%s"), hollow = FALSE,
      limit = column("below_resolution_%s_n") > 0, value = column("delta_p_%s_w"),
      low = column("delta_p_%s_ci95_low"), high = column("delta_p_%s_ci95_high")
    )
  }))
  points <- points[!is.na(value)]
  points[, limit := limit & !is.na(high)]
  points[limit == TRUE, `:=`(value = high, low = NA_real_, high = NA_real_)]
  points <- points[order(window_us, gso, payload_bytes, pacing)]
  label <- paste0(points$payload_bytes, "-byte messages, ", variant_words(points))
  points[, panel := factor(label, levels = unique(label))]
  hide_unplottable(points)
}

alt_pacer <- function(rows, points, campaign, meter_id) {
  values <- points$value[is.finite(points$value)]
  paste0(
    "Line plot of power above idle against offered load, for ",
    paste(transport_label(levels(droplevels(points$arm))), collapse = ", "),
    "; one row per message size (", paste(sort(unique(points$payload_bytes)), collapse = ", "),
    " bytes), pacing absolute on the left and spin on the right. Values: ",
    span_words(values), " W. ",
    paste(unique(rows$words), collapse = " "), " Meter ", plain_text(meter_id), "."
  )
}
