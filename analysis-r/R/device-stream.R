# SPDX-License-Identifier: Apache-2.0

# The stream of a modelled device (devices/<meter_id>.ndjson): what each term of its model drew. It may be hundreds of
# hours long, so it is read in pieces, of which nothing is kept but the energy in the windows that are asked for.

# So much of a stream is in memory at once; R takes some ten times of it while it turns text into numbers.
stream_piece_bytes <- 2^24
# A window of which more or less than this is covered has no mean.
most_uncovered_ratio <- 1e-3

stream_keys <- c("t_start_s", "t_end_s", "power_w", "extrapolated", "terms")

#' Mean of each term of a device's model over spans of time, prorated at their edges
#'
#' @param path NDJSON file. A line cut off by a kill is left out.
#' @param from_s,to_s campaign time in s, a value per span.
#' @param piece bytes read at once.
#' @return list means (matrix in W, spans by terms; NA where the stream does not cover the whole span) and reason
#'   (NA; else means is NULL for "no_stream" or "stream_unreadable"). The stream is optional: whatever is wrong with
#'   it does not end the analysis.
#' @noRd
stream_means_w <- function(path, from_s, to_s, piece = stream_piece_bytes) {
  if (!file.exists(path)) {
    return(list(means = NULL, reason = "no_stream"))
  }
  sums <- tryCatch(stream_sums(path, from_s, to_s, piece), error = function(e) NULL, warning = function(w) NULL)
  if (is.null(sums)) {
    return(list(means = NULL, reason = "stream_unreadable"))
  }
  length_s <- to_s - from_s
  means <- sums[, -1L, drop = FALSE] / length_s
  means[which(abs(sums[, "covered_s"] - length_s) > most_uncovered_ratio * length_s), ] <- NA_real_
  list(means = means, reason = NA_character_)
}

# From so many bytes on, what was found in a stream is kept beside the per-run pass.
least_kept_stream_bytes <- 1e8

#' stream_means_w() of a meter's stream, from an earlier analysis where file and spans are the same
#'
#' @param least streams of fewer bytes are read each time; settle_s: see read_runs().
#' @noRd
known_stream_means_w <- function(campaign, id, from_s, to_s, least = least_kept_stream_bytes, settle_s = 2) {
  path <- file.path(campaign$dir, "devices", paste0(id, ".ndjson"))
  maker <- cache_maker(campaign$contracts)
  if (is.null(campaign$cache) || is.null(maker) || !isTRUE(file.size(path) >= least)) {
    return(stream_means_w(path, from_s, to_s))
  }
  stamp <- file_stamps(path)
  settled <- stamp$newest < as.numeric(Sys.time()) - settle_s
  maker <- c(maker, stamp$text, digest::digest(list(from_s, to_s)))
  kept <- paste0(campaign$cache, "-", id)
  known <- if (settled) kept_parts(kept, maker)
  if (!is.null(known)) {
    return(list(means = as.matrix(known$means), reason = NA_character_))
  }
  found <- stream_means_w(path, from_s, to_s)
  if (settled && is.na(found$reason)) keep_parts(kept, maker, list(means = as.data.table(found$means)))
  found
}

#' Seconds of each span that the stream covers, and the energy of each term in them
#'
#' @return matrix, spans by covered_s (s) and terms (J).
#' @noRd
stream_sums <- function(path, from_s, to_s, piece) {
  connection <- file(path, "rb")
  on.exit(close(connection))
  sums <- NULL
  while (nzchar(text <- next_lines(connection, piece))) {
    rows <- stream_rows(text)
    columns <- c("covered_s", names(rows)[-(1:2)])
    if (is.null(sums)) sums <- matrix(0, length(from_s), length(columns), dimnames = list(NULL, columns))
    if (!identical(columns, colnames(sums))) stop("the terms of the stream change")
    touched <- which(from_s < max(rows$t_end_s) & to_s > min(rows$t_start_s))
    if (length(touched) > 0L) {
      sums[touched, ] <- sums[touched, ] + sums_within(rows, from_s[touched], to_s[touched])
    }
  }
  sums
}

#' The next whole lines of a stream
#'
#' @return one string that ends with a newline; "" at the end of the file.
#' @noRd
next_lines <- function(connection, piece) {
  text <- readChar(connection, piece, useBytes = TRUE)
  if (length(text) == 0L) {
    return("")
  }
  # The rest of the line in which the piece ends; none at the end of the file.
  text <- paste0(c(text, readLines(connection, n = 1L, warn = FALSE)), collapse = "")
  if (endsWith(text, "\n")) text <- substr(text, 1L, nchar(text, "bytes") - 1L)
  if (!endsWith(text, "}}")) {
    text <- if (grepl("\n", text, fixed = TRUE)) sub("\n[^\n]*+$", "", text, perl = TRUE, useBytes = TRUE) else ""
  }
  if (nzchar(text)) paste0(text, "\n") else ""
}

#' Lines of a stream as numbers
#'
#' Ten times faster than a JSON parser: colons become commas, so that each line is a row of keys and values.
#'
#' @return data.table t_start_s, t_end_s (s) and one column per term (W), in time order. Stops unless all lines have
#'   the keys of device_stream.schema.json and the same terms, in the same order.
#' @noRd
stream_rows <- function(text) {
  cells <- gsub(":", ",", text, fixed = TRUE, useBytes = TRUE)
  cells <- gsub("}}", "", cells, fixed = TRUE, useBytes = TRUE)
  rows <- whole_fread(cells)
  if (ncol(rows) < 11L || ncol(rows) %% 2L == 0L) stop("a line of the stream has another form")
  # Before the terms keys and values alternate; "terms" is a key whose value are further keys and values.
  keys <- c(seq(1L, 9L, by = 2L), seq(10L, ncol(rows) - 1L, by = 2L))
  same <- vapply(keys, function(k) is.character(rows[[k]]) && all(rows[[k]] == rows[[k]][1]), NA)
  if (!all(same)) stop("lines of the stream differ in their keys")
  names <- gsub("[{\" ]", "", vapply(keys, function(k) rows[[k]][1], ""))
  values <- rows[, c(2L, 4L, seq(11L, ncol(rows), by = 2L)), with = FALSE]
  if (!identical(names[1:5], stream_keys) || !all(vapply(values, function(x) is.numeric(x) && all(is.finite(x)), NA))) {
    stop("a line of the stream has another form")
  }
  setnames(values, c(stream_keys[1:2], names[-(1:5)]))
  if (is.unsorted(values$t_start_s)) setorderv(values, "t_start_s")
  values[]
}

# A line of another form is only a warning of fread's, which has to end before anybody stops.
whole_fread <- function(cells) {
  told <- NULL
  rows <- withCallingHandlers(
    fread(text = cells, sep = ",", header = FALSE, quote = "", integer64 = "double", showProgress = FALSE),
    warning = function(w) {
      told <<- conditionMessage(w)
      invokeRestart("muffleWarning")
    }
  )
  if (!is.null(told)) stop(told)
  rows
}

#' The part of stream_sums() that some rows of the stream hold
#'
#' @param rows from stream_rows().
#' @noRd
sums_within <- function(rows, from_s, to_s) {
  length_s <- rows$t_end_s - rows$t_start_s
  terms <- c(list(covered_s = rep(1, nrow(rows))), as.list(rows)[-(1:2)])
  # The row in or behind which an edge lies, and how far into it.
  place <- function(t_s) {
    row <- pmax(1L, findInterval(t_s, rows$t_start_s))
    list(row = row, into_s = pmax(0, pmin(t_s, rows$t_end_s[row]) - rows$t_start_s[row]))
  }
  from <- place(from_s)
  to <- place(to_s)
  sums <- vapply(terms, function(power_w) {
    before <- c(0, cumsum(power_w * length_s))
    until <- function(edge) before[edge$row] + power_w[edge$row] * edge$into_s
    until(to) - until(from)
  }, numeric(length(from_s)))
  matrix(sums, length(from_s), length(terms), dimnames = list(NULL, names(terms)))
}
