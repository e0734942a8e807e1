# SPDX-License-Identifier: Apache-2.0

# Columns of tables across runs that hold words or flags, beside those of text_columns (summarise.R).
more_text_columns <- c(
  "run_id", "limits", "failed", "error_basis", "window", "quantity", "verdict", "reason", "form", "application",
  "campaign"
)
flag_columns <- c("gso", "hollow", "usable", "passed", "residuals_are_noise")

#' An empty table that has the columns of a full one, with their types
#' @noRd
empty_rows <- function(columns) {
  of_type <- lapply(columns, function(name) {
    if (name %in% c(text_columns, more_text_columns)) {
      character()
    } else if (name %in% flag_columns) {
      logical()
    } else {
      numeric()
    }
  })
  as.data.table(stats::setNames(of_type, columns))
}
