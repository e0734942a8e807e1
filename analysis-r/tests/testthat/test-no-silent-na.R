# SPDX-License-Identifier: Apache-2.0

# No table holds NaN, and a number that is missing says why: by a reason beside it, or by what the row is.

flowless <- function(rows) rows$transport == "null"
no_interval <- function(rows) rows$n < 2 | is.na(rows$ea_j_per_mbit_mean)
no_ea <- function(rows) flowless(rows) | rows$no_goodput_n > 0 | rows$radio_source == "hwsim"
single_runs <- function(rows) rows$n_runs <= rows$payload_sizes
no_joules <- function(rows) is.na(rows$dea_j_per_mbit)
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
    ea_above_floor_ci95_low = function(rows) is.na(rows$ea_above_floor_j_per_mbit) | rows$n < 2,
    ea_above_floor_ci95_high = function(rows) is.na(rows$ea_above_floor_j_per_mbit) | rows$n < 2,
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
    # Nothing of either arrived: then the throughput says so.
    dea_percent = function(rows) rows$method != "ratio" | !(abs(rows$dgoodput_percent) < 100) %in% TRUE,
    dea_ci95_low = function(rows) is.na(rows$dea_percent) | rows$n_pairs < 2,
    dea_ci95_high = function(rows) is.na(rows$dea_percent) | rows$n_pairs < 2,
    dgoodput_percent = function(rows) is.na(rows$dea_percent),
    dgoodput_ci95_low = function(rows) is.na(rows$dgoodput_percent) | rows$n_pairs < 2,
    dgoodput_ci95_high = function(rows) is.na(rows$dgoodput_percent) | rows$n_pairs < 2,
    dp_a_ci95_low = function(rows) rows$n_pairs < 2, dp_a_ci95_high = function(rows) rows$n_pairs < 2,
    dea_j_per_mbit = function(rows) is.na(rows$dea_percent), u95_meter_dea_j_per_mbit = no_joules,
    dea_j_ci95_low = function(rows) no_joules(rows) | rows$n_pairs < 2,
    dea_j_ci95_high = function(rows) no_joules(rows) | rows$n_pairs < 2,
    u95_dea_j_per_mbit = function(rows) no_joules(rows) | rows$n_pairs < 2
  ),
  phy_rates = list(mcs = never, streams = never, width_mhz = never, guard_interval_ns = never),
  mcs_histogram = list(
    phy_rate_mbps = never, mcs = never, streams = never, width_mhz = never, guard_interval_ns = never
  ),
  invalid_runs = list(), run_notes = list(),
  ea_check = list(
    ours = function(rows) is.na(rows$theirs) | !rows$agrees, theirs = function(rows) is.na(rows$ours) | !rows$agrees,
    relative_difference = function(rows) !rows$agrees
  )
)

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
  "all extrapolated" = function() {
    synthetic_campaign(blocks = 2, meters = list(synthetic_meter(hollow = function(rate) TRUE)))
  },
  "no radio log, two meters" = function() {
    dir <- synthetic_campaign(blocks = 2, meters = list(synthetic_meter(), synthetic_meter("other", idle_w = 1)))
    unlink(file.path(dir, "radio"), recursive = TRUE)
    dir
  },
  "every run invalid" = function() {
    dir <- synthetic_campaign(blocks = 1)
    edit_csv(file.path(dir, "plan.csv"), function(rows) {
      rows$status <- "invalid"
      rows$reason <- "idle_drift"
      rows
    })
    dir
  }
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
      if (table %in% names(allowed)) expect_null(silent(tables[[table]], table), label = paste(name, table))
    }
    for (path in write_tables(tables, file.path(dir, "tables"))) {
      expect_no_match(readLines(path), "(^|,)-?(NA|NaN|nan|Inf|inf)(,|$)")
    }
  })
}

test_that("the rules themselves would find an empty number without a reason", {
  tables <- campaign_tables(read_campaign(campaigns$plain()))
  tables$runs[2, ea_j_per_mbit := NA]
  expect_identical(silent(tables$runs, "runs"), "ea_j_per_mbit")
  tables$ea_summary[1, p_a_w := NA]
  expect_identical(silent(tables$ea_summary, "ea_summary"), "p_a_w")
})
