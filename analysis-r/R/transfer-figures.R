# SPDX-License-Identifier: Apache-2.0

# The figures of transfers: over a level, by client, and the power of a transfer with its tail.

# What is drawn of each cell, with the words over its panel.
drawn_measures <- c(
  throughput_mbps = "Throughput (Mb/s)", e_d_per_100_mb_j = "E_d per 100 MB (J)",
  throughput_efficiency = "Throughput efficiency (Mb/s per J)"
)

#' Figures of transfers, before those that loads.json lists
#' @noRd
transfer_campaign_figures <- function(campaign, tables, ids) {
  swept <- swept_factors(campaign)
  own <- unlist(lapply(ids, function(id) {
    cells <- tables$transfer_summary[meter_id == id]
    trace <- of_meter(tables$power_trace, id)
    c(
      if (length(swept) > 0L) sweep_figures(cells, swept[1], campaign, id),
      if (identical(campaign$arm, "client")) {
        client_figures(cells, campaign, id, "transfer_published" %in% names(tables))
      },
      if (!is.null(tables$transfer_published)) {
        list(transfer_published_figure(tables$transfer_published, campaign, id))
      },
      if (nrow(trace) > 0L) {
        list(
          transfer_power_figure(trace, tables$energy_runs, campaign, id),
          if (id == ids[1]) transfer_radio_figure(trace, campaign, id)
        )
      }
    )
  }), recursive = FALSE)
  c(own, listed_figures(campaign, tables, ids))
}

#' Cells in long form: a row for each measure
#'
#' @param at place of each cell on the x axis; arm what its line is; place its cell in words.
#' @noRd
measure_points <- function(cells, measures, at, arm, place) {
  points <- rbindlist(lapply(names(measures), function(name) {
    data.table(
      arm = arm, at = at, place = place, measure = name, value = cells[[name]],
      low = cells[[paste0(name, "_ci95_low")]], high = cells[[paste0(name, "_ci95_high")]],
      hollow = cells$hollow, limit = FALSE, unshown = FALSE, low_open = FALSE, below_n = cells$below_resolution_n,
      break_point = cells$break_point
    )
  }))
  # A measure has a line of its own over its panel.
  names <- vapply(place, function(one) paste0(strwrap(one, 50L), "\n", collapse = ""), "", USE.NAMES = FALSE)
  names[!nzchar(place)] <- ""
  panels <- paste0(rep(unique(names), each = length(measures)), measures)
  points[, panel := factor(paste0(names, measures[measure]), levels = panels)]
  # Resolution is one of power.
  points[measure == "throughput_mbps", below_n := 0L]
  points[!is.na(value)]
}

# A figure holds so many cells below each other; more are divided by the first factor that varies.
most_cells_of_figure <- 4L

#' Throughput and E_d per 100 MB over a level, a row of panels for each cell
#' @noRd
sweep_figures <- function(cells, over, campaign, id) {
  varied <- Filter(function(name) name != over && uniqueN(cells[[name]]) > 1L, campaign$factors)
  places <- distinct_n(cells, varied)
  parts <- if (places > most_cells_of_figure && length(varied) > 0L) split(cells, by = varied[1]) else list(cells)
  unname(lapply(parts, function(part) {
    name <- paste(c(
      "transfer", gsub("_", "-", over), if (length(parts) > 1L) gsub("[^A-Za-z0-9-]+", "-", part[[varied[1]]][1])
    ), collapse = "-")
    of_part <- if (length(parts) > 1L) paste0(": ", plain_text(part[[varied[1]]][1]))
    title <- paste0("Throughput and energy against ", tolower_first(factor_label(campaign, over)), of_part)
    panels <- distinct_n(part, setdiff(varied, campaign$arm))
    figure(
      paste0(name, meter_suffix(campaign, id)), title, plot_sweep(part, over, title, campaign, id),
      2 + 2.3 * panels, id, "transfer_summary"
    )
  }))
}

plot_sweep <- function(cells, over, title, campaign, id) {
  inner <- campaign
  inner$factors <- setdiff(campaign$factors, over)
  arm <- if (identical(campaign$arm, over)) {
    factor(rep("mean", nrow(cells)))
  } else {
    arm_factor(campaign, cells[[campaign$arm]])
  }
  points <- measure_points(
    cells, drawn_measures[1:2], as.numeric(cells[[over]]), arm, cell_name(inner, cells)
  )
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points[, name := paste0(
    if (uniqueN(arm) > 1L) paste0(arm_label(arm), ", "), factor_label(campaign, over), " ", at
  )]
  spread_arms(points)
  breaks <- points[break_point == TRUE]
  words <- c(
    interval_words(campaign, id, cells$n), if (nrow(breaks) > 0L) {
      "Dashed: break point, the lowest level whose energy interval contains the minimum while throughput still rises."
    } else {
      "No break point: nowhere contains an energy interval the minimum while throughput still rises."
    }, point_words(points)
  )
  plot <- sweep_plot(points, facet_wrap(ggplot2::vars(panel), ncol = 2L, scales = "free_y"),
    level_axis(points$at, factor_label(campaign, over)), from_zero(),
    behind = break_layers(breaks, min(points$at)), title = plain_text(title, 100L),
    subtitle = subtitle_words(campaign, id, words),
    caption = source_line(campaign, id)
  )
  if (uniqueN(points$arm) == 1L) plot <- plot + theme(legend.position = "none")
  with_alt(plot, paste0(
    title, ". ", break_words(breaks, campaign, over), " Throughput: ",
    span_words(points[measure == "throughput_mbps", value]), " Mb/s; E_d per 100 MB: ",
    energy_span(points), ". ", alt_end(campaign, id)
  ))
}

energy_span <- function(points) {
  energies <- points[measure == "e_d_per_100_mb_j", value]
  if (length(energies) > 0L) paste(span_words(energies), "J") else "not known"
}

break_words <- function(breaks, campaign, over) {
  found <- breaks[measure == "e_d_per_100_mb_j"]
  if (nrow(found) == 0L) {
    return("No break point.")
  }
  paste0(
    "Break point at ", tolower_first(factor_label(campaign, over)), " ",
    paste0(found$at, ifelse(nzchar(found$place), paste0(" (", found$place, ")"), ""), collapse = ", "), "."
  )
}

# At the first level there is no room for words before the line.
break_layers <- function(breaks, first) {
  if (nrow(breaks) > 0L) {
    list(
      ggplot2::geom_vline(
        data = breaks, aes(xintercept = at), colour = "grey35", linetype = "42", linewidth = 0.45
      ),
      geom_text(
        data = breaks[, list(at = min(at)), by = panel], aes(x = at, y = Inf, hjust = as.numeric(at > first)),
        label = " break point ", inherit.aes = FALSE, vjust = 1.5, size = 2.8, colour = "grey25"
      )
    )
  }
}

# An interval that reaches below zero is drawn down to the foot.
from_zero <- function() {
  scale_y_continuous(
    name = NULL, labels = apart_text, limits = c(0, NA), expand = expansion(mult = c(0, 0.12)), oob = scales::oob_keep
  )
}

# Levels are doubled from one to the next.
level_axis <- function(levels, label) {
  levels <- sort(unique(levels))
  scale <- if (length(levels) > 2L && min(levels) > 0) ggplot2::scale_x_log10 else scale_x_continuous
  scale(name = label, breaks = levels, labels = number_text, guide = guide_axis(check.overlap = TRUE))
}

#' Throughput, E_d per 100 MB and throughput efficiency of all clients, a figure for each cell
#' @noRd
client_figures <- function(cells, campaign, id, published) {
  cells[, place := cell_name(campaign, cells)]
  unname(Map(function(part, i) {
    place <- part$place[1]
    title <- paste0("Throughput, energy and efficiency by client", if (nzchar(place)) paste0(": ", place))
    figure(
      paste0("transfer-clients", if (i > 1L) paste0("-", i), meter_suffix(campaign, id)), plain_text(title, 100L),
      plot_clients(part, plain_text(title, 100L), campaign, id), 7.2, id,
      c("transfer_summary", if (published) "transfer_published")
    )
  }, split(cells, by = "place"), seq_len(uniqueN(cells$place))))
}

plot_clients <- function(cells, title, campaign, id) {
  arm <- droplevels(arm_factor(campaign, cells$client))
  points <- measure_points(cells, drawn_measures, as.numeric(arm), arm, rep("", nrow(cells)))
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points[, `:=`(x = at, name = arm_label(arm))]
  shown <- levels(arm)
  plot <- sweep_plot(
    points, facet_wrap(ggplot2::vars(panel), ncol = 1L, scales = "free_y"), scale_x_continuous(
      name = "Client", breaks = seq_along(shown), labels = arm_label(shown), limits = c(0.5, length(shown) + 0.5),
      guide = guide_axis(n.dodge = if (length(shown) > 6L) 3L else 1L)
    ), from_zero(), title = title, subtitle = subtitle_words(
      campaign, id, interval_words(campaign, id, cells$n), point_words(points)
    ),
    caption = source_line(campaign, id)
  ) + theme(legend.position = "none")
  with_alt(plot, paste0(
    title, ", for ", paste(arm_label(shown), collapse = ", "), ". Throughput: ",
    span_words(points[measure == "throughput_mbps", value]), " Mb/s; E_d per 100 MB: ", energy_span(points), ". ",
    alt_end(campaign, id)
  ))
}

#' Power of one run of each arm, from its start to the end of its tail, both areas with their joules
#'
#' @param trace readings of the mini-block that power_trace() chose; runs of energy_runs().
#' @noRd
transfer_power_figure <- function(trace, runs, campaign, id) {
  shown <- runs[meter_id == id & run_id %in% trace$run_id]
  rows <- shown[, list(run_id, arm = as.character(.SD[[1]]), base_w = p_i_w, e_j = e_d_j, tail_e_j = tail_energy_j,
    start_s = window_t_start_s
  ), .SDcols = campaign$arm]
  setting <- cell_name(campaign, shown[1])
  title <- "Power over time of a transfer and its tail"
  parts_figure("transfer-power", title, trace, rows, c(
    if (nzchar(setting)) paste0(setting, "."),
    "One run of each arm; areas and joules above idle power (dashed), E_d and tail energy of result.json."
  ), campaign, id)
}

#' The same of the access network's radio, by the model of its states: of the runs of the same mini-block
#' @noRd
transfer_radio_figure <- function(trace, campaign, id) {
  rows <- campaign$results[meter_id == id & run_id %in% trace$run_id & !is.na(radio_e_j)]
  radio <- radio_trace(campaign, rows)
  if (NROW(radio) == 0L) {
    return(NULL)
  }
  setting <- cell_name(campaign, rows[1])
  parts_figure("transfer-radio", "Power over time of the radio, in a transfer and its tail", radio, rows[, list(
    run_id, arm = as.character(arm), base_w = 0, e_j = radio_e_j, tail_e_j = radio_tail_e_j, start_s = window_t_start_s
  )], c(
    if (nzchar(setting)) paste0(setting, "."),
    "One run of each arm; modelled from the radio's states, whatever a meter reads."
  ), campaign, id, whose = NULL)
}

# whose: meter that is named over the figure.
parts_figure <- function(name, title, trace, runs, words, campaign, id, whose = id) {
  words <- subtitle_words(campaign, whose, words)
  figure(
    paste0(name, meter_suffix(campaign, id)), title, plot_parts(trace, runs, title, words, campaign, id),
    2 + 2.3 * ceiling(nrow(runs) / 2), id, c("power_trace", "energy_runs")
  )
}

#' Power over time with the areas of transfer and tail
#'
#' @param trace run_id, window, t_s, power_w.
#' @param runs run_id, arm, base_w (W, where areas begin), e_j and tail_e_j (J, of the areas), start_s.
#' @noRd
plot_parts <- function(trace, runs, title, words, campaign, id) {
  windows <- c(measure = "Transfer", tail = "Tail")
  runs <- runs[order(arm_factor(campaign, arm))]
  names <- arm_names(campaign, runs$arm)
  runs[, panel := factor(names, unique(names))]
  points <- merge(trace[window %in% names(windows), list(run_id, window, t_s, power_w)], runs, by = "run_id")
  points[, `:=`(since_s = t_s - start_s, part = factor(windows[window], windows))]
  # A tail begins where its transfer ends.
  joints <- points[window == "measure", .SD[which.max(t_s)], by = run_id][run_id %in% points[window == "tail", run_id]]
  points <- rbind(points, joints[, part := factor(windows[["tail"]], windows)], use.names = TRUE)
  setorderv(points, c("panel", "since_s"))
  if (nrow(points) == 0L) {
    return(NULL)
  }
  labels <- runs[, list(panel, label = paste0(
    "Transfer ", short(e_j), " J", ifelse(is.na(tail_e_j), "", paste0("\nTail ", short(tail_e_j), " J"))
  ))]
  plot <- ggplot(points, aes(x = since_s)) +
    geom_ribbon(aes(ymin = pmin(base_w, power_w), ymax = power_w, fill = part)) +
    geom_line(aes(y = power_w, group = panel), colour = "grey25", linewidth = 0.35) +
    geom_line(aes(y = base_w, group = panel), colour = "grey35", linetype = "42", linewidth = 0.45) +
    geom_text(
      data = labels, aes(x = Inf, y = Inf, label = label), hjust = 1.06, vjust = 1.3, size = 2.8, lineheight = 1,
      colour = "grey15"
    ) +
    scale_fill_manual(name = NULL, values = c(Transfer = arm_colours[6], Tail = arm_colours[5])) +
    facet_wrap(ggplot2::vars(panel), ncol = 2L) +
    scale_y_continuous(name = "Power (W)", labels = apart_text, expand = expansion(mult = c(0.04, 0.32))) +
    scale_x_continuous(name = "Time since the start of the transfer (s)", labels = number_text) +
    netjoule_theme() + labs(
      title = title, subtitle = words, caption = source_line(campaign, id)
    )
  with_alt(plot, paste0(
    title, ": ", paste0(labels$panel, ": ", gsub("\n", ", ", labels$label), collapse = "; "), ". ",
    alt_end(campaign, id)
  ))
}

# Combinations of these columns; one where there are none.
distinct_n <- function(rows, columns) if (length(columns) > 0L) uniqueN(rows, by = columns) else 1L
