# SPDX-License-Identifier: Apache-2.0

#' Read a contract or fail: the tests need the contracts, they never skip for want of them
contract <- function(...) {
  root <- contracts_dir()
  path <- file.path(root, ...)
  if (is.na(root) || !file.exists(path)) {
    stop("The contract ", file.path(...), " is missing: set NETJOULE_CONTRACTS to protocols/contracts.")
  }
  jsonlite::fromJSON(path, simplifyVector = FALSE)
}

#' Names in which a document and its JSON Schema differ: wanting or unknown properties, at any depth
schema_defects <- function(doc, schema, where = "") {
  if (!is.null(schema$items)) {
    return(unlist(lapply(doc, schema_defects, schema$items, paste0(where, "[]"))))
  }
  properties <- schema$properties
  if (is.null(properties) || is.null(doc)) {
    return(character())
  }
  wanting <- setdiff(unlist(schema$required), names(doc))
  unknown <- setdiff(names(doc), names(properties))
  deeper <- unlist(lapply(intersect(names(doc), names(properties)), function(name) {
    schema_defects(doc[[name]], properties[[name]], paste0(where, "/", name))
  }))
  c(paste0(where, "/", wanting, " is wanting")[seq_along(wanting)], paste0(where, "/", unknown, " is unknown")[
    seq_along(unknown)
  ], deeper)
}

# Columns that every campaign's table has.
columns_of <- function(table) setdiff(names(schema_columns(table)), some_columns)
