# SPDX-License-Identifier: Apache-2.0

usage <- "usage: analyse.R CAMPAIGN [--report] [--json]
  CAMPAIGN   folder of a campaign; tables/, figures/ and report.html are written into it
  --report   also write report.html
  --json     one JSON event per line also on a terminal
example: Rscript --vanilla analysis-r/exec/analyse.R results/demo --report"

#' Run the command line
#'
#' Events go to stdout as NDJSON when asked or when stdout is no terminal, else
#' as one path per line; errors go to stderr too, as one sentence.
#'
#' @param arguments character vector.
#' @return exit code: 0 fine, 1 failed, 2 usage, 4 invalid data.
#' @export
main <- function(arguments) {
  json <- "--json" %in% arguments || !isatty(stdout())
  tell <- function(event) emit(event, json)
  tryCatch(
    {
      if (any(c("--help", "-h") %in% arguments)) {
        cat(usage, "\n", sep = "")
      } else {
        options <- parse_arguments(arguments)
        analyse(options$campaign_dir, options$with_report, tell)
      }
      exit_codes$fine
    },
    netjoule_error = function(e) refuse(conditionMessage(e), e$exit_code, tell),
    error = function(e) {
      refuse(paste0("The analysis failed: ", gsub("\n", " ", conditionMessage(e))), exit_codes$failed, tell)
    }
  )
}

parse_arguments <- function(arguments) {
  flags <- grepl("^-", arguments)
  unknown <- setdiff(arguments[flags], c("--report", "--json"))
  if (length(unknown) > 0L) {
    abort_netjoule("There is no option ", unknown[1], ".\n", usage, exit_code = exit_codes$usage)
  }
  if (sum(!flags) != 1L) {
    abort_netjoule("Name one campaign folder.\n", usage, exit_code = exit_codes$usage)
  }
  list(campaign_dir = arguments[!flags], with_report = "--report" %in% arguments)
}

emit <- function(event, json) {
  if (json) {
    cat(jsonlite::toJSON(event, auto_unbox = TRUE), "\n", sep = "")
  } else if (!is.null(event$path)) {
    cat(event$event, "  ", event$path, "\n", sep = "")
  }
}

refuse <- function(message, exit_code, tell) {
  tell(list(event = "error", message = message))
  cat(message, "\n", sep = "", file = stderr())
  exit_code
}
