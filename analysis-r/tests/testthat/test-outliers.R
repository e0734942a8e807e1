# SPDX-License-Identifier: Apache-2.0

test_that("the distance is the modified z-score", {
  x <- c(10, 11, 9, 10.5, 9.5, 30)
  centre <- median(x)
  expect_equal(robust_distance(x), abs(x - centre) / (1.4826 * median(abs(x - centre))))
  expect_true(all(is.na(robust_distance(1:5))))
  expect_identical(robust_distance(rep(3, 6)), rep(0, 6))
})

test_that("what the meter does not tell apart is no outlier", {
  x <- c(1, 1, 1, 1, 1, 1, 1.001)
  expect_gt(robust_distance(x)[7], outlier_limit)
  expect_lt(robust_distance(x, least_scale = 0.01)[7], outlier_limit)
  # Nor is rounding.
  expect_lt(max(robust_distance(c(0.1 + 0.2, rep(0.3, 6)))), outlier_limit)
})

test_that("an outlying run is flagged, named with its cell, and stays in every number", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0), blocks = 10, run_sd = 0.01, offered_rate_mbps = 1)
  plain <- transport_contrasts(campaign)
  campaign$results[block == 4 & transport == "tcp", ea_j_per_mbit := 3]
  campaign$results[, delta_p_w := ea_j_per_mbit * t_a_mbps]
  flagged <- outlier_runs(campaign)
  expect_identical(flagged$run_id, "b04m004-tcp-a1")
  expect_identical(flagged$quantity, "ea_j_per_mbit")
  expect_equal(flagged$value, 3)
  expect_equal(flagged$cell_n, 10)
  found <- transport_contrasts(campaign)
  expect_equal(found$blocks_n, 10)
  expect_identical(found$outlier_n, 1L)
  expect_gt(found$difference_percent, 8)
  expect_lt(abs(found$difference_without_outliers_percent - plain$difference_percent), 1)
  expect_match(
    outlier_sentence(flagged), "^1 run is flagged as an outlier .* It stays in every number: none is dropped"
  )
})

test_that("a flag at one meter is none at another", {
  campaign <- memory_campaign(blocks = 10, run_sd = 0.01, offered_rate_mbps = 1, meters = c("a", "b"))
  campaign$results[meter_id == "b" & block == 4 & transport == "tcp", ea_j_per_mbit := 3]
  found <- transport_contrasts(campaign)
  expect_identical(found[order(meter_id), outlier_n], c(0L, 1L))
})

test_that("normal values are flagged in under 1 of 100 cells of eight runs", {
  cells <- 4000
  flagged <- with_seed(21, sum(replicate(cells, any(robust_distance(stats::rnorm(8)) > outlier_limit))))
  expect_lte(flagged, binomial_bounds(cells, 0.01)[2])
})

test_that("null runs are judged by their power, few runs not at all", {
  campaign <- memory_campaign(c(udp = 0, null = 0), blocks = 6, run_sd = 0.01, offered_rate_mbps = 1)
  campaign$results[transport == "null", `:=`(ea_j_per_mbit = NA_real_, t_a_mbps = NA_real_)]
  campaign$results[transport == "null" & block == 2, delta_p_w := 40]
  expect_identical(outlier_runs(campaign)$quantity, "delta_p_w")
  few <- memory_campaign(blocks = 5, offered_rate_mbps = 1)
  few$results[block == 2, ea_j_per_mbit := 40]
  expect_identical(nrow(outlier_runs(few)), 0L)
})
