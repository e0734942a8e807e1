# SPDX-License-Identifier: Apache-2.0

usage <- "usage: analyse.R CAMPAIGN [--report] [--margin PERCENT] [--json]
       analyse.R PILOT --mde PERCENT --workload FILE [--power RATIO] [--json]
       analyse.R CAMPAIGN... --table-iv [--json]
       analyse.R CAMPAIGN CAMPAIGN --overlay FILE [--json]
       analyse.R CAMPAIGN --gate | --gate-pilot [--json]
       analyse.R --gate-plan SD BLOCKS MARGIN TOLERANCE [--json]
       analyse.R CAMPAIGN [CAMPAIGN] --compare [--arm NAME] [--reference NAME] [--margin PERCENT]
                 [--tolerance PERCENT] [--json]
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
  --gate     say what a gate's session decides as far as it has come; nothing is written
  --gate-pilot say what a pilot of two builds of one source found; nothing is written
  --gate-plan say how many blocks a gate may take where the log ratios of a pilot's blocks scatter so
  --compare  say whether an arm, or the second campaign, costs more than the reference, or the first; nothing is written
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
      } else if (identical(arguments[1], "--gate-plan")) {
        tell_gate_plan(setdiff(arguments[-1], "--json"), tell)
      } else {
        answer(parse_arguments(arguments), tell)
      }
      exit_codes$fine
    },
    netjoule_error = function(e) refuse(conditionMessage(e), e$exit_code, tell),
    error = function(e) {
      refuse(paste0("The analysis failed: ", gsub("\n", " ", conditionMessage(e))), exit_codes$failed, tell)
    }
  )
}

answer <- function(options, tell) {
  if (!is.null(options$overlay)) {
    overlay_report(options$campaign_dir, options$overlay, tell)
  } else if (!is.null(options$history)) {
    history_page(options$campaign_dir, options$history, tell)
  } else if (!is.null(options$mde_percent)) {
    tell_blocks_needed(options, tell)
  } else {
    switch(options$mode,
      "--table-iv" = tell_table_iv(options$campaign_dir, tell),
      "--gate" = tell(gate_session(read_campaign(options$campaign_dir))),
      "--gate-pilot" = tell(gate_pilot(read_campaign(options$campaign_dir))),
      "--compare" = tell_comparison(options, tell),
      analyse(options$campaign_dir, options$with_report, tell, options$margin_percent)
    )
  }
}

# What else than analysing may be asked of how many campaigns.
modes <- c("--table-iv", "--gate", "--gate-pilot", "--compare")

parse_arguments <- function(arguments) {
  valued <- c(
    "--margin", "--mde", "--workload", "--power", "--overlay", "--history", "--arm", "--reference", "--tolerance"
  )
  places <- which(arguments %in% valued)
  given <- stats::setNames(as.list(arguments[places + 1L]), arguments[places])
  rest <- if (length(places) > 0L) arguments[-c(places, places + 1L)] else arguments
  flags <- grepl("^-", rest)
  mode <- c(intersect(modes, rest), "")[1]
  unknown <- setdiff(rest[flags], c("--report", "--json", mode))
  if (length(unknown) > 0L) {
    abort_netjoule("There is no option ", unknown[1], ".\n", usage, exit_code = exit_codes$usage)
  }
  overlay <- given[["--overlay"]]
  wanted <- if (!is.null(overlay)) "--overlay" else mode
  count <- switch(wanted, "--overlay" = 2L, "--compare" = 1:2, "--table-iv" = seq_along(rest), 1L)
  if (!sum(!flags) %in% count) {
    words <- switch(wanted,
      "--overlay" = "two campaign folders", "--compare" = "one or two campaign folders",
      "--table-iv" = "campaign folders", "one campaign folder"
    )
    abort_netjoule("Name ", words, ".\n", usage, exit_code = exit_codes$usage)
  }
  list(
    campaign_dir = rest[!flags], mode = mode, with_report = "--report" %in% rest,
    overlay = overlay, history = given[["--history"]], workload = given[["--workload"]],
    margin_percent = number_option(given, "--margin", 0, 100), mde_percent = number_option(given, "--mde", 0, 100),
    power = number_option(given, "--power", 0, 1), arm = given[["--arm"]], reference = given[["--reference"]],
    tolerance_percent = number_option(given, "--tolerance", 0, 100, closed = TRUE)
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

# A number strictly between two bounds, or the least of them where it is closed; NULL when the option is not given.
number_option <- function(given, name, least, greatest, closed = FALSE) {
  if (!name %in% names(given)) {
    return(NULL)
  }
  value <- suppressWarnings(as.numeric(given[[name]]))
  if (is.na(value) || value < least || value == least && !closed || value >= greatest) {
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
