# SPDX-License-Identifier: Apache-2.0

# Difference of E_A in J/Mb and its uncertainty, by hand and against simulated meters.

pairs_of <- function(ea_ref, ea, u95_ref = 0.02, u95 = 0.02, gain_ref = 0, gain = 0, block = seq_along(ea)) {
  data.table(
    ea_ref = ea_ref, ea = ea, u95_ea_j_per_mbit_ref = u95_ref, u95_ea_j_per_mbit = u95, u95_gain_ref = gain_ref,
    u95_gain = gain, below_resolution = FALSE, below_resolution_ref = FALSE, block = block
  )
}

test_that("the difference of E_A is the mean over blocks of what a megabit takes more, with its t interval", {
  got <- joules_of(pairs_of(c(1.0, 1.2, 1.1), c(0.9, 0.9, 0.9)))
  more <- c(-0.1, -0.3, -0.2)
  half <- qt(0.975, 2) * sd(more) / sqrt(3)
  expect_equal(got$difference_j_per_mbit, -0.2)
  expect_equal(c(got$difference_j_ci95_low, got$difference_j_ci95_high), -0.2 + c(-half, half))
  expect_equal(got$u95_meter_difference_j_per_mbit, 0.02 * sqrt(2))
  expect_equal(got$u95_difference_j_per_mbit, sqrt(half^2 + 2 * 0.02^2))
})

test_that("several pairs of a block count once", {
  got <- joules_of(pairs_of(c(1.0, 1.4, 1.1), 0.9 + numeric(3), block = c(1, 1, 2)))
  expect_equal(got$difference_j_per_mbit, -mean(c(0.3, 0.2)))
})

test_that("the gain that both runs share acts on their difference alone", {
  # 2 % of gain: on E_A of 10 and 9 J/Mb it is 0.2 and 0.18, on their difference 0.02.
  expect_equal(pair_metering(pairs_of(10, 9, u95_ref = 0.2, u95 = 0.18, gain_ref = 0.2, gain = 0.18)), 0.02)
  expect_equal(
    pair_metering(pairs_of(10, 9, u95_ref = sqrt(0.2^2 + 0.03^2), u95 = sqrt(0.18^2 + 0.04^2), 0.2, 0.18)),
    sqrt(0.02^2 + 0.05^2)
  )
  expect_equal(pair_metering(pairs_of(10, 9, gain_ref = NA_real_, gain = NA_real_)), 0.02 * sqrt(2))
  expect_true(is.na(pair_metering(pairs_of(10, 9, u95 = NA_real_))))
})

test_that("the gain that is read is a component of the contract", {
  node <- contract("schemas", "result_1.schema.json")$properties$nodes$items$properties
  expect_true("gain" %in% names(node$u95_components$properties))
})

test_that("a difference across zero keeps the sign of the gain", {
  expect_equal(pair_metering(pairs_of(1, -1, u95_ref = 0.1, u95 = 0.1, gain_ref = 0.1, gain = 0.1)), 0.2)
})

test_that("a cell below resolution, or without E_A, has none", {
  below <- pairs_of(c(1, 1), c(0.9, 0.9))[2, below_resolution := TRUE]
  expect_true(all(is.na(unlist(joules_of(below)))))
  expect_true(all(is.na(unlist(joules_of(pairs_of(NA_real_, NA_real_))))))
})

test_that("a single block has no uncertainty rather than one of the meter alone", {
  got <- joules_of(pairs_of(1, 0.9))
  expect_equal(got$difference_j_per_mbit, -0.1)
  expect_true(is.na(got$u95_difference_j_per_mbit))
})

#' Campaigns of a meter with a gain error of its own (u95 2 %) and an offset of each run (u95 0.05 J/Mb), whose true
#' E_A are 10 and 9 J/Mb in the mean and scatter by 0.1 from block to block.
simulated_joules <- function(campaigns, blocks) {
  lapply(seq_len(campaigns), function(i) {
    gain <- 1 + 0.02 / 1.96 * rnorm(1)
    shown <- function(true) gain * (true + 0.1 / sqrt(2) * rnorm(blocks)) + 0.05 / 1.96 * rnorm(blocks)
    ea_ref <- shown(10)
    ea <- shown(9)
    u95 <- function(shown) sqrt((0.02 * shown)^2 + 0.05^2)
    joules_of(pairs_of(ea_ref, ea, u95(ea_ref), u95(ea), 0.02 * ea_ref, 0.02 * ea))
  })
}

test_that("u95 holds the true difference in at least 95 % of simulated campaigns, and is not far wider", {
  found <- with_seed(7, simulated_joules(campaigns = 1000, blocks = 6))
  held <- vapply(found, function(one) abs(one$difference_j_per_mbit + 1) <= one$u95_difference_j_per_mbit, NA)
  # The offsets are counted twice, in the scatter of blocks and in one pair's metering: in 99 of 100, not in 95.
  bounds <- binomial_bounds(1000, 0.99)
  expect_gte(sum(held), bounds[1])
  expect_lte(sum(held), bounds[2])
  # Taken as independent the gains alone would make it 0.27 J/Mb.
  expect_lt(stats::median(vapply(found, function(one) one$u95_difference_j_per_mbit, 0)), 0.2)
})

test_that("the table of differences has the columns", {
  dir <- synthetic_campaign(payload_bytes = 64, transports = c("udp", "tcp", "null"))
  delta <- delta_ea(read_campaign(dir))
  power <- linear_power()
  more <- vapply(delta$offered_rate_mbps, function(rate) (power("tcp", 64, rate) - power("udp", 64, rate)) / rate, 0)
  expect_equal(delta$difference_j_per_mbit, more)
  expect_equal(delta$u95_meter_difference_j_per_mbit, sqrt(2) * 2 * 0.001 / delta$offered_rate_mbps)
})
