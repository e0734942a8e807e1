# SPDX-License-Identifier: Apache-2.0

# The tables of flows.

#' Every table across runs of flows
#' @noRd
flow_tables <- function(campaign, margin_percent = NULL) {
  model <- fit_power_model(campaign)
  certificates <- pacing_certificates(campaign)
  tables <- c(list(
    ea_summary = summarise_ea(campaign), envelope = ea_envelope(campaign), delta_ea = delta_ea(campaign),
    phy_rates = phy_rate_shares(campaign), mcs_histogram = mcs_histogram(campaign), runs = run_table(campaign)
  ), tables_of_all(campaign), list(
    delta_goodput = delta_goodput(campaign), model_fit = model$fit, model_residuals = model$residuals,
    pacing_certificates = certificates, pacing_overview = pacing_overview(certificates)
  ))
  # Only a campaign that spun and slept has this table.
  tables$pacer_verdict <- pacer_verdict(campaign)
  # And only one whose runs have several flows these three.
  tables$flows <- flow_table(campaign)
  tables$flow_shares <- flow_shares(tables$flows)
  tables$fairness <- fairness(campaign)
  statistics <- campaign_statistics(campaign, margin_percent)
  tables[names(statistics)] <- statistics
  tables$ea_summary <- with_total_intervals(tables$ea_summary, statistics$ea_uncertainty)
  # E_A of a cell is of all its runs' flows, whatever transport these are named for.
  cells <- c("ea_summary", "envelope", "delta_ea")
  tables[cells] <- lapply(tables[cells], with_flows_at_once, campaign = campaign)
  # Only a campaign that sent a profile has this table.
  tables$table_iv <- application_rows(campaign, tables$ea_summary, tables$delta_ea)
  # Only where a published value has a counterpart.
  tables$side_by_side <- side_by_side(campaign, tables)
  tables
}

# One row per usable run and meter: the per-run numbers as result.json gives them, and what flow.json says of senders.
run_table <- function(campaign) {
  columns <- names(schema_columns("runs"))
  if (nrow(campaign$flows) == 0L) columns <- setdiff(columns, c("flows", "jain_goodput", "jain_demand_met"))
  rows <- campaign$results[usable == TRUE, columns, with = FALSE]
  setorderv(rows, c("mini_block", "attempt", "order", "meter_id"))[]
}
