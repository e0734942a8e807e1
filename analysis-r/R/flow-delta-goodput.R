# SPDX-License-Identifier: Apache-2.0

#' Shortfall of goodput against UDP, from pairs inside mini-blocks
#'
#' Goodput of UDP less that of the transport: positive where less arrives, since above 0
#' every difference means that the arm costs or loses more. Goodput is the flow's and no meter's, so that
#' runs outside a device model's validity or below a meter's resolution count here;
#' the rows of the first meter stand for all. Intervals are per cell and uncorrected:
#' exploratory.
#'
#' @param campaign from [read_campaign()].
#' @param reference transport of the first arm.
#' @return data.table, one row per transport and cell: goodput of both arms over the
#'   pairs, the shortfall in Mb/s and in percent of UDP's, each with 95 % t interval over blocks.
#' @examples
#' delta_goodput(example_campaign())
#' @export
delta_goodput <- function(campaign, reference = "udp") {
  rows <- usable_results(campaign$results)
  first <- intersect(campaign$meters$meter_id, rows$meter_id)[1]
  pairs <- mini_block_pairs(rows[meter_id == first & transport != "null" & !is.na(t_a_mbps)], reference)
  cells <- pairs[, goodput_shortfall(.SD), by = c("node", "radio_source", campaign$arm, campaign$factors)]
  in_cell_order(table_of("delta_goodput", cells[, reference := reference]))
}

goodput_shortfall <- function(pairs) {
  ours <- pairs$t_a_mbps
  theirs <- pairs$t_a_mbps_ref
  percent <- fifelse(theirs > 0, round(100 * (1 - ours / theirs), 9L), NA_real_)
  c(
    list(
      n_pairs = nrow(pairs), goodput_mbps = mean_or_na(block_means(pairs, ours)),
      reference_goodput_mbps = mean_or_na(block_means(pairs, theirs))
    ),
    interval_columns(block_means(pairs, round(theirs - ours, 9L)), "shortfall_mbps"),
    interval_columns(block_means(pairs, percent), "shortfall_percent")
  )
}

#' Plot the shortfall of goodput against UDP
#'
#' @param delta from [delta_goodput()].
#' @param summary from [summarise_ea()], for frames per message.
#' @param campaign from [read_campaign()], for the labels.
#' @return a ggplot with alt text, or NULL without a pair.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' plot_delta_goodput(delta_goodput(campaign), summary, campaign)
#' @export
plot_delta_goodput <- function(delta, summary, campaign) {
  points <- flow_points(delta, "shortfall_percent", n = "n_pairs")
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(points)
  parts <- flow_parts(
    points, summary[transport == "udp" | transport %in% points$transport], campaign, NULL,
    scale_y_continuous(name = "Goodput short of UDP's (%)", labels = apart_text),
    c("+: less arrives than with UDP. Pairs inside mini-blocks;", pair_interval_words(points$n)),
    "how far goodput falls short of UDP's", "%",
    behind = zero_line()
  )
  draw_listed(list(title = "Shortfall of goodput against UDP"), parts, campaign, NULL)
}
