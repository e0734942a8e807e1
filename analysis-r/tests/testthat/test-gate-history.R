# SPDX-License-Identifier: Apache-2.0

# A series of 12 sessions, of which the last four take a tenth more.
history_rows <- function(...) {
  rows <- data.table(
    series = "gate on <bench>", power_source = "measured", run = 1:12, id = paste0("g", 1:12),
    finished_utc = sprintf("2026-10-%02dT00:00:00Z", 1:12),
    verdict = c(rep("pass", 8), "fail", "inconclusive", "pass", "pass"),
    head_over_reference = c(rep(c(1.99, 2.01), 4), rep(2.2, 4)), change = c(rep(FALSE, 8), TRUE, rep(FALSE, 3))
  )
  changed <- list(...)
  for (name in names(changed)) set(rows, j = name, value = changed[[name]])
  rows
}

written_page <- function(rows) {
  csv <- withr::local_tempfile(fileext = ".csv")
  page <- withr::local_tempfile(fileext = ".html")
  fwrite(rows, csv)
  expect_identical(run_main(c(csv, "--history", page))$code, 0L)
  paste(readLines(page, encoding = "UTF-8"), collapse = "\n")
}

test_that("a change is told by the means before and after it, and marked", {
  expect_identical(history_words(with_parts(history_rows())), "A lasting change: +10 % since g9 (2026-10-09).")
  plot <- plot_history(with_parts(history_rows()))
  expect_identical(ggplot2::layer_data(plot, 1L)$xintercept, 8.5)
  expect_equal(unique(ggplot2::layer_data(plot, 2L)$y), c(2, 2.2))
})

test_that("the page has every series, escaped, and says what is a model", {
  text <- written_page(rbind(history_rows(), history_rows(series = "other", power_source = "modelled", change = FALSE)))
  expect_match(text, "gate on &lt;bench&gt;", fixed = TRUE)
  expect_no_match(text, "<bench>", fixed = TRUE)
  # Each wide and narrow.
  expect_length(gregexpr("<svg ", text, fixed = TRUE)[[1]], 4L)
  expect_match(text, "in this model, not measured on hardware: figure 2", fixed = TRUE)
  expect_match(text, "No lasting change was found", fixed = TRUE)
})

test_that("nobody looked for changes where the column is empty", {
  expect_match(written_page(history_rows(change = NA)), "the package apache-otava is not installed", fixed = TRUE)
})

test_that("a history without sessions is refused", {
  csv <- withr::local_tempfile(fileext = ".csv")
  fwrite(history_rows()[0], csv)
  expect_identical(run_main(c(csv, "--history", tempfile()))$code, 4L)
})
