# SPDX-License-Identifier: Apache-2.0

# Campaigns in memory, without files: many of them, for coverage and false-alarm rates of statistics across runs.

#' A campaign of runs with known truth
#'
#' ln E_A = effect of the transport + drift over mini-blocks and over runs + noise of the run (+ the block's and
#' transport's own, common to its loads).
#'
#' @param effect named numeric, ln of E_A of each transport over the first one's (by load when a list).
#' @param run_sd,block_sd standard deviations of the noise of a run and of a transport in a block.
#' @param drift ln E_A gained from the first mini-block to the last: the same for all runs of one, so no pair sees it.
#' @param run_drift ln E_A gained from the first run to the last, at the place of each run.
#' @param random_order whether transports stand in random order in their mini-blocks, as in every plan.
memory_campaign <- function(effect = c(udp = 0, tcp = 0), blocks = 8, payload_bytes = 64, offered_rate_mbps = c(1, 10),
                            run_sd = 0.05, block_sd = 0, drift = 0, run_drift = 0, random_order = TRUE, seed = 1,
                            statistics = NULL, meters = "m") {
  transports <- names(effect)
  cells <- data.table::CJ(block = seq_len(blocks), payload_bytes = payload_bytes, offered_rate_mbps = offered_rate_mbps)
  cells[, mini_block := .I]
  plan <- cells[rep(seq_len(.N), each = length(transports))]
  plan[, transport := rep(transports, nrow(cells))]
  plan[, `:=`(
    order = rowid(mini_block), attempt = 1, direction = "up", status = "done", pacing = "absolute", window_us = 0,
    gso = FALSE, run_id = sprintf("b%02dm%03d-%s-a1", block, mini_block, transport), reason = "",
    load = "flow", arm = transport, kind = fifelse(transport == "null", "control", "work")
  )]
  results <- with_seed(seed, {
    shared <- stats::rnorm(blocks * length(transports), sd = block_sd)
    noise <- stats::rnorm(nrow(plan), sd = run_sd)
    place <- (plan$block - 1) * length(transports) + match(plan$transport, transports)
    if (random_order) plan[, order := sample(.N), by = mini_block]
    run_place <- (plan$mini_block - 1) * length(transports) + plan$order
    log_ea <- effect[plan$transport] + noise + shared[place] + drift * plan$mini_block / nrow(cells) +
      run_drift * run_place / nrow(plan)
    copy(plan)[, ea_j_per_mbit := exp(unname(log_ea))]
  })
  results[, `:=`(
    usable = TRUE, ea_reason = NA_character_, t_a_mbps = offered_rate_mbps, node = "client",
    device_model = NA_character_, device_form = NA_character_, power_source = "measured", radio_source = "real",
    hollow = FALSE, below_resolution = FALSE, u_delta_p_w = 1e-4, u95_ea_j_per_mbit = 1e-4, p_i_w = 5,
    ea_above_floor_j_per_mbit = NA_real_, u95_ea_above_floor_j_per_mbit = NA_real_, floor_reason = NA_character_
  )]
  results[, delta_p_w := ea_j_per_mbit * t_a_mbps]
  results[, p_a_w := p_i_w + delta_p_w]
  results <- rbindlist(lapply(meters, function(id) copy(results)[, meter_id := id]))
  structure(class = "nj_campaign", list(
    load = "flow", arm = "transport", factors = setdiff(flow_cell, "transport"), control = "null", dir = "/nowhere",
    name = "memory", plan = plan, results = results, flows = data.table(),
    runs = copy(plan)[, usable := TRUE],
    problems = data.table(run_id = character(), code = character(), detail = character()),
    meters = data.table(meter_id = meters, node = "client", power_source = "measured", device_model = NA_character_),
    meta = list(seed = seed, radio_source = "real", workload = list(
      transports = as.list(transports), payload_bytes = as.list(payload_bytes), blocks = blocks,
      offered_rate_mbps = as.list(offered_rate_mbps), statistics = statistics
    )),
    contracts = contracts_dir()
  ))
}

#' What model_sensitivity() would find of such a campaign: two parameters that share the power over idle
#'
#' @param share part of it that the first parameter makes, by transport; u: their relative standard uncertainties.
memory_sensitivity <- function(campaign, share, u = c(frame_j = 0.04, air_time_w = 0.03), draws = parameter_draws) {
  rows <- campaign$results
  first <- unname(share[rows$transport])
  normal <- with_seed(5, t(vapply(u, function(one) stratified(stats::qnorm, draws), numeric(draws))))
  list(m = list(
    reason = NA_character_, runs = rows$run_id, delta_p_w = rows$delta_p_w,
    watts = rows$delta_p_w * cbind(frame_j = first, air_time_w = 1 - first), draws = u * normal, uncovered_n = 0L
  ))
}

#' Most and least hits that n trials of probability p give, but for one in a thousand on each side
binomial_bounds <- function(n, p) stats::qbinom(c(0.001, 0.999), n, p)
