# SPDX-License-Identifier: Apache-2.0

# The report's sections on runs that do not count and on what the campaign was made with.

section_invalid <- function(campaign, tables) {
  superseded <- nrow(campaign$plan[status == "superseded"])
  waiting <- nrow(campaign$plan[status %in% c("planned", "running")])
  tag$section(
    id = "invalid", tag$h2("Invalid runs"), invalid_content(tables$invalid_runs),
    if (superseded > 0L) {
      tag$p(sprintf(
        "%d %s of repeated mini-blocks %s not count.", superseded, plural("run", superseded),
        if (superseded == 1L) "does" else "do"
      ))
    },
    if (waiting > 0L) tag$p(sprintf("Not finished: %d %s. netjoule resume goes on.", waiting, plural("run", waiting))),
    if (nrow(tables$run_notes) > 0L) {
      list(
        tag$h3("Notes on runs that count"), count_by_code(tables$run_notes, "note"),
        long_table("Every note", "run_notes", tables$run_notes)
      )
    },
    disagreement_content(tables$ea_check)
  )
}

# Columns of invalid runs that are neither of the arm nor of its cell.
not_named <- c(
  "run_id", "block", "mini_block", "attempt", "status", "code", "detail", "meaning", "next_step"
)

invalid_content <- function(invalid) {
  if (nrow(invalid) == 0L) {
    return(tag$p("No finished run is invalid."))
  }
  list(
    count_by_code(invalid, "reason"),
    long_table("Every invalid run", "invalid_runs", invalid, list(
      names = stats::setNames(nm = setdiff(names(invalid), not_named))
    ))
  )
}

# Numbers of result.json with which the recomputation disagrees: the analysis ends with an error, and the page says so.
disagreement_content <- function(check) {
  wrong <- check[agrees == FALSE]
  if (nrow(wrong) > 0L) {
    list(
      tag$h3("Numbers where the independent recomputation disagrees"),
      table_html("ea_check", wrong, csv = "tables/ea_check.csv")
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

long_table <- function(summary, name, rows, more = list()) {
  csv <- paste0("tables/", name, ".csv")
  folded(summary, table_html(name, rows, more = more, csv = csv), nrow(rows), csv, printed = FALSE)
}

# What campaign.json says, part by part; single entries stand first.
environment_parts <- c(
  host = "Host", lab_hosts = "Hosts of the lab", versions = "Versions", topology = "Testbed", workload = "Workload",
  device_models = "Device models", meters = "Meters, every entry", sessions = "Sessions, every entry",
  alignment = "Lags from sync pulses", load_pulses = "Sync pulses"
)
section_environment <- function(campaign) {
  meta <- campaign$meta
  named <- function(entries, by) stats::setNames(entries, vapply(entries, pick_text, "", by))
  meta$meters <- named(pick(meta, "meters", default = list()), "meter_id")
  meta$lab_hosts <- named(pick(meta, "lab_hosts", default = list()), "host")
  rest <- meta[setdiff(names(meta), names(environment_parts))]
  tag$section(
    id = "environment", tag$h2("Environment"), sessions_part(meta$sessions),
    meters_part(meta$meters),
    lapply(names(environment_parts), function(part) folded_definitions(environment_parts[[part]], meta[[part]])),
    folded_definitions("Other entries", rest)
  )
}

folded_definitions <- function(title, x) {
  if (length(x) > 0L) folded(title, definitions_of(x), printed = FALSE)
}

#' Meters as a table, a column per meter
#'
#' @param meters of campaign.json, named by meter_id.
#' @noRd
meters_part <- function(meters) {
  if (length(meters) == 0L) {
    return(NULL)
  }
  flat <- lapply(meters, flatten)
  keys <- unique(unlist(lapply(flat, names)))
  # Each term of an accuracy is among all entries.
  keys <- keys[!grepl("^accuracy[.]terms|^schema_version$|^meter_id$", keys)]
  columns <- paste0("meter", seq_along(flat))
  values <- lapply(flat, function(one) {
    text <- unname(one[match(keys, names(one))])
    ifelse(text %in% "\u2013", NA_character_, text)
  })
  rows <- as.data.table(c(list(item = gsub("[._]+", " ", keys)), stats::setNames(values, columns)))
  told <- Reduce(`|`, lapply(values, function(text) !is.na(text)))
  folded("Meters", html_table(
    rows[told], c(item = "item", stats::setNames(columns, names(meters))), "Meters, as campaign.json has them.",
    long = columns
  ), printed = FALSE)
}

# More sessions than this stand in campaign.json alone.
most_sessions <- 50L

#' When the campaign was run, with its pauses
#' @noRd
sessions_part <- function(sessions) {
  count <- length(sessions)
  if (count == 0L) {
    return(NULL)
  }
  start <- vapply(sessions, pick_number, 0, "t_start_s")
  end <- vapply(sessions, pick_number, 0, "t_end_s")
  pause <- c(start[-1] - end[-count], NA)
  listed <- seq_len(min(count, most_sessions))
  items <- vapply(listed, function(i) session_words(sessions[[i]], i, end[i] - start[i], pause[i]), "")
  ran_s <- sum(end - start, na.rm = TRUE)
  rested <- if (any(!is.na(pause))) paste(", pauses between them of", duration_words(sum(pause, na.rm = TRUE))) else ""
  list(
    tag$p(sprintf("Run in %d %s of %s%s.", count, plural("session", count), duration_words(ran_s), rested)),
    tag$ul(lapply(items, tag$li)), if (count > most_sessions) tag$p("Later ones are in campaign.json.")
  )
}

session_words <- function(one, number, length_s, pause_s) {
  minute <- function(name) sub("T", " ", substr(plain_text(pick_text(one, name)), 1L, 16L), fixed = TRUE)
  ended <- if (is.na(length_s)) {
    ", not ended"
  } else {
    sprintf(" to %s UTC (%s), %s", minute("ended_utc"), duration_words(length_s), plain_text(pick_text(one, "end")))
  }
  sprintf(
    "Session %d: %s%s%s.", number, minute("started_utc"), ended,
    if (is.na(pause_s)) "" else paste("; then a pause of", duration_words(pause_s))
  )
}

duration_words <- function(seconds) {
  clock <- time_unit(seconds)
  paste(number_text(signif(seconds / clock$seconds, 3)), clock$name)
}

# More entries than this stand in campaign.json alone: sessions of a campaign of weeks, hosts of a large lab.
most_definitions <- 400L

definitions_of <- function(x) {
  flat <- flatten(x)
  # What nobody told needs no line.
  flat <- flat[flat != "\u2013"]
  left_out <- length(flat) - most_definitions
  flat <- utils::head(flat, most_definitions)
  list(
    definition_list(names(flat), unname(flat)),
    if (left_out > 0L) tag$p(sprintf("%d more entries are in campaign.json.", left_out))
  )
}
