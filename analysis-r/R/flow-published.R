# SPDX-License-Identifier: Apache-2.0

# What was published, as data: results/reference, by protocols/contracts/schemas/reference.schema.json.

#' Find the folder of published values
#'
#' @param contracts folder of the contracts of the same source tree.
#' @return path, or NA where there is none: an installation without the source tree.
#' @noRd
reference_dir <- function(contracts = contracts_dir()) {
  if (is.na(contracts)) {
    return(NA_character_)
  }
  dir <- file.path(contracts, "..", "..", "results", "reference")
  if (dir.exists(dir)) normalizePath(dir) else NA_character_
}

#' Read every publication of results/reference
#'
#' @param dir folder, NA for none.
#' @return list of documents, in the order of their names; no document without a folder.
#' @noRd
read_references <- function(dir = reference_dir()) {
  if (is.na(dir)) {
    return(list())
  }
  lapply(list.files(dir, pattern = "\\.json$", full.names = TRUE), function(path) {
    document <- tryCatch(jsonlite::fromJSON(path, simplifyVector = FALSE), error = function(e) NULL)
    known <- identical(pick_number(document, "schema_version"), as.numeric(supported_schema_version))
    if (!known || !identical(pick_text(document, "kind"), "published_reference")) {
      abort_invalid_data(
        "The file ", path, " is no document of published values of schema_version ", supported_schema_version,
        ": restore it from the source tree, or move it out of results/reference."
      )
    }
    document
  })
}

value_text <- c(
  "value_id", "precision", "quantity", "unit", "relation", "printed", "transport", "reference_transport",
  "application", "conditions", "note"
)
value_numbers <- c(
  "low", "high", "payload_bytes", "offered_rate_mbps", "offered_from_mbps", "offered_below_mbps", "run_s",
  "repetitions"
)

# Quantities whose sign is ours the other way round, by the name that a publication has for them.
converted <- c(
  dea_j_per_mbit = "difference_j_per_mbit", dea_percent = "difference_percent", dgoodput_percent = "shortfall_percent"
)

#' Published values as a table
#'
#' A published difference (dE_A: what UDP takes more) is converted to the one sign, + where the arm costs more; what
#' was printed stays in `printed`.
#'
#' @param reference document of [read_references()].
#' @return data.table, one row per value: reference_id, source (place in the publication), fitted_presets (; between)
#'   and the other fields of the contract; rates in Mb/s, sizes in byte, low and high in `unit`.
#' @noRd
published_values <- function(reference) {
  rows <- lapply(reference$values, function(value) {
    as.data.table(c(
      list(
        reference_id = pick_text(reference, "reference_id"), source = pick_text(value, "source", "label"),
        fitted_presets = paste(unlist(value[["fitted_presets"]]), collapse = ";")
      ),
      pick_texts(value, value_text),
      pick_numbers(value, value_numbers)
    ))
  })
  values <- rbindlist(rows)
  turned <- values$quantity %in% names(converted)
  values[turned, `:=`(quantity = unname(converted[quantity]), low = -high, high = -low)][]
}

#' Errors in a publication
#'
#' @return data.table slip_id, source, printed, corrected, words, effect.
#' @noRd
published_slips <- function(reference) {
  fields <- c("slip_id", "printed", "corrected", "words", "effect")
  slips <- entries_table(reference$slips, stats::setNames(rep(list(NA_character_), length(fields)), fields))
  slips[, source := vapply(reference$slips, pick_text, "", "source", "label")][]
}
