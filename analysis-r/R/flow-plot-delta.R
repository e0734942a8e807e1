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
  rows <- of_meter(delta, meter_id)
  points <- flow_points(rows, "difference_percent", "difference", "n_pairs")
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(points)
  holds <- if (is_modelled(campaign, meter_id)) paste0(" ", scatter_alone, ",") else ""
  by_power <- sum(rows$method == "p_a_difference")
  shown <- of_meter(summary, meter_id)[transport == "udp" | transport %in% rows$transport]
  parts <- flow_parts(
    points, shown, campaign, meter_id,
    scale_y_continuous(name = expression(E[A] ~ "above UDP's (%)"), labels = apart_text),
    c(
      "+: more than UDP. Pairs inside mini-blocks;", pair_interval_words(points$n, holds),
      if (by_power > 0L) paste(cell_words(by_power), "below resolution: by P_A in the table.")
    ), "the difference of E_A against UDP", "%",
    behind = zero_line()
  )
  draw_listed(list(title = "Difference of energy per megabit against UDP"), parts, campaign, meter_id)
}

pair_interval_words <- function(n, holds = " per cell and") {
  if (max(n) > 1L) {
    paste0("95 % t interval over blocks,", holds, " uncorrected: exploratory.")
  } else {
    "one block: no interval."
  }
}
