# SPDX-License-Identifier: Apache-2.0

# A campaign whose place leads to a file, or a folder, of ours.
linked_campaign <- function(place, to) {
  dir <- synthetic_campaign(blocks = 1)
  unlink(file.path(dir, place), recursive = TRUE)
  dir.create(dirname(file.path(dir, place)), showWarnings = FALSE)
  file.symlink(to, file.path(dir, place))
  dir
}

our_file <- function() {
  path <- tempfile("authorized_keys")
  writeLines("ssh-ed25519 ours", path)
  path
}

test_that("a campaign with links where the analysis writes is refused, and nothing is written through them", {
  ours <- our_file()
  files <- c("report.html", "tables/ea_summary.csv", "tables/.per-run-pass", "figures/ea.svg", "figures/index.json")
  for (place in files) {
    dir <- linked_campaign(place, ours)
    expect_error(analyse(dir, with_report = TRUE), paste0(place, " is a symbolic link"), class = "netjoule_error")
    expect_identical(readLines(ours), "ssh-ed25519 ours")
  }
  for (place in c("tables", "figures")) {
    folder <- tempfile("ours")
    dir.create(folder)
    dir <- linked_campaign(place, folder)
    expect_error(analyse(dir), paste0(place, " is a symbolic link"), class = "netjoule_error")
    expect_length(list.files(folder, all.files = TRUE, no.. = TRUE), 0L)
  }
})

test_that("a link that comes later is replaced, not followed; a folder that became one is refused", {
  ours <- our_file()
  dir <- tempfile("late")
  dir.create(dir)
  file.symlink(ours, file.path(dir, "ea.csv"))
  before <- getwd()
  path <- write_whole(file.path(dir, "ea.csv"), function(path) writeLines("a", path))
  expect_identical(readLines(path), "a")
  expect_identical(Sys.readlink(path), "")
  expect_identical(readLines(ours), "ssh-ed25519 ours")
  expect_identical(list.files(dir, all.files = TRUE, no.. = TRUE), "ea.csv")
  link <- tempfile("link")
  file.symlink(dir, link)
  expect_error(write_whole(file.path(link, "ea.csv"), function(path) writeLines("b", path)), "symbolic link")
  expect_error(in_folder(link, function() unlink("ea.csv")), "symbolic link")
  expect_identical(readLines(path), "a")
  expect_identical(getwd(), before)
})

test_that("what fails half-way leaves the old file and nothing beside it", {
  dir <- tempfile("half")
  dir.create(dir)
  path <- file.path(dir, "ea.csv")
  writeLines("old", path)
  half <- function(path) {
    writeLines("new", path)
    stop("no space")
  }
  expect_error(write_whole(path, half), "no space")
  expect_identical(readLines(path), "old")
  expect_identical(list.files(dir, all.files = TRUE, no.. = TRUE), "ea.csv")
})
