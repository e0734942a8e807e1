# SPDX-License-Identifier: Apache-2.0

# Every pattern written out, as slowly as the definition says.
p_by_definition <- function(x) {
  flips <- as.matrix(expand.grid(rep(list(c(-1, 1)), length(x))))
  mean(abs(flips %*% x) >= abs(sum(x)) - 1e-9 * sum(abs(x)))
}

test_that("p is the share of all sign patterns, ties and zeros included", {
  samples <- with_seed(4, lapply(rep(1:11, 4), function(n) stats::rnorm(n, 0.4)))
  samples <- c(samples, list(c(1, 1, 1, -1), c(0, 0, 2, -1), rep(0, 5), c(3, -3), c(0.1, 0.2, 0.3, -0.6), -(1:6)))
  for (x in samples) {
    expect_equal(sign_flip_test(x, seed = 1)$p, p_by_definition(x), info = paste(x, collapse = " "))
  }
})

test_that("values of one sign give the least p: 2 / 2^n", {
  for (n in c(1, 2, 6, 8, 20, 31, 40)) {
    test <- sign_flip_test(seq_len(n) + 0.5, seed = 1)
    expect_identical(test$method, "exact")
    expect_equal(test$p, min(1, 2 / 2^n), tolerance = 1e-12)
    expect_equal(least_p(n), test$p, tolerance = 1e-12)
  }
})

test_that("the counts of 40 values are exact", {
  # Of n equal values k negative ones sum to n - 2k: p is binomial.
  x <- c(rep(1, 30), rep(-1, 10))
  expect_equal(sign_flip_test(x, seed = 1)$p, 2 * stats::pbinom(10, 40, 0.5), tolerance = 1e-12)
})

test_that("beyond, drawn patterns give the same p within their own scatter, the same for the same seed", {
  x <- with_seed(5, stats::rnorm(16, 0.45))
  exact <- sign_flip_test(x, seed = 1)$p
  drawn <- sign_flip_test(x, seed = 1, enumerate_to = 10L, draws = 20000L)
  expect_identical(drawn$method, "monte_carlo")
  hits <- drawn$p * 20001 - 1
  bounds <- binomial_bounds(20000, exact)
  expect_gte(hits, bounds[1])
  expect_lte(hits, bounds[2])
  expect_identical(sign_flip_test(x, seed = 1, enumerate_to = 10L, draws = 20000L), drawn)
  expect_identical(sign_flip_test(rep(1, 60), seed = 1)$p, least_p(60))
  expect_identical(least_p(60), 1e-5)
})

test_that("the session's random numbers are left alone, whether it has drawn any or not", {
  set.seed(99)
  expected <- stats::runif(3)
  set.seed(99)
  with_seed(3, stats::rnorm(10))
  expect_identical(stats::runif(3), expected)
  rm(".Random.seed", envir = globalenv())
  with_seed(3, stats::rnorm(10))
  expect_false(exists(".Random.seed", envir = globalenv(), inherits = FALSE))
  kind <- RNGkind()
  suppressWarnings(RNGkind(sample.kind = "Rounding"))
  first <- with_seed(7, sample(100, 3))
  expect_identical(RNGkind()[3], "Rounding")
  RNGkind(sample.kind = kind[3])
  expect_identical(with_seed(7, sample(100, 3)), first)
  expect_identical(with_seed(7 + 2147483647, sample(100, 3)), first)
})

test_that("without a value there is no p", {
  expect_identical(sign_flip_test(c(NA_real_, NA_real_), 1), list(n = 0L, p = NA_real_, method = NA_character_))
})

test_that("symmetric values of any shape raise a false alarm in at most 5 of 100 samples", {
  samples <- 4000
  shapes <- list(
    normal = function(n) stats::rnorm(n), heavy = function(n) stats::rt(n, 1.5),
    two_humps = function(n) sample(c(-1, 1), n, TRUE) * stats::runif(n, 1, 1.2),
    unequal = function(n) stats::rnorm(n, sd = 2^seq_len(n))
  )
  for (name in names(shapes)) {
    x <- with_seed(11, replicate(samples, shapes[[name]](8)))
    alarms <- sum(apply(x, 2, function(one) sign_flip_test(one, 1)$p) <= 0.05)
    expect_lte(alarms, binomial_bounds(samples, 0.05)[2], label = name)
    # The level is reached as far as 2 / 2^8 allows: 12 of 256 patterns.
    if (name == "normal") expect_gte(alarms, binomial_bounds(samples, 12 / 256)[1])
  }
})

test_that("Holm is that of stats and of the textbook's steps", {
  # Reject from the least p on while p(i) <= alpha / (m + 1 - i).
  step_down <- function(p, alpha) {
    rejected <- logical(length(p))
    for (i in seq_along(p)) {
      place <- order(p)[i]
      if (p[place] > alpha / (length(p) + 1 - i)) break
      rejected[place] <- TRUE
    }
    rejected
  }
  for (p in with_seed(6, replicate(200, stats::runif(6)^3, simplify = FALSE))) {
    expect_identical(holm(p), stats::p.adjust(p, "holm"))
    expect_identical(holm(p) <= 0.05, step_down(p, 0.05))
  }
  expect_equal(holm(c(0.01, 0.02, 0.03)), c(0.03, 0.04, 0.04))
})

test_that("a test that could not be made still counts in the family's size", {
  expect_equal(holm(c(0.01, NA, 0.02), tests = 6), c(0.06, NA, 0.1))
  expect_identical(holm(c(NA_real_, NA_real_), tests = 6), c(NA_real_, NA_real_))
})
