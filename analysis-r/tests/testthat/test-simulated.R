# SPDX-License-Identifier: Apache-2.0

# Blocks of a simulated campaign: documents of all runs in one file by kind, a line each.

simulated_block <- function(home) {
  dir.create(home, recursive = TRUE)
  document <- function(id, ...) {
    as.character(jsonlite::toJSON(list(schema_version = 2, run_id = id, ...), auto_unbox = TRUE))
  }
  writeLines(c(document("a", arm = "x"), document("b", arm = "y")), file.path(home, "runs.ndjson"))
  writeLines(document("a", valid = TRUE), file.path(home, "results.ndjson"))
  kept <- c(
    "{\"run_id\":\"a\",\"part\":1,\"document\":{\"bytes\":5,\"document\":{\"run_id\":\"z\"}}}",
    "{\"run_id\": \"b\", \"part\": 1, \"document\": {\"bytes\": 6}}",
    "{\"run_id\":\"a\",\"part\":2,\"document\":{\"bytes\":7}}"
  )
  writeLines(kept, file.path(home, "wait.ndjson"))
  home
}

test_that("a run's documents are its lines", {
  home <- simulated_block(file.path(withr::local_tempdir(), "blocks", "1"))
  expect_identical(jsonlite::fromJSON(run_document(home, "b", "run.json"))$arm, "y")
  expect_true(jsonlite::fromJSON(run_document(home, "a", "result.json"))$valid)
  expect_null(run_document(home, "b", "result.json"))
  expect_null(run_document(home, "c", "run.json"))
  own <- jsonlite::fromJSON(run_document(home, "a", "wait.json"))
  expect_identical(own$bytes, 5L)
  expect_identical(own$document$run_id, "z")
  expect_identical(jsonlite::fromJSON(run_document(home, "b", "wait.json"))$bytes, 6L)
  expect_identical(jsonlite::fromJSON(run_document(home, "a", "waits/2.json"))$bytes, 7L)
  expect_null(run_document(home, "b", "waits/2.json"))
})

test_that("lines of another block take the place of those before", {
  folder <- withr::local_tempdir()
  first <- simulated_block(file.path(folder, "blocks", "1"))
  other <- simulated_block(file.path(folder, "blocks", "2"))
  writeLines("{\"run_id\":\"c\"}", file.path(other, "runs.ndjson"))
  expect_false(is.null(run_document(first, "a", "run.json")))
  expect_false(is.null(run_document(other, "c", "run.json")))
  expect_null(run_document(other, "a", "run.json"))
  expect_identical(block_memory$home, other)
})

test_that("a run of another campaign is read from its own folder", {
  campaign <- example_campaign()
  id <- campaign$runs$run_id[1]
  expect_identical(run_document(campaign$dir, id, "run.json"), file.path(campaign$dir, "runs", id, "run.json"))
  expect_null(run_document(campaign$dir, "nobody", "run.json"))
  expect_false(is_simulated(campaign))
})
