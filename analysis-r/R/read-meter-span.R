# SPDX-License-Identifier: Apache-2.0

# A few minutes of a meter's table without reading the hundreds of hours around them.

# Rows are looked for in steps of halves down to so many bytes.
block_bytes <- 8192

#' Readings of one meter that were logged in a span of campaign time
#'
#' The table is in time order, so its place in the file is found by halving.
#'
#' @param from_s,to_s campaign time as logged, in s.
#' @return data.table t_s (s), power_w (W), flag ("" when good) in time order; no rows
#'   when there is no file or nothing in the span.
#' @noRd
read_meter_span <- function(campaign, meter_id, from_s, to_s) {
  path <- file.path(campaign$dir, "meters", paste0(meter_id, ".csv"))
  empty <- data.table(t_s = numeric(), power_w = numeric(), flag = character())
  if (!file.exists(path) || file.size(path) == 0) {
    return(empty)
  }
  header <- csv_header(path)
  if (!all(names(needed_columns$meters) %in% header)) {
    return(empty)
  }
  lines <- lines_of_span(path, match("t_s", header), from_s, to_s)
  if (length(lines) == 0L) {
    return(empty)
  }
  rows <- fread(
    text = c(paste(header, collapse = ","), lines), sep = ",", header = TRUE, select = names(empty),
    colClasses = needed_columns$meters, na.strings = "", showProgress = FALSE
  )
  rows <- rows[t_s >= from_s & t_s <= to_s]
  rows[is.na(flag), flag := ""]
  setorderv(rows, "t_s")[]
}

# Whole lines that hold the span, with some around it.
lines_of_span <- function(path, column, from_s, to_s) {
  size <- file.size(path)
  connection <- file(path, "rb")
  on.exit(close(connection))
  start <- offset_before(connection, column, from_s, size)
  end <- min(size, offset_before(connection, column, to_s, size) + 2 * block_bytes)
  seek(connection, start)
  text <- rawToChar(readBin(connection, "raw", end - start))
  lines <- strsplit(text, "\n", fixed = TRUE)[[1]]
  # The first line is cut off, or the header.
  lines <- lines[-1]
  if (endsWith(text, "\n")) lines else utils::head(lines, -1L)
}

#' A place in the file, all rows before which are earlier than `t_s`, at most a block and a row too early
#' @noRd
offset_before <- function(connection, column, t_s, size) {
  low <- 0
  high <- size
  while (high - low > block_bytes) {
    middle <- floor((low + high) / 2)
    found <- time_after(connection, column, middle)
    if (is.na(found) || found >= t_s) high <- middle else low <- middle
  }
  low
}

# Time of the first whole row after a place; NA at the end of the file.
time_after <- function(connection, column, offset) {
  seek(connection, offset)
  lines <- readLines(connection, n = 2L, warn = FALSE)
  if (length(lines) < 2L) {
    return(NA_real_)
  }
  suppressWarnings(as.numeric(strsplit(lines[2], ",", fixed = TRUE)[[1]][column]))
}
