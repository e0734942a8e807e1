# SPDX-License-Identifier: Apache-2.0
# Runs the tests of the R package as set-up installs it, two files at once: Rscript --vanilla analysis-r/tests/run.R
# With a word after it only the files whose name has it. The last line is "N passed, N failed"; the exit code is
# 1 when anything failed.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
package_dir <- dirname(dirname(normalizePath(script)))
root <- dirname(package_dir)
if (system2(file.path(root, "scripts", "setup.sh"), "r") != 0L) {
  cat("0 passed, 1 failed\n")
  quit(status = 1L)
}
.libPaths(c(file.path(root, ".r-library"), .libPaths()))
if (!nzchar(Sys.getenv("NETJOULE_CONTRACTS"))) {
  Sys.setenv(NETJOULE_CONTRACTS = file.path(root, "protocols", "contracts"))
}
# As netjoule starts R: names of files may have any letter.
Sys.setenv(LC_ALL = "C.UTF-8")
wanted <- commandArgs(trailingOnly = TRUE)
# Of each file on a core of its own; the longest are begun first (DESCRIPTION).
Sys.setenv(TESTTHAT_PARALLEL = "TRUE", TESTTHAT_CPUS = "2")
# Snapshots are skipped on CRAN, and testthat thinks of any place as CRAN that does not say otherwise.
Sys.setenv(NOT_CRAN = "true")
results <- testthat::test_dir(
  file.path(package_dir, "tests", "testthat"),
  filter = if (length(wanted)) wanted[[1L]],
  package = "netjoule", load_package = "installed", reporter = "summary", stop_on_failure = FALSE
)
tests <- as.data.frame(results)
failed <- tests$failed > 0L | tests$error
slowest <- head(tests[order(-tests$real), ], 30L)
cat("slowest tests, s:", sprintf("%7.2f  %s: %s", slowest$real, slowest$file, slowest$test), sep = "\n")
# Once more at the end: of a long output the end is what is kept.
for (test in results[failed]) {
  wrong <- Filter(\(seen) inherits(seen, c("expectation_failure", "expectation_error")), test$results)
  for (seen in wrong) cat(sprintf("failed: %s: %s\n%s\n", test$file, test$test, conditionMessage(seen)))
}
if (any(tests$skipped)) cat("skipped:", paste(tests$test[tests$skipped], collapse = "; "), "\n")
cat(sprintf("%d passed, %d failed\n", sum(!failed & !tests$skipped), sum(failed)))
quit(status = if (any(failed) || nrow(tests) == 0L) 1L else 0L)
