# SPDX-License-Identifier: Apache-2.0

usage <- "usage: analyse.R CAMPAIGN [--report] [--margin PERCENT] [--json]
       analyse.R PILOT --mde PERCENT --workload FILE [--power RATIO] [--json]
       analyse.R CAMPAIGN... --table-iv [--json]
       analyse.R CAMPAIGN CAMPAIGN --overlay FILE [--json]
       analyse.R --intervals | --binomial
       analyse.R CSV --history FILE [--json]
  CAMPAIGN   folder of a campaign; tables/, figures/ and report.html are written into it
  --report   also write report.html
  --margin   ask whether arms are equivalent within so many percent
  --mde      say how many blocks find a difference of so many percent; nothing is written
  --workload effective workload as JSON, whose blocks these are
  --power    probability of finding it (default 0.8)
  --table-iv say E_A of the applications of several campaigns beside what was published; nothing is written
  --overlay  write a report that compares two campaigns side by side; nothing is written into them
  --intervals answer each line of numbers on standard input with their mean and its 95 % t interval, as JSON
  --binomial the same of how often and of how many times, with the Clopper-Pearson interval of the rate
  --history  write the page of a history of gates from the table that netjoule history made
  --json     one JSON event per line also on a terminal
example: Rscript --vanilla analysis-r/exec/analyse.R results/demo --report"

#' Run the command line
#'
#' Events go to stdout as NDJSON when asked or when stdout is no terminal, else
#' as one path per line; errors go to stderr too, as one sentence.
#'
#' @param arguments character vector.
#' @return exit code: 0 fine, 1 failed, 2 usage, 4 invalid or inconclusive data.
#' @examples
#' main("--help")
#' @export
main <- function(arguments) {
  json <- "--json" %in% arguments || !isatty(stdout())
  tell <- function(event) emit(event, json)
  tryCatch(
    {
      if (any(c("--help", "-h") %in% arguments)) {
        cat(usage, "\n", sep = "")
      } else if (identical(arguments, "--intervals")) {
        tell_intervals(file("stdin", "r"))
      } else if (identical(arguments, "--binomial")) {
        tell_intervals(file("stdin", "r"), binomial_interval)
      } else {
        options <- parse_arguments(arguments)
        if (!is.null(options$overlay)) {
          overlay_report(options$campaign_dir, options$overlay, tell)
        } else if (!is.null(options$history)) {
          history_page(options$campaign_dir, options$history, tell)
        } else if (options$table_iv) {
          tell_table_iv(options$campaign_dir, tell)
        } else if (is.null(options$mde_percent)) {
          analyse(options$campaign_dir, options$with_report, tell, options$margin_percent)
        } else {
          tell_blocks_needed(options, tell)
        }
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
  valued <- c("--margin", "--mde", "--workload", "--power", "--overlay", "--history")
  places <- which(arguments %in% valued)
  given <- stats::setNames(as.list(arguments[places + 1L]), arguments[places])
  rest <- if (length(places) > 0L) arguments[-c(places, places + 1L)] else arguments
  flags <- grepl("^-", rest)
  table_iv <- "--table-iv" %in% rest
  unknown <- setdiff(rest[flags], c("--report", "--json", "--table-iv"))
  if (length(unknown) > 0L) {
    abort_netjoule("There is no option ", unknown[1], ".\n", usage, exit_code = exit_codes$usage)
  }
  overlay <- given[["--overlay"]]
  count <- if (!is.null(overlay)) "two campaign folders" else "one campaign folder"
  right <- sum(!flags) == if (is.null(overlay)) 1L else 2L
  if (table_iv) {
    count <- "campaign folders"
    right <- any(!flags)
  }
  if (!right) abort_netjoule("Name ", count, ".\n", usage, exit_code = exit_codes$usage)
  list(
    campaign_dir = rest[!flags], table_iv = table_iv, with_report = "--report" %in% rest,
    overlay = overlay, history = given[["--history"]], workload = given[["--workload"]],
    margin_percent = number_option(given, "--margin", 0, 100), mde_percent = number_option(given, "--mde", 0, 100),
    power = number_option(given, "--power", 0, 1)
  )
}

# Of each line of numbers, until the last.
tell_intervals <- function(asked, interval = mean_interval) {
  on.exit(close(asked))
  while (length(line <- readLines(asked, 1L)) > 0L) {
    emit(interval(as.numeric(strsplit(line, " ", fixed = TRUE)[[1]])), json = TRUE)
    flush(stdout())
  }
}

# A number strictly between two bounds; NULL when the option is not given.
number_option <- function(given, name, least, greatest) {
  if (!name %in% names(given)) {
    return(NULL)
  }
  value <- suppressWarnings(as.numeric(given[[name]]))
  if (is.na(value) || value <= least || value >= greatest) {
    abort_netjoule(
      "The option ", name, " takes a number between ", least, " and ", greatest, ".\n", usage,
      exit_code = exit_codes$usage
    )
  }
  value
}

emit <- function(event, json) {
  if (json) {
    cat(jsonlite::toJSON(event, auto_unbox = TRUE, digits = NA, na = "null"), "\n", sep = "")
  } else if (!is.null(event$path)) {
    cat(event$event, "  ", event$path, "\n", sep = "")
  } else if (!is.null(event$words)) {
    cat(event$words, sep = "\n")
  }
}

refuse <- function(message, exit_code, tell) {
  tell(list(event = "error", message = message))
  cat(message, "\n", sep = "", file = stderr())
  exit_code
}
