# SPDX-License-Identifier: Apache-2.0

test_that("power of the t test is that of stats", {
  for (n in c(5, 10, 40)) {
    for (level in c(0.05, 0.05 / 6)) {
      expected <- power.t.test(n = n, delta = 0.05, sd = 0.06, sig.level = level, type = "one.sample", strict = TRUE)
      expect_equal(t_power(n, 0.05, 0.06, level), expected$power, tolerance = 1e-6)
    }
  }
  expect_identical(t_power(8, 0.05, 0, 0.05), 1)
})

test_that("power of the sign-flip test has a closed form where only one pattern is far enough", {
  # At 8 blocks and 0.05 / 6 all signs must agree.
  effect <- 0.1
  sd <- 0.06
  expected <- stats::pnorm(effect / sd)^8 + stats::pnorm(-effect / sd)^8
  hits <- 4000 * sign_flip_power(8, effect, sd, 0.05 / 6, seed = 2, draws = 4000L)
  bounds <- binomial_bounds(4000, expected)
  expect_gte(hits, bounds[1])
  expect_lte(hits, bounds[2])
})

test_that("with many blocks their number is that of the t test", {
  expected <- ceiling(power.t.test(
    delta = log1p(0.03), sd = 0.1, sig.level = 0.05 / 6, power = 0.8, type = "one.sample", strict = TRUE
  )$n)
  expect_equal(blocks_for(log1p(0.03), 0.1, 0.05 / 6, 0.8, 8, seed = 1), expected)
  expect_identical(blocks_for(log1p(1e-6), 0.1, 0.05, 0.8, 8, seed = 1), Inf)
  expect_identical(blocks_for(log1p(0.03), 0, 0.05, 0.8, 8, seed = 1), 8)
})

test_that("the number of blocks finds the difference as often as promised, one fewer does not", {
  sd <- 0.05
  effect <- log1p(0.06)
  level <- 0.05 / 6
  n <- blocks_for(effect, sd, level, 0.8, 8, seed = 1)
  expect_gt(n, 8)
  found <- function(blocks) {
    x <- with_seed(77, matrix(stats::rnorm(2000 * blocks, effect, sd), blocks))
    sum(apply(x, 2, function(one) sign_flip_test(one, 1)$p) <= level)
  }
  expect_gte(found(n), binomial_bounds(2000, 0.8)[1] - 40) # n itself rests on 1000 draws
  expect_lt(min(t_power(n - 1, effect, sd, level), sign_flip_power(n - 1, effect, sd, level, seed = 1)), 0.8)
  # The same from other draws; 0.8 itself would be found less often in half of all trials.
  expect_lt(found(n - 1), 2000 * 0.8 + 40)
})

test_that("a pilot's scatter is the block means', its upper limit that of chi squared", {
  pilot <- memory_campaign(c(udp = 0, tcp = 0.1), blocks = 5, seed = 3)
  needed <- blocks_needed(pilot, pilot$meta$workload, 3)
  one <- transport_contrasts(pilot)
  expect_equal(needed$contrasts$log_ratio_sd, one$log_ratio_sd)
  expect_identical(needed$contrasts$pilot_blocks_n, 5L)
  upper <- sd_upper(one$log_ratio_sd, 5)
  expect_equal(stats::pchisq(4 * one$log_ratio_sd^2 / upper^2, 4), 0.2)
  expect_gt(needed$blocks_upper_n, needed$blocks_n)
  seed <- campaign_seed(pilot, "blocks_needed")
  expect_equal(needed$blocks_n, blocks_for(log1p(0.03), one$log_ratio_sd, 0.05, 0.8, 8, seed))
  expect_identical(needed$tests_n, 1L)
})

test_that("the pilot counts with the loads that the design has, too", {
  pilot <- memory_campaign(blocks = 5, offered_rate_mbps = c(1, 3, 10))
  workload <- pilot$meta$workload
  workload$offered_rate_mbps <- list(3, 10, 20)
  expect_identical(blocks_needed(pilot, workload, 3)$contrasts$pilot_loads_n, 2L)
  workload$offered_rate_mbps <- list(20)
  expect_identical(blocks_needed(pilot, workload, 3)$contrasts$pilot_loads_n, 3L)
})

test_that("a design of one test needs its pilot's pair alone, and a pilot without it decides nothing", {
  pilot <- memory_campaign(c(udp = 0, tcp = 0.1), blocks = 5)
  workload <- pilot$meta$workload
  workload$transports <- list("udp", "tcp", "quic")
  some <- blocks_needed(pilot, workload, 3)
  expect_identical(some$missing_n, 2L)
  expect_match(blocks_words(some), "2 of 3 contrasts of the workload cannot be determined", all = FALSE)
  workload$transports <- list("dccp", "quic")
  expect_error(blocks_needed(pilot, workload, 3), "no two blocks", class = "netjoule_error")
  code <- tryCatch(blocks_needed(pilot, workload, 3), netjoule_error = function(e) e$exit_code)
  expect_identical(code, 4L)
})

test_that("a design is told to find nothing where its least p after Holm is above its level", {
  design <- function(blocks, tests, alpha = 0.05) {
    list(
      design_blocks_n = blocks, least_p = least_p(blocks), least_p_holm = min(1, tests * least_p(blocks)),
      tests_n = tests, alpha = alpha, least_blocks_n = least_blocks_for(tests, alpha)
    )
  }
  expect_null(unattainable_words(design(8, 6)))
  expect_null(unattainable_words(design(6, 1)))
  expect_match(unattainable_words(design(7, 6)), "p = 0.016 at least, 0.094 after Holm over 6 tests.*needs 8 blocks")
  expect_match(unattainable_words(design(5, 1)), "5 blocks can give p = 0.062 at least")
  expect_match(unattainable_words(design(8, 6, 0.01)), "needs 11 blocks")
})

run_cli <- function(...) {
  code <- NULL
  capture.output(output <- capture.output(code <- main(c(...))), type = "message")
  list(code = code, events = lapply(output, jsonlite::fromJSON))
}

test_that("the command line tells the blocks, and of a design that cannot reach its level so", {
  dir <- synthetic_campaign(transports = c("udp", "tcp"), blocks = 3, payload_bytes = 64, noise_w = 0.005)
  path <- tempfile(fileext = ".json")
  ask <- function(blocks, ...) {
    write_json(path, list(
      transports = list("udp", "tcp"), payload_bytes = list(64), offered_rate_mbps = list(1, 10), blocks = blocks
    ))
    run_cli(dir, "--mde", "10", "--workload", path, ...)
  }
  fine <- ask(8, "--power", "0.9")
  expect_identical(fine$code, 0L)
  expect_identical(fine$events[[1]]$event, "blocks_needed")
  expect_equal(fine$events[[1]]$power, 0.9)
  expect_match(fine$events[[1]]$words[1], "blocks find a difference of 10 % with 90 % probability at level 0.05 over 1")
  hopeless <- ask(3)
  expect_identical(hopeless$code, 0L)
  expect_identical(vapply(hopeless$events, function(event) event$event, ""), "blocks_needed")
  expect_match(tail(hopeless$events[[1]]$words, 1L), "the workload finds nothing: 3 blocks can give p = 0.25 at least")
  expect_false(dir.exists(file.path(dir, "tables")))
  usage_errors <- list(
    c("--mde", "x"), c("--mde", "3"), c("--mde", "3", "--workload", "/nonexistent"), c("--margin", "-1"), "--margin"
  )
  for (wrong in usage_errors) {
    expect_identical(run_cli(c(dir, wrong))$code, 2L, info = paste(wrong, collapse = " "))
  }
})
