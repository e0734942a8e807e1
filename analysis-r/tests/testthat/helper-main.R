# SPDX-License-Identifier: Apache-2.0

#' What the command line says to these arguments: exit code, events, lines on stderr
run_main <- function(...) {
  code <- NULL
  errors <- capture.output(output <- capture.output(code <- main(c(...))), type = "message")
  list(code = code, events = lapply(output, jsonlite::fromJSON), errors = errors)
}

page_text <- function(path) paste(readLines(path, encoding = "UTF-8"), collapse = "\n")

#' expect_match() for a page: that one escapes all of it for its message, for half a second, whether it is needed or not
expect_on_page <- function(page, pattern, ...) {
  testthat::expect(grepl(pattern, page, ...), paste0("The page has nothing like \"", pattern, "\"."))
  invisible(page)
}
