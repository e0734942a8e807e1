# SPDX-License-Identifier: Apache-2.0

test_that("mean_interval is the textbook t interval", {
  x <- c(1, 2, 4, 7)
  expected <- t.test(x)$conf.int
  got <- mean_interval(c(x, NA))
  expect_equal(c(got$low, got$high), as.numeric(expected))
  expect_identical(got$n, 4L)
  expect_identical(mean_interval(3)$low, NA_real_)
  expect_identical(mean_interval(c(NA_real_, NA_real_))$mean, NA_real_)
})

test_that("the 95 % interval covers the truth in about 95 % of campaigns", {
  set.seed(20)
  hits <- replicate(4000, {
    interval <- mean_interval(rnorm(4, mean = 0.2, sd = 0.05))
    interval$low <= 0.2 && 0.2 <= interval$high
  })
  expect_gt(mean(hits), 0.94)
  expect_lt(mean(hits), 0.96)
})

test_that("a noiseless campaign gives the closed form in every cell", {
  dir <- synthetic_campaign(meters = list(synthetic_meter(power = linear_power(0.02, 0.05, 0.01))))
  summary <- summarise_ea(read_campaign(dir))
  udp <- summary[transport == "udp"]
  expect_equal(udp$ea_j_per_mbit_mean, 0.02 + 0.05e-3 * 1e6 / (8 * udp$payload_bytes))
  expect_equal(udp$floor_w, rep(0.01, 4))
  expect_equal(udp$ea_above_floor_j_per_mbit, udp$ea_j_per_mbit_mean - 0.01 / udp$offered_rate_mbps)
  expect_identical(summary[transport == "null", floor_w], rep(0.01, 4))
  expect_true(all(is.na(summary[transport == "null", ea_j_per_mbit_mean])))
  expect_identical(names(summary), columns_of("ea_summary"))
})

test_that("the floor's share, uncertainty and refusal stand in the cell", {
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = c(1, 10), transports = c("udp", "dccp", "null"), blocks = 2,
    meters = list(synthetic_meter(power = function(transport, size, rate) if (transport == "null") 0.3 else rate)),
    held_back = function(rate) if (rate == 10) 0.2 else 0
  )
  summary <- summarise_ea(read_campaign(dir))
  udp <- summary[transport == "udp"]
  expect_equal(udp$floor_ratio, c(0.3, 0.03))
  expect_equal(udp$u95_floor_w, c(0.002, 0.002))
  expect_equal(udp$u95_ea_above_floor_j_per_mbit, c(0.001, 0.001))
  expect_identical(udp$floor_reason, c(NA_character_, NA_character_))
  dccp <- summary[transport == "dccp"]
  expect_identical(dccp$floor_reason, c(NA_character_, "floor_achieved_low"))
  expect_identical(is.na(dccp$ea_above_floor_j_per_mbit), c(FALSE, TRUE))
  null <- summary[transport == "null"]
  expect_equal(null$floor_w, c(0.3, 0.3))
  expect_identical(null$floor_ratio, c(NA_real_, NA_real_))
  expect_identical(null$floor_reason, c(NA_character_, NA_character_))
  large <- floor_large_cells(summary)
  expect_identical(large[, c("transport", "offered_rate_mbps")], data.table(
    transport = c("udp", "dccp"), offered_rate_mbps = 1
  ))
  expect_identical(floor_empty_words(summary), "E_A above floor is empty in 1 cell: floor_achieved_low.")
})

test_that("a floor refused for its outcome leaves the cell none, another the mean of the runs that have one", {
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = c(1, 10), transports = c("udp", "tcp", "null"), blocks = 3,
    meters = list(synthetic_meter(power = function(transport, size, rate) if (transport == "null") 0.3 else rate))
  )
  sent <- read_campaign(dir)$plan[transport != "null" & block == 2]
  refuse_floor(dir, sent[offered_rate_mbps == 10, run_id], "floor_core_busy")
  refuse_floor(dir, sent[offered_rate_mbps == 1 & transport == "udp", run_id], "null_run_invalid")
  summary <- summarise_ea(read_campaign(dir))
  full <- summary[offered_rate_mbps == 10]
  expect_identical(full$transport, c("udp", "tcp", "null"))
  empty <- c(
    "floor_w", "floor_ci95_low", "floor_ci95_high", "u95_floor_w", "floor_ratio", "ea_above_floor_j_per_mbit",
    "ea_above_floor_ci95_low", "ea_above_floor_ci95_high", "u95_ea_above_floor_j_per_mbit"
  )
  for (column in empty) expect_true(all(is.na(full[[column]])), label = column)
  expect_identical(full$floor_reason, rep("floor_core_busy", 3))
  expect_identical(full$floor_n, c(2L, 2L, 2L))
  # Null is the floor of TCP in every block.
  part <- summary[offered_rate_mbps == 1]
  expect_identical(part$floor_n, c(2L, 3L, 3L))
  expect_identical(part$floor_reason, c("null_run_invalid", NA, NA))
  expect_equal(part$floor_w, rep(0.3, 3))
  expect_equal(part$floor_ratio, c(0.3, 0.3, NA))
  expect_identical(floor_empty_words(summary), c(
    "E_A above floor is empty in 2 cells: floor_core_busy.",
    "E_A above floor is of runs with a floor alone in 1 cell: null_run_invalid."
  ))
})

test_that("the floor's share is that of the runs that have a floor", {
  dir <- synthetic_campaign(payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null"), blocks = 2)
  campaign <- read_campaign(dir)
  campaign$results[transport == "udp", `:=`(delta_p_w = c(0.4, 4), floor_w = c(0.1, NA))]
  campaign$results[transport == "udp", floor_reason := c(NA, "null_run_invalid")]
  summary <- summarise_ea(campaign)
  expect_equal(summary[transport == "udp", floor_ratio], 0.25)
  expect_match(floor_sentences(summary, ""), "takes 25 % of the power that UDP adds", fixed = TRUE)
})

test_that("a cell tells how often its senders woke up, and how many runs did otherwise than null", {
  dir <- with_wake_ups(synthetic_campaign(payload_bytes = 64, transports = c("udp", "null"), blocks = 2), 1, 1)
  napped <- read_campaign(dir)$plan[transport == "null" & offered_rate_mbps == 1, run_id][1]
  edit_json(file.path(dir, "runs", napped, "result.json"), function(doc) {
    doc$wake_ups_per_message <- 3
    doc
  })
  campaign <- read_campaign(dir)
  summary <- summarise_ea(campaign)
  udp <- summary[transport == "udp"]
  expect_equal(udp$wake_ups_per_message, c(1, 1))
  expect_identical(udp$wake_ups_differ_n, c(1L, 0L))
  expect_false(anyNA(udp$floor_w))
  null <- summary[transport == "null"]
  expect_equal(null$wake_ups_per_message, c(2, 1))
  expect_identical(null$wake_ups_differ_n, c(NA_integer_, NA_integer_))
  expect_identical(run_table(campaign)[wake_ups_per_message == 3, run_id], napped)
  silent <- summarise_ea(read_campaign(synthetic_campaign(blocks = 1)))
  expect_true(all(is.na(silent$wake_ups_per_message)))
  expect_true(all(is.na(silent$wake_ups_differ_n)))
})

test_that("a floor that no transport could use is empty for null too, with the reason", {
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null"), blocks = 2, pacings = "spin"
  )
  summary <- summarise_ea(read_campaign(dir))
  expect_identical(summary$floor_w, c(NA_real_, NA_real_))
  expect_identical(summary$floor_reason, c("floor_spinning", "floor_spinning"))
  expect_identical(summary$floor_ratio, c(NA_real_, NA_real_))
})

test_that("a single block has no interval", {
  summary <- summarise_ea(read_campaign(synthetic_campaign(blocks = 1)))
  expect_true(all(is.na(summary$ea_ci95_low)))
  expect_true(all(summary$n == 1))
})

test_that("several runs of a cell in one block count once", {
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null"))
  campaign <- read_campaign(dir)
  results <- campaign$results[transport == "udp"][c(1, 1, 2)]
  results$ea_j_per_mbit <- c(1, 3, 6)
  campaign$results <- results
  summary <- summarise_ea(campaign)
  expect_equal(summary$ea_j_per_mbit_mean, 4)
  expect_equal(summary$n, 2)
})

test_that("zero goodput gives no E_A", {
  dir <- synthetic_campaign(blocks = 2, transports = c("udp", "null"), loss = function(rate) as.numeric(rate == 10))
  campaign <- read_campaign(dir)
  summary <- summarise_ea(campaign)
  dead <- summary[transport == "udp" & offered_rate_mbps == 10]
  expect_true(all(is.na(dead$ea_j_per_mbit_mean)))
  expect_equal(dead$no_goodput_n, c(2, 2))
  expect_equal(dead$goodput_mbps, c(0, 0))
})

test_that("power below idle stays in the mean instead of biasing it upwards", {
  powers <- c(-0.02, 0.05, 0.03)
  meter <- synthetic_meter(power = function(transport, size, rate) 0, u_delta_p_w = 0.03)
  dir <- synthetic_campaign(
    blocks = 3, payload_bytes = 64, offered_rate_mbps = 2, transports = "udp", meters = list(meter)
  )
  campaign <- read_campaign(dir)
  campaign$results[, `:=`(delta_p_w = powers, ea_j_per_mbit = c(NA, powers[-1] / 2))]
  summary <- summarise_ea(campaign)
  expect_equal(summary$ea_j_per_mbit_mean, mean(powers) / 2)
  expect_equal(summary$below_resolution_n, 3)
  expect_equal(summary$ea_upper_limit_j_per_mbit, 0.03)
})

test_that("clearly negative power is noted", {
  meter <- synthetic_meter(power = function(transport, size, rate) -0.5, u_delta_p_w = 0.001)
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1, meters = list(meter))
  notes <- run_notes(read_campaign(dir))
  expect_true(all(notes$code == "p_a_below_p_i"))
  expect_match(notes$detail[1], "-0.5 W")
})

test_that("hwsim results give no E_A", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  campaign <- read_campaign(dir)
  campaign$results[, `:=`(ea_j_per_mbit = NA_real_, ea_reason = "radio_without_air_time")]
  expect_true(all(is.na(summarise_ea(campaign)$ea_j_per_mbit_mean)))
})

test_that("no table holds NaN or infinite numbers", {
  dir <- synthetic_campaign(blocks = 1, loss = function(rate) as.numeric(rate == 10))
  tables <- campaign_tables(read_campaign(dir))
  for (name in names(tables)) {
    numbers <- unlist(Filter(is.numeric, tables[[name]]))
    expect_false(any(is.nan(numbers) | is.infinite(numbers)), label = name)
  }
})

test_that("another generator is named with its version in tables and under figures", {
  dir <- synthetic_campaign(blocks = 1)
  edit_csv(file.path(dir, "plan.csv"), function(rows) {
    rows$generator[rows$transport == "udp"] <- "iperf3"
    rows
  })
  for (path in Sys.glob(file.path(dir, "runs", "*-udp-*", "flow.json"))) {
    edit_json(path, function(flow) {
      flow$generator <- list(name = "iperf3", version = "3.12")
      flow
    })
  }
  campaign <- read_campaign(dir)
  runs <- run_table(campaign)
  expect_identical(unique(runs[transport == "udp", paste(generator, generator_version)]), "iperf3 3.12")
  expect_identical(unique(summarise_ea(campaign)[transport == "udp", generator_version]), "3.12")
  expect_match(source_line(campaign), "generator:.iperf3.3\\.12")
  expect_no_match(source_line(read_campaign(synthetic_campaign(blocks = 1))), "generator")
})
