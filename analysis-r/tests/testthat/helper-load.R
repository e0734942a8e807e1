# SPDX-License-Identifier: Apache-2.0

# Campaigns of loads that have no R file: runs until the work is done, by hand from the schemas of the contracts.

done_timeline <- list(idle = 2, work = 3, tail = 1)

#' Write a campaign of a load whose runs go on until the work is done; return its folder
#'
#' Energies are exact: a run of an arm draws its power above idle for three seconds, and a tenth of it in its tail.
#'
#' @param arms named power above idle of each arm, W.
#' @param factors named list of values, each a factor of the cell; `work` gives the work of a run in a cell.
#' @param arm name of the factor that is compared.
#' @param power power above idle of a run, W, by its row of the plan.
#' @param gate section gate of the workload.
done_campaign <- function(load, arm, arms, factors = list(), blocks = 2, work = function(cell) 1, unit = "1",
                          measures = function(cell, watts) list(), dir = tempfile("campaign"),
                          power = function(row) arms[[row$arm]], gate = NULL) {
  dir.create(file.path(dir, "runs"), recursive = TRUE)
  dir.create(file.path(dir, "meters"))
  cells <- do.call(expand.grid, c(factors, list(stringsAsFactors = FALSE)))
  if (nrow(cells) == 0L) cells <- data.frame(row.names = 1)
  plan <- list()
  for (block in seq_len(blocks)) {
    for (cell in seq_len(nrow(cells))) {
      mini_block <- length(plan) / length(arms) + 1
      for (order in seq_along(arms)) {
        plan[[length(plan) + 1]] <- c(
          list(
            run_id = sprintf("r%04d", length(plan) + 1), block = block, mini_block = mini_block, order = order,
            attempt = 1, load = load, kind = "work", arm = names(arms)[order], seed = length(plan)
          ), as.list(cells[cell, , drop = FALSE])
        )
      }
    }
  }
  step <- sum(unlist(done_timeline))
  for (i in seq_along(plan)) {
    cell <- plan[[i]][names(factors)]
    watts <- power(plan[[i]])
    write_done_run(dir, plan[[i]], cell, (i - 1) * step, watts, list(
      quantity = work(cell), unit = unit, measures = measures(cell, watts)
    ))
  }
  table <- data.table::rbindlist(plan)
  data.table::fwrite(table, file.path(dir, "plan.csv"))
  data.table::fwrite(data.frame(
    t_utc = "2026-01-01T00:00:00Z", run_id = table$run_id, attempt = 1, session = 1, rig = "rig", owner_token = 1,
    status = "valid", reason = ""
  ), file.path(dir, "status.csv"))
  write_done_meter(dir, vapply(plan, power, 0))
  workload <- list(
    schema_version = 2L, name = load, load = load, arm = arm, blocks = blocks,
    factors = c(stats::setNames(list(as.list(names(arms))), arm), lapply(factors, as.list))
  )
  meta <- synthetic_meta(load, character(), list(synthetic_meter(power_source = "measured", device_model = NULL)))
  meta$workload <- c(workload, if (!is.null(gate)) list(gate = gate))
  meta$radio_source <- "wired"
  write_json(file.path(dir, "campaign.json"), meta)
  dir
}

write_done_run <- function(dir, row, cell, t0, watts, done) {
  run_dir <- file.path(dir, "runs", row$run_id)
  dir.create(run_dir)
  edges <- t0 + cumsum(c(0, done_timeline$idle, done_timeline$work, done_timeline$tail, done_timeline$idle))
  span <- function(i) list(t_start_s = edges[i], t_end_s = edges[i + 1])
  window <- c(list(kind = "until_done"), span(2))
  common <- list(
    schema_version = 2L, run_id = row$run_id, load = row$load, kind = "work", arm = row$arm,
    factors = structure(cell, names = as.character(names(cell)))
  )
  write_json(file.path(run_dir, "run.json"), c(common, list(
    campaign = row$load, block = row$block, mini_block = row$mini_block, attempt = 1L, order = row$order,
    seed = row$seed, hosts = list(client = "client", server = "server"), radio_source = "wired",
    windows = list(
      idle_before = span(1), warm_up = NULL, measure = span(2), tail = span(3), idle_after = span(4)
    ),
    window = c(window, list(clock_limit_s = 0)), work = list(
      quantity = done$quantity, unit = done$unit, u = 0, reconciles = TRUE, `repeat` = 1L, parts = list(list(
        part = "1", node = "client", quantity = done$quantity, u = 0, asked_per_s = NULL, measures = list()
      ))
    ), measures = done$measures, control = NULL, started_utc = "2026-01-01T00:00:00Z",
    versions = list(netjoule = "0.1.0"), status = "done", reasons = list()
  )))
  data.table::fwrite(data.frame(
    part = 1, node = "client", t_start_s = edges[2], t_end_s = edges[3], work = done$quantity
  ), file.path(run_dir, "intervals.csv"))
  write_json(file.path(run_dir, "result.json"), c(common, list(
    window = window, work = list(
      quantity = done$quantity, unit = done$unit, work_per_s = done$quantity / done_timeline$work, u95_work_per_s = 0
    ), measures = done$measures, valid = TRUE, reasons = list(), nodes = list(done_node(watts, done))
  )))
}

done_node <- function(watts, done) {
  per_work <- watts * done_timeline$work / done$quantity
  list(
    meter_id = "client-wt210", node = "client", power_source = "measured", radio_source = "wired", device_model = NULL,
    device_form = NULL, p_a_w = 8 + watts, p_i_w = 8, p_i_before_w = 8, p_i_after_w = 8, delta_p_w = watts,
    u_delta_p_w = 0.001, e_d_j = watts * done_timeline$work, e_t_j = (8 + watts) * done_timeline$work,
    energy_per_work_j = per_work, u95_energy_per_work_j = 0.002 * per_work, upper_limit_energy_per_work_j = NULL,
    ea_reason = NULL, u95_components = NULL, below_resolution = FALSE, extrapolated_ratio = NULL, hollow = FALSE,
    coverage = 1, readings = 30, effective_readings = 30, tail_energy_j = 0.1 * watts * done_timeline$tail,
    tail_s = done_timeline$tail, tail_cut = FALSE, grade = "A", floor = list(
      run_id = NULL, p_null_w = NULL, floor_w = NULL, u95_floor_w = NULL, energy_per_work_above_floor_j = NULL,
      u95_energy_per_work_above_floor_j = NULL, reason = "no_null_run"
    )
  )
}

# Readings of 0.1 s, logged 0.1 s after the interval that they stand for, as of synthetic meters.
write_done_meter <- function(dir, watts) {
  ticks <- round(unlist(done_timeline) / tick_s)
  power <- 8 + unlist(lapply(watts, function(one) rep(c(0, one, 0.1 * one), ticks)))
  power <- c(power, rep(8, ticks[["idle"]] + 2))
  data.table::fwrite(data.frame(
    t_s = sprintf("%.6f", seq_along(power) * tick_s + 0.1), seq = seq_along(power), power_w = power, voltage_v = 12,
    current_a = power / 12, energy_j = NA, flag = ""
  ), file.path(dir, "meters", "client-wt210.csv"))
}

#' Contracts with one more load, in a folder of their own
with_contracts_of <- function(entry, code) {
  place <- tempfile("contracts")
  dir.create(place)
  file.copy(list.files(contracts_dir(), full.names = TRUE), place, recursive = TRUE)
  edit_json(file.path(place, "loads.json"), function(doc) {
    doc$loads <- c(doc$loads, list(entry))
    doc
  })
  before <- Sys.getenv("NETJOULE_CONTRACTS")
  on.exit(Sys.setenv(NETJOULE_CONTRACTS = before))
  Sys.setenv(NETJOULE_CONTRACTS = place)
  force(code)
}
