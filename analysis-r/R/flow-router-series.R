# SPDX-License-Identifier: Apache-2.0

# What routers that scale do from moment to moment: service rate and arrivals of every run.

# Longer steps hide what the rule does.
longest_series_step_s <- 1
# More cells than a reader looks through; the table has all of them.
most_series_figures <- 12L

#' Service rate of the first router that scales, and what came to it, step by step
#'
#' Of every run that counts, where steps last a second at most.
#'
#' @return data.table by the contract router_series.table.json; NULL where another factor is compared or nothing is that
#'   fine.
#' @noRd
router_series <- function(campaign) {
  runs <- campaign$runs[usable == TRUE & kind == "work"]
  if (campaign$arm != "scaling" || nrow(runs) == 0L) {
    return(NULL)
  }
  files <- router_files(campaign, runs)
  # Of many coarse files only one is read.
  first <- if (nrow(files) > 0L) scaling_steps(files$path[1], files$run_id[1])
  if (NROW(first) == 0L || first[, max(t_end_s - t_start_s)] > longest_series_step_s) {
    return(NULL)
  }
  rows <- rbindlist(c(list(first), Map(scaling_steps, files$path[-1], files$run_id[-1])), use.names = TRUE)
  runs <- runs[, c("run_id", "block", "arm", campaign$factors), with = FALSE]
  runs[, cell := cell_name(campaign, runs)]
  found <- merge(rows, runs, by = "run_id")
  found[, arrived_mbps := mbit_per_byte * arrived_bytes / (t_end_s - t_start_s)]
  setorderv(found, c("block", "run_id", "t_start_s"))
  columns <- c("run_id", "block", "arm", "cell", "t_start_s", "t_end_s", "mean_rate_mbps", "arrived_mbps")
  found <- found[, c(columns, "queue_packets", campaign$factors), with = FALSE]
  table_of("router_series", found[in_arm_order(campaign, found, found$arm)])
}

# Where the routers of runs are told of: of a simulated block in one file, elsewhere in one for each run.
router_files <- function(campaign, runs) {
  runs <- runs[order(block)]
  home <- block_home(campaign$dir, runs$block)
  files <- if (is_simulated(campaign)) {
    unique(data.table(path = file.path(home, "routers.csv"), run_id = NA_character_))
  } else {
    data.table(path = file.path(home, "runs", runs$run_id, "routers.csv"), run_id = runs$run_id)
  }
  files[file.exists(path)]
}

step_columns <- c(
  "host", "direction", "element", "kind", "t_start_s", "t_end_s", "mean_rate_mbps", "arrived_bytes", "queue_packets"
)

# Of each run the first router on the way up: other elements may stand before it.
scaling_steps <- function(path, id) {
  of_block <- if (is.na(id)) c(run_id = "character")
  rows <- read_typed(path, c(of_block, schema_columns("routers")[step_columns]), ends_with_newline(path))
  if (!is.na(id)) rows[, run_id := id]
  # Up, where there is any: it is after down in the alphabet.
  rows <- rows[kind != "varying"][, .SD[host == host[1] & direction == max(direction)], by = run_id]
  # A factor of flows may have the same name.
  rows[, .SD[element == min(element)], by = run_id][, c("host", "direction") := NULL][]
}

#' A figure of the first block for each cell, at most `most_series_figures`
#' @noRd
router_series_figures <- function(campaign, series) {
  if (is.null(series)) {
    return(list())
  }
  series <- series[block == min(block)]
  cells <- utils::head(unique(series$cell), most_series_figures)
  lapply(seq_along(cells), function(i) {
    title <- paste(c("Service rate and arrivals, step by step", if (nzchar(cells[i])) cells[i]), collapse = ": ")
    plot <- router_series_plot(campaign, series[cell == cells[i]], title)
    figure(
      if (length(cells) == 1L) "router-series" else sprintf("router-series-%02d", i), plain_text(title, 100L), plot,
      1.9 + 2 * max(1L, length(series_ways(campaign))), tables = "router_series"
    )
  })
}

series_ways <- function(campaign) setdiff(planned_arms(campaign), reference_arm(campaign))

# A panel for each way of scaling, with the arrivals without it behind.
router_series_plot <- function(campaign, series, title) {
  reference <- reference_arm(campaign)
  ways <- intersect(series_ways(campaign), series$arm)
  if (length(ways) == 0L) {
    return(NULL)
  }
  kinds <- c(paste("arrivals with", plain_text(reference, 20L)), "service rate", "arrivals")
  lines <- rbindlist(lapply(ways, function(way) {
    rbindlist(list(
      series[arm == reference, list(arm = way, t_s = t_end_s, value = arrived_mbps, line = kinds[1])],
      series[arm == way, list(arm, t_s = t_end_s, value = mean_rate_mbps, line = kinds[2])],
      series[arm == way, list(arm, t_s = t_end_s, value = arrived_mbps, line = kinds[3])]
    ))
  }))
  lines[, `:=`(line = factor(line, kinds), arm = factor(arm, ways))]
  # The later a kind, the more it lies on top: thin arrivals stay visible on the rate that they follow.
  plot <- ggplot(lines, aes(t_s, value, colour = line, linewidth = line)) +
    geom_line() +
    facet_wrap(ggplot2::vars(arm), ncol = 1L, labeller = ggplot2::as_labeller(function(arm) plain_text(arm, 40L))) +
    ggplot2::scale_colour_manual(name = NULL, values = c("grey60", arm_colours[2:1]), drop = FALSE) +
    ggplot2::scale_linewidth_manual(name = NULL, values = c(0.4, 1.3, 0.35), drop = FALSE) +
    scale_x_continuous(name = "Time (s)") +
    scale_y_continuous(name = "Mb/s", labels = number_text, limits = c(0, NA)) +
    netjoule_theme() +
    labs(
      title = plain_text(title, 100L), caption = source_line(campaign, NULL),
      subtitle = subtitle_words(campaign, NULL, "One run of each: what the router served at, and what came to it.")
    )
  with_alt(plot, paste0(
    plain_text(title, 100L), ". Lines over time for ", toString(plain_text(ways, 40L)), ": the router's service rate (",
    span_words(series[arm != reference, mean_rate_mbps]), " Mb/s), what came to it, and what came with ",
    plain_text(reference, 20L), ". ", alt_end(campaign)
  ))
}
