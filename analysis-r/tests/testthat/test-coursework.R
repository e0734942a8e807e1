# SPDX-License-Identifier: Apache-2.0

# The R Markdown template of docs/coursework.md, where rmarkdown::draft() looks for it.
skeleton <- function() {
  system.file("rmarkdown", "templates", "netjoule-coursework", "skeleton", "skeleton.Rmd", package = "netjoule")
}

exercises <- c("envelope", "floor", "congestion")
shipped <- c("scaling", "transfers")
every_exercise <- c(exercises, shipped)

# Analysed once: what a folder that is handed in has of it is not changed.
analysed_dir <- synthetic_campaign(transports = c("udp", "null"), offered_rate_mbps = c(3, 12), noise_w = 0.01)
analyse(analysed_dir)

# The shipped campaigns of the last exercises.
golden_dir <- tempfile("golden")
for (exercise in shipped) {
  bundle <- paste0("coursework-", exercise, ".zip")
  utils::unzip(file.path(dirname(dirname(contracts_dir())), "results", "golden", bundle), exdir = golden_dir)
  analyse(file.path(golden_dir, exercise))
}

#' A folder as a student hands it in: the report, and analysed campaigns unless told otherwise
handed_in <- function(analysed = TRUE) {
  folder <- tempfile("coursework")
  dir.create(folder)
  file.copy(skeleton(), file.path(folder, "report.Rmd"))
  if (analysed) {
    for (exercise in exercises) {
      dir.create(file.path(folder, exercise))
      file.copy(file.path(analysed_dir, c("tables", "figures")), file.path(folder, exercise), recursive = TRUE)
    }
    for (exercise in shipped) {
      dir.create(file.path(folder, exercise))
      file.copy(
        file.path(golden_dir, exercise, c("tables", "figures")), file.path(folder, exercise), recursive = TRUE
      )
    }
  }
  folder
}

inside <- function(folder, what) {
  before <- setwd(folder)
  on.exit(setwd(before))
  force(what)
}

#' Run the template's chunks; the Markdown that comes of them
knitted <- function(folder) {
  inside(folder, knitr::knit("report.Rmd", "report.md", quiet = TRUE, envir = new.env()))
  readLines(file.path(folder, "report.md"), encoding = "UTF-8")
}

require_rmarkdown <- function() {
  there <- requireNamespace("rmarkdown", quietly = TRUE) && rmarkdown::pandoc_available()
  if (!there && nzchar(Sys.getenv("CI"))) {
    stop("There is no rmarkdown or no pandoc, which continuous integration has: run scripts/setup.sh test.")
  }
  skip_if_not(there, "r-cran-rmarkdown or pandoc is not installed, so no HTML is made of the template")
}

test_that("the template stands where rmarkdown::draft() looks for it", {
  expect_true(file.exists(skeleton()))
  about <- readLines(file.path(dirname(dirname(skeleton())), "template.yaml"))
  expect_true(all(c("name: netjoule coursework", "create_dir: false") %in% about))
})

test_that("its chunks show the tables and figures of the exercises", {
  folder <- handed_in()
  made <- knitted(folder)
  expect_false(any(grepl("Error|not analysed", made, ignore.case = TRUE)))
  summary <- data.table::fread(file.path(folder, "envelope", "tables", "ea_summary.csv"))
  ea <- summary[transport == "udp" & payload_bytes == 64 & offered_rate_mbps == 12, ea_j_per_mbit_mean]
  expect_gt(sum(grepl(format(round(ea, 4), nsmall = 4), made, fixed = TRUE)), 0)
  saved <- data.table::fread(file.path(folder, "scaling", "tables", "router_energy.csv"))
  saved <- saved[arm == "practra-10" & path == "rtt-100" & form == "cubic" & static_ratio == 0.5, saving_ratio]
  expect_gt(sum(grepl(format(round(saved, 3), nsmall = 3), made, fixed = TRUE)), 0)
  expect_identical(sum(grepl("P_s = 0.5 of P\\(r_max\\)", made)), 1L)
  figures <- c(
    "envelope/figures/envelope", "floor/figures/floor", "congestion/figures/goodput", "scaling/figures/routers",
    "transfers/figures/transfer-connections"
  )
  for (figure in figures) {
    expect_true(any(grepl(paste0(figure, ".svg"), made, fixed = TRUE)), info = figure)
  }
  sourced <- grepl("Power at client .*: modelled; radio: link-model; in this model", made)
  expect_identical(sum(sourced), length(exercises))
  expect_false(any(grepl("\\bNA\\b", made)))
})

test_that("without campaigns it says what to run", {
  made <- knitted(handed_in(analysed = FALSE))
  expect_identical(sum(grepl("Not analysed yet", made)), length(every_exercise))
  expect_false(any(grepl("Error|NULL", made)))
})

test_that("it knits to one file without a network", {
  require_rmarkdown()
  folder <- handed_in()
  command <- "rmarkdown::render('report.Rmd', quiet = TRUE)"
  # A network namespace of its own has not even a loopback that is up.
  log <- tempfile()
  ended <- inside(folder, system2(
    "unshare", c("--user", "--map-root-user", "--net", "Rscript", "--vanilla", "-e", shQuote(command)),
    stdout = log, stderr = log
  ))
  expect_identical(ended, 0L, info = paste(readLines(log), collapse = "\n"))
  html <- paste(readLines(file.path(folder, "report.html"), warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  expect_gte(lengths(regmatches(html, gregexpr("src=\"data:image/svg", html, fixed = TRUE))), 4L)
  expect_false(grepl("(src|href)=\"(https?:)?//|url\\((['\"])?https?:|@import", html))
  expect_false(grepl("mathjax", html, ignore.case = TRUE))
})
