# SPDX-License-Identifier: Apache-2.0

# Analysis of campaigns whose truth is known, with noise, block effects and invalid runs, through all their files.

with_truth <- function(cells, truth) {
  keys <- c("meter_id", "transport", "payload_bytes", "offered_rate_mbps")
  merge(cells[transport != "null"], truth, by = keys, suffixes = c("", "_true"))
}

test_that("E_A, goodput, loss, floor and their order are found again in a noisy campaign", {
  known <- known_campaign(
    "--shape", "table-i", "--offered-rate-mbps", "1,10,30", "--blocks", 10, "--timing", "2,0.5,0.6,3,0.5",
    "--reading-sd-w", 0.002, "--invalid-share", 0.1, "--seed", 3
  )
  campaign <- read_campaign(known$dir)
  expect_true(all(compare_ea(campaign)$agrees))
  cells <- with_truth(summarise_ea(campaign), known$truth)
  expect_identical(nrow(cells), 48L) # 4 transports, 2 sizes, 3 loads, 2 meters
  expect_true(all(cells$n == 10))
  # Block effects of 2 % are common to all cells, so their intervals miss together (test-coverage.R counts them apart).
  expect_lt(max(abs(cells$ea_j_per_mbit_mean / cells$ea_j_per_mbit - 1)), 0.04)
  wide <- cells$ea_ci95_low <= cells$ea_j_per_mbit & cells$ea_j_per_mbit <= cells$ea_ci95_high
  expect_gt(mean(wide), 0.8)
  expect_equal(cells$goodput_mbps, cells$goodput_mbps_true)
  expect_equal(cells$loss_ratio, cells$loss_ratio_true)
  expect_equal(cells$floor_w, cells$floor_w_true, tolerance = 0.1)
})

test_that("block and mini-block effects cancel in pairs: the difference of E_A is found far better than E_A", {
  known <- known_campaign("--transports", "udp,tcp,null", "--blocks", 10, "--block-sd-ratio", 0.3, "--seed", 5)
  campaign <- read_campaign(known$dir)
  truth <- known$truth
  udp <- truth[transport == "udp"]
  tcp <- truth[transport == "tcp"][match(udp$payload_bytes, payload_bytes)]
  expected <- 100 * (tcp$ea_j_per_mbit / udp$ea_j_per_mbit - 1)
  delta <- delta_ea(campaign)
  expect_equal(delta$difference_percent[match(udp$payload_bytes, delta$payload_bytes)], expected, tolerance = 0.002)
  cells <- with_truth(summarise_ea(campaign), truth)
  expect_gt(max(abs(cells$ea_j_per_mbit_mean / cells$ea_j_per_mbit - 1)), 0.02)
})

test_that("invalid runs are counted by reason and stay out of every mean", {
  known <- known_campaign("--blocks", 6, "--invalid-share", 0.5, "--seed", 2)
  campaign <- read_campaign(known$dir)
  invalid <- invalid_runs(campaign)
  expect_gt(nrow(invalid), 0L)
  expect_identical(unique(invalid$code), "radio_disassociated")
  expect_setequal(invalid$run_id, campaign$plan[status == "invalid", run_id])
  expect_gt(nrow(campaign$plan[status == "superseded"]), 0L)
  cells <- with_truth(summarise_ea(campaign), known$truth)
  # Readings are rounded to 0.1 mW; an invalid run is 1 W off.
  expect_lt(max(abs(cells$delta_p_w - cells$delta_p_w_true)), 1e-4)
})

test_that("a large enough campaign keeps its per-run pass, and both give the same tables", {
  known <- known_campaign("--blocks", 34, "--invalid-share", 0.05)
  expect_gte(nrow(fread(file.path(known$dir, "plan.csv"), select = "run_id")), least_cached_runs)
  files <- function() {
    campaign <- read_campaign(known$dir, cache = run_cache_path(known$dir))
    out <- tempfile("tables")
    write_tables(campaign_tables(campaign), out)
    unname(tools::md5sum(sort(list.files(out, full.names = TRUE))))
  }
  first <- files()
  expect_true(file.exists(run_cache_path(known$dir)))
  expect_identical(files(), first)
  unlink(file.path(known$dir, "tables"), recursive = TRUE)
  expect_identical(files(), first)
})

test_that("the parameters of a recorded device model are found again through its stream", {
  known <- known_campaign("--device-stream", "--blocks", 3, "--seed", 4)
  tables <- campaign_tables(read_campaign(known$dir))
  expect_identical(tables$model_parameters$drawn, c(FALSE, TRUE, TRUE))
  expect_identical(tables$model_parameters$runs_uncovered_n, c(NA, 0L, 0L))
  cells <- tables$ea_uncertainty
  # Terms of 0.7 and 0.3 of the power over idle, parameters sure to 4 and 3 %.
  expected <- 1.959964 * cells$ea_j_per_mbit_mean * sqrt((0.7 * 0.04)^2 + (0.3 * 0.03)^2)
  expect_equal(cells$u95_model_j_per_mbit, expected, tolerance = 0.04)
  expect_false(anyNA(cells$ea_total_ci95_low))
})
