# SPDX-License-Identifier: Apache-2.0

goodput_columns <- c(
  "node", "radio_source", "reference", "transport", "direction", "payload_bytes", "offered_rate_mbps", "pacing",
  "window_us", "gso", "n_pairs", "goodput_mbps", "reference_goodput_mbps", "shortfall_mbps",
  "shortfall_mbps_ci95_low", "shortfall_mbps_ci95_high", "shortfall_percent", "shortfall_percent_ci95_low",
  "shortfall_percent_ci95_high"
)

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
  if (nrow(rows) == 0L) {
    return(empty_rows("delta_goodput", goodput_columns))
  }
  first <- intersect(campaign$meters$meter_id, rows$meter_id)[1]
  pairs <- mini_block_pairs(rows[meter_id == first & transport != "null" & !is.na(t_a_mbps)], reference)
  if (nrow(pairs) == 0L) {
    return(empty_rows("delta_goodput", goodput_columns))
  }
  keys <- c("node", "radio_source", "transport", "direction", "payload_bytes", "offered_rate_mbps", pacing_keys)
  cells <- pairs[, goodput_shortfall(.SD), by = keys]
  cells[, reference := rep(reference, .N)]
  setcolorder(cells, goodput_columns)
  cells[order(
    pacing != "absolute", pacing, window_us, gso, payload_bytes, offered_rate_mbps, transport_factor(transport),
    direction
  )]
}

goodput_shortfall <- function(pairs) {
  per_block <- pairs[, list(
    ours = mean(t_a_mbps), theirs = mean_or_na(t_a_mbps_ref),
    short = mean_or_na(round(t_a_mbps_ref - t_a_mbps, 9L)),
    percent = mean_or_na(fifelse(t_a_mbps_ref > 0, round(100 * (1 - t_a_mbps / t_a_mbps_ref), 9L), NA_real_))
  ), by = block_key]
  mbps <- mean_interval(per_block$short)
  percent <- mean_interval(per_block$percent)
  list(
    n_pairs = nrow(pairs), goodput_mbps = mean_or_na(per_block$ours),
    reference_goodput_mbps = mean_or_na(per_block$theirs), shortfall_mbps = mbps$mean,
    shortfall_mbps_ci95_low = mbps$low, shortfall_mbps_ci95_high = mbps$high, shortfall_percent = percent$mean,
    shortfall_percent_ci95_low = percent$low, shortfall_percent_ci95_high = percent$high
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
  points <- delta[!is.na(shortfall_percent), list(
    transport = transport_factor(transport), payload_bytes, offered_rate_mbps, n = n_pairs, value = shortfall_percent,
    low = shortfall_percent_ci95_low, high = shortfall_percent_ci95_high
  )]
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(plain_points(points))
  plot <- sweep_plot(
    points, payload_facets(summary[transport == "udp" | transport %in% points$transport]), load_axis(points$at),
    scale_y_continuous(name = "Goodput short of UDP's (%)", labels = apart_text),
    title = "Shortfall of goodput against UDP",
    subtitle = subtitle_words(
      campaign, NULL, "+: less arrives than with UDP. Pairs inside mini-blocks;", pair_interval_words(points$n)
    ),
    caption = source_line(campaign), behind = zero_line()
  )
  with_alt(plot, alt_ea(points, campaign, NULL, "how far goodput falls short of UDP's", "%"))
}
