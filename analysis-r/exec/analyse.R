#!/usr/bin/env Rscript
# SPDX-License-Identifier: Apache-2.0
# Analyse a campaign: Rscript --vanilla analysis-r/exec/analyse.R CAMPAIGN [--report] [--json]
# Finds the installed package in NETJOULE_R_LIBRARY or in ../.r-library beside the package.

# Paths and texts are UTF-8, whatever the user's locale is.
if (!l10n_info()[["UTF-8"]]) invisible(Sys.setlocale("LC_CTYPE", "C.UTF-8"))
script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
package_dir <- dirname(dirname(normalizePath(script)))
library_dir <- Sys.getenv("NETJOULE_R_LIBRARY", file.path(dirname(package_dir), ".r-library"))
.libPaths(c(library_dir, .libPaths()))
if (!nzchar(Sys.getenv("NETJOULE_CONTRACTS"))) {
  contracts <- file.path(dirname(package_dir), "protocols", "contracts")
  if (dir.exists(contracts)) Sys.setenv(NETJOULE_CONTRACTS = contracts)
}
if (!requireNamespace("netjoule", quietly = TRUE)) {
  message(
    "The R package netjoule is not installed in ", library_dir, " or needs a package that is missing: run make setup."
  )
  quit(status = 3L) # the host lacks something
}
quit(status = netjoule::main(commandArgs(trailingOnly = TRUE)))
