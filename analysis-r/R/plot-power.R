# SPDX-License-Identifier: Apache-2.0

# Over this many runs a whole campaign is drawn mini-block by mini-block.
most_drawn_runs <- 3000
# Over this many, points of runs are small.
most_large_points <- 300

#' Plot P_A and P_I over the campaign, and the readings of one mini-block with its windows
#'
#' Above: P_A of each run that counts and P_I as a line that ends where the campaign
#' paused, in the order of time; of more than 3,000 runs, what each mini-block spans.
#' Below: readings of one mini-block, idle and measure windows shaded, P_A and P_I as
#' result.json has them.
#'
#' @param trace from [power_trace()].
#' @param summary from [summarise_ea()], for what the load says below its figures.
#' @inheritParams plot_ea
#' @return a patchwork with alt text, or NULL when the meter has no power.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' plot_power(power_trace(campaign), summary, campaign, meter)
#' @export
plot_power <- function(trace, summary, campaign, meter_id) {
  runs <- power_runs(campaign, meter_id)
  if (nrow(runs) == 0L) {
    return(NULL)
  }
  trace <- of_meter(trace, meter_id)
  several <- nrow(runs) > most_drawn_runs
  panels <- list(
    power_over_time(runs, campaign, several),
    if (nrow(trace) > 0L) power_detail(trace, runs, campaign)
  )
  panels <- panels[lengths(panels) > 0L]
  words <- c(
    if (several) "Bars: from least to greatest P_A of a mini-block;" else "Points: P_A of a run;",
    if (idle_of_model(runs, campaign, meter_id)) "line: P_I, constant in this model." else "line: P_I.",
    if (nrow(trace) > 0L) "Below: the readings of one mini-block."
  )
  stacked_figure(
    panels, campaign, meter_id, words, "Power while sending (P_A) and idle (P_I) over the campaign",
    alt_power(runs, trace, campaign, meter_id), source_line_with(campaign, meter_id, summary)
  )
}

# One row per run that counts, in time order; hours, minutes or seconds by how long the campaign took.
power_runs <- function(campaign, id) {
  rows <- usable_results(campaign$results)
  rows <- rows[meter_id == id & !is.na(p_a_w) & !is.na(window_t_start_s)]
  rows[, t_s := (window_t_start_s + window_t_end_s) / 2]
  rows[, `:=`(arm = arm_factor(campaign, arm), session = session_of(t_s, campaign))]
  setorderv(rows, "t_s")[]
}

time_unit <- function(span_s) {
  if (span_s > 2 * 3600) {
    list(seconds = 3600, name = "h")
  } else if (span_s > 5 * 60) {
    list(seconds = 60, name = "min")
  } else {
    list(seconds = 1, name = "s")
  }
}

# P_A of each run, or what each mini-block spans.
power_over_time <- function(runs, campaign, spans) {
  clock <- time_unit(max(runs$t_s))
  many <- spans || nrow(runs) > most_large_points
  # So many points lie over each other: then a mini-block tells its values together.
  told <- if (many) spans_of_mini_blocks(runs) else runs[, list(t_s, value = p_a_w, told = run_words(runs, campaign))]
  points <- aes(x = t_s / clock$seconds, y = p_a_w, colour = arm, fill = arm, shape = arm)
  ggplot(told[, x := t_s / clock$seconds]) +
    (if (spans) geom_linerange(aes(x = x, ymin = least, ymax = greatest), colour = "grey55", linewidth = 0.4)) +
    idle_line(runs, clock) +
    (if (!spans) {
      drawn <- geom_point(points, data = runs, size = if (many) 1 else 1.7, stroke = if (many) 0.25 else 0.5)
      list(drawn, scatter_scales(runs$arm), arm_legend(runs$arm))
    }) +
    labs(x = paste0("Campaign time (", clock$name, ")"), y = "Power (W)") +
    netjoule_theme()
}

spans_of_mini_blocks <- function(runs) {
  spans <- runs[, list(
    t_s = mean(t_s), least = min(p_a_w), greatest = max(p_a_w), idle = mean(p_i_w)
  ), by = list(mini_block, attempt)]
  watts <- paste(short(spans$least), "to", short(spans$greatest))
  spans[, `:=`(value = greatest, told = paste0("mini-block ", mini_block, ": P_A ", watts, " W", idle_words(idle)))][]
}

run_words <- function(runs, campaign) {
  paste0(arm_and_cell(campaign, runs), ": P_A ", short(runs$p_a_w), " W", idle_words(runs$p_i_w))
}

idle_words <- function(p_i_w) ifelse(is.na(p_i_w), "", paste0(", P_I ", short(p_i_w), " W"))

# Over a pause nothing is known of P_I; a line takes two runs.
idle_line <- function(runs, clock) {
  known <- runs[!is.na(p_i_w)]
  known <- known[known[, .I[.N > 1L], by = session]$V1]
  geom_line(
    data = known, aes(x = t_s / clock$seconds, y = p_i_w, group = session), inherit.aes = FALSE, colour = "grey35",
    linewidth = 0.5
  )
}

idle_of_model <- function(runs, campaign, id) {
  known <- runs[!is.na(p_i_w)]
  constant_idle(known$p_i_w, known$power_source[1], id, campaign)
}

#' The readings of one mini-block: shaded windows, P_A of each run, the line of P_I
#' @noRd
power_detail <- function(trace, runs, campaign) {
  shown <- runs[mini_block == trace$mini_block[1] & attempt == trace$attempt[1]]
  windows <- campaign$runs[match(shown$run_id, run_id)]
  idle <- trace_windows(windows)[window == "idle"]
  at <- data.table(
    x = (windows$measure_start_s + windows$measure_end_s) / 2, label = short_label(as.character(shown$arm), campaign)
  )
  lines <- data.table(
    from_s = (windows$idle_before_start_s + windows$idle_before_end_s) / 2, from_w = shown$p_i_before_w,
    to_s = (windows$idle_after_start_s + windows$idle_after_end_s) / 2, to_w = shown$p_i_after_w
  )[!is.na(from_w) & !is.na(to_w)]
  marks <- shown[, list(x = (window_t_start_s + window_t_end_s) / 2, value = p_a_w, told = run_words(shown, campaign))]
  ggplot(marks) +
    shaded(idle, "#EDEDED") + shaded(windows[, list(from_s = measure_start_s, to_s = measure_end_s)], "#CFE0EE") +
    geom_ribbon(aes(x = t_s, ymin = power_least_w, ymax = power_greatest_w), data = trace, fill = "grey70") +
    geom_line(aes(x = t_s, y = power_w), data = trace, colour = "grey25", linewidth = 0.35) +
    geom_segment(
      data = lines, aes(x = from_s, xend = to_s, y = from_w, yend = to_w), linetype = "42", linewidth = 0.6
    ) +
    geom_segment(
      data = shown, aes(x = window_t_start_s, xend = window_t_end_s, y = p_a_w, yend = p_a_w, colour = arm),
      linewidth = 1.4, show.legend = FALSE
    ) +
    geom_text(data = at, aes(x = x, y = Inf, label = label), vjust = 1.2, size = 2.7, lineheight = 0.9) +
    scale_colour_manual(values = arm_values(shown$arm, "colour"), na.value = "#999999") +
    scale_y_continuous(expand = expansion(mult = c(0.05, 0.28))) +
    labs(
      x = "Campaign time (s)", y = "Power (W)", subtitle = paste(strwrap(paste0(
        mini_block_words(shown[1], campaign), trace$mini_block[1],
        ". Grey: idle windows; blue: measure windows; thick: P_A; dashed: P_I."
      ), 112L), collapse = "\n")
    ) +
    netjoule_theme() +
    theme(plot.subtitle = element_text(size = rel(0.88)))
}

shaded <- function(spans, fill) {
  geom_rect(
    data = spans, aes(xmin = from_s, xmax = to_s), ymin = -Inf, ymax = Inf, inherit.aes = FALSE, fill = fill
  )
}

# "64-byte messages at 1 Mb/s, mini-block "; "Mini-block " where a campaign has one cell.
mini_block_words <- function(run, campaign) {
  words <- of_load(campaign, "cell_title", function(run) cell_name(campaign, run))(run)
  if (nzchar(words)) paste0(words, ", mini-block ") else "Mini-block "
}

# Above a narrow window there is room for a word per line.
short_label <- function(arm, campaign) {
  label <- ifelse(arm %in% campaign$control, arm, arm_label(arm))
  gsub("[ -]", "\n", label)
}

alt_power <- function(runs, trace, campaign, meter_id) {
  idle <- runs$p_i_w[!is.na(runs$p_i_w)]
  span <- function(values) paste(number_text(signif(range(values), 4)), collapse = " to ")
  paste0(
    "Power over campaign time, ", nrow(runs), " runs: P_A from ", span(runs$p_a_w), " W",
    if (idle_of_model(runs, campaign, meter_id)) {
      paste0(", P_I ", number_text(signif(idle[1], 4)), " W, constant in this model")
    } else if (length(idle) > 0L) {
      paste0(", P_I from ", span(idle), " W")
    }, ". ",
    if (nrow(trace) > 0L) {
      paste0(
        "Below, ", sum(trace$readings_n), " readings of mini-block ", trace$mini_block[1],
        " with idle and measure windows shaded, P_A of each run and the line of P_I between its idle windows. "
      )
    },
    alt_end(campaign, meter_id)
  )
}
