# SPDX-License-Identifier: Apache-2.0

goodput_columns <- c(
  "node", "radio_source", "reference", "transport", "direction", "payload_bytes", "offered_rate_mbps", "pacing",
  "window_us", "gso", "n_pairs", "goodput_mbps", "reference_goodput_mbps", "difference_mbps", "difference_ci95_low",
  "difference_ci95_high", "dgoodput_percent", "dgoodput_ci95_low", "dgoodput_ci95_high"
)

#' Difference of goodput against UDP, from pairs inside mini-blocks
#'
#' Positive: more arrives than with UDP. Goodput is the flow's and no meter's, so that
#' runs outside a device model's validity or below a meter's resolution count here;
#' the rows of the first meter stand for all. Intervals are per cell and uncorrected:
#' exploratory.
#'
#' @param campaign from [read_campaign()].
#' @param reference transport of the first arm.
#' @return data.table, one row per transport and cell: goodput of both arms over the
#'   pairs, their difference in Mb/s and in percent, each with 95 % t interval over blocks.
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
  cells <- pairs[, goodput_difference(.SD), by = keys]
  cells[, reference := rep(reference, .N)]
  setcolorder(cells, goodput_columns)
  cells[order(
    pacing != "absolute", pacing, window_us, gso, payload_bytes, offered_rate_mbps, transport_factor(transport),
    direction
  )]
}

goodput_difference <- function(pairs) {
  per_block <- pairs[, list(
    ours = mean(t_a_mbps), theirs = mean_or_na(t_a_mbps_ref),
    difference = mean_or_na(round(t_a_mbps - t_a_mbps_ref, 9L)),
    percent = mean_or_na(fifelse(t_a_mbps_ref > 0, percent_of(t_a_mbps, t_a_mbps_ref), NA_real_))
  ), by = block_key]
  difference <- mean_interval(per_block$difference)
  percent <- mean_interval(per_block$percent)
  list(
    n_pairs = nrow(pairs), goodput_mbps = mean_or_na(per_block$ours),
    reference_goodput_mbps = mean_or_na(per_block$theirs), difference_mbps = difference$mean,
    difference_ci95_low = difference$low, difference_ci95_high = difference$high, dgoodput_percent = percent$mean,
    dgoodput_ci95_low = percent$low, dgoodput_ci95_high = percent$high
  )
}

#' Plot the difference of goodput against UDP
#'
#' @param delta from [delta_goodput()].
#' @param summary from [summarise_ea()], for frames per message.
#' @param campaign from [read_campaign()], for the labels.
#' @return a ggplot with alt text, or NULL without a pair.
#' @export
plot_delta_goodput <- function(delta, summary, campaign) {
  points <- delta[!is.na(dgoodput_percent), list(
    transport = transport_factor(transport), payload_bytes, offered_rate_mbps, n = n_pairs, value = dgoodput_percent,
    low = dgoodput_ci95_low, high = dgoodput_ci95_high
  )]
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(plain_points(points))
  plot <- ggplot(points, cell_aes()) +
    geom_hline(yintercept = 0, colour = "grey50", linewidth = 0.4) +
    cell_layers(points) +
    payload_facets(summary[transport == "udp" | transport %in% points$transport]) +
    load_axis(points$offered_rate_mbps) +
    scale_y_continuous(name = "Goodput against UDP (%)", labels = number_text) +
    transport_scales() +
    netjoule_theme() +
    labs(
      title = "Difference of goodput against UDP",
      subtitle = subtitle_words(
        campaign, NULL, "Positive: more arrives than with UDP. Pairs inside mini-blocks;",
        if (max(points$n) > 1L) {
          "95 % t interval over blocks, per cell and uncorrected: exploratory."
        } else {
          "one block: no interval."
        }
      ),
      caption = source_line(campaign)
    )
  with_alt(plot, alt_ea(points, campaign, NULL, "the difference of goodput against UDP", "%"))
}
