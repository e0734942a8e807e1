# SPDX-License-Identifier: Apache-2.0

#' An empty table that has the columns of a full one, with the types of its contract
#'
#' @param table name of the contract, e.g. "delta_ea".
#' @param columns those that the table has; without a contract all are numeric.
#' @noRd
empty_rows <- function(table, columns, contracts = contracts_dir()) {
  types <- schema_columns(table, contracts)
  of_type <- lapply(columns, function(name) vector(if (name %in% names(types)) types[[name]] else "numeric", 0L))
  as.data.table(stats::setNames(of_type, columns))
}
