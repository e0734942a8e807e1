# SPDX-License-Identifier: Apache-2.0

# The contracts (JSON Schemas, Table Schemas, reasons, glossary, vectors) live in
# protocols/contracts. This file finds them; nothing else knows where they are.

supported_schema_version <- 1L

#' Find the contracts folder
#'
#' @param env value of the environment variable NETJOULE_CONTRACTS.
#' @param package_dir where this package lies (installed or source).
#' @return path; stops where there is none, as every table is made by its contract.
#' @noRd
contracts_dir <- function(env = Sys.getenv("NETJOULE_CONTRACTS"), package_dir = find.package("netjoule")) {
  if (nzchar(env)) {
    if (!dir.exists(env)) {
      abort_netjoule("NETJOULE_CONTRACTS names ", env, ", which is no folder: set it to protocols/contracts.",
        exit_code = exit_codes$usage
      )
    }
    return(env)
  }
  candidates <- file.path(package_dir, c("..", "../.."), "protocols", "contracts")
  found <- candidates[dir.exists(candidates)]
  if (length(found) == 0L) {
    abort_netjoule("There are no contracts here: set NETJOULE_CONTRACTS to protocols/contracts of netjoule's sources.")
  }
  normalizePath(found[1])
}

read_contract_json <- function(..., contracts = contracts_dir()) {
  path <- file.path(contracts, ...)
  if (file.exists(path)) jsonlite::fromJSON(path, simplifyVector = FALSE)
}

schema_memory <- new.env(parent = emptyenv())

# A campaign has thousands of tables of one contract: it is read once, and again when its file has changed.
read_table_schema <- function(table, contracts) {
  path <- file.path(contracts, "tables", paste0(table, ".table.json"))
  stamp <- c(file.size(path), as.numeric(file.mtime(path)))
  if (!identical(schema_memory[[path]]$stamp, stamp)) {
    known <- list(stamp = stamp, schema = jsonlite::fromJSON(path))
    assign(path, known, envir = schema_memory)
  }
  schema_memory[[path]]$schema
}

#' Column types of a table by its Table Schema
#'
#' @param table name of the contract, e.g. "meters".
#' @return named character vector, column -> "numeric" | "character" | "logical".
#' @noRd
schema_columns <- function(table, contracts = contracts_dir()) {
  fields <- read_table_schema(table, contracts)$fields
  # JSON integers reach 2^53-1, beyond R's integer: a double holds them exactly.
  types <- c(integer = "numeric", number = "numeric", boolean = "logical", string = "character")[fields$type]
  stats::setNames(fcoalesce(unname(types), "character"), fields$name)
}

#' Rows with the columns of their contract first, in its order
#'
#' @param table name of the contract, e.g. "delta_ea".
#' @param rows data.table; without rows the table is empty, with the columns that every campaign has.
#' @noRd
table_of <- function(table, rows = NULL) {
  types <- schema_columns(table)
  if (NROW(rows) == 0L) {
    return(empty_rows(types[setdiff(names(types), some_columns)]))
  }
  setcolorder(rows, intersect(names(types), names(rows)))[]
}

# What only some campaigns' cells have.
some_columns <- c("ea_total_ci95_low", "ea_total_ci95_high", "flows_at_once")

# No rows of columns of these types.
empty_rows <- function(types) as.data.table(lapply(types, vector, 0L))

#' Columns that a table has not always had, by its Table Schema
#'
#' @param table name of the contract.
#' @return names of the columns with a default, which a file from before them lacks.
#' @noRd
younger_columns <- function(table, contracts = contracts_dir()) {
  fields <- read_table_schema(table, contracts)$fields
  fields$name[!is.na(fields$default)]
}

#' Reason codes with meaning and next step
#'
#' @return data.table code, meaning, invalidates, next_step (no rows when not found).
#' @noRd
reason_table <- function(contracts = contracts_dir()) {
  entries_table(pick(read_contract_json("reasons.json", contracts = contracts), "reasons", default = list()), list(
    code = "", meaning = "", invalidates = NA, next_step = ""
  ))
}

# Entries of a contract as a table; `fields` gives the value that stands for a missing one.
entries_table <- function(entries, fields) {
  rows <- lapply(entries, function(entry) {
    Map(function(name, none) pick(entry, name, default = none), names(fields), fields)
  })
  rbindlist(c(list(as.data.table(fields)[0]), rows))
}

#' Terms of the glossary
#'
#' @return data.table term, column, unit, meaning.
#' @noRd
glossary_table <- function(contracts = contracts_dir()) {
  entries_table(pick(read_contract_json("glossary.json", contracts = contracts), "entries", default = list()), list(
    term = "", column = "", unit = "", meaning = ""
  ))
}

#' Take a value from nested lists, or the default when it is absent or null
#' @noRd
pick <- function(x, ..., default = NA_real_) {
  for (key in c(...)) {
    if (!is.list(x) || is.null(x[[key]])) {
      return(default)
    }
    x <- x[[key]]
  }
  if (is.list(default) || !is.list(x)) x else default
}

pick_number <- function(x, ...) {
  value <- pick(x, ..., default = NA_real_)
  if (is.numeric(value) && length(value) == 1L && is.finite(value)) as.numeric(value) else NA_real_
}

pick_text <- function(x, ...) {
  value <- pick(x, ..., default = NA_character_)
  if (length(value) == 1L) as.character(value) else NA_character_
}

# Several fields of one object, by their names.
pick_numbers <- function(x, names, ...) lapply(stats::setNames(nm = names), function(name) pick_number(x, ..., name))

pick_texts <- function(x, names, ...) lapply(stats::setNames(nm = names), function(name) pick_text(x, ..., name))

pick_flag <- function(x, ...) {
  value <- pick(x, ..., default = NA)
  if (is.logical(value) && length(value) == 1L) value else NA
}
