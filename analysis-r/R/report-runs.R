# SPDX-License-Identifier: Apache-2.0

# The report's sections on runs that do not count and on what the campaign was made with.

section_invalid <- function(campaign, tables) {
  superseded <- nrow(campaign$plan[status == "superseded"])
  waiting <- nrow(campaign$plan[status %in% c("planned", "running")])
  tag$section(
    id = "invalid", tag$h2("Invalid runs"), invalid_content(tables$invalid_runs),
    if (superseded > 0L) tag$p(sprintf("%d runs of repeated mini-blocks do not count.", superseded)),
    if (waiting > 0L) tag$p(sprintf("%d runs have not been finished: netjoule resume goes on with them.", waiting)),
    if (nrow(tables$run_notes) > 0L) {
      list(
        tag$h3("Notes on runs that count"), count_by_code(tables$run_notes, "note"),
        long_table("Every note", "tables/run_notes.csv", tables$run_notes, c(
          run = "run_id", note = "code", detail = "detail"
        ))
      )
    },
    disagreement_content(tables$ea_check)
  )
}

invalid_content <- function(invalid) {
  if (nrow(invalid) == 0L) {
    return(tag$p("No finished run is invalid."))
  }
  list(
    count_by_code(invalid, "reason"),
    long_table("Every invalid run", "tables/invalid_runs.csv", invalid, c(
      run = "run_id", transport = "transport", "payload B" = "payload_bytes", "load Mb/s" = "offered_rate_mbps",
      reason = "code", detail = "detail"
    ))
  )
}

# Numbers of result.json that the recomputation does not meet: the analysis ends with an error, and the page says so.
disagreement_content <- function(check) {
  wrong <- check[agrees == FALSE]
  if (nrow(wrong) > 0L) {
    list(
      tag$h3("Numbers that the recomputation does not meet"),
      html_table(wrong, c(
        run = "run_id", meter = "meter_id", number = "quantity", recomputed = "ours", "result.json" = "theirs"
      ), csv = "tables/ea_check.csv")
    )
  }
}

count_by_code <- function(rows, heading) {
  counted <- rows[, list(
    runs = length(unique(run_id)), meaning = meaning[1], next_step = next_step[1]
  ), by = list(code)]
  columns <- c("code", runs = "runs", meaning = "meaning", "next step" = "next_step")
  names(columns)[1] <- heading
  html_table(counted[order(-runs, code)], columns, long = c("meaning", "next_step"))
}

long_table <- function(summary, csv, rows, columns) {
  folded(summary, html_table(rows, columns, long = "detail", csv = csv), nrow(rows), csv)
}

# What campaign.json says, part by part; all the rest stands first. Those that most readers ask for are unfolded.
environment_parts <- c(
  meters = "Meters", host = "Host", lab_hosts = "Hosts of the lab", versions = "Versions", topology = "Testbed",
  workload = "Workload", device_models = "Device models", alignment = "Lags told by load pulses",
  sessions = "Sessions"
)
open_parts <- c("meters", "host")

section_environment <- function(campaign) {
  meta <- campaign$meta
  names(meta$meters) <- campaign$meters$meter_id
  if (length(meta$lab_hosts) > 0L) names(meta$lab_hosts) <- vapply(meta$lab_hosts, pick_text, "", "host")
  rest <- meta[setdiff(names(meta), names(environment_parts))]
  tag$section(
    id = "environment", tag$h2("Environment"), definitions_of(rest),
    lapply(names(environment_parts), function(part) {
      if (length(meta[[part]]) > 0L) {
        folded(environment_parts[[part]], definitions_of(meta[[part]]), open = part %in% open_parts)
      }
    })
  )
}

# More entries than this stand in campaign.json alone: sessions of a campaign of weeks, hosts of a large lab.
most_definitions <- 400L

definitions_of <- function(x) {
  flat <- flatten(x)
  left_out <- length(flat) - most_definitions
  flat <- utils::head(flat, most_definitions)
  list(
    definition_list(names(flat), unname(flat)),
    if (left_out > 0L) tag$p(sprintf("%d more entries are in campaign.json.", left_out))
  )
}
