# SPDX-License-Identifier: Apache-2.0

# Measures compared by cell, and what routers that scale their rate save, by hand.

# A simulated campaign of flows: every run has the measures that `told` gives of its arm, cell and block.
scaled_campaign <- function(told, blocks = 3L) {
  arms <- c("none", "slow")
  rows <- CJ(block = seq_len(blocks), path = c("near", "far"), arm = arms, sorted = FALSE)
  rows[, `:=`(
    run_id = sprintf("r%02d", .I), mini_block = rep(seq_len(.N / 2L), each = 2L), attempt = 1L, order = seq_len(.N),
    kind = "work", scaling = arm, usable = TRUE, node = "client", meter_id = "client", device_model = NA_character_,
    power_source = "modelled", radio_source = "simulated", ea_reason = "no_power_logged", window_t_start_s = 0,
    window_t_end_s = 10, rig = "rig1"
  )]
  empty <- c(
    "ea_j_per_mbit", "delta_p_w", "p_a_w", "p_i_w", "u_delta_p_w", "e_d_j", "e_t_j", "tail_energy_j", "floor_w",
    "u95_ea_j_per_mbit", "ea_upper_limit_j_per_mbit", "ea_above_floor_j_per_mbit"
  )
  rows[, (empty) := NA_real_]
  rows[, `:=`(below_resolution = FALSE, hollow = FALSE, grade = NA_character_, floor_reason = "no_null_run")]
  rows <- cbind(rows, rbindlist(Map(told, rows$arm, rows$path, rows$block)))
  factors <- list(scaling = as.list(arms), path = list("near", "far"))
  list(
    load = "flow", arm = "scaling", factors = "path", control = character(), plan = rows, results = rows,
    entry = load_entry("flow", contracts_dir()), contracts = contracts_dir(),
    meters = rows[1, meter_keys, with = FALSE], meta = list(
      topology = list(kind = "simulated"), workload = list(factors = factors)
    )
  )
}

told <- function(arm, path, block) {
  slow <- arm == "slow"
  list(
    t_a_mbps = (if (path == "far") 8 else 10) * (if (slow) 0.9 else 1) + 0.1 * block,
    service_rate_mbps = if (slow) 7 else 10, saving_linear_ratio = if (slow) 0.3 else 0,
    saving_cubic_ratio = if (slow) 0.6 + 0.01 * block else 0, rate_switches = if (slow) 4 else 0,
    router_loss_ratio = NA_real_
  )
}

test_that("measures are compared in pairs, cell by cell, in the order of the workload", {
  found <- measure_contrasts(scaled_campaign(told))
  wanted <- names(schema_columns("measure_contrasts"))
  expect_identical(utils::head(names(found), length(wanted)), wanted)
  expect_identical(unique(found$cell), c("Path near", "Path far"))
  expect_false("router_loss_ratio" %in% found$measure)
  goodput <- found[measure == "t_a_mbps" & path == "far"]
  expect_identical(goodput[, c("reference", "arm", "blocks_n")], data.table(
    reference = "none", arm = "slow", blocks_n = 3L
  ))
  expect_equal(goodput$difference, -0.8)
  expect_equal(goodput$difference_percent, mean(-80 / (8 + 0.1 * 1:3)))
  expect_equal(goodput[, c(reference_mean, arm_mean)], c(8.2, 7.4))
  # Of nothing there is no percentage.
  expect_identical(found[measure == "rate_switches", difference_percent], c(NA_real_, NA_real_))
  expect_equal(found[measure == "rate_switches", difference], c(4, 4))
})

test_that("power and energy of routers follow from the savings, for each share that does not follow the rate", {
  found <- router_energy(scaled_campaign(told))
  wanted <- names(schema_columns("router_energy"))
  expect_identical(utils::head(names(found), length(wanted)), wanted)
  expect_identical(nrow(found), 2L * 2L * 6L)
  one <- found[arm == "slow" & path == "near" & form == "cubic" & static_ratio == 0.5]
  saved <- 0.5 * (0.6 + 0.01 * 1:3)
  expect_equal(one$saving_ratio, mean(saved))
  expect_equal(one$saving_ratio_ci95_low, mean(saved) - qt(0.975, 2) * sd(saved) / sqrt(3))
  expect_equal(one$energy_per_mbit_of_p_max, mean((1 - saved) / (9 + 0.1 * 1:3)))
  expect_equal(one$power_difference_percent, -100 * mean(saved))
  expect_equal(one$energy_difference_percent, 100 * mean((1 - saved) / (9 + 0.1 * 1:3) * (10 + 0.1 * 1:3) - 1))
  expect_true(all(is.na(found$energy_j_per_mbit)))
  measured <- scaled_campaign(told)
  measured$meta$topology$link$router_max_power_w <- 4
  in_joules <- router_energy(measured)
  expect_equal(in_joules$energy_j_per_mbit, 4 * found$energy_per_mbit_of_p_max)
  expect_equal(in_joules$energy_j_per_mbit_ci95_high, 4 * found$energy_per_mbit_of_p_max_ci95_high)
  none <- found[arm == "none" & form == "linear" & static_ratio == 0]
  expect_identical(none$reference, c(NA_character_, NA_character_))
  expect_equal(none$saving_ratio, c(0, 0))
  expect_true(all(is.na(none$power_difference_percent)))
})

test_that("without routers that scale there is no table of them, and without power no arms by energy", {
  plain <- function(...) replace(told(...), c("saving_linear_ratio", "saving_cubic_ratio"), NA_real_)
  campaign <- scaled_campaign(plain)
  expect_null(router_energy(campaign))
  expect_true(is_unpowered(campaign))
  expect_null(arm_contrasts(campaign))
})

test_that("a figure has four panels and a line for each path, for each combination of the other factors", {
  campaign <- scaled_campaign(told)
  campaign$results[, router_loss_ratio := 0.001]
  campaign$meters[, `:=`(device_form = NA_character_, quantity = "active_power", update_interval_s = NA_real_)]
  tables <- list(
    router_energy = router_energy(campaign), measure_contrasts = measure_contrasts(campaign),
    energy_summary = energy_summary(campaign)
  )
  points <- router_points(campaign, tables)
  expect_identical(nrow(points), 2L * 4L)
  expect_identical(levels(points$line), c("near", "far"))
  expect_equal(points[panel == router_panels[["t_a_mbps"]] & line == "far", value], mean(-80 / (8 + 0.1 * 1:3)))
  expect_identical(router_figures(replace(campaign, "arm", "path"), tables), list())
})

test_that("of several transports a figure sets goodput lost against rate saved", {
  campaign <- scaled_campaign(told)
  campaign$factors <- c("path", "transport")
  campaign$meta$workload$factors$transport <- list("udp-5", "tcp-reno")
  for (name in c("plan", "results")) campaign[[name]][, transport := fifelse(block == 2L, "tcp-reno", "udp-5")]
  tables <- list(router_energy = router_energy(campaign), measure_contrasts = measure_contrasts(campaign))
  points <- survival_points(campaign, tables)
  expect_identical(levels(points$transport), c("udp-5", "tcp-reno"))
  expect_identical(nrow(points), 2L * 2L)
  expect_equal(unique(points$x), -30)
  expect_equal(points[line == "far" & transport == "tcp-reno", y], -100 * 0.8 / 8.2)
  expect_null(survival_figure(campaign, lapply(tables, function(rows) rows[transport == "udp-5"])))
})

# What routers did in steps of `step_s`: other elements stand before the router of the path far.
with_series <- function(campaign, step_s = 0.5, blocks = 1:2, simulated = TRUE) {
  campaign$dir <- withr::local_tempdir(.local_envir = parent.frame())
  campaign$runs <- copy(campaign$results)[, `:=`(measurable = TRUE, transport = "tcp", congestion_control = "reno")]
  for (of_block in blocks) {
    runs <- campaign$runs[block == of_block]
    rows <- runs[, CJ(run_id = run_id, step = 0:1)][runs, on = "run_id"]
    rows <- rows[, list(
      run_id,
      host = "server", direction = "up", element = fifelse(path == "far", 3L, 2L),
      kind = fifelse(arm == "slow", "practra", "none"),
      t_start_s = step * step_s, t_end_s = (step + 1) * step_s, rate_mbps = 7, max_rate_mbps = 10,
      mean_rate_mbps = fifelse(arm == "slow", 7 - step, 10), mean_cubic = 0.3, asleep_share = 0, switches = 0L,
      arrived_packets = 100L, arrived_bytes = 250000L * block, dropped_packets = 0L, flows_arrived_packets = 100L,
      flows_dropped_packets = 0L, queue_packets = step
    )]
    later <- copy(rows)[, `:=`(element = element + 1L, mean_rate_mbps = 1)]
    before <- copy(rows[element == 3L])[, `:=`(element = 2L, kind = "varying", mean_rate_mbps = 2)]
    back <- copy(rows)[, `:=`(direction = "down", element = 1L, mean_rate_mbps = 3)]
    write_routers(rbindlist(list(before, rows, later, back)), campaign$dir, of_block, simulated)
  }
  campaign$meta$topology$kind <- if (simulated) "simulated" else "emulated"
  campaign$meters[, `:=`(device_form = NA_character_, quantity = "active_power", update_interval_s = NA_real_)]
  campaign
}

write_routers <- function(rows, dir, of_block, simulated) {
  put <- function(rows, home) {
    dir.create(home, recursive = TRUE)
    fwrite(rows, file.path(home, "routers.csv"))
  }
  if (simulated) {
    return(put(rows, file.path(dir, "blocks", of_block)))
  }
  for (id in unique(rows$run_id)) put(rows[run_id == id, !"run_id"], file.path(dir, "runs", id))
}

test_that("a series is that of the first router that scales on each run's path, of every block", {
  campaign <- with_series(scaled_campaign(told, blocks = 2L))
  found <- router_series(campaign)
  wanted <- names(schema_columns("router_series"))
  expect_identical(names(found), c(wanted, "path"))
  expect_identical(nrow(found), 2L * 2L * 2L * 2L)
  expect_identical(found[, unique(cell)], c("Path near", "Path far"))
  expect_identical(found[cell == "Path far" & arm == "slow" & block == 1L, mean_rate_mbps], c(7, 6))
  expect_identical(unique(found[arm == "none", mean_rate_mbps]), 10)
  # 250,000 bytes in half a second, twice as many in the second block.
  expect_equal(found[, unique(arrived_mbps), by = block]$V1, c(4, 8))
  expect_equal(found[arm == "slow" & block == 2L & path == "near", t_end_s], c(0.5, 1))
  # Elsewhere each run has a file of its own.
  apart <- router_series(with_series(scaled_campaign(told, blocks = 2L), simulated = FALSE))
  expect_equal(apart, found)
})

test_that("there is no series of coarse steps, of another arm, of no router and of no run that counts", {
  expect_null(router_series(with_series(scaled_campaign(told), step_s = 20)))
  campaign <- with_series(scaled_campaign(told))
  expect_null(router_series(replace(campaign, "arm", "path")))
  nothing <- copy(campaign$runs)[, usable := FALSE]
  expect_null(router_series(replace(campaign, "runs", list(nothing))))
  expect_null(router_series(with_series(scaled_campaign(told), blocks = integer())))
})

test_that("each cell has a figure of the first block, with the arrivals without scaling behind", {
  campaign <- with_series(scaled_campaign(told))
  series <- router_series(campaign)
  figures <- router_series_figures(campaign, series)
  expect_identical(vapply(figures, `[[`, "", "name"), c("router-series-01", "router-series-02"))
  expect_match(figures[[2]]$title, "step by step: Path far", fixed = TRUE)
  drawn <- figures[[2]]$plot$data
  expect_identical(levels(drawn$line), c("arrivals with none", "service rate", "arrivals"))
  expect_identical(levels(drawn$arm), "slow")
  expect_equal(drawn[line == "service rate", value], c(7, 6))
  expect_equal(drawn[line != "service rate", value], rep(4, 4))
  one <- router_series_figures(campaign, series[path == "near"])
  expect_identical(one[[1]]$name, "router-series")
  expect_identical(router_series_figures(campaign, NULL), list())
  expect_null(router_series_plot(campaign, series[arm == "none"], "x"))
  many <- rbindlist(lapply(1:14, function(i) copy(series)[, cell := paste("cell", i)]))
  expect_length(router_series_figures(campaign, many), most_series_figures)
})

test_that("a report shows what saves nothing once, not for each share and form", {
  shown <- told_router_energy(router_energy(scaled_campaign(told)))
  expect_identical(shown[, .N, by = list(arm, cell)]$N, c(1L, 6L, 1L, 6L))
  expect_identical(unique(shown[arm == "none", list(form, static_ratio)]), data.table(
    form = "any", static_ratio = NA_real_
  ))
  expect_false(anyNA(shown[arm == "slow", static_ratio]))
})

test_that("a campaign without power says what is compared in place of energy", {
  campaign <- scaled_campaign(told)
  campaign$dir <- "results/sweep"
  for (campaigns in list(list(campaign), list(campaign, campaign))) {
    expect_error(
      comparison(campaigns, "slow", "none"),
      "no energy per work to compare: .* in results/sweep/tables/measure_contrasts.csv, which 'netjoule analyse' writes"
    )
  }
})

test_that("the method of a campaign without power has no meter in it", {
  campaign <- scaled_campaign(told)
  without <- paste(method_of(campaign), collapse = " ")
  expect_false(grepl("P_I|idle windows|u95", without))
  expect_match(without, "nothing is metered", fixed = TRUE)
  campaign$results[, p_a_w := 1]
  expect_identical(method_of(campaign), energy_method)
})

test_that("what each of several flows got is compared flow by flow, in pairs", {
  campaign <- scaled_campaign(told)
  campaign$flows <- campaign$plan[, list(flow = 1:2, goodput_mbps = c(6, 4) - (arm == "slow") * c(3, 1)), by = run_id]
  found <- arm_shares(campaign)
  wanted <- names(schema_columns("arm_shares"))
  expect_identical(utils::head(names(found), length(wanted)), wanted)
  expect_identical(found$flow, rep(1:2, 4L))
  slow <- found[arm == "slow" & path == "far"]
  expect_equal(slow$goodput_mbps, c(3, 3))
  expect_equal(slow$difference_percent, c(-50, -25))
  expect_identical(unique(found[arm == "none", difference_percent]), NA_real_)
  expect_null(arm_shares(replace(campaign, "flows", list(NULL))))
})
