# SPDX-License-Identifier: Apache-2.0

package_source <- function() normalizePath(file.path(contracts_dir(), "..", "..", "analysis-r"))

help_pages <- function() {
  paths <- list.files(file.path(package_source(), "man"), full.names = TRUE)
  pages <- lapply(paths, function(path) tools::parse_Rd(path))
  parts <- lapply(pages, function(page) vapply(page, function(part) attr(part, "Rd_tag"), ""))
  aliases <- Map(function(page, tags) vapply(page[tags == "\\alias"], as.character, ""), pages, parts)
  data.table(alias = unlist(aliases), has_examples = rep(
    vapply(parts, function(tags) "\\examples" %in% tags, NA), lengths(aliases)
  ))
}

test_that("every exported function has help with an example", {
  pages <- help_pages()
  wanted <- getNamespaceExports("netjoule")
  expect_identical(setdiff(wanted, pages$alias), character())
  expect_identical(setdiff(wanted, pages[has_examples == TRUE, alias]), character())
})

test_that("help and NAMESPACE are what roxygen2 makes of the source", {
  copy_of <- file.path(tempfile("source"), "analysis-r")
  dir.create(dirname(copy_of))
  file.copy(package_source(), dirname(copy_of), recursive = TRUE)
  utils::capture.output(suppressMessages(
    roxygen2::roxygenise(copy_of, roclets = c("namespace", "rd"), load_code = "installed")
  ))
  made <- function(dir) {
    files <- c("NAMESPACE", file.path("man", list.files(file.path(dir, "man"))))
    lapply(stats::setNames(files, files), function(file) readLines(file.path(dir, file)))
  }
  expect_identical(made(package_source()), made(copy_of), info = "run make fmt")
})

test_that("what was recomputed is summarised like the campaign", {
  campaign <- example_campaign()
  recomputed <- compute_campaign_ea(campaign)
  expect_equal(summarise_ea(recomputed), summarise_ea(campaign))
  # Energies are the recomputed ones.
  doubled <- copy(recomputed)[, ea_j_per_mbit := 2 * ea_j_per_mbit]
  expect_equal(summarise_ea(doubled)$ea_j_per_mbit_mean, 2 * summarise_ea(campaign)$ea_j_per_mbit_mean)
  expect_error(summarise_ea(data.table(run_id = "a")), "these are other rows", class = "netjoule_error")
})

test_that("the example campaign agrees with its recomputation and is labelled as modelled", {
  campaign <- example_campaign()
  expect_true(all(compare_ea(campaign)$agrees))
  expect_identical(unique(campaign$results$power_source), "modelled")
  expect_true(all(campaign$runs$usable))
})
