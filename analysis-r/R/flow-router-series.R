# SPDX-License-Identifier: Apache-2.0

# What routers that scale do from moment to moment: service rate and arrivals of the runs of one block.

# Longer steps hide what the rule does.
longest_series_step_s <- 1

#' Service rate of the first router that scales, and what came to it, step by step
#'
#' Of the first block that has a run that counts of each arm and cell, in steps of a second at most.
#'
#' @return data.table by the contract router_series.table.json; NULL where another factor is compared or nothing is that
#'   fine.
#' @noRd
router_series <- function(campaign) {
  runs <- campaign$runs[usable == TRUE & kind == "work"]
  path <- if (nrow(runs) > 0L) file.path(block_home(campaign$dir, min(runs$block)), "routers.csv")
  if (campaign$arm != "scaling" || is.null(path) || !file.exists(path)) {
    return(NULL)
  }
  rows <- read_typed(path, c(run_id = "character", schema_columns("routers")), ends_with_newline(path))
  rows <- rows[kind != "varying"][element == min(element)]
  if (nrow(rows) == 0L || rows[, max(t_end_s - t_start_s)] > longest_series_step_s) {
    return(NULL)
  }
  runs <- runs[block == min(block)]
  runs[, cell := cell_name(campaign, runs)]
  found <- merge(rows[, !"kind"], runs[, c("run_id", "arm", "cell", campaign$factors), with = FALSE], by = "run_id")
  found[, arrived_mbps := mbit_per_byte * arrived_bytes / (t_end_s - t_start_s)]
  columns <- c("run_id", "arm", "cell", "t_start_s", "t_end_s", "mean_rate_mbps", "arrived_mbps", "queue_packets")
  found <- found[, c(columns, campaign$factors), with = FALSE][in_arm_order(campaign, found, found$arm)]
  table_of("router_series", found)
}

#' Figure of the series: a panel for each cell and way of scaling, with the arrivals without it behind
#' @noRd
router_series_plot <- function(campaign, series) {
  reference <- reference_arm(campaign)
  ways <- setdiff(planned_arms(campaign), reference)
  panel <- function(rows, what, value) {
    rows[, list(t_s = t_end_s, value = get(value), what = what, cell, arm)]
  }
  own <- series[arm != reference]
  behind <- rbindlist(lapply(ways, function(way) panel(series[arm == reference], "arrivals without", "arrived_mbps")[
    , arm := way
  ]))
  lines <- rbindlist(list(
    behind, panel(own, "arrivals", "arrived_mbps"), panel(own, "service rate", "mean_rate_mbps")
  ))
  kinds <- c("arrivals without", "arrivals", "service rate")
  lines[, `:=`(
    what = factor(what, kinds), arm = factor(arm, ways), cell = factor(cell, unique(as.character(series$cell)))
  )]
  plot <- ggplot(lines, aes(t_s, value, colour = what)) +
    geom_line(linewidth = 0.4) +
    ggplot2::facet_grid(cell ~ arm) +
    ggplot2::scale_colour_manual(name = NULL, values = c("grey70", arm_colours[1:2])) +
    scale_x_continuous(name = "Time (s)") +
    scale_y_continuous(name = "Mb/s", labels = number_text) +
    netjoule_theme() +
    labs(
      title = "Routers that scale their rate, step by step", caption = source_line(campaign, NULL),
      subtitle = subtitle_words(campaign, NULL, "One run of each: what the router served at, and what came to it.")
    )
  with_alt(plot, paste0(
    "Service rate and arrivals over time for ", toString(ways), " and for ", toString(levels(lines$cell)), ". ",
    alt_end(campaign)
  ))
}
