# SPDX-License-Identifier: Apache-2.0

# Campaigns that the repository keeps (results/golden): their tables come out as they are, but for rounding.
golden_campaigns <- function() {
  list.dirs(file.path(contracts_dir(), "..", "..", "results", "golden"), recursive = FALSE)
}

# One unit of the last of the nine digits that tables have: it may turn over wherever processors round differently.
last_digit <- 1e-8
# Columns whose figures are differences, and how far rounding may move one: of percents, and of watts up to 100.
differences <- "^d(p|ea|goodput|t)_|delta|differ|deviation|change|trend|residual|drift|floor|above|ci95|percent"
rounding <- 1e-11 * 100

# Names of the columns in which two tables, read as text, differ by more than rounding; all where their forms do.
differing_columns <- function(ours, theirs) {
  if (!identical(dim(ours), dim(theirs)) || !identical(names(ours), names(theirs))) {
    return(union(names(ours), names(theirs)))
  }
  same <- vapply(names(ours), function(name) {
    apart <- which(ours[[name]] != theirs[[name]])
    one <- suppressWarnings(as.numeric(ours[[name]][apart]))
    other <- suppressWarnings(as.numeric(theirs[[name]][apart]))
    allowed <- pmax(last_digit * pmax(abs(one), abs(other)), if (grepl(differences, name)) rounding else 0)
    all(abs(one - other) <= allowed & !is.na(one) & !is.na(other))
  }, NA)
  names(ours)[!(same %in% TRUE)]
}

as_text <- function(path) utils::read.csv(path, colClasses = "character", na.strings = character(), check.names = FALSE)

test_that("tables of kept campaigns are rebuilt", {
  kept <- golden_campaigns()
  expect_true("guest-hwsim" %in% basename(kept))
  for (dir in kept) {
    rebuilt <- tempfile("tables")
    write_tables(campaign_tables(read_campaign(dir)), rebuilt)
    files <- list.files(file.path(dir, "tables"))
    expect_identical(list.files(rebuilt), files)
    for (file in files) {
      ours <- as_text(file.path(rebuilt, file))
      expect_identical(differing_columns(ours, as_text(file.path(dir, "tables", file))), character(), info = file)
    }
  }
})

test_that("figures moved by rounding are the same, figures moved by more and other words are not", {
  kept <- data.frame(run_id = "a", p_a_w = "8.12345678", delta_p_w = "0.0112345678", grade = "A")
  moved <- function(...) differing_columns(utils::modifyList(kept, list(...)), kept)
  by <- function(text, ratio) formatC(as.numeric(text) * (1 + ratio), digits = 15, format = "g")
  for (name in c("p_a_w", "delta_p_w")) {
    expect_identical(do.call(moved, stats::setNames(list(by(kept[[name]], 1e-12)), name)), character())
    expect_identical(do.call(moved, stats::setNames(list(by(kept[[name]], 1e-7)), name)), name)
  }
  kept$delta_p_w <- "0"
  expect_identical(moved(delta_p_w = "-8.8e-16"), character())
  expect_identical(moved(delta_p_w = ""), "delta_p_w")
  expect_identical(moved(p_a_w = ""), "p_a_w")
  expect_identical(moved(grade = "B"), "grade")
  expect_identical(differing_columns(kept[-1], kept), names(kept)[c(2:4, 1)])
  expect_identical(differing_columns(kept[0, ], kept), names(kept))
})
