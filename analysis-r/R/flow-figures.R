# SPDX-License-Identifier: Apache-2.0

# The figures of flows.

#' Figures of flows
#'
#' One set per meter and pacing; those of further pacings end in -<pacing>. Goodput and loss belong to the flow and are
#' drawn once per pacing, PHY rates once.
#' @noRd
flow_campaign_figures <- function(campaign, tables, ids) {
  sets <- lapply(by_variant(campaign, tables), function(part) {
    per_meter <- lapply(ids, function(id) meter_figures(part$campaign, part$tables, id, part$suffix))
    c(unlist(per_meter, recursive = FALSE), flow_figures(part$campaign, part$tables, part$suffix))
  })
  c(
    unlist(sets, recursive = FALSE), phy_figures(campaign, tables$phy_rates),
    pacer_figures(campaign, tables$pacer_verdict)
  )
}

# What is the same at every meter.
flow_figures <- function(campaign, tables, suffix) {
  summary <- tables$ea_summary
  height <- 1.9 + 3 * panel_rows(summary)
  one <- function(name, title, plot, height_in, tables) {
    figure(paste0(name, suffix), title, plot, height_in, tables = tables)
  }
  fairness <- tables$fairness
  further <- lapply(further_listed(campaign), function(listed) {
    one(gsub("_", "-", listed$y), listed$title, plot_further(listed, summary, campaign), height, "ea_summary")
  })
  c(list(
    if (!is.null(fairness)) {
      plot <- plot_fairness(fairness, summary, campaign)
      one("fairness", "Fairness", plot, 2.2 + 2.4 * fairness_rows(fairness), "fairness")
    },
    one("goodput", "Goodput", plot_goodput(summary, campaign), height, "ea_summary"),
    one(
      "delta-goodput", "Goodput against UDP", plot_delta_goodput(tables$delta_goodput, summary, campaign), height,
      "delta_goodput"
    ),
    one("loss", "Loss", plot_loss(summary, campaign), height, "ea_summary"),
    one(
      "pacing", "Pacing certificates", plot_pacing(tables$pacing_overview, summary, campaign), 7.6,
      c("pacing_overview", "pacing_certificates")
    ),
    one("message-cost", "Sender cost per message", plot_message_cost(summary, campaign), 9.2, "ea_summary")
  ), further)
}

# Sweeps that loads.json lists beside those with words of their own.
further_listed <- function(campaign) {
  own <- c("ea_j_per_mbit", "t_a_mbps", "loss_ratio")
  Filter(function(one) one$kind == "sweep" && !one$y %in% own, pick(campaign$entry, "figures", default = list()))
}

plot_further <- function(listed, summary, campaign) {
  points <- flow_points(first_meter_rows(summary), listed$y)
  label <- value_label(campaign, listed$y)
  parts <- if (nrow(points) > 0L) {
    y <- value_axis(points$value, label)
    flow_parts(spread_loads(points), summary, campaign, NULL, y, "Mean over blocks.", label, "")
  }
  draw_listed(listed, parts, campaign, NULL)
}

pacer_figures <- function(campaign, verdict) {
  lapply(unique(verdict$meter_id), function(id) {
    height <- 2.2 + 2.6 * uniqueN(of_meter(verdict, id)$payload_bytes)
    name <- paste0("pacer", meter_suffix(campaign, id))
    figure(name, "Spinning against sleeping", plot_pacer(verdict, campaign, id), height, id, "pacer_verdict")
  })
}

# One figure for all nodes while their panels find room side by side, else one per node.
phy_figures <- function(campaign, shares) {
  most_columns <- 4L
  columns <- nrow(unique(shares[, c("node", "payload_bytes"), with = FALSE]))
  parts <- if (columns > most_columns) split(shares, by = "node") else list(shares)
  lapply(seq_along(parts), function(i) {
    suffix <- if (i > 1L) paste0("-", parts[[i]]$node[1]) else ""
    plot <- plot_phy_rates(parts[[i]], campaign)
    figure(paste0("phy-rates", suffix), "PHY rates", plot, phy_height(parts[[i]]), tables = "phy_rates")
  })
}

# What each meter tells; of its own tables.
meter_figures <- function(campaign, tables, id, of_pacing = "") {
  summary <- tables$ea_summary
  fit <- tables$model_fit
  residuals <- tables$model_residuals
  rows <- panel_rows(of_meter(summary, id))
  model_rows <- panel_rows_of(uniqueN(of_meter(fit, id)[!is.na(form), transport]))
  one <- function(name, title, plot, height_in, tables) {
    figure(paste0(name, meter_suffix(campaign, id), of_pacing), title, plot, height_in, id, tables)
  }
  list(
    one(
      "ea", "Energy per megabit", plot_ea(summary, campaign, id, tables$model_parameters), 2.2 + 3 * rows, "ea_summary"
    ),
    one(
      "envelope", "Energy envelope", plot_envelope(tables$envelope, summary, campaign, id),
      2.2 + 2.1 * panel_rows_of(uniqueN(tables$envelope$transport)), "envelope"
    ),
    one(
      "delta-ea", "Difference against UDP", plot_delta_ea(tables$delta_ea, summary, campaign, id), 2.2 + 3 * rows,
      "delta_ea"
    ),
    one("floor", "Generator floor", plot_floor(summary, campaign, id), 2.4 + 5 * rows, "ea_summary"),
    one(
      "model-fit", "Power model", plot_model_fit(fit, residuals, campaign, id), 2.2 + 2.3 * model_rows,
      c("model_fit", "model_residuals")
    ),
    one(
      "model-residuals", "Residuals of the power model", plot_model_residuals(fit, residuals, campaign, id),
      1.9 + 2.1 * model_rows, c("model_residuals", "model_fit")
    )
  )
}

panel_rows <- function(summary) panel_rows_of(uniqueN(summary$payload_bytes))

panel_rows_of <- function(panels) ceiling(max(1L, panels) / panel_columns(max(1L, panels)))

phy_height <- function(shares) {
  rates <- max(1L, uniqueN(shares$phy_rate_mbps))
  transports <- max(1L, uniqueN(shares$transport))
  # Many transports are many rows of panels: then each rate gets no more than its name needs.
  row <- if (transports > 4L) min(1.8, 0.2 * rates + 0.3) else min(2.5, 0.32 * rates + 0.25)
  1.9 + transports * max(0.7, row)
}
