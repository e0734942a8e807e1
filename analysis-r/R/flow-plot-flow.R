# SPDX-License-Identifier: Apache-2.0

# Goodput and loss belong to the flow, not to a meter: every meter saw the same
# runs, so the rows of the first one stand for all.

first_meter_rows <- function(summary) {
  summary[meter_id == summary$meter_id[1] & transport != "null"]
}

#' Points of a quantity of cells, the `known` alone or all; `ends` names its interval's columns, `n` that of its blocks
#' @noRd
flow_points <- function(rows, value, ends = value, n = "n", known = TRUE) {
  column <- function(name) if (is.null(rows[[name]])) rep(NA_real_, nrow(rows)) else as.numeric(rows[[name]])
  points <- data.table(
    transport = transport_factor(as.character(rows$transport)), payload_bytes = rows$payload_bytes,
    offered_rate_mbps = rows$offered_rate_mbps, n = rows[[n]], value = column(value),
    low = column(paste0(ends, "_ci95_low")), high = column(paste0(ends, "_ci95_high"))
  )
  plain_points(if (known) points[!is.na(value)] else points)
}

#' Plot goodput against offered load
#'
#' @param summary from [summarise_ea()].
#' @param campaign from [read_campaign()], for the labels.
#' @return a ggplot with alt text, or NULL without goodput.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' plot_goodput(summary, campaign)
#' @export
plot_goodput <- function(summary, campaign) {
  draw_listed(entry_of(campaign, "t_a_mbps"), goodput_parts(summary, campaign), campaign, NULL)
}

goodput_parts <- function(summary, campaign) {
  rows <- first_meter_rows(summary)
  points <- flow_points(rows, "goodput_mbps", "goodput")
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- settle_lows(spread_loads(hide_unplottable(points)))
  # Of several flows the load is one's and the goodput that of all: no line tells what everything would be.
  several <- !is.null(flow_words(campaign))
  dashes <- if (several) {
    "Goodput of all flows of a run (at a client: of its own), load of one flow."
  } else {
    "Grey dashes: everything offered arrives."
  }
  flow_parts(
    points, summary, campaign, NULL, value_axis(points$value, "Goodput (Mb/s)", attr(points, "foot")),
    c(flow_interval_words(points$n), dashes, point_words(points), held_back_words(rows)), "goodput", "Mb/s",
    behind = if (!several) everything_line(points)
  )
}

everything_line <- function(points) {
  span <- range(points$offered_rate_mbps)
  # Of one load a dash at its height, as wide as its transports stand.
  places <- if (span[1] == span[2]) span * c(0.94, 1.06) else span
  ends <- data.frame(offered = places, arrived = span)
  geom_line(
    data = ends, aes(x = offered, y = arrived), inherit.aes = FALSE, colour = "grey60", linetype = "44", linewidth = 0.4
  )
}

#' Plot the share of messages lost against offered load
#'
#' @inheritParams plot_goodput
#' @return a ggplot with alt text, or NULL when no transport reports loss.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' plot_loss(summary, campaign)
#' @export
plot_loss <- function(summary, campaign) {
  draw_listed(entry_of(campaign, "loss_ratio"), loss_parts(summary, campaign), campaign, NULL)
}

loss_parts <- function(summary, campaign) {
  rows <- first_meter_rows(summary)
  points <- loss_points(rows)
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(points)
  styles <- transport_looks()
  streams <- intersect(styles$transport[styles$kind == "stream"], rows$transport)
  y <- scale_y_continuous(
    name = "Messages lost (%)", labels = number_text, limits = c(0, max(1, points$high, points$value, na.rm = TRUE))
  )
  words <- c(
    flow_interval_words(points$n), if (length(streams) > 0L) {
      paste0(
        paste(transport_label(streams), collapse = " and "), " repair network losses: a message is late, not lost."
      )
    },
    if (nrow(held_back(rows)) > 0L) "A message that congestion control did not let leave is not_sent, not lost."
  )
  flow_parts(points, summary, campaign, NULL, y, words, "the share of messages lost", "%")
}

# In percent. A share cannot leave 0..1; the t interval can, and is cut there.
loss_points <- function(rows) {
  points <- flow_points(rows, "loss_ratio", "loss")
  points[, `:=`(value = 100 * value, low = 100 * pmax(low, 0), high = 100 * pmin(high, 1))][]
}

flow_interval_words <- function(n) {
  if (max(n) < 2L) "Single block: no interval can be given." else "Mean and 95 % t interval over blocks."
}
