# SPDX-License-Identifier: Apache-2.0

# Columns without which the analysis cannot be done. What else the Table Schemas ask for is reported when absent.
needed_columns <- list(
  plan = c("run_id", "block", "mini_block", "order", "attempt", "load", "kind", "arm"),
  status = c("run_id", "owner_token", "status", "reason"),
  plan_1 = plan_1_columns,
  meters = c("t_s", "power_w", "flag"),
  intervals = c("part", "t_start_s", "t_end_s", "work"),
  intervals_1 = c("end", "t_start_s", "t_end_s", "bytes"),
  radio = c("t_s", "phy_rate_mbps", "mcs", "streams", "width_mhz", "guard_interval_ns")
)

#' Read a CSV of the campaign by its contract
#'
#' Columns are taken by name with explicit types, never by position. A row cut
#' off by a killed writer is dropped and reported.
#'
#' @param path file.
#' @param table contract: plan, plan_1, status, meters, intervals, radio.
#' @param contracts folder of the contracts.
#' @param columns of these alone the rows are made, where the file has them: a log of 18 million readings fills
#'   2 GB with all its columns. NULL takes every column of the contract.
#' @return list(rows = data.table, problems = data.table(code, detail)).
#' @noRd
read_contract_csv <- function(path, table, contracts = contracts_dir(), columns = NULL) {
  if (!file.exists(path)) {
    abort_invalid_data("The file ", path, " is missing: run netjoule check on the campaign.")
  }
  if (dir.exists(path)) {
    abort_invalid_data("The file ", path, " is a folder: run netjoule check on the campaign.")
  }
  header <- csv_header(path)
  absent <- setdiff(needed_columns[[table]], header)
  if (length(absent) > 0L) {
    abort_invalid_data(
      "The file ", path, " lacks the column", if (length(absent) > 1L) "s", " ", paste(absent, collapse = ", "),
      ": it was not written by this version of netjoule or was edited; run netjoule check on the campaign."
    )
  }
  types <- schema_columns(table, contracts)
  problems <- list()
  wanting <- setdiff(names(types), c(header, younger_columns(table, contracts)))
  if (length(wanting) > 0L) {
    problems <- list(list(code = "column_missing", detail = paste0(basename(path), ": ", toString(wanting))))
  }
  if (table == "plan") types <- c(types, factor_columns(setdiff(header, names(types)), contracts))
  types <- types[intersect(header, names(types))]
  if (!is.null(columns)) types <- types[names(types) %in% columns]
  whole <- ends_with_newline(path)
  if (!whole) {
    problems <- c(problems, list(list(code = "half_written_row", detail = basename(path))))
  }
  list(rows = read_typed(path, types, whole), problems = problem_rows(problems))
}

read_typed <- function(path, types, whole) {
  arguments <- list(
    sep = ",", header = TRUE, select = names(types), colClasses = types, na.strings = "", showProgress = FALSE
  )
  file <- if (whole) path else whole_lines(path)
  if (!whole) on.exit(unlink(file))
  complaints <- character()
  rows <- tryCatch(
    withCallingHandlers(do.call(fread, c(list(file = file), arguments)), warning = function(w) {
      complaints <<- c(complaints, conditionMessage(w))
      invokeRestart("muffleWarning")
    }),
    error = function(e) abort_invalid_data("The file ", path, " cannot be read as a table: ", conditionMessage(e))
  )
  assert_types(rows, types, path)
  # A ragged row or a quote out of place: fread goes on or stops early, and either would be silent loss.
  if (length(complaints) > 0L) {
    abort_invalid_data("The file ", path, " cannot be read as a table: ", gsub("\n", " ", complaints[1]))
  }
  rows
}

#' Copy a file up to the end of its last whole line; the header alone when nothing else is whole
#'
#' By another program: a log of gigabytes as lines in memory would take several times its size.
#'
#' @return path of a temporary file.
#' @noRd
whole_lines <- function(path) {
  copy <- tempfile("whole", fileext = ".csv")
  # All lines but the last, and in any case the first.
  status <- system2("sed", c("-e", "1b", "-e", "'$d'", shQuote(path)), stdout = copy, env = "LC_ALL=C")
  if (status != 0L) {
    abort_invalid_data("The whole lines of ", path, " cannot be copied to ", dirname(copy), ": is there room?")
  }
  copy
}

# fread falls back to text when a number column holds text: that is a defect of the file, not a column of text.
assert_types <- function(rows, types, path) {
  for (column in names(types)) {
    if (types[[column]] == "numeric" && !is.numeric(rows[[column]])) {
      if (is.logical(rows[[column]]) && all(is.na(rows[[column]]))) {
        set(rows, j = column, value = as.numeric(rows[[column]]))
      } else {
        abort_invalid_data("The column ", column, " of ", path, " holds text where a number belongs.")
      }
    }
    if (types[[column]] == "character" && !is.character(rows[[column]])) {
      set(rows, j = column, value = as.character(rows[[column]]))
    }
    if (types[[column]] == "numeric") assert_finite(rows[[column]], column, path)
  }
  rows
}

# fread takes NaN, Inf and what spreadsheets write for an error as numbers; missing is an empty cell, and nothing else.
assert_finite <- function(values, column, path) {
  if (anyNA(values) && any(is.nan(values))) {
    found <- "NaN"
  } else {
    # Neither of them makes a copy of a long column.
    ends <- suppressWarnings(c(min(values, na.rm = TRUE), max(values, na.rm = TRUE)))
    if (all(is.finite(ends)) || all(is.na(values))) {
      return(invisible())
    }
    found <- "an infinite number"
  }
  abort_invalid_data(
    "The column ", column, " of ", path, " holds ", found, "; a missing value is an empty cell: ",
    "run netjoule check on the campaign."
  )
}

csv_header <- function(path) {
  line <- readLines(path, n = 1L, warn = FALSE, encoding = "UTF-8")
  if (length(line) == 0L) {
    abort_invalid_data("The file ", path, " is empty: run netjoule check on the campaign.")
  }
  # Plain names need no parser, of which a campaign would start ten thousand.
  if (grepl("^[a-z0-9_]+(,[a-z0-9_]+)*$", line)) {
    return(strsplit(line, ",", fixed = TRUE)[[1]])
  }
  names(fread(text = c(line, ""), sep = ",", header = TRUE, nrows = 0L))
}

ends_with_newline <- function(path) {
  size <- file.size(path)
  connection <- file(path, "rb")
  on.exit(close(connection))
  seek(connection, size - 1)
  identical(readBin(connection, "raw", 1L), as.raw(10L))
}

problem_rows <- function(problems) {
  empty <- data.table(code = character(), detail = character())
  rbind(empty, rbindlist(problems))
}
