# SPDX-License-Identifier: Apache-2.0

# More points than this are drawn as means: of mini-blocks first, of blocks where that is not enough.
most_order_points <- 1000

#' Plot E_A, or energy per work, by campaign order, as deviation from each cell's mean, with the trend of each session
#'
#' @param listed from [ea_order()].
#' @param drift from [ea_drift()].
#' @param summary from [summarise_ea()], for what the load says below its figures.
#' @inheritParams plot_ea
#' @param sessions from ea_drift_sessions().
#' @return a ggplot with alt text, or NULL without cells of two mini-blocks.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' listed <- ea_order(campaign)
#' plot_ea_order(listed, ea_drift(listed, campaign), summary, campaign, meter)
#' @export
plot_ea_order <- function(listed, drift, summary, campaign, meter_id,
                          sessions = ea_drift_sessions(listed, campaign)) {
  chosen <- meter_id
  rows <- listed[meter_id == chosen]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  trend <- drift[meter_id == chosen & quantity == "E_A"]
  points <- order_points(rows, campaign)
  single <- points$what[1] == "run"
  plot <- ggplot(points, aes(x = position, y = deviation_percent)) +
    session_lines(rows, campaign) +
    geom_hline(yintercept = 0, colour = "grey50", linewidth = 0.4) +
    trend_layers(rows, sessions[sessions$meter_id == chosen & sessions$quantity == "E_A"], campaign) +
    (if (single) {
      geom_point(aes(colour = arm, fill = arm, shape = arm), size = 1.8, stroke = 0.5)
    } else {
      geom_point(shape = 21, size = 1.8, colour = "grey20", fill = "grey60")
    }) +
    (if (single) c(scatter_scales(points$arm), list(arm_legend(points$arm)))) +
    scale_x_continuous(name = "Run, in the order of the campaign", labels = number_text) +
    scale_y_continuous(name = expression(E[A] ~ "against its cell's mean (%)"), labels = apart_text) +
    netjoule_theme() +
    labs(
      title = paste(per_work_words(campaign), "by campaign order"),
      subtitle = subtitle_words(
        campaign, chosen, order_words(points$what[1]), trend_words(trend), sessions_short(trend, sessions),
        pause_words(rows, campaign)
      ),
      caption = source_line_with(campaign, chosen, summary)
    )
  with_alt(plot, alt_order(rows, trend, sessions, campaign, chosen))
}

# Runs, or means of mini-blocks or blocks.
order_points <- function(rows, campaign) {
  means <- function(keys, name) {
    points <- rows[, list(position = mean(position), deviation_percent = mean(deviation_percent)), by = keys]
    points[, what := rep(name, .N)][]
  }
  if (nrow(rows) <= most_order_points) {
    return(rows[, list(
      arm = arm_factor(campaign, get(campaign$arm)), position, deviation_percent, what = rep("run", .N)
    )])
  }
  mini_blocks <- means(c("mini_block", "attempt"), "mini-block")
  if (nrow(mini_blocks) <= most_order_points) mini_blocks else means("block", "block")
}

# A line for each session: the trend is one over time, and no run has anything to say of a pause.
trend_layers <- function(rows, sessions, campaign) {
  told <- sessions[!is.na(sessions$trend_ci95_low), list(
    session, mean_percent, slope = trend_percent_per_hour, slope_low = trend_ci95_low, slope_high = trend_ci95_high
  )]
  if (nrow(told) == 0L) {
    return(NULL)
  }
  line <- rows[, list(position, hours = (t_s - mean(t_s)) / 3600), by = list(session = session_of(t_s, campaign))]
  line <- line[, .SD[unique(round(seq(1, .N, length.out = min(.N, 200L))))], by = session]
  line <- line[told, on = "session", nomatch = NULL]
  line[, `:=`(
    middle = mean_percent + hours * slope, low = mean_percent + pmin(hours * slope_low, hours * slope_high),
    high = mean_percent + pmax(hours * slope_low, hours * slope_high)
  )]
  list(
    geom_ribbon(
      data = line, aes(x = position, ymin = low, ymax = high, group = session), inherit.aes = FALSE, fill = "grey80",
      alpha = 0.6
    ),
    geom_line(
      data = line, aes(x = position, y = middle, group = session), inherit.aes = FALSE, linewidth = 0.7,
      linetype = "42"
    )
  )
}

# First position of each session but the first.
session_starts <- function(rows, campaign) {
  places <- vapply(later_sessions_s(campaign), function(start) {
    after <- rows$position[rows$t_s >= start]
    if (length(after) > 0L) min(after) else NA_real_
  }, 0)
  unique(places[!is.na(places) & places > min(rows$position)])
}

session_lines <- function(rows, campaign) {
  starts <- session_starts(rows, campaign)
  if (length(starts) > 0L) geom_vline(xintercept = starts - 0.5, colour = "grey60", linetype = "22", linewidth = 0.4)
}

pause_words <- function(rows, campaign) {
  count <- length(session_starts(rows, campaign))
  c("Vertical line: a pause.", "Vertical lines: pauses.")[min(count, 2L)]
}

order_words <- function(what) {
  switch(what,
    run = "Each point is a run.",
    "mini-block" = "Each point is the mean of a mini-block.",
    "Each point is the mean of a block."
  )
}

trend_words <- function(trend) {
  if (nrow(trend) == 0L || is.na(trend$trend_ci95_low)) {
    return("Too few mini-blocks for a trend.")
  }
  sprintf(
    "Over the campaign E_A changed by %s %% [%s to %s]: %s.", short(trend$change_percent),
    short(trend$change_ci95_low), short(trend$change_ci95_high),
    if (trend$verdict == "drift") "a drift" else "no drift seen"
  )
}

alt_order <- function(rows, trend, sessions, campaign, meter_id) {
  paste0(
    "Deviation of E_A from the mean of its cell in the order of the campaign, ", nrow(rows), " runs, from ",
    short(min(rows$deviation_percent)), " to ", short(max(rows$deviation_percent)), " %. ",
    paste(c(trend_words(trend), sessions_short(trend, sessions)), collapse = " "), " ",
    alt_end(campaign, meter_id)
  )
}
