# SPDX-License-Identifier: Apache-2.0

# The kept per-run pass is never more than a shorter way to the same numbers.

tiny <- function(...) synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = c(1, 10), ...)

# As analyse() reads, but for any number of runs and for files that have just been written.
read_kept <- function(dir, cache = run_cache_path(dir), settle_s = -3600) {
  plan <- read_plan(dir, list(), contracts_dir())$rows
  read_runs(dir, plan[, c("run_id", "block", "load", "kind")], contracts_dir(), cache, least = 1L, settle_s = settle_s)
}

# What is kept with another goodput in every result, so that it shows where numbers come from.
mark_kept <- function(dir, mark = -7) {
  known <- read_run_cache(run_cache_path(dir), contracts_dir())
  known$tables$results[, t_a_mbps := mark]
  write_run_cache(run_cache_path(dir), contracts_dir(), known$keys, known$tables)
}

test_that("every kind of column comes back bit for bit", {
  path <- tempfile()
  numbers <- c(0.1 + 0.2, NA, NaN, -Inf, -0, .Machine$double.xmin, 2^53 - 1)
  parts <- list(one = data.table(
    number = numbers, count = c(1L, NA, -3L, 0L, 5L, 6L, 7L), flag = c(TRUE, NA, FALSE, TRUE, TRUE, FALSE, NA),
    text = c("a", NA, "", "say \"so\",\nü", "\u4e2d", "x;y", "NA")
  ), none = data.table())
  write_parts(path, c("1", "a"), parts)
  back <- read_parts(path, c("1", "a"))
  expect_identical(back$one, parts$one)
  expect_identical(1 / back$one$number[5], -Inf)
  expect_identical(is.nan(back$one$number), is.nan(numbers))
  expect_identical(dim(back$none), c(0L, 0L))
  expect_null(read_parts(path, c("2", "a")))
})

test_that("a kept pass gives what reading every run gives", {
  dir <- tiny()
  plain <- read_kept(dir, cache = NULL)
  expect_identical(read_kept(dir), plain)
  expect_true(file.exists(run_cache_path(dir)))
  expect_identical(read_kept(dir), plain)
})

test_that("what is kept is used, and only for runs whose files are the same", {
  dir <- tiny()
  plain <- read_kept(dir)
  mark_kept(dir)
  expect_true(all(read_kept(dir)$results$t_a_mbps == -7))
  id <- grep("udp", plain$runs$run_id, value = TRUE)[1]
  edit_json(file.path(dir, "runs", id, "result.json"), function(doc) replace(doc, "loss_ratio", 0.25))
  again <- read_kept(dir)
  expect_identical(again$runs$run_id, plain$runs$run_id)
  expect_identical(again$results[again$results$t_a_mbps != -7, run_id], id)
  expect_identical(again$runs[run_id == id, loss_ratio], 0.25)
})

test_that("a file that comes or goes is seen", {
  dir <- tiny()
  plain <- read_kept(dir)
  id <- grep("udp", plain$runs$run_id, value = TRUE)[1]
  path <- file.path(dir, "runs", id, "intervals.csv")
  away <- tempfile()
  file.rename(path, away)
  expect_false(read_kept(dir)$runs[run_id == id, has_intervals])
  file.rename(away, path)
  expect_identical(read_kept(dir), plain)
})

test_that("a pass that is cut off, foreign or not there is made anew", {
  dir <- tiny()
  plain <- read_kept(dir)
  path <- run_cache_path(dir)
  bytes <- readBin(path, "raw", file.size(path))
  for (size in c(0, 3, 40, length(bytes) - 1)) {
    writeBin(bytes[seq_len(size)], path)
    expect_null(read_run_cache(path, contracts_dir()))
    expect_identical(read_kept(dir), plain)
  }
  # R's own format may hold code; it is not so much as looked into.
  saveRDS(list(keys = 1), path)
  expect_null(read_run_cache(path, contracts_dir()))
  expect_identical(read_kept(dir), plain)
  unlink(path)
  expect_identical(read_kept(dir), plain)
})

test_that("a pass does not travel with the files that it was made from", {
  dir <- tiny()
  read_kept(dir)
  mark_kept(dir)
  copy <- tempfile("copied")
  dir.create(copy)
  file.copy(list.files(dir, full.names = TRUE, all.files = TRUE, no.. = TRUE), copy, recursive = TRUE, copy.date = TRUE)
  expect_true(file.exists(run_cache_path(copy)))
  expect_false(any(read_kept(copy)$results$t_a_mbps %in% -7))
})

test_that("a run whose files were written this moment is read again", {
  dir <- tiny()
  read_kept(dir, settle_s = 3600)
  mark_kept(dir)
  expect_false(any(read_kept(dir, settle_s = 3600)$results$t_a_mbps %in% -7))
})

test_that("a folder that cannot be written is analysed all the same", {
  dir <- tiny()
  # A file where the folder should be: no right of any user gets past it.
  writeLines("", file.path(dir, "tables"))
  expect_identical(read_kept(dir), read_kept(dir, cache = NULL))
})

test_that("small campaigns keep nothing, so that reading them leaves their folder alone", {
  dir <- tiny()
  before <- list.files(dir, recursive = TRUE, all.files = TRUE)
  read_campaign(dir, cache = run_cache_path(dir))
  expect_identical(list.files(dir, recursive = TRUE, all.files = TRUE), before)
})
