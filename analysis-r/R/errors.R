# SPDX-License-Identifier: Apache-2.0

# Exit codes shared by every netjoule program.
exit_codes <- list(fine = 0L, failed = 1L, usage = 2L, invalid_data = 4L)

#' Stop with one clear sentence and an exit code
#'
#' @param ... pieces of the message: what, where, what to do next.
#' @param exit_code 1 failed, 2 usage, 4 invalid or inconclusive data.
#' @noRd
abort_netjoule <- function(..., exit_code = exit_codes$failed) {
  stop(structure(
    class = c("netjoule_error", "error", "condition"),
    list(message = paste0(...), call = NULL, exit_code = exit_code)
  ))
}

abort_invalid_data <- function(...) {
  abort_netjoule(..., exit_code = exit_codes$invalid_data)
}
