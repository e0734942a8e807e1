# SPDX-License-Identifier: Apache-2.0

# What the analysis has of flows alone.

# What their tables are keyed by: the arm first.
flow_cell <- c("transport", "direction", "payload_bytes", "offered_rate_mbps", pacing_keys)

# Reading, and what holds whatever is compared; with transports as arms the tables, figures and words of flows.
register_load("flow",
  read = function(...) read_flows(...), read_nothing = function() read_no_flows(),
  arrived_until = function(campaign, runs) arrived_until(campaign, runs),
  join_runs = function(runs) with_pacing(runs),
  run_columns = c(
    "frames_per_message", "mean_ip_packet_bytes", "packetisation_source", "congestion_control", "loss_ratio",
    "achieved_ratio", "generator", "generator_version", "jitter_ms", "flows", "jain_goodput", "jain_demand_met",
    pacing_keys, message_costs, router_measures, "cpu_us_per_message", "p99_delay_ms"
  ),
  floor_refusal = function(own, control) floor_refusal(own, control),
  with_floor = function(rows, at) {
    differ <- wake_ups_differ(rows$wake_ups_per_message, rows$wake_ups_per_message[at])
    rows[, wake_ups_differ := fifelse(is.na(floor_reason), differ, NA)]
  },
  source_words = function(campaign) c(option_words(campaign), congestion_words(campaign), flow_words(campaign)),
  figures_beside = function(campaign, tables) router_figures(campaign, tables),
  tables_beside = function(campaign) {
    list(
      router_energy = router_energy(campaign), router_series = router_series(campaign),
      arm_shares = arm_shares(campaign)
    )
  },
  rare_tables = c(
    "router_energy", "router_series", "arm_shares", "pacer_verdict", "flows", "flow_shares", "fairness", "table_iv",
    "side_by_side"
  ),
  of_arm = list(transport = list(
    factors = flow_cell, invalid_factors = c("payload_bytes", "offered_rate_mbps"),
    looks = function() stats::setNames(transport_looks(), replace(names(transport_looks()), 1L, "arm")),
    cell_name = function(rows) {
      paste0(number_text(rows$payload_bytes), " bytes, ", number_text(rows$offered_rate_mbps), " Mb/s")
    },
    cell_title = function(run) {
      paste0(run$payload_bytes, "-byte messages at ", number_text(run$offered_rate_mbps), " Mb/s")
    },
    caption = function(summary) frames_words(summary),
    tables = function(...) flow_tables(...),
    figures = function(...) flow_campaign_figures(...),
    same_words = function(...) same_words(...),
    title = "What a megabit cost: ", answer_figure = "ea",
    sections = function(...) flow_sections(...),
    method = function() method_words
  ))
)

# What only campaigns that compare transports can be asked for.
assert_transports <- function(campaign) {
  if (!identical(c(campaign$load, campaign$arm), c("flow", "transport"))) {
    abort_netjoule(
      "The campaign ", campaign$dir, " compares values of ", campaign$arm, " of the load ", campaign$load, "; this is ",
      "made of campaigns of flows that compare transports alone.",
      exit_code = exit_codes$usage
    )
  }
}
