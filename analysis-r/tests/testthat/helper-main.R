# SPDX-License-Identifier: Apache-2.0

#' What the command line says to these arguments: exit code, events, lines on stderr
run_main <- function(...) {
  code <- NULL
  errors <- capture.output(output <- capture.output(code <- main(c(...))), type = "message")
  list(code = code, events = lapply(output, jsonlite::fromJSON), errors = errors)
}

page_text <- function(path) paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
