# SPDX-License-Identifier: Apache-2.0

#' Plot the difference of E_A against UDP
#'
#' Positive: more energy per megabit than UDP. Cells below the meter's resolution
#' have no ratio; they stand in the table by their difference of P_A.
#'
#' @param delta from [delta_ea()].
#' @param summary from [summarise_ea()], for frames per message.
#' @inheritParams plot_ea
#' @return a ggplot with alt text, or NULL without a pair.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' plot_delta_ea(delta_ea(campaign), summary, campaign, meter)
#' @export
plot_delta_ea <- function(delta, summary, campaign, meter_id) {
  chosen <- meter_id
  rows <- delta[meter_id == chosen]
  points <- rows[!is.na(difference_percent), list(
    transport = transport_factor(transport), payload_bytes, offered_rate_mbps, n = n_pairs, value = difference_percent,
    low = difference_ci95_low, high = difference_ci95_high
  )]
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(plain_points(points))
  holds <- if (is_modelled(campaign, chosen)) paste0(" ", scatter_alone, ",") else ""
  by_power <- sum(rows$method == "p_a_difference")
  plot <- sweep_plot(
    points, payload_facets(summary[meter_id == chosen & (transport == "udp" | transport %in% rows$transport)]),
    load_axis(points$at), scale_y_continuous(name = expression(E[A] ~ "above UDP's (%)"), labels = apart_text),
    title = "Difference of energy per megabit against UDP",
    subtitle = subtitle_words(
      campaign, chosen, "+: more than UDP. Pairs inside mini-blocks;", pair_interval_words(points$n, holds),
      if (by_power > 0L) paste(cell_words(by_power), "below resolution: by P_A in the table.")
    ),
    caption = source_line(campaign, chosen), behind = zero_line()
  )
  with_alt(plot, alt_ea(points, campaign, chosen, "the difference of E_A against UDP", "%"))
}

pair_interval_words <- function(n, holds = " per cell and") {
  if (max(n) > 1L) {
    paste0("95 % t interval over blocks,", holds, " uncorrected: exploratory.")
  } else {
    "one block: no interval."
  }
}
