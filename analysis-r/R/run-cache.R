# SPDX-License-Identifier: Apache-2.0

# The kept per-run pass: one file, which may be deleted at any time. Not R's own format: reading that can run code, and
# a campaign may come from anybody. Numbers are stored as they are, so a kept pass gives the same bytes as a new one.

cache_format <- 2L

#' Where the per-run pass of a campaign is kept
#'
#' @param campaign_dir folder of the campaign.
#' @return path of a file in tables/, which can be deleted and is made again.
#' @examples
#' run_cache_path(example_campaign()$dir)
#' @export
run_cache_path <- function(campaign_dir) file.path(campaign_dir, "tables", ".per-run-pass")

#' What a kept pass must have been made by: this program and these contracts
#'
#' @return character vector; NULL when the program is not installed, and nothing is kept then.
#' @noRd
cache_maker <- function(contracts) {
  code <- system.file("R", "netjoule.rdb", package = "netjoule")
  if (!nzchar(code)) {
    return(NULL)
  }
  contract <- if (!is.na(contracts)) file.path(contracts, "tables", "intervals.table.json") else character()
  c(as.character(cache_format), file_stamps(c(code, contract))$text)
}

#' Keep a pass
#'
#' A cache is no result: where it cannot be written, the next analysis takes longer.
#'
#' @param keys data.table run_id, stamp.
#' @param tables from read_runs().
#' @noRd
write_run_cache <- function(path, contracts, keys, tables) {
  maker <- cache_maker(contracts)
  if (!is.null(maker)) keep_parts(path, maker, c(list(keys = keys), tables))
}

keep_parts <- function(path, maker, parts) {
  written <- tryCatch(
    {
      write_whole(path, function(part) write_parts(part, maker, parts))
      TRUE
    },
    error = function(e) FALSE, warning = function(w) FALSE
  )
  invisible(written)
}

#' Read a kept pass
#'
#' @return list keys, tables; NULL when there is none, it is broken or another program made it.
#' @noRd
read_run_cache <- function(path, contracts) {
  maker <- cache_maker(contracts)
  parts <- if (!is.null(maker)) kept_parts(path, maker)
  if (!is.null(parts)) list(keys = parts$keys, tables = parts[names(parts) != "keys"])
}

# NULL when there are none, they are broken, or of another maker.
kept_parts <- function(path, maker) {
  if (file.exists(path)) tryCatch(read_parts(path, maker), error = function(e) NULL, warning = function(w) NULL)
}

write_parts <- function(path, maker, parts) {
  connection <- file(path, "wb")
  on.exit(close(connection))
  head <- list(maker = as.list(maker), parts = lapply(parts, function(one) {
    list(rows = nrow(one), columns = as.list(vapply(one, typeof, "")))
  }))
  write_text(connection, as.character(jsonlite::toJSON(head, auto_unbox = TRUE)))
  for (one in parts) for (column in one) write_column(connection, column)
  write_text(connection, "end")
}

read_parts <- function(path, maker) {
  connection <- file(path, "rb")
  on.exit(close(connection))
  head <- jsonlite::fromJSON(read_text(connection, 1L), simplifyVector = FALSE)
  if (!identical(as.character(unlist(head$maker)), maker)) {
    return(NULL)
  }
  parts <- lapply(head$parts, function(one) {
    as.data.table(lapply(one$columns, function(type) read_column(connection, type, one$rows)))
  })
  if (!identical(read_text(connection, 1L), "end")) stop("the file is cut off")
  parts
}

write_column <- function(connection, x) {
  switch(typeof(x),
    character = write_text(connection, x), double = writeBin(x, connection),
    integer = , logical = writeBin(as.integer(x), connection), stop("no column of this kind is kept")
  )
}

read_column <- function(connection, type, rows) {
  x <- switch(type,
    double = readBin(connection, "double", rows),
    integer = readBin(connection, "integer", rows),
    logical = as.logical(readBin(connection, "integer", rows)),
    character = read_text(connection, rows)
  )
  if (length(x) != rows) stop("the file is cut off")
  x
}

# Lengths in bytes, -1 for a missing one, then the bytes of all.
write_text <- function(connection, x) {
  x <- enc2utf8(x)
  sizes <- ifelse(is.na(x), -1L, nchar(x, "bytes"))
  writeBin(as.integer(sizes), connection)
  some <- sizes > 0L
  if (any(some)) writeBin(charToRaw(paste(x[some], collapse = "")), connection)
}

read_text <- function(connection, rows) {
  sizes <- readBin(connection, "integer", rows)
  if (length(sizes) != rows) stop("the file is cut off")
  x <- ifelse(sizes < 0L, NA_character_, "")
  some <- which(sizes > 0L)
  if (length(some) > 0L) {
    text <- readChar(connection, sizes[some], useBytes = TRUE)
    if (length(text) != length(some) || any(nchar(text, "bytes") != sizes[some])) stop("the file is cut off")
    Encoding(text) <- "UTF-8"
    x[some] <- text
  }
  x
}
