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

flow_figures <- function(campaign, tables, suffix) {
  summary <- tables$ea_summary
  height <- 1.9 + 3 * panel_rows(summary)
  shared <- tables$fairness
  list(
    if (!is.null(shared)) {
      plot <- plot_fairness(shared, summary, campaign)
      figure(paste0("fairness", suffix), "Fairness", plot, 2.2 + 2.4 * fairness_rows(shared), tables = "fairness")
    },
    figure(paste0("goodput", suffix), "Goodput", plot_goodput(summary, campaign), height, tables = "ea_summary"),
    figure(
      paste0("delta-goodput", suffix), "Goodput against UDP",
      plot_delta_goodput(tables$delta_goodput, summary, campaign), height,
      tables = "delta_goodput"
    ),
    figure(paste0("loss", suffix), "Loss", plot_loss(summary, campaign), height, tables = "ea_summary"),
    figure(
      paste0("pacing", suffix), "Pacing certificates", plot_pacing(tables$pacing_overview, summary, campaign), 7.6,
      tables = c("pacing_overview", "pacing_certificates")
    ),
    figure(
      paste0("message-cost", suffix), "Sender cost per message", plot_message_cost(summary, campaign), 9.2,
      tables = "ea_summary"
    )
  )
}

pacer_figures <- function(campaign, verdict) {
  if (is.null(verdict)) {
    return(NULL)
  }
  lapply(unique(verdict$meter_id), function(id) {
    sizes <- length(unique(verdict[meter_id == id, payload_bytes]))
    name <- paste0("pacer", meter_suffix(campaign, id))
    figure(
      name, "Spinning against sleeping", plot_pacer(verdict, campaign, id), 2.2 + 2.6 * sizes, id, "pacer_verdict"
    )
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

meter_figures <- function(campaign, tables, id, of_pacing = "") {
  summary <- tables$ea_summary
  rows <- panel_rows(summary[meter_id == id])
  suffix <- paste0(meter_suffix(campaign, id), of_pacing)
  transports <- length(unique(tables$envelope$transport))
  envelope_rows <- panel_rows_of(transports)
  model_rows <- panel_rows_of(length(unique(tables$model_fit[meter_id == id & !is.na(form), transport])))
  list(
    figure(
      paste0("ea", suffix), "Energy per megabit", plot_ea(summary, campaign, id, tables$model_parameters),
      2.2 + 3 * rows, id, "ea_summary"
    ),
    figure(
      paste0("envelope", suffix), "Energy envelope", plot_envelope(tables$envelope, summary, campaign, id),
      2.2 + 2.1 * envelope_rows, id, "envelope"
    ),
    figure(
      paste0("delta-ea", suffix), "Difference against UDP", plot_delta_ea(tables$delta_ea, summary, campaign, id),
      2.2 + 3 * rows, id, "delta_ea"
    ),
    figure(
      paste0("floor", suffix), "Generator floor", plot_floor(summary, campaign, id), 2.4 + 5 * rows, id, "ea_summary"
    ),
    figure(
      paste0("model-fit", suffix), "Power model",
      plot_model_fit(tables$model_fit, tables$model_residuals, campaign, id), 2.2 + 2.3 * model_rows, id,
      c("model_fit", "model_residuals")
    ),
    figure(
      paste0("model-residuals", suffix), "Residuals of the power model",
      plot_model_residuals(tables$model_fit, tables$model_residuals, campaign, id), 1.9 + 2.1 * model_rows, id,
      c("model_residuals", "model_fit")
    )
  )
}

panel_rows <- function(summary) panel_rows_of(length(unique(summary$payload_bytes)))

panel_rows_of <- function(panels) ceiling(max(1L, panels) / panel_columns(max(1L, panels)))

phy_height <- function(shares) {
  rates <- max(1L, length(unique(shares$phy_rate_mbps)))
  transports <- max(1L, length(unique(shares$transport)))
  # Many transports are many rows of panels: then each rate gets no more than its name needs.
  row <- if (transports > 4L) min(1.8, 0.2 * rates + 0.3) else min(2.5, 0.32 * rates + 0.25)
  1.9 + transports * max(0.7, row)
}
