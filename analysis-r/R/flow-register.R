# SPDX-License-Identifier: Apache-2.0

# What the analysis has of flows alone.

# What their tables are keyed by: the arm first.
flow_cell <- c("transport", "direction", "payload_bytes", "offered_rate_mbps", pacing_keys)

register_load("flow",
  factors = flow_cell,
  read = function(...) read_flows(...), read_nothing = function() read_no_flows(),
  join_runs = function(runs) with_pacing(runs),
  run_columns = c(
    "frames_per_message", "mean_ip_packet_bytes", "packetisation_source", "congestion_control", "loss_ratio",
    "achieved_ratio", "generator", "generator_version", "jitter_ms", "flows", "jain_goodput", "jain_demand_met",
    pacing_keys, message_costs
  ),
  invalid_factors = c("payload_bytes", "offered_rate_mbps"),
  floor_refusal = function(own, control) floor_refusal(own, control),
  with_floor = function(rows, at) {
    differ <- wake_ups_differ(rows$wake_ups_per_message, rows$wake_ups_per_message[at])
    rows[, wake_ups_differ := fifelse(is.na(floor_reason), differ, NA)]
  },
  looks = function() stats::setNames(transport_looks(), replace(names(transport_looks()), 1L, "arm")),
  cell_name = function(rows) {
    paste0(number_text(rows$payload_bytes), " bytes, ", number_text(rows$offered_rate_mbps), " Mb/s")
  },
  cell_title = function(run) {
    paste0(run$payload_bytes, "-byte messages at ", number_text(run$offered_rate_mbps), " Mb/s")
  },
  source_words = function(campaign) c(option_words(campaign), congestion_words(campaign), flow_words(campaign)),
  caption = function(summary) frames_words(summary),
  tables = function(...) flow_tables(...),
  rare_tables = c("pacer_verdict", "flows", "flow_shares", "fairness", "table_iv", "side_by_side"),
  figures = function(...) flow_campaign_figures(...),
  same_words = function(...) same_words(...),
  title = "What a megabit cost: ", answer_figure = "ea",
  sections = function(...) flow_sections(...),
  shown_tables = function() flow_shown_tables(), method = function() method_words
)
