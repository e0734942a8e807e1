# SPDX-License-Identifier: Apache-2.0

# The contracts (JSON Schemas, Table Schemas, reasons, glossary, vectors) live in
# protocols/contracts. This file finds them; nothing else knows where they are.

supported_schema_version <- 1L

#' Find the contracts folder
#'
#' @param env value of the environment variable NETJOULE_CONTRACTS.
#' @param package_dir where this package lies (installed or source).
#' @return path, or NA when there is none.
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
  if (length(found) > 0L) normalizePath(found[1]) else NA_character_
}

read_contract_json <- function(..., contracts = contracts_dir()) {
  if (is.na(contracts)) {
    return(NULL)
  }
  path <- file.path(contracts, ...)
  if (!file.exists(path)) {
    return(NULL)
  }
  jsonlite::fromJSON(path, simplifyVector = FALSE)
}

schema_memory <- new.env(parent = emptyenv())

# A campaign has thousands of tables of one contract: it is read once, and again when its file has changed.
read_table_schema <- function(table, contracts) {
  if (is.na(contracts)) {
    return(NULL)
  }
  path <- file.path(contracts, "tables", paste0(table, ".table.json"))
  stamp <- c(file.size(path), as.numeric(file.mtime(path)))
  if (!identical(schema_memory[[path]]$stamp, stamp)) {
    known <- list(stamp = stamp, schema = read_contract_json("tables", basename(path), contracts = contracts))
    assign(path, known, envir = schema_memory)
  }
  schema_memory[[path]]$schema
}

#' Column types of a table by its Table Schema
#'
#' @param table name of the contract, e.g. "meters".
#' @return named character vector, column -> "numeric" | "character" | "logical";
#'   NULL when the contract is not found.
#' @noRd
schema_columns <- function(table, contracts = contracts_dir()) {
  schema <- read_table_schema(table, contracts)
  if (is.null(schema)) {
    return(NULL)
  }
  # JSON integers reach 2^53-1, beyond R's integer: a double holds them exactly.
  r_types <- c(integer = "numeric", number = "numeric", boolean = "logical")
  types <- vapply(schema$fields, function(field) {
    type <- r_types[field$type]
    if (is.na(type)) "character" else unname(type)
  }, "")
  stats::setNames(types, vapply(schema$fields, function(field) field$name, ""))
}

#' Columns that a table has not always had, by its Table Schema
#'
#' @param table name of the contract.
#' @return names of the columns with a default, which a file from before them lacks.
#' @noRd
younger_columns <- function(table, contracts = contracts_dir()) {
  schema <- read_table_schema(table, contracts)
  has_default <- vapply(schema$fields, function(field) !is.null(field[["default"]]), TRUE)
  vapply(schema$fields[has_default], function(field) field$name, "")
}

#' Reason codes with meaning and next step
#'
#' @return data.table code, meaning, invalidates, next_step (no rows when not found).
#' @noRd
reason_table <- function(contracts = contracts_dir()) {
  reasons <- read_contract_json("reasons.json", contracts = contracts)
  if (!is.null(reasons$reasons)) reasons <- reasons$reasons
  rows <- lapply(reasons, function(reason) {
    list(
      code = pick(reason, "code", default = ""), meaning = pick(reason, "meaning", default = ""),
      invalidates = pick(reason, "invalidates", default = NA), next_step = pick(reason, "next_step", default = "")
    )
  })
  empty <- data.table(code = character(), meaning = character(), invalidates = logical(), next_step = character())
  unique(rbind(empty, rbindlist(c(rows, list(analysis_reasons())))), by = "code")
}

# Defects that only the reader across runs can see; the per-run codes are contracts.
analysis_reasons <- function() {
  rbindlist(list(
    list(
      code = "half_written_run", meaning = "a file of the run is missing or cut off", invalidates = TRUE,
      next_step = "netjoule resume repeats it"
    ),
    list(
      code = "not_a_number", meaning = "a file of the run holds text, NaN or an infinite value where a number belongs",
      invalidates = TRUE, next_step = "netjoule check names the field"
    ),
    list(
      code = "table_unreadable", meaning = "a table of the run cannot be read", invalidates = TRUE,
      next_step = "netjoule check names the line"
    ),
    list(
      code = "schema_version_unsupported", meaning = "the file was written under another schema version",
      invalidates = TRUE, next_step = "analyse it with the netjoule version that wrote it"
    ),
    list(
      code = "column_missing", meaning = "a column of the contract is not in the file", invalidates = FALSE,
      next_step = "netjoule check names all such defects"
    ),
    list(
      code = "half_written_row", meaning = "the last row of a table was cut off and is left out",
      invalidates = FALSE, next_step = "nothing to do: the logger was stopped while writing"
    ),
    list(
      code = "p_a_below_p_i", meaning = "power while sending is below idle power by more than its uncertainty",
      invalidates = FALSE, next_step = "look for a load on the node during the idle windows"
    )
  ))
}

#' Terms of the glossary
#'
#' @return data.table term, column, unit, meaning.
#' @noRd
glossary_table <- function(contracts = contracts_dir()) {
  entries <- pick(read_contract_json("glossary.json", contracts = contracts), "entries", default = list())
  columns <- c("term", "column", "unit", "meaning")
  rows <- lapply(entries, function(entry) {
    stats::setNames(lapply(columns, function(column) pick(entry, column, default = "")), columns)
  })
  empty <- data.table(term = character(), column = character(), unit = character(), meaning = character())
  rbind(empty, rbindlist(rows))
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

pick_flag <- function(x, ...) {
  value <- pick(x, ..., default = NA)
  if (is.logical(value) && length(value) == 1L) value else NA
}
