# SPDX-License-Identifier: Apache-2.0

window_names <- c("idle_before", "warm_up", "measure", "tail", "idle_after")

#' Read one run: run.json, what is needed of flow.json and intervals.csv, result.json
#'
#' A run whose files are missing or cut off is not an error of the campaign: it
#' is named as a problem and left out. Every run has run.json, result.json and a
#' report of each flow, null and imported ones too; intervals.csv may be lacking.
#'
#' @param campaign_dir folder.
#' @param run_id asserted plain name.
#' @param transport as planned; null has no receiver.
#' @param contracts folder of the contracts or NA.
#' @return list run (list of one row's values, or NULL), results, flows, arrivals, certificates (one
#'   per flow that has one), problems (lists of such rows): plain lists, because ten thousand small
#'   tables take minutes.
#' @noRd
read_run <- function(campaign_dir, run_id, transport, contracts = contracts_dir()) {
  run <- read_run_json(campaign_dir, run_id, "run.json", run_defects)
  flow <- read_run_json(campaign_dir, run_id, "flow.json", flow_defects)
  result <- read_run_json(
    campaign_dir, run_id, "result.json", result_defects, function(doc) lift_result(doc, run$doc)
  )
  further <- read_further_flows(campaign_dir, run_id, run$doc)
  flows <- c(list(flow$doc), further$docs)
  arrived <- read_arrival(campaign_dir, run_id, transport, run$doc, flows, contracts)
  whole <- arrived$readable && !any(vapply(flows, is.null, NA))
  list(
    run = if (!is.null(run$doc)) run_row(run_id, run$doc, flows, result$doc, arrived, whole),
    results = if (!is.null(run$doc)) result_rows(run_id, result$doc),
    flows = flow_rows(run_id, result$doc), arrivals = arrived$by_flow, certificates = certificate_rows(run_id, flows),
    problems = c(
      run$problems, flow$problems, result$problems, further$problems, arrived$problems,
      doc_reasons(run$doc), doc_reasons(result$doc)
    )
  )
}

# Reports of the second flow and further ones of a run with several.
read_further_flows <- function(campaign_dir, run_id, run) {
  count <- length(pick(run, "flows", default = list()))
  read <- lapply(seq_len(max(count - 1L, 0L)) + 1L, function(number) {
    read_run_json(campaign_dir, run_id, file.path("flows", paste0(number, ".json")), flow_defects)
  })
  list(
    docs = lapply(read, function(one) one$doc),
    problems = unlist(lapply(read, function(one) one$problems), recursive = FALSE)
  )
}

#' Read a document of a run
#'
#' @param lift gives a document of any version the fields that are read.
#' @param defects called with the document: list of problems (code, detail). One whose code
#'   invalidates takes the document away; the others are only told.
#' @return list doc (NULL when there is none to be used), problems (list of code, detail).
#' @noRd
read_run_json <- function(campaign_dir, run_id, name, defects = function(doc) list(), lift = identity) {
  path <- file.path(campaign_dir, "runs", run_id, name)
  refused <- function(code, ...) list(doc = NULL, problems = list(list(code = code, detail = paste0(name, " ", ...))))
  if (!file.exists(path)) {
    return(refused("half_written_run", "is missing"))
  }
  doc <- tryCatch(jsonlite::fromJSON(path, simplifyVector = FALSE), error = function(e) NULL)
  # An array or a bare value is JSON too, but no document.
  if (!is.list(doc) || is.null(names(doc))) {
    return(refused("half_written_run", "is not a whole JSON document"))
  }
  version <- pick_number(doc, "schema_version")
  if (!is_readable_version(name, version)) {
    known <- readable_versions[[name]]
    if (is.null(known)) known <- supported_schema_version
    return(refused(
      "schema_version_unsupported", "has schema_version ", format(version), ", this netjoule reads ",
      paste(known, collapse = ", ")
    ))
  }
  doc <- lift(doc)
  found <- defects(doc)
  fatal <- Filter(function(one) one$code != "column_missing", found)
  if (length(fatal) > 0L) {
    return(refused(fatal[[1]]$code, fatal[[1]]$detail))
  }
  list(doc = doc, problems = lapply(found, function(one) list(code = one$code, detail = paste(name, one$detail))))
}

doc_reasons <- function(doc) {
  lapply(pick(doc, "reasons", default = list()), function(reason) {
    list(code = pick_text(reason, "code"), detail = pick_text(reason, "detail"))
  })
}

# `flows`: reports of all flows, that of flow 1 first; what is told of one flow is flow 1's. arrived: of read_arrival().
# `whole`: whether every report and the intervals can be used, without which a run does not count.
run_row <- function(run_id, run, flows, result, arrived, whole) {
  flow <- flows[[1]]
  windows <- unlist(lapply(window_names, function(name) {
    stats::setNames(
      list(pick_number(run, "windows", name, "t_start_s"), pick_number(run, "windows", name, "t_end_s")),
      paste0(name, c("_start_s", "_end_s"))
    )
  }), recursive = FALSE)
  c(list(
    run_id = run_id, run_status = pick_text(run, "status"), radio_source = pick_text(run, "radio_source"),
    client = pick_text(run, "hosts", "client"), ip_version = pick_number(run, "ip_version"),
    frames_per_message = pick_number(flow, "frames_per_message"),
    mean_ip_packet_bytes = pick_number(flow, "mean_ip_packet_bytes"),
    packetisation_source = pick_text(flow, "packetisation_source"),
    generator_version = pick_text(flow, "generator", "version"), jitter_ms = pick_number(flow, "receiver", "jitter_ms"),
    run_pacing = pick_text(run, "pacing", "mode"), run_window_us = pick_number(run, "pacing", "window_us"),
    run_gso = pick_flag(run, "pacing", "gso"), loss_ratio = pick_number(result, "loss_ratio"),
    achieved_ratio = pick_number(result, "achieved_ratio"),
    flows = length(flows), jain_goodput = pick_number(result, "fairness", "jain_goodput"),
    jain_demand_met = pick_number(result, "fairness", "jain_demand_met"),
    congestion_control = congestion_control_of(flows),
    valid = isTRUE(pick_flag(result, "valid")) && whole, has_result = !is.null(result),
    has_intervals = arrived$has_intervals
  ), sender_facts_of_all(run, flows), message_costs_of(flows), windows, arrived$span)
}

# What held the senders back, as their reports name it ("bbr"); of several flows each once. NA where none tells.
congestion_control_of <- function(flows) {
  told <- vapply(flows, pick_text, "", "sender", "transport_stats", "congestion_control")
  told <- sort(unique(stats::na.omit(told)))
  if (length(told) > 0L) paste(told, collapse = "+") else NA_character_
}

# The columns of a run, without a run: of a campaign of which nothing was run.
no_run_rows <- function() {
  never <- list(span = c(NA_real_, NA_real_), bytes = NA_real_)
  nothing <- list(has_intervals = FALSE, span = arrived_columns(never))
  as.data.table(run_row("", list(), list(list()), list(), nothing, FALSE))[0]
}

# Fields of result.json that are read; a test holds them to its schema.
node_text <- c(
  "meter_id", "node", "power_source", "radio_source", "device_model", "device_form", "ea_reason", "grade", "quantity"
)
node_numbers <- c(
  "p_a_w", "p_i_w", "p_i_before_w", "p_i_after_w", "delta_p_w", "u_delta_p_w", "ea_j_per_mbit", "u95_ea_j_per_mbit",
  "ea_upper_limit_j_per_mbit", "extrapolated_ratio", "readings", "effective_readings", "tail_energy_j"
)
floor_numbers <- c(
  "p_null_w", "floor_w", "u95_floor_w", "ea_above_floor_j_per_mbit", "u95_ea_above_floor_j_per_mbit"
)

result_rows <- function(run_id, result) {
  shared <- list(
    run_id = run_id, window_t_start_s = pick_number(result, "window", "t_start_s"),
    window_t_end_s = pick_number(result, "window", "t_end_s"),
    wake_ups_per_message = pick_number(result, "wake_ups_per_message")
  )
  lapply(pick(result, "nodes", default = list()), function(node) {
    # A client whose flows are not all flows of the run has a T_A of its own, whose uncertainty is not known.
    own <- "t_a_mbps" %in% names(node)
    c(
      shared,
      list(
        t_a_mbps = pick_number(if (own) node else result, "t_a_mbps"),
        u95_t_a_mbps = if (own) NA_real_ else pick_number(result, "u95_t_a_mbps")
      ),
      stats::setNames(lapply(node_text, function(name) pick_text(node, name)), node_text),
      stats::setNames(lapply(node_numbers, function(name) pick_number(node, name)), node_numbers),
      stats::setNames(lapply(floor_numbers, function(name) pick_number(node, "floor", name)), floor_numbers),
      list(
        u95_gain = pick_number(node, "u95_components", "gain"),
        floor_run_id = pick_text(node, "floor", "run_id"), floor_reason = pick_text(node, "floor", "reason"),
        below_resolution = isTRUE(pick_flag(node, "below_resolution")), hollow = isTRUE(pick_flag(node, "hollow"))
      )
    )
  })
}
