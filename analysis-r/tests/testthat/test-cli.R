# SPDX-License-Identifier: Apache-2.0

run_main <- function(...) {
  code <- NULL
  errors <- capture.output(output <- capture.output(code <- main(c(...))), type = "message")
  list(code = code, events = lapply(output, jsonlite::fromJSON), errors = errors)
}

test_that("analyse writes tables, figures and the report and tells of each", {
  dir <- synthetic_campaign(blocks = 2)
  result <- run_main(dir, "--report", "--json")
  expect_identical(result$code, 0L)
  kinds <- vapply(result$events, function(event) event$event, "")
  expect_setequal(kinds, c("table", "figure", "report"))
  paths <- vapply(result$events, function(event) event$path, "")
  expect_true(all(file.exists(paths)))
  expect_true(all(file.path(dir, c(
    "tables/ea_summary.csv", "tables/envelope.csv", "tables/delta_ea.csv", "tables/invalid_runs.csv", "figures/ea.svg",
    "figures/ea.png", "report.html"
  )) %in% paths))
  header <- names(fread(file.path(dir, "tables", "ea_summary.csv"), nrows = 0))
  expect_identical(utils::head(header, 21), c(
    "node", "meter_id", "device_model", "power_source", "radio_source", "transport", "payload_bytes",
    "offered_rate_mbps", "n", "ea_j_per_mbit_mean", "ea_ci95_low", "ea_ci95_high", "u95_meter", "goodput_mbps",
    "loss_ratio", "frames_per_message", "p_a_w", "floor_w", "ea_above_floor_j_per_mbit", "below_resolution_n", "hollow"
  ))
})

test_that("analysing twice gives the same bytes", {
  dir <- synthetic_campaign(blocks = 2, transports = c("udp", "null"), payload_bytes = 64)
  files <- c("tables/ea_summary.csv", "figures/ea.svg", "figures/ea.png", "report.html")
  digests <- function() unname(tools::md5sum(file.path(dir, files)))
  expect_identical(run_main(dir, "--report")$code, 0L)
  before <- digests()
  run_main(dir, "--report")
  expect_identical(digests(), before)
})

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
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  id <- grep("udp", list.files(file.path(dir, "runs")), value = TRUE)
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
