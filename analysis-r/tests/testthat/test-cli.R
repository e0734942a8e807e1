# SPDX-License-Identifier: Apache-2.0

test_that("usage errors give exit code 2 and one event", {
  for (arguments in list(character(), c("a", "b"), c("a", "--nonsense"), "/nonexistent")) {
    result <- run_main(arguments)
    expect_identical(result$code, 2L)
    expect_identical(result$events[[1]]$event, "error")
    expect_identical(strsplit(result$events[[1]]$message, "\n")[[1]], result$errors)
  }
})

test_that("a campaign without a valid run gives exit code 4 after its tables", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  for (id in list.files(file.path(dir, "runs"))) {
    edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
      doc$valid <- FALSE
      doc$reasons <- list(list(code = "meter_gap", detail = "coverage 0.5"))
      doc
    })
  }
  result <- run_main(dir)
  expect_identical(result$code, 4L)
  expect_match(result$events[[length(result$events)]]$message, "no valid finished run")
  invalid <- fread(file.path(dir, "tables", "invalid_runs.csv"))
  expect_identical(unique(invalid$code), "meter_gap")
  expect_identical(nrow(invalid), 4L)
})

test_that("results that disagree with the raw files give exit code 4, naming run and number", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1, transports = "udp")
  id <- list.files(file.path(dir, "runs"))
  edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
    doc$nodes[[1]]$p_a_w <- 2 * doc$nodes[[1]]$p_a_w
    doc
  })
  result <- run_main(dir)
  expect_identical(result$code, 4L)
  message <- result$events[[length(result$events)]]$message
  expect_match(message, id, fixed = TRUE)
  expect_match(message, "p_a_w")
})

test_that("each line of numbers is answered with their mean and its interval", {
  said <- capture.output(tell_intervals(textConnection(c("1 2 3", "5"))))
  first <- jsonlite::fromJSON(said[1])
  expect_equal(first[c("n", "mean", "high")], list(n = 3L, mean = 2, high = 2 + 4.30265273 / sqrt(3)))
  expect_null(jsonlite::fromJSON(said[2])$high)
})

test_that("how often of how many times is answered with the interval of the rate", {
  said <- capture.output(tell_intervals(textConnection(c("0 20", "2 50", "5 5")), binomial_interval))
  said <- lapply(said, jsonlite::fromJSON)
  # By hand: 0 of n ends at 1 - (alpha / 2)^(1 / n); the others by quantiles of the beta distribution.
  expect_equal(said[[1]], list(rate = 0, low = 0, high = 1 - 0.025^(1 / 20)))
  expect_equal(said[[2]], list(rate = 0.04, low = stats::qbeta(0.025, 2, 49), high = stats::qbeta(0.975, 3, 48)))
  expect_equal(said[[3]], list(rate = 1, low = 0.025^(1 / 5), high = 1))
})
