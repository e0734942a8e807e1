# SPDX-License-Identifier: Apache-2.0

# No table holds NaN, and a number that is missing says why: by a reason beside it, or by what the row is.

flowless <- function(rows) rows$transport == "null"
no_interval <- function(rows) rows$n < 2 | is.na(rows$ea_j_per_mbit_mean)
no_ea <- function(rows) flowless(rows) | rows$no_goodput_n > 0 | rows$radio_source == "hwsim"
single_runs <- function(rows) rows$n_runs <= rows$payload_sizes
unfitted <- function(rows) is.na(rows$form) # reason says why
without_bits <- function(rows) is.na(rows$form) | rows$form == "packets"
untold <- function(rows) rows$verdict %in% c("cannot_tell", "constant") # reason says why
unpaired <- function(rows) is.na(rows$reference) | rows$method != "ratio"
no_value <- function(rows) !is.na(rows$reason)
no_single_cell <- function(rows) !is.na(rows$reason) | rows$cells_n != 1 | rows$quantity == "phy_rate_mbps"
of_no_sweep <- function(rows) no_value(rows) | rows$relation != "from_to"
one_block <- function(rows) rows$n < 2
lone <- function(rows) rows$blocks_n < 2
for_columns <- function(columns, rule) stats::setNames(rep(list(rule), length(columns)), columns)
no_joules <- function(rows) is.na(rows$difference_j_per_mbit)
never <- function(rows) rep(TRUE, nrow(rows)) # optional: the generator or the radio did not tell it

# Where a numeric column may be empty, by table and column; any other must be full.
allowed <- list(
  runs = list(
    t_a_mbps = flowless, u95_t_a_mbps = flowless, loss_ratio = flowless, frames_per_message = flowless,
    mean_ip_packet_bytes = flowless, jitter_ms = never, wake_ups_per_message = never,
    extrapolated_ratio = function(rows) is.na(rows$device_model),
    ea_j_per_mbit = function(rows) !is.na(rows$ea_reason), u95_ea_j_per_mbit = function(rows) !is.na(rows$ea_reason),
    ea_upper_limit_j_per_mbit = function(rows) !rows$below_resolution | flowless(rows) | rows$t_a_mbps == 0,
    p_null_w = function(rows) !is.na(rows$floor_reason), floor_w = function(rows) !is.na(rows$floor_reason),
    u95_floor_w = function(rows) !is.na(rows$floor_reason),
    ea_above_floor_j_per_mbit = function(rows) !is.na(rows$floor_reason) | !is.na(rows$ea_reason),
    u95_ea_above_floor_j_per_mbit = function(rows) !is.na(rows$floor_reason) | !is.na(rows$ea_reason)
  ),
  ea_summary = list(
    ea_j_per_mbit_mean = no_ea, u95_meter = function(rows) no_ea(rows) | rows$below_resolution_n > 0,
    ea_ci95_low = no_interval, ea_ci95_high = no_interval,
    ea_total_ci95_low = function(rows) flowless(rows) | no_interval(rows),
    ea_total_ci95_high = function(rows) flowless(rows) | no_interval(rows),
    goodput_mbps = flowless, loss_ratio = flowless, frames_per_message = flowless, mean_ip_packet_bytes = flowless,
    goodput_ci95_low = function(rows) flowless(rows) | rows$n < 2,
    goodput_ci95_high = function(rows) flowless(rows) | rows$n < 2,
    loss_ci95_low = function(rows) flowless(rows) | rows$n < 2,
    loss_ci95_high = function(rows) flowless(rows) | rows$n < 2,
    jitter_ms = never, wake_ups_per_message = never,
    wake_ups_differ_n = function(rows) is.na(rows$wake_ups_per_message),
    ea_upper_limit_j_per_mbit = function(rows) rows$below_resolution_n == 0 | no_ea(rows),
    # The floor is told by the transports that it is the floor of.
    floor_w = function(rows) !is.na(rows$floor_reason) | all(flowless(rows)),
    u95_floor_w = function(rows) !is.na(rows$floor_reason) | all(flowless(rows)),
    floor_ci95_low = function(rows) !is.na(rows$floor_reason) | rows$n < 2 | flowless(rows),
    floor_ci95_high = function(rows) !is.na(rows$floor_reason) | rows$n < 2 | flowless(rows),
    ea_above_floor_j_per_mbit = function(rows) !is.na(rows$floor_reason) | no_ea(rows) | rows$delta_p_w < 0,
    ea_above_floor_ci95_low = function(rows) is.na(rows$ea_above_floor_j_per_mbit) | rows$floor_n < 2,
    ea_above_floor_ci95_high = function(rows) is.na(rows$ea_above_floor_j_per_mbit) | rows$floor_n < 2,
    u95_ea_above_floor_j_per_mbit = function(rows) !is.na(rows$floor_reason) | no_ea(rows) | rows$delta_p_w < 0,
    floor_ratio = function(rows) {
      flowless(rows) | !is.na(rows$floor_reason) | rows$below_resolution_n > 0 | rows$delta_p_w <= 0
    }
  ),
  envelope = list(
    ea_least_ci95_low = single_runs, ea_least_ci95_high = single_runs, ea_greatest_ci95_low = single_runs,
    ea_greatest_ci95_high = single_runs
  ),
  delta_ea = list(
    difference_percent = function(rows) rows$method != "ratio",
    difference_ci95_low = function(rows) is.na(rows$difference_percent) | rows$n_pairs < 2,
    difference_ci95_high = function(rows) is.na(rows$difference_percent) | rows$n_pairs < 2,
    difference_p_a_ci95_low = function(rows) rows$n_pairs < 2,
    difference_p_a_ci95_high = function(rows) rows$n_pairs < 2,
    difference_j_per_mbit = function(rows) rows$method != "ratio", u95_meter_difference_j_per_mbit = no_joules,
    difference_j_ci95_low = function(rows) no_joules(rows) | rows$n_pairs < 2,
    difference_j_ci95_high = function(rows) no_joules(rows) | rows$n_pairs < 2,
    u95_difference_j_per_mbit = function(rows) no_joules(rows) | rows$n_pairs < 2
  ),
  phy_rates = list(mcs = never, streams = never, width_mhz = never, guard_interval_ns = never),
  mcs_histogram = list(
    phy_rate_mbps = never, mcs = never, streams = never, width_mhz = never, guard_interval_ns = never
  ),
  delta_goodput = c(
    for_columns(c("shortfall_mbps_ci95_low", "shortfall_mbps_ci95_high"), function(rows) rows$n_pairs < 2),
    for_columns("shortfall_percent", function(rows) rows$reference_goodput_mbps == 0),
    for_columns(c("shortfall_percent_ci95_low", "shortfall_percent_ci95_high"), function(rows) {
      rows$reference_goodput_mbps == 0 | rows$n_pairs < 2
    })
  ),
  model_fit = c(
    for_columns(c(
      "p0_w", "p0_ci95_low", "p0_ci95_high", "packet_energy_j", "packet_energy_ci95_low", "packet_energy_ci95_high",
      "residual_rms_w", "residual_greatest_w"
    ), unfitted),
    for_columns(c("bit_energy_j_per_mbit", "bit_energy_ci95_low", "bit_energy_ci95_high"), without_bits),
    # Of cells that are all alike nothing is left to explain, of runs that are all alike no noise to compare with.
    explained_ratio = function(rows) is.na(rows$form) | rows$residual_greatest_w < least_noise_w,
    lack_of_fit_ratio = function(rows) is.na(rows$form) | grepl("single_block|few_whole|no_noise", rows$reason)
  ),
  model_residuals = for_columns(c("delta_p_ci95_low", "delta_p_ci95_high"), one_block),
  ea_order = list(), power_trace = list(), outliers = list(), invalid_runs = list(), run_notes = list(),
  ea_drift = c(
    for_columns(c(
      "trend_percent_per_hour", "trend_ci95_low", "trend_ci95_high", "change_percent", "change_ci95_low",
      "change_ci95_high", "autocorrelation_ratio", "freedom"
    ), untold),
    for_columns(c("within_percent_per_hour", "within_ci95_low", "within_ci95_high"), function(rows) !is.na(rows$reason))
  ),
  ea_drift_sessions = for_columns(c(
    "trend_percent_per_hour", "trend_ci95_low", "trend_ci95_high", "change_percent", "change_ci95_low",
    "change_ci95_high"
  ), untold),
  rig_effects = c(
    for_columns(c("effect_ci95_low", "effect_ci95_high"), function(rows) rows$verdict == "cannot_tell"),
    for_columns("sd_between_percent", function(rows) rows$model == "fixed" | rows$verdict == "cannot_tell")
  ),
  # A certificate tells what its sender counted, and was held to limits or not.
  pacing_certificates = for_columns(c(
    "departures", "messages_early", paste0("error_", certificate_errors, "_us"), "limit_error_p50_us",
    "limit_error_p99_us", certificate_shares, "train_mean_messages"
  ), never),
  pacing_overview = for_columns(setdiff(columns_of("pacing_overview"), overview_keys), never),
  table_iv = c(
    for_columns("ea_j_per_mbit_mean", function(rows) rows$goodput_mbps == 0 | rows$radio_source == "hwsim"),
    for_columns(c("ea_ci95_low", "ea_ci95_high"), no_interval),
    for_columns("u95_meter", function(rows) is.na(rows$ea_j_per_mbit_mean) | rows$below_resolution_n > 0),
    for_columns("ea_upper_limit_j_per_mbit", function(rows) rows$below_resolution_n == 0 | rows$goodput_mbps == 0),
    for_columns("frames_per_message", never),
    for_columns(c("n_pairs", "difference_p_a_w"), function(rows) is.na(rows$reference)),
    for_columns(c("difference_p_a_ci95_low", "difference_p_a_ci95_high"), function(rows) {
      is.na(rows$reference) | rows$n_pairs < 2
    }),
    for_columns(c("difference_percent", "difference_j_per_mbit"), unpaired),
    for_columns(
      c(
        "difference_ci95_low", "difference_ci95_high", "difference_j_ci95_low", "difference_j_ci95_high",
        "u95_difference_j_per_mbit"
      ),
      function(rows) unpaired(rows) | rows$n_pairs < 2
    )
  ),
  side_by_side = c(
    for_columns(c(
      "published_low", "published_high", "published_payload_bytes", "published_load_mbps", "published_from_mbps",
      "published_below_mbps", "published_run_s", "published_repetitions"
    ), never),
    for_columns(c("load_least_mbps", "load_greatest_mbps", "ours_low", "ours_high"), no_value),
    for_columns("payload_bytes", function(rows) no_value(rows) | rows$cells_n > 1),
    for_columns("blocks_n", function(rows) no_value(rows) | rows$quantity == "phy_rate_mbps"),
    for_columns(c("ours_ci95_low", "ours_ci95_high"), function(rows) no_single_cell(rows) | rows$blocks_n < 2),
    for_columns(c("contrast_percent", "contrast_loads_n"), of_no_sweep),
    for_columns(c("contrast_ci95_low", "contrast_ci95_high"), function(rows) of_no_sweep(rows) | rows$blocks_n < 2),
    for_columns("u95_meter", function(rows) {
      no_single_cell(rows) | !rows$quantity %in% c("ea_j_per_mbit", "difference_j_per_mbit")
    })
  ),
  pacer_verdict = c(
    for_columns(c("n_spin", "delta_p_spin_w", "below_resolution_spin_n"), function(rows) is.na(rows$difference_w)),
    for_columns(c("n_absolute", "delta_p_absolute_w", "below_resolution_absolute_n"), function(rows) {
      is.na(rows$difference_w)
    }),
    for_columns("difference_w", function(rows) is.na(rows$n_spin) | is.na(rows$n_absolute)),
    for_columns(c("delta_p_spin_ci95_low", "delta_p_spin_ci95_high"), function(rows) !(rows$n_spin > 1) %in% TRUE),
    for_columns(c("delta_p_absolute_ci95_low", "delta_p_absolute_ci95_high"), function(rows) {
      !(rows$n_absolute > 1) %in% TRUE
    }),
    for_columns(c("difference_ci95_low", "difference_ci95_high"), function(rows) {
      !(pmin(rows$n_spin, rows$n_absolute) > 1) %in% TRUE
    }),
    # shape_* is then not a shape but why there is none.
    for_columns(paste0("exponent_spin", c("", "_ci95_low", "_ci95_high")), function(rows) {
      !rows$shape_spin %in% exponent_shapes
    }),
    for_columns(paste0("exponent_absolute", c("", "_ci95_low", "_ci95_high")), function(rows) {
      !rows$shape_absolute %in% exponent_shapes
    })
  ),
  fairness = c(
    for_columns(c("jain_goodput_ci95_low", "jain_goodput_ci95_high"), one_block),
    for_columns(c("jain_demand_met", "jain_demand_met_ci95_low", "jain_demand_met_ci95_high"), never)
  ),
  contrasts = c(
    for_columns(c("log_ratio_mean", "difference_percent"), function(rows) rows$blocks_n == 0),
    for_columns(c("log_ratio_sd", "difference_ci95_low", "difference_ci95_high"), lone),
    for_columns(c("difference_model_ci95_low", "difference_model_ci95_high", "margin_percent"), never),
    for_columns("difference_without_outliers_percent", function(rows) rows$blocks_n == 0 | rows$outlier_n > 0),
    for_columns("difference_without_core_busy_percent", function(rows) rows$blocks_n == 0 | rows$loads_core_busy_n > 0),
    for_columns(
      c(
        "difference_above_floor_percent", "above_floor_from_mbps", "above_floor_to_mbps",
        "difference_at_these_loads_percent"
      ),
      function(rows) rows$loads_above_floor_n == 0
    ),
    for_columns(c("difference_above_floor_ci95_low", "difference_above_floor_ci95_high"), function(rows) {
      rows$loads_above_floor_n == 0 | rows$blocks_n < 2
    }),
    for_columns("difference_p_a_w", function(rows) rows$loads_by_p_a_n == 0),
    for_columns(c("difference_p_a_ci95_low", "difference_p_a_ci95_high"), function(rows) {
      rows$loads_by_p_a_n == 0 | rows$blocks_n < 2
    }),
    for_columns(c("family_tests_n", "least_p", "least_p_holm"), function(rows) !rows$in_family),
    for_columns(c("p_value", "p_holm"), function(rows) rows$inference != "tested"),
    for_columns(c("p_equivalence", "p_equivalence_holm"), function(rows) {
      rows$inference != "tested" | is.na(rows$margin_percent)
    })
  ),
  ea_uncertainty = c(
    for_columns(c("sd_runs_j_per_mbit", "u95_runs_j_per_mbit"), one_block),
    for_columns(c("u95_meter_j_per_mbit", "u95_model_j_per_mbit"), never),
    for_columns(c("ea_total_ci95_low", "ea_total_ci95_high"), function(rows) {
      is.na(rows$u95_model_j_per_mbit) | is.na(rows$u95_meter_j_per_mbit) | rows$n < 2
    })
  ),
  held_parameters = for_columns("difference_percent", function(rows) !is.na(rows$reason)),
  model_parameters = for_columns(c("relative_uncertainty_ratio", "runs_uncovered_n"), function(rows) !rows$drawn),
  ea_check = list(
    ours = function(rows) is.na(rows$theirs) | !rows$agrees, theirs = function(rows) is.na(rows$ours) | !rows$agrees,
    relative_difference = function(rows) !rows$agrees
  )
)

for (table in c("runs", "ea_summary")) {
  allowed[[table]] <- c(allowed[[table]], for_columns(message_costs, never))
}

exponent_shapes <- c("constant", "grows", "falls", "unclear")

bad_meter <- function(...) synthetic_meter(u_delta_p_w = 0.001, ...)

campaigns <- list(
  plain = function() synthetic_campaign(blocks = 2, noise_w = 0.001),
  "one block" = function() synthetic_campaign(blocks = 1),
  "one transport" = function() synthetic_campaign(blocks = 2, transports = "udp"),
  "null alone" = function() synthetic_campaign(blocks = 2, transports = "null"),
  "nothing arrives at 10 Mb/s" = function() {
    synthetic_campaign(blocks = 2, loss = function(rate) as.numeric(rate == 10))
  },
  "P_A below P_I" = function() {
    synthetic_campaign(blocks = 2, meters = list(bad_meter(power = function(transport, size, rate) -0.4)))
  },
  "no power at all" = function() {
    synthetic_campaign(blocks = 2, meters = list(bad_meter(power = function(transport, size, rate) 0)))
  },
  "below resolution at 1 Mb/s" = function() {
    synthetic_campaign(blocks = 2, noise_w = 0.0005, meters = list(bad_meter(power = function(transport, size, rate) {
      0.002 * rate
    })))
  },
  "held back" = function() {
    synthetic_campaign(transports = c("udp", "dccp", "null"), blocks = 2, held_back = function(rate) 0.3)
  },
  "a core full in one run, a null run invalid in another" = function() {
    dir <- synthetic_campaign(blocks = 2)
    sent <- read_campaign(dir)$plan[transport == "udp" & block == 1 & payload_bytes == 64]
    refuse_floor(dir, sent[offered_rate_mbps == 1, run_id], "floor_core_busy")
    refuse_floor(dir, sent[offered_rate_mbps == 10, run_id], "null_run_invalid")
  },
  "all extrapolated" = function() {
    synthetic_campaign(blocks = 2, meters = list(synthetic_meter(hollow = function(rate) TRUE)))
  },
  "no radio log, two meters" = function() {
    dir <- synthetic_campaign(blocks = 2, meters = list(synthetic_meter(), synthetic_meter("other", idle_w = 1)))
    unlink(file.path(dir, "radio"), recursive = TRUE)
    dir
  },
  "a profile" = function() {
    dir <- synthetic_campaign(
      transports = c("udp", "dccp", "null"), payload_bytes = 300, offered_rate_mbps = 0.065, blocks = 2, noise_w = 1e-5,
      meters = list(bad_meter(power = function(transport, size, rate) 0.5))
    )
    edit_json(file.path(dir, "campaign.json"), function(doc) {
      doc$workload$profile <- list(name = "skype")
      doc
    })
    dir
  },
  "two pacings" = function() {
    synthetic_campaign(transports = c("udp", "null"), blocks = 2, pacings = c("spin", "absolute"), noise_w = 0.001)
  },
  "a known model" = function() modelled_campaign(blocks = 2, payload_bytes = 64, noise_w = 0.001),
  "a model held in part" = function() {
    modelled_campaign(blocks = 2, payload_bytes = 64, noise_w = 0.001, model = linear_model(u_air = NULL))
  },
  "every run invalid" = function() {
    dir <- synthetic_campaign(blocks = 1)
    edit_csv(file.path(dir, "plan.csv"), function(rows) {
      rows$status <- "invalid"
      rows$reason <- "idle_drift"
      rows
    })
    dir
  },
  "nothing run" = function() {
    dir <- synthetic_campaign(blocks = 1)
    edit_csv(file.path(dir, "plan.csv"), function(rows) {
      rows$status <- "planned"
      rows
    })
    unlink(file.path(dir, "runs"), recursive = TRUE)
    dir
  }
)

no_floor_here <- function(rows) !is.na(rows$floor_reason)
untested <- function(rows) !rows$inference %in% "tested"
by_ratio <- function(rows) rows$cells_by_p_a_n == 0
allowed$energy_summary <- list(
  upper_limit_energy_per_work_j = function(rows) rows$below_resolution_n == 0, floor_w = no_floor_here,
  energy_per_work_above_floor_j = no_floor_here
)
allowed$energy_runs <- list(
  upper_limit_energy_per_work_j = function(rows) !rows$below_resolution, floor_w = no_floor_here
)
allowed$arm_contrasts <- c(
  for_columns(c("p_value", "p_holm"), untested),
  for_columns(c("margin_percent", "p_equivalence", "p_equivalence_holm"), never),
  for_columns(c("difference_p_a_w", "difference_p_a_ci95_low", "difference_p_a_ci95_high"), by_ratio)
)
allowed$measure_contrasts <- c(
  for_columns(c("difference_ci95_low", "difference_ci95_high"), lone),
  for_columns("difference_percent", function(rows) rows$reference_mean == 0),
  for_columns(c("difference_percent_ci95_low", "difference_percent_ci95_high"), function(rows) {
    lone(rows) | rows$reference_mean == 0
  })
)
of_reference <- function(rows) is.na(rows$reference)
allowed$router_series <- list()
allowed$router_energy <- c(
  for_columns(
    c("power_difference_percent", "energy_difference_percent"), of_reference
  ),
  for_columns(c(
    "saving_ratio_ci95_low", "saving_ratio_ci95_high", "energy_per_mbit_of_p_max_ci95_low",
    "energy_per_mbit_of_p_max_ci95_high"
  ), one_block),
  # Only where the topology tells P(r_max).
  for_columns(c("energy_j_per_mbit", "energy_j_per_mbit_ci95_low", "energy_j_per_mbit_ci95_high"), never),
  for_columns(c(
    "power_difference_percent_ci95_low", "power_difference_percent_ci95_high", "energy_difference_percent_ci95_low",
    "energy_difference_percent_ci95_high"
  ), function(rows) of_reference(rows) | one_block(rows))
)
allowed$arm_shares <- c(
  for_columns("difference_percent", of_reference), for_columns(c("goodput_ci95_low", "goodput_ci95_high"), one_block),
  for_columns(c("difference_percent_ci95_low", "difference_percent_ci95_high"), function(rows) {
    of_reference(rows) | one_block(rows)
  })
)

silent <- function(rows, table) {
  for (column in names(rows)[vapply(rows, is.numeric, NA)]) {
    empty <- is.na(rows[[column]])
    why <- allowed[[table]][[column]]
    told <- if (is.null(why)) FALSE else why(rows)
    if (any(empty & !told %in% TRUE)) {
      return(column)
    }
  }
}

for (name in names(campaigns)) {
  test_that(paste("no table is silent about a missing number:", name), {
    dir <- campaigns[[name]]()
    tables <- campaign_tables(read_campaign(dir))
    for (table in names(tables)) {
      numbers <- unlist(Filter(is.numeric, tables[[table]]))
      expect_false(any(is.nan(numbers) | is.infinite(numbers)), label = table)
      expect_true(table %in% names(allowed), label = table)
      expect_null(silent(tables[[table]], table), label = paste(name, table))
    }
    for (path in write_tables(tables, file.path(dir, "tables"))) {
      expect_no_match(readLines(path), "(^|,)-?(NA|NaN|nan|Inf|inf)(,|$)")
    }
  })
}

allowed$transfer_summary <- c(
  for_columns(
    outer(
      c("throughput_mbps", "throughput_efficiency", "cpu_s_per_100_mb", outer(
        c("e_b", "e_d", "e_t", "tail_e"), c("_per_100_mb_j", "_per_file_j"), paste0
      )), c("_ci95_low", "_ci95_high"), paste0
    ), one_block
  ),
  # Without the factor access no radio tells its states.
  for_columns(
    outer(c("radio_e_per_100_mb_j", "radio_tail_e_j"), c("", "_ci95_low", "_ci95_high"), paste0),
    function(rows) if ("access" %in% names(rows)) one_block(rows) else TRUE
  ),
  # Without readings there is no u95; an energy that is not above idle has no efficiency.
  for_columns(c("u95_e_d_per_100_mb_j", "u95_e_d_per_file_j"), function(rows) rows$power_source != "measured"),
  list(throughput_efficiency = function(rows) rows$e_d_per_100_mb_j <= 0)
)
allowed$transfer_published <- c(
  for_columns(c("ours_ci95_low", "ours_ci95_high"), one_block),
  # A direction has no number, a value by itself nothing that it is compared with.
  for_columns(c("published_low", "published_high"), function(rows) rows$relation != "is"),
  list(against = function(rows) rows$unit == "Mb/s")
)

test_that("every table of the contract has rules, but those of raw data", {
  contracted <- sub(".table.json", "", list.files(file.path(contracts_dir(), "tables")), fixed = TRUE)
  raw <- c("clocks", "events", "intervals", "intervals_1", "meters", "plan", "plan_1", "power", "radio", "routers")
  raw <- c(raw, "status")
  expect_identical(setdiff(contracted, c(raw, names(allowed))), character())
})

test_that("nor are those of a load without files of its own", {
  tables <- campaign_tables(read_campaign(done_campaign("command", "build", c(slow = 2, fast = 1))))
  for (table in c("energy_summary", "energy_runs", "arm_contrasts", "measure_contrasts")) {
    expect_null(silent(tables[[table]], table), label = table)
  }
})

test_that("nor are those of transfers", {
  measures <- function(cell, watts) {
    list(
      throughput_mbps = 100 * watts, duration_s = 3, cpu_s = 1, connections_opened = 4, files_verified = 20, retries = 0
    )
  }
  dir <- done_campaign("transfer", "client", c(wget = 2, lowe = 1), list(dataset = "mixed-2"),
    work = function(cell) 400, unit = "Mb", measures = measures
  )
  tables <- campaign_tables(read_campaign(dir))
  expect_gt(nrow(tables$transfer_summary), 0)
  expect_null(silent(tables$transfer_summary, "transfer_summary"))
})

test_that("the rules themselves would find an empty number without a reason", {
  tables <- campaign_tables(read_campaign(campaigns$plain()))
  tables$runs[2, ea_j_per_mbit := NA]
  expect_identical(silent(tables$runs, "runs"), "ea_j_per_mbit")
  tables$ea_summary[1, p_a_w := NA]
  expect_identical(silent(tables$ea_summary, "ea_summary"), "p_a_w")
})
