# SPDX-License-Identifier: Apache-2.0

# Campaigns that the repository keeps packed (results/golden), and the pages that quote them.
root <- function(...) file.path(contracts_dir(), "..", "..", ...)

shipped <- function(name) {
  folder <- tempfile("golden")
  utils::untar(root("results", "golden", paste0(name, ".tar.xz")), exdir = folder)
  list.dirs(folder, recursive = FALSE)
}

page <- function(name) paste(readLines(root("docs", name), encoding = "UTF-8"), collapse = "\n")
