# SPDX-License-Identifier: Apache-2.0
# Lints the R package by analysis-r/.lintr; any finding fails.
found <- lintr::lint_package("analysis-r")
if (length(found) > 0) {
  print(found)
  quit(status = 1)
}
cat("lintr: no findings\n")
