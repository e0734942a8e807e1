# SPDX-License-Identifier: Apache-2.0

small <- function(...) synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = c(1, 10), ...)

refusal <- function(code, exit_code, pattern) {
  error <- tryCatch(code, netjoule_error = function(e) e)
  expect_s3_class(error, "netjoule_error")
  expect_identical(error$exit_code, exit_code)
  expect_match(conditionMessage(error), pattern)
}

empty_dir <- function() {
  dir <- tempfile("empty")
  dir.create(dir)
  dir
}

test_that("a campaign is read with all its runs", {
  campaign <- read_campaign(small())
  expect_identical(nrow(campaign$plan), 8L)
  expect_true(all(campaign$runs$usable))
  expect_identical(nrow(campaign$results), 8L)
  expect_identical(nrow(campaign$problems), 0L)
  expect_output(print(campaign), "8 usable of 8 planned runs")
})

test_that("a folder that is no campaign is refused", {
  refusal(read_campaign("/nonexistent"), 2L, "no campaign folder")
  refusal(read_campaign(empty_dir()), 4L, "no campaign.json")
})

test_that("columns are taken by name, in any order", {
  dir <- small()
  before <- summarise_ea(read_campaign(dir))
  edit_csv(file.path(dir, "plan.csv"), rev)
  edit_csv(file.path(dir, "meters", "client-wt210.csv"), rev)
  campaign <- read_campaign(dir)
  expect_equal(summarise_ea(campaign), before)
  expect_true(all(compare_ea(campaign)$agrees))
})

test_that("missing columns are named with their file", {
  dir <- small()
  edit_csv(file.path(dir, "plan.csv"), function(rows) rows[setdiff(names(rows), c("block", "status"))])
  refusal(read_campaign(dir), 4L, "plan.csv lacks the columns block, status")
  dir <- small()
  edit_csv(file.path(dir, "meters", "client-wt210.csv"), function(rows) rows[names(rows) != "power_w"])
  refusal(compute_campaign_ea(read_campaign(dir)), 4L, "client-wt210.csv lacks the column power_w")
})

test_that("a contract column that is not needed is reported, not fatal", {
  dir <- small()
  edit_csv(file.path(dir, "plan.csv"), function(rows) rows[names(rows) != "generator"])
  campaign <- read_campaign(dir)
  expect_identical(campaign$problems$code, "column_missing")
  expect_match(campaign$problems$detail, "generator")
  expect_identical(run_notes(campaign)$code, "column_missing")
})

test_that("a campaign from before a contract had a column lacks nothing", {
  expect_setequal(younger_columns("plan_1"), c("pacing", "window_us", "gso"))
  dir <- small()
  edit_csv(file.path(dir, "plan.csv"), function(rows) rows[setdiff(names(rows), younger_columns("plan_1"))])
  expect_identical(nrow(read_campaign(dir)$problems), 0L)
})

test_that("text where a number belongs is refused", {
  dir <- small()
  edit_csv(file.path(dir, "plan.csv"), function(rows) {
    rows$block <- "first"
    rows
  })
  refusal(read_campaign(dir), 4L, "column block .* holds text|cannot be read as a table")
})

test_that("a row cut off by a killed writer is dropped and the rest is used", {
  dir <- small()
  path <- file.path(dir, "meters", "client-wt210.csv")
  whole <- read_meter(read_campaign(dir), "client-wt210")
  cat("99.1", file = path, append = TRUE)
  expect_equal(read_meter(read_campaign(dir), "client-wt210"), whole)
})

test_that("half-written runs are named and left out", {
  dir <- small()
  ids <- list.files(file.path(dir, "runs"))
  unlink(file.path(dir, "runs", ids[1], "result.json"))
  writeLines("{\"schema_version\": 1, \"run_id\":", file.path(dir, "runs", ids[2], "run.json"))
  campaign <- read_campaign(dir)
  expect_identical(sum(campaign$runs$usable), 6L)
  invalid <- invalid_runs(campaign)
  expect_setequal(invalid$run_id, ids[1:2])
  expect_identical(unique(invalid$code), "half_written_run")
  expect_setequal(invalid$detail, c("result.json is missing", "run.json is not a whole JSON document"))
  expect_true(all(nzchar(invalid$next_step)))
})

test_that("a run without intervals keeps its result and is not recomputed", {
  dir <- small()
  id <- grep("udp", list.files(file.path(dir, "runs")), value = TRUE)[1]
  unlink(file.path(dir, "runs", id, "intervals.csv"))
  campaign <- read_campaign(dir)
  expect_true(campaign$runs[run_id == id, usable])
  expect_false(id %in% compute_campaign_ea(campaign)$run_id)
})

test_that("other schema versions are named: of a run it is left out, of the campaign it is refused", {
  dir <- small()
  id <- list.files(file.path(dir, "runs"))[1]
  edit_json(file.path(dir, "runs", id, "result.json"), function(doc) replace(doc, "schema_version", 3L))
  invalid <- invalid_runs(read_campaign(dir))
  expect_identical(invalid$run_id, id)
  expect_identical(invalid$code, "schema_version_unsupported")
  edit_json(file.path(dir, "campaign.json"), function(doc) replace(doc, "schema_version", 2L))
  refusal(read_campaign(dir), 4L, "schema_version 2")
})

test_that("invalid, superseded and planned runs do not count", {
  dir <- small()
  plan <- read_campaign(dir)$plan
  edit_csv(file.path(dir, "plan.csv"), function(rows) {
    rows$reason <- as.character(rows$reason)
    rows$status[1:3] <- c("invalid", "superseded", "planned")
    rows$reason[1:3] <- c("idle_drift", "", "")
    rows
  })
  campaign <- read_campaign(dir)
  expect_identical(sum(campaign$runs$usable), 5L)
  invalid <- invalid_runs(campaign)
  expect_identical(invalid$run_id, plan$run_id[1])
  expect_identical(invalid$code, "idle_drift")
  expect_match(invalid$meaning, "[Ii]dle power")
})

test_that("names that would leave the campaign's folder are refused", {
  dir <- small()
  edit_csv(file.path(dir, "plan.csv"), function(rows) {
    rows$run_id[1] <- "../../etc"
    rows
  })
  refusal(read_campaign(dir), 4L, "run id .* not a plain name")
  dir <- small()
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$meters[[1]]$meter_id <- "../secret"
    doc
  })
  refusal(read_campaign(dir), 4L, "meter id .* not a plain name")
})

test_that("a meter without readings file is named", {
  dir <- small()
  unlink(file.path(dir, "meters", "client-wt210.csv"))
  refusal(compute_campaign_ea(read_campaign(dir)), 4L, "client-wt210.csv is missing")
})

test_that("a run's device stands in a column of its own, and the label of its meter names all that it reads", {
  dir <- done_campaign("command", "build", c(base = 1, head = 2), factors = list(device = c("s4", "s5")))
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$meters[[1]]$device_model <- "s4, s5"
    doc
  })
  for (path in Sys.glob(file.path(dir, "runs", "*", "result.json"))) {
    edit_json(path, function(doc) {
      doc$nodes[[1]]$device_model <- doc$factors$device
      doc
    })
  }
  results <- read_campaign(dir)$results
  expect_identical(unique(results$device_model), "s4, s5")
  expect_identical(sort(unique(results$device)), c("s4", "s5"))
})
