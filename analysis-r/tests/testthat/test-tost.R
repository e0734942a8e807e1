# SPDX-License-Identifier: Apache-2.0

test_that("p is the greater of two one-sided t tests against the margin on the logarithm", {
  x <- with_seed(2, stats::rnorm(9, 0.01, 0.02))
  margin <- log(1.05)
  lower <- t.test(x, mu = -margin, alternative = "greater")$p.value
  upper <- t.test(x, mu = margin, alternative = "less")$p.value
  expect_equal(tost(x, 5)$p, max(lower, upper))
  expect_equal(tost(-x, 5)$p, tost(x, 5)$p)
})

test_that("equivalent at 5 % is the same as a 90 % interval inside the margin", {
  for (x in with_seed(3, replicate(100, stats::rnorm(8, 0.02, 0.02), simplify = FALSE))) {
    interval <- t.test(x, conf.level = 0.9)$conf.int
    expect_identical(tost(x, 3)$p <= 0.05, interval[1] >= -log(1.03) && interval[2] <= log(1.03))
  }
})

test_that("transports that differ by the margin pass for equivalent in at most 5 of 100 campaigns", {
  samples <- 4000
  for (difference in c(log(1.03), -log(1.03))) {
    x <- with_seed(8, matrix(stats::rnorm(8 * samples, difference, 0.01), 8))
    wrong <- sum(apply(x, 2, function(one) tost(one, 3)$p) <= 0.05)
    bounds <- binomial_bounds(samples, 0.05)
    expect_lte(wrong, bounds[2])
    expect_gte(wrong, bounds[1])
  }
})

test_that("few or equal values have an answer", {
  expect_identical(tost(0.01, 3)$p, NA_real_)
  expect_identical(tost(rep(0.01, 8), 3)$p, 0)
  expect_identical(tost(rep(0.05, 8), 3)$p, 1)
})
