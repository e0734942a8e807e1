# SPDX-License-Identifier: Apache-2.0

stream_line <- function(t_start_s, t_end_s, frames, spaced = FALSE) {
  line <- sprintf(
    '{"t_start_s":%.6f,"t_end_s":%.6f,"power_w":%g,"extrapolated":false,"terms":{"p0":8,"frames":%g}}',
    t_start_s, t_end_s, 8 + frames, frames
  )
  if (spaced) gsub(",", ", ", gsub(":", ": ", line)) else line
}

stream_file <- function(lines, end = "\n") {
  path <- tempfile(fileext = ".ndjson")
  cat(paste(lines, collapse = "\n"), end, sep = "", file = path)
  path
}

test_that("means of terms are prorated at the edges of a span", {
  path <- stream_file(stream_line(c(0, 1, 2), c(1, 2, 3), c(2, 4, 8)))
  found <- stream_means_w(path, c(0, 0.5, 2.2), c(2, 1.25, 2.8))
  expect_identical(found$reason, NA_character_)
  expect_equal(found$means[, "frames"], c(3, (1 + 1) / 0.75, 8))
  expect_equal(found$means[, "p0"], rep(8, 3))
})

test_that("a span that the stream does not cover has no mean", {
  path <- stream_file(stream_line(c(0, 1, 10), c(1, 2, 11), c(2, 4, 8)))
  found <- stream_means_w(path, c(0, 1.5, 10.5, 5, -1, 10, NA), c(2, 10.5, 12, 6, 0.5, 11, 3))
  expect_equal(found$means[, "frames"], c(3, NA, NA, NA, NA, 8, NA))
})

test_that("a stream gives the same in pieces of any size, and its last line counts only when it is whole", {
  at_s <- seq(0, 40, by = 0.1)
  lines <- stream_line(at_s, at_s + 0.1, sin(at_s))
  from_s <- c(0, 3.33, 20, 39)
  to_s <- c(3, 12.21, 39.9, 40.1)
  whole <- stream_means_w(stream_file(lines), from_s, to_s)$means
  expect_false(anyNA(whole))
  for (end in c("\n", "", "\n{\"t_start_s\":40.1", "\n{\"t_start_s\":40.1\n")) {
    path <- stream_file(lines, end)
    for (piece in c(1, 97, 98, 1000, 2^24)) {
      expect_equal(stream_means_w(path, from_s, to_s, piece)$means, whole, label = paste(piece, "bytes"))
    }
  }
  expect_equal(stream_means_w(stream_file(stream_line(at_s, at_s + 0.1, sin(at_s), TRUE)), from_s, to_s)$means, whole)
})

test_that("what is no stream of one form is unreadable, and says so", {
  lines <- stream_line(0:2, 1:3, 1)
  other <- gsub("frames", "air_time", lines[3], fixed = TRUE)
  for (bad in list(
    "no JSON}}", c(lines[1:2], other), c(lines, "{}}"),
    gsub(":8,", ":\"eight\",", lines, fixed = TRUE), gsub(":8,", ":NaN,", lines, fixed = TRUE), character()
  )) {
    found <- stream_means_w(stream_file(bad), 0.5, 1.5)
    expect_identical(found$reason, "stream_unreadable", label = toString(bad))
    expect_null(found$means)
  }
  # Terms that change between pieces are no less strange.
  expect_identical(stream_means_w(stream_file(c(lines[1:2], other)), 0.5, 1.5, 100)$reason, "stream_unreadable")
  expect_identical(stream_means_w(tempfile(), 0.5, 1.5)$reason, "no_stream")
})

test_that("what was found in a long stream is kept for the same file and the same spans alone", {
  dir <- modelled_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  campaign <- read_campaign(dir, cache = run_cache_path(dir))
  means <- function(to_s = 4, least = 1) {
    known_stream_means_w(campaign, "client-wt210", c(0.5, 2), c(2, to_s), least = least, settle_s = -3600)$means
  }
  plain <- means(least = Inf)
  kept <- paste0(run_cache_path(dir), "-client-wt210")
  expect_false(file.exists(kept))
  expect_identical(means(), plain)
  expect_true(file.exists(kept))
  expect_identical(means(), plain)
  path <- file.path(dir, "devices", "client-wt210.ndjson")
  # Marked, so that it shows where numbers come from.
  maker <- c(
    cache_maker(campaign$contracts), file_stamps(path)$text, digest::digest(list(c(0.5, 2), c(2, 4)))
  )
  keep_parts(kept, maker, list(means = as.data.table(plain * 0 - 7)))
  expect_true(all(means() == -7))
  expect_false(any(means(to_s = 4.2) == -7))
  keep_parts(kept, maker, list(means = as.data.table(plain * 0 - 7)))
  write(readLines(path, 1), path, append = TRUE)
  expect_false(any(means() == -7))
})
