# SPDX-License-Identifier: Apache-2.0

# How often intervals hold the truth and tests cry wolf, in thousands of campaigns of numbers alone.

expect_hits <- function(hits, trials, p) {
  bounds <- binomial_bounds(trials, p)
  expect_gte(hits, bounds[1])
  expect_lte(hits, bounds[2])
}

test_that("the interval over blocks, which every cell has, holds its mean in 95 of 100", {
  # With a normal quantile in place of t 90.9 of 100 would.
  for (blocks in c(3, 8)) {
    means <- with_seed(21, matrix(stats::rnorm(4000 * blocks, 5, 0.4), blocks))
    held <- apply(means, 2, function(one) {
      interval <- mean_interval(one)
      interval$low <= 5 && 5 <= interval$high
    })
    expect_hits(sum(held), 4000, 0.95)
  }
})

# Pairs of 8 blocks: E_A 10 and 8 J/Mb with 5 % of noise, P_A 9 and 8.5 W, goodput 10 and 9 Mb/s; what a block adds is
# common to both arms.
cell_pairs <- function(blocks = 8) {
  of_block <- stats::rnorm(blocks)
  noisy <- function(value, sd_ratio) value * exp(sd_ratio * stats::rnorm(blocks))
  data.table(
    block = seq_len(blocks), below_resolution = FALSE, below_resolution_ref = FALSE,
    ea = noisy(8, 0.05) * exp(0.2 * of_block), ea_ref = noisy(10, 0.05) * exp(0.2 * of_block),
    p_a_w = 8.5 + of_block + stats::rnorm(blocks, sd = 0.1), p_a_w_ref = 9 + of_block + stats::rnorm(blocks, sd = 0.1),
    t_a_mbps = noisy(9, 0.02), t_a_mbps_ref = noisy(10, 0.02)
  )
}

test_that("intervals of differences of E_A and P_A and of goodput's shortfall hold the truth in 95 of 100", {
  # The mean of a ratio of log-normal values is exp(sd^2) over that of their medians.
  truth <- c(
    difference = 100 * (0.8 * exp(0.05^2) - 1), difference_p_a = -0.5,
    shortfall_percent = 100 * (1 - 0.9 * exp(0.02^2))
  )
  held <- with_seed(22, vapply(seq_len(1000), function(i) {
    pairs <- cell_pairs()
    found <- c(delta_of(pairs), goodput_shortfall(pairs))
    vapply(names(truth), function(name) {
      found[[paste0(name, "_ci95_low")]] <= truth[[name]] && truth[[name]] <= found[[paste0(name, "_ci95_high")]]
    }, NA)
  }, truth > 0))
  for (name in names(truth)) expect_hits(sum(held[name, ]), 1000, 0.95)
})

test_that("a family of six true hypotheses is rejected as seldom as 8 blocks and Holm allow", {
  # Three transports against one at two sizes share their reference. Only equal signs in all 8 blocks give p small
  # enough: 2 / 256 each.
  alarms <- with_seed(23, vapply(seq_len(1000), function(i) {
    p <- unlist(lapply(1:2, function(size) {
      reference <- stats::rnorm(8)
      vapply(1:3, function(other) sign_flip_test(stats::rnorm(8) - reference, 1)$p, 0)
    }))
    any(holm(p, 6L) <= 0.05)
  }, NA))
  # Bonferroni's bound is 0.047, and hypotheses that share a reference are rejected together.
  expect_lte(sum(alarms), binomial_bounds(1000, 6 * 2 / 256)[2])
  expect_gte(sum(alarms), binomial_bounds(1000, 0.025)[1])
})
