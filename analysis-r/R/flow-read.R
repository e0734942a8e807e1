# SPDX-License-Identifier: Apache-2.0

# What is read of the documents of flows.

# Measures of the routers on a path that scale their rate.
router_measures <- c(
  "service_rate_mbps", "saving_linear_ratio", "saving_cubic_ratio", "rate_switches", "router_loss_ratio",
  "tick_late_mean_us", "tick_late_max_us"
)

#' What is read of a run of flows: flow.json, the reports of further flows, intervals.csv
#'
#' Every run has a report of each flow, null and imported ones too; intervals.csv may be lacking.
#'
#' @return as read_whole_work(), with flows, arrivals and certificates (one per flow that has one).
#' @noRd
read_flows <- function(campaign_dir, run_id, kind, run, result, contracts) {
  further <- sprintf("flows/%d.json", seq_len(flow_count(run))[-1])
  read <- lapply(c("flow.json", further), function(name) read_run_json(campaign_dir, run_id, name, flow_defects))
  flows <- lapply(read, `[[`, "doc")
  run <- lift_flows(run, flows)
  if (length(run$flows) == length(result$flows)) result$flows <- Map(with_fields, result$flows, run$flows)
  arrived <- read_arrival(campaign_dir, run_id, kind, run, flows, contracts)
  list(
    span = arrived$span, has_intervals = arrived$has_intervals,
    whole = arrived$readable && !any(vapply(flows, is.null, NA)), columns = flow_columns(run, flows, result),
    flows = flow_rows(run_id, result), arrivals = arrived$by_flow, certificates = certificate_rows(run_id, flows),
    problems = c(unlist(lapply(read, `[[`, "problems"), recursive = FALSE), arrived$problems)
  )
}

# `flows`: reports of all flows, that of flow 1 first; what belongs to one flow is flow 1's.
flow_columns <- function(run, flows, result) {
  flow <- flows[[1]]
  c(list(
    frames_per_message = pick_number(flow, "frames_per_message"),
    mean_ip_packet_bytes = pick_number(flow, "mean_ip_packet_bytes"),
    packetisation_source = pick_text(flow, "packetisation_source"),
    generator_version = pick_text(flow, "generator", "version"), jitter_ms = pick_number(flow, "receiver", "jitter_ms"),
    run_pacing = pick_text(run, "pacing", "mode"), run_window_us = pick_number(run, "pacing", "window_us"),
    run_gso = pick_flag(run, "pacing", "gso"), loss_ratio = pick_number(result, "loss_ratio"),
    achieved_ratio = pick_number(result, "achieved_ratio"),
    flows = length(flows), jain_goodput = pick_number(result, "fairness", "jain_goodput"),
    jain_demand_met = pick_number(result, "fairness", "jain_demand_met"),
    congestion_control = congestion_control_of(flows), cpu_us_per_message = cpu_per_message(flows),
    p99_delay_ms = p99_delay_of(flows)
  ), pick_numbers(result, router_measures), sender_facts_of_all(run, flows), message_costs_of(flows))
}

# The same without a run.
read_no_flows <- function() {
  list(
    span = arrived_columns(list(span = c(NA_real_, NA_real_), work = NA_real_)), has_intervals = FALSE, whole = FALSE,
    columns = flow_columns(list(), list(list()), list())
  )
}

# All CPU time of the senders, over what they sent.
cpu_per_message <- function(flows) {
  total <- function(name) sum(vapply(flows, pick_number, 0, "sender", name))
  ratio_or_na(1e6 * total("cpu_s"), total("messages_sent"))
}

# Of several flows that of the slowest; NA where one does not tell.
p99_delay_of <- function(flows) max(vapply(flows, pick_number, 0, "receiver", "one_way_delay_ms", "p99"))

# What held the senders back, as their reports name it ("bbr"); of several flows each once. NA where none tells.
congestion_control_of <- function(flows) {
  told <- vapply(flows, pick_text, "", "sender", "transport_stats", "congestion_control")
  told <- sort(unique(stats::na.omit(told)))
  if (length(told) > 0L) paste(told, collapse = "+") else NA_character_
}

#' What arrived in a run's measure window, by the intervals of its receivers
#'
#' The intervals themselves are not kept: of ten thousand runs they are gigabytes, and
#' E_A asks only for the window that whole intervals fill and the work in it.
#'
#' @param run run.json as nested lists, or NULL.
#' @param flows reports of all flows, that of flow 1 first; NULL for each that cannot be used.
#' @return list span (list arrived_start_s, arrived_end_s in s, arrived_work; NA when nothing is
#'   known), by_flow (list of list(run_id, flow, bytes) of runs with several flows),
#'   has_intervals, readable, problems (list of list(code, detail)).
#' @noRd
read_arrival <- function(campaign_dir, run_id, kind, run, flows, contracts) {
  path <- file.path(campaign_dir, "runs", run_id, "intervals.csv")
  measure <- c(pick_number(run, "windows", "measure", "t_start_s"), pick_number(run, "windows", "measure", "t_end_s"))
  found <- list(
    span = arrived_columns(list(span = measure, work = NA_real_)), by_flow = list(),
    has_intervals = file.exists(path), readable = TRUE, problems = list()
  )
  if (kind == "control" || !found$has_intervals || anyNA(measure)) {
    return(found)
  }
  read <- tryCatch(read_receiver_intervals(path, contracts, run), netjoule_error = conditionMessage)
  broken <- if (is.character(read)) {
    # The campaign's folder is somebody's own.
    detail <- gsub(paste0(dirname(path), "/"), "", read, fixed = TRUE)
    list(list(code = "table_unreadable", detail = detail))
  } else {
    lost_intervals(read$rows, flows)
  }
  if (length(broken) > 0L) {
    return(replace(found, c("readable", "problems"), list(FALSE, broken)))
  }
  effective <- effective_window(joined_intervals(read$rows), measure)
  found$span <- arrived_columns(list(span = effective$span, work = mbit_per_byte * effective$bytes))
  found$by_flow <- arrived_by_flow(run_id, read$rows, effective$span)
  found$problems <- lapply(seq_len(nrow(read$problems)), function(i) as.list(read$problems[i]))
  found
}

#' What arrived in the measure windows that `runs` says, from the raw files
#'
#' @return list spans (list arrived_start_s, arrived_end_s, arrived_work: a value for each run), arrivals (as of a
#'   campaign).
#' @noRd
arrived_until <- function(campaign, runs) {
  read <- lapply(seq_len(nrow(runs)), function(i) {
    id <- runs$run_id[i]
    home <- block_home(campaign$dir, runs$block[i])
    run <- read_run_json(home, id, "run.json")$doc
    run$windows$measure <- list(t_start_s = runs$measure_start_s[i], t_end_s = runs$measure_end_s[i])
    read_arrival(home, id, runs$kind[i], run, list(), campaign$contracts)
  })
  by_flow <- unlist(lapply(read, `[[`, "by_flow"), recursive = FALSE)
  list(
    spans = rbindlist(lapply(read, `[[`, "span")),
    arrivals = if (length(by_flow) > 0L) rbindlist(by_flow) else campaign$arrivals[0]
  )
}

# A table that was cut off between two rows looks whole: only the receivers' own counts tell that rows are gone.
lost_intervals <- function(intervals, flows) {
  found <- lapply(seq_along(flows), function(number) {
    counted <- pick_number(flows[[number]], "receiver", "bytes_received_unique")
    told <- sum(intervals$bytes[intervals$flow == number])
    if (!is.na(counted) && told < counted) {
      list(code = "half_written_run", detail = sprintf(
        "intervals.csv has %.0f of the %.0f bytes that flow %d received", told, counted, number
      ))
    }
  })
  Filter(Negate(is.null), found)
}

arrived_by_flow <- function(run_id, intervals, span) {
  numbers <- unique(intervals$flow)
  if (length(numbers) < 2L) {
    return(list())
  }
  lapply(numbers, function(number) {
    list(run_id = run_id, flow = number, bytes = bytes_within(intervals[intervals$flow == number], span))
  })
}

#' Receivers' intervals of a run
#'
#' @return list rows (data.table flow, t_start_s, t_end_s (s), bytes), problems (data.table code, detail).
#' @noRd
read_receiver_intervals <- function(path, contracts, run) {
  read <- lift_intervals(path, contracts, run)
  rows <- read$rows[, c("flow", "t_start_s", "t_end_s", "bytes"), with = FALSE]
  if (anyNA(rows)) {
    abort_invalid_data("The file ", path, " has a receiver's row without flow, t_start_s, t_end_s or bytes.")
  }
  list(rows = rows, problems = read$problems)
}

#' Defects of a flow's report
#'
#' Generators differ in what they can tell: only that a sender is told of, and numbers that are read, are asked for.
#'
#' @noRd
flow_defects <- function(doc) {
  sender <- doc[["sender"]]
  if (!is.list(sender) || is.null(names(sender))) {
    return(list(list(code = "half_written_run", detail = "lacks sender")))
  }
  c(
    bad_numbers(sender, c("messages_scheduled", "messages_sent", "cpu_s", "start_ns", "end_ns"), "sender"),
    bad_numbers(doc[["pacing"]], "wake_ups", "pacing"),
    bad_numbers(doc[["receiver"]], "bytes_received_unique", "receiver")
  )
}
