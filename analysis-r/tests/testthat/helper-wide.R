# SPDX-License-Identifier: Apache-2.0

#' A campaign of any width in memory, without a file for each run: what figures of many cells are made of
#'
#' Power is linear in goodput and packets; at the least load of the smallest size P_A - P_I is below resolution, at
#' the greatest load the device model is extrapolated.
wide_campaign <- function(transports, payload_bytes, offered_rate_mbps, blocks = 2, nodes = "client") {
  base <- read_campaign(synthetic_campaign(
    name = "wide", transports = c("udp", "null"), payload_bytes = 64, offered_rate_mbps = 1, blocks = 1
  ))
  cells <- data.table::CJ(
    block = seq_len(blocks), payload_bytes = payload_bytes, offered_rate_mbps = offered_rate_mbps,
    transport = transports, sorted = FALSE
  )
  cells[, mini_block := as.numeric(.GRP), by = list(block, payload_bytes, offered_rate_mbps)]
  cells[, order := as.numeric(seq_len(.N)), by = mini_block]
  cells[, run_id := sprintf("b%02dm%03d-%s-a1", block, mini_block, transport)]
  cells[, `:=`(arm = transport, kind = fifelse(transport == "null", "control", "work"))]
  base$results <- wide_rows(base$results, cells)
  base$results <- wide_results(base$results, cells)
  base$runs <- wide_rows(base$runs, cells)
  # Nothing of these runs lies in files, so nothing of them can be computed anew.
  base$runs[, measurable := FALSE]
  base$certificates <- wide_certificates(cells)
  base
}

# The first row over and over, with each run's own cell; `order` and the rest stay as they are.
wide_rows <- function(template, cells) {
  rows <- template[rep(1L, nrow(cells))]
  for (column in names(cells)) set(rows, j = column, value = cells[[column]])
  rows
}

wide_results <- function(rows, cells) {
  is_null <- cells$transport == "null"
  pps <- cells$offered_rate_mbps * 1e6 / (8 * cells$payload_bytes)
  place <- match(cells$transport, unique(cells$transport))
  delta <- 0.002 + (1 + 0.1 * place) * (0.02 * cells$offered_rate_mbps + 5e-5 * pps) * (1 + 0.03 * sin(seq_along(pps)))
  delta[is_null] <- 0.05
  start <- 10 * seq_along(pps)
  rows[, `:=`(
    t_a_mbps = ifelse(is_null, NA, cells$offered_rate_mbps), frames_per_message = ifelse(is_null, NA, 1),
    mean_ip_packet_bytes = ifelse(is_null, NA, cells$payload_bytes + 28), delta_p_w = delta, p_a_w = 8 + delta,
    ea_j_per_mbit = ifelse(is_null, NA, delta / cells$offered_rate_mbps), ea_reason = NA_character_,
    below_resolution = !is_null & cells$offered_rate_mbps == min(cells$offered_rate_mbps) &
      cells$payload_bytes == max(cells$payload_bytes),
    hollow = cells$offered_rate_mbps == max(cells$offered_rate_mbps) & length(unique(cells$offered_rate_mbps)) > 2L,
    ea_upper_limit_j_per_mbit = 2 * delta / cells$offered_rate_mbps, window_t_start_s = start,
    window_t_end_s = start + 5, loss_ratio = 0.01 * place, floor_w = ifelse(is_null, NA, 0.05),
    ea_above_floor_j_per_mbit = ifelse(is_null, NA, (delta - 0.05) / cells$offered_rate_mbps),
    floor_reason = NA_character_, wake_ups_per_message = 1, cpu_user_us_per_message = 2 * place,
    cpu_system_us_per_message = 10 + place, acks_per_message = ifelse(is_null, 0, 0.1 * (place - 1))
  )]
  null_of <- cells$run_id[match(paste(cells$mini_block, "null"), paste(cells$mini_block, cells$transport))]
  rows[, floor_run_id := null_of]
  rows[]
}

wide_certificates <- function(cells) {
  certificate <- list(
    error_basis = "hand_over", departures = 1000, messages_early = 0,
    error_us = list(p50 = 12, p99 = 90, p99_9 = 400, max = 2000), within_5us_ratio = 0.1, within_50us_ratio = 0.9,
    within_500us_ratio = 1, back_to_back_ratio = 0, train_messages = list(mean = 1, p99 = 1, max = 1),
    held_back_ratio = 0, held_back_not_sent_ratio = 0, achieved_ratio = 1, cpu_s = 0.1, cpu_ratio = 0.02,
    limits = list(max_error_p50_us = 400, min_achieved_ratio = 0.99), failed = list(), passed = TRUE
  )
  rbindlist(lapply(cells$run_id, certificate_row, number = 1, certificate = certificate))
}

#' PHY shares of such a campaign: two rates, the lower one more often at higher loads
wide_phy <- function(transports, payload_bytes, offered_rate_mbps, nodes = "client", rates = c(162, 216)) {
  cells <- data.table::CJ(
    node = nodes, transport = setdiff(transports, "null"), payload_bytes = payload_bytes,
    offered_rate_mbps = offered_rate_mbps, phy_rate_mbps = rates
  )
  cells[, `:=`(
    radio_source = "link-model", mcs = match(phy_rate_mbps, rates) + 11, streams = 2, width_mhz = 40,
    guard_interval_ns = 800, samples = 10, share = 1 / length(rates)
  )]
  setcolorder(cells, columns_of("phy_rates"))[]
}

#' Tables of a campaign in memory, with PHY rates that its files do not have and the longest words on its intervals:
#' each E_A has one with drawn parameters, and others are held
wide_tables <- function(campaign, phy) {
  tables <- campaign_tables(campaign)
  tables$phy_rates <- phy
  tables$ea_summary[, `:=`(ea_total_ci95_low = ea_ci95_low, ea_total_ci95_high = ea_ci95_high)]
  tables$model_parameters <- data.table(
    meter_id = campaign$meters$meter_id[1], parameter = c("base_w", "core_w"), drawn = FALSE
  )
  tables
}
