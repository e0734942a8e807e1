# SPDX-License-Identifier: Apache-2.0

# What routers that scale their rate do to flows: service rate, goodput, changes and loss over the ways of scaling.

router_panels <- c(
  service_rate_mbps = "Mean service rate (Mb/s)", t_a_mbps = "Goodput, difference from the first (%)",
  rate_switches = "Changes of the rate", router_loss_ratio = "Share of packets lost at the routers"
)

#' A figure of four panels for each combination of the factors but the path, a line for each path
#'
#' Before them those of the series, and, where transports differ, one of what each loses for what is saved.
#'
#' @return list of figures; empty where another factor is compared, or nothing scales.
#' @noRd
router_figures <- function(campaign, tables) {
  if (campaign$arm != "scaling" || is.null(tables$router_energy) || is.null(tables$measure_contrasts)) {
    return(list())
  }
  points <- router_points(campaign, tables)
  inner <- replace(campaign, "factors", list(setdiff(campaign$factors, "path")))
  points[, place := cell_name(inner, points)]
  places <- unique(points$place)
  before <- c(router_series_figures(campaign, tables$router_series), survival_figure(campaign, tables))
  c(before, lapply(seq_along(places), function(i) {
    title <- paste(c("Routers that scale their rate", if (nzchar(places[i])) places[i]), collapse = ": ")
    name <- if (length(places) == 1L) "routers" else sprintf("routers-%02d", i)
    figure(
      name, plain_text(title, 100L), router_plot(campaign, points[place == places[i]], title), 7.2,
      tables = c("energy_summary", "measure_contrasts")
    )
  }))
}

# One row per way of scaling, cell and panel.
router_points <- function(campaign, tables) {
  keys <- c("arm", campaign$factors)
  summary <- copy(tables$energy_summary)[meter_id == meter_id[1]][, arm := as.character(get(campaign$arm))]
  of_summary <- lapply(setdiff(names(router_panels), "t_a_mbps"), function(name) {
    rows <- summary[, c(keys, name, paste0(name, c("_ci95_low", "_ci95_high"))), with = FALSE]
    setnames(rows, c(keys, "value", "low", "high"))[, panel := name][]
  })
  goodput <- tables$measure_contrasts[measure == "t_a_mbps"]
  columns <- paste0("difference_percent", c("", "_ci95_low", "_ci95_high"))
  goodput <- setnames(goodput[, c(keys, columns), with = FALSE], c(keys, "value", "low", "high"))
  points <- rbindlist(c(of_summary, list(goodput[, panel := "t_a_mbps"])))[arm != reference_arm(campaign)]
  ways <- setdiff(planned_arms(campaign), reference_arm(campaign))
  points[, `:=`(
    x = match(arm, ways), panel = factor(router_panels[panel], router_panels),
    line = path_lines(campaign, points)
  )]
  points[!is.na(value)]
}

# A line for each path; one where the testbed has no other.
path_lines <- function(campaign, points) {
  if (!"path" %in% campaign$factors) {
    return(factor(rep("the testbed's path", nrow(points))))
  }
  factor(points$path, unique(as.character(sort(in_named_order(campaign, "path", points$path)))))
}

router_plot <- function(campaign, points, title) {
  ways <- setdiff(planned_arms(campaign), reference_arm(campaign))
  aside <- position_dodge(width = 0.3)
  plot <- ggplot(points, aes(x, value, ymin = low, ymax = high, colour = line, shape = line, group = line)) +
    geom_line(position = aside, linewidth = 0.5) +
    geom_linerange(data = points[!is.na(low)], position = aside, linewidth = 0.5, show.legend = FALSE) +
    geom_point(position = aside, size = 1.8) +
    facet_wrap(ggplot2::vars(panel), ncol = 2L, scales = "free_y") +
    scale_x_continuous(
      name = factor_label(campaign, campaign$arm), breaks = seq_along(ways), labels = plain_text(ways, 20L),
      guide = guide_axis(n.dodge = 2L)
    ) +
    scale_y_continuous(name = NULL, labels = number_text) +
    ggplot2::scale_colour_manual(name = NULL, values = rep_len(arm_colours, nlevels(points$line))) +
    scale_shape_manual(name = NULL, values = rep_len(c(16, 15, 17, 18, 1, 0, 2), nlevels(points$line))) +
    netjoule_theme() +
    labs(
      title = plain_text(title, 100L), caption = source_line(campaign, NULL),
      subtitle = subtitle_words(campaign, NULL, "Mean and 95 % t interval over blocks. A line for each path.")
    )
  with_alt(plot, paste0(
    plain_text(title, 100L), ": service rate, goodput against ", reference_arm(campaign), ", changes of the rate and ",
    "loss by ", toString(ways), ", for ", toString(levels(points$line)), ". Goodput: ",
    span_words(points[panel == router_panels[["t_a_mbps"]], value]), " %. ", alt_end(campaign)
  ))
}

# What each transport loses of its goodput for what the router's rate falls: a panel for each path and way of scaling.
survival_figure <- function(campaign, tables) {
  if (!"transport" %in% campaign$factors || uniqueN(tables$measure_contrasts$transport) < 2L) {
    return(NULL)
  }
  title <- "What each transport loses where a router scales its rate"
  plot <- survival_plot(campaign, survival_points(campaign, tables), title)
  list(figure("router-transports", title, plot, 7.6, tables = c("router_energy", "measure_contrasts")))
}

# One row per way of scaling and cell: differences of service rate and goodput, percent.
survival_points <- function(campaign, tables) {
  keys <- c("arm", campaign$factors)
  ends <- c("", "_ci95_low", "_ci95_high")
  rate <- tables$router_energy[form == "linear" & static_ratio == 0 & !is.na(reference)]
  rate <- rate[, c(keys, paste0("power_difference_percent", ends)), with = FALSE]
  goodput <- tables$measure_contrasts[measure == "t_a_mbps", c(keys, paste0("difference_percent", ends)), with = FALSE]
  setnames(rate, c(keys, "x", "x_low", "x_high"))
  points <- merge(rate, setnames(goodput, c(keys, "y", "y_low", "y_high")), keys)
  points[, `:=`(
    line = path_lines(campaign, points), way = factor(arm, series_ways(campaign)),
    transport = droplevels(in_named_order(campaign, "transport", transport))
  )][]
}

survival_plot <- function(campaign, points, title) {
  kinds <- nlevels(points$transport)
  plot <- ggplot(points, aes(x, y, colour = transport, shape = transport)) +
    ggplot2::geom_abline(slope = 1, intercept = 0, linetype = "dotted", colour = "grey50") +
    geom_linerange(aes(ymin = y_low, ymax = y_high), linewidth = 0.4, show.legend = FALSE, na.rm = TRUE) +
    geom_linerange(aes(xmin = x_low, xmax = x_high), linewidth = 0.4, show.legend = FALSE, na.rm = TRUE) +
    geom_point(size = 1.9) +
    ggplot2::facet_grid(ggplot2::vars(way), ggplot2::vars(line), labeller = function(labels) {
      lapply(labels, function(of) plain_text(as.character(of), 24L))
    }) +
    ggplot2::scale_colour_manual(name = NULL, values = rep_len(arm_colours, kinds)) +
    scale_shape_manual(name = NULL, values = rep_len(c(16, 15, 17, 18, 1, 0, 2, 5), kinds)) +
    scale_x_continuous(name = "Service rate of the router, difference (%)", labels = number_text) +
    scale_y_continuous(name = "Goodput, difference (%)", labels = number_text) +
    netjoule_theme() +
    labs(
      title = title, caption = source_line(campaign, NULL),
      subtitle = subtitle_words(
        campaign, NULL, "Mean and 95 % t interval over blocks. Below the dotted line more goodput is lost than rate."
      )
    )
  with_alt(plot, paste0(
    title, ": goodput against service rate, differences from ", plain_text(reference_arm(campaign), 20L), ", of ",
    toString(plain_text(levels(points$transport), 20L)), ", a panel for each path and way of scaling. Goodput: ",
    span_words(points$y), " %. ", alt_end(campaign)
  ))
}
