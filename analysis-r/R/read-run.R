# SPDX-License-Identifier: Apache-2.0

window_names <- c("idle_before", "warm_up", "measure", "tail", "idle_after")

#' Read one run: run.json, result.json and what the load reads of its own documents
#'
#' A run whose files are missing or cut off is not an error of the campaign: it is named as a problem and left out.
#' Every run has run.json and result.json.
#'
#' @param campaign_dir folder.
#' @param run_id asserted plain name.
#' @param load,kind as planned; a control run does no work that arrives.
#' @param contracts folder of the contracts or NA.
#' @return list run (list of one row's values, or NULL), results, flows, arrivals, certificates (of loads that have
#'   them), problems (lists of such rows): plain lists, because ten thousand small tables take minutes.
#' @noRd
read_run <- function(campaign_dir, run_id, load, kind, contracts = contracts_dir()) {
  run <- read_run_json(campaign_dir, run_id, "run.json", run_defects)
  result <- read_run_json(
    campaign_dir, run_id, "result.json", result_defects, function(doc) lift_result(doc, run$doc)
  )
  read_own <- load_parts[[load]]$read
  if (is.null(read_own)) read_own <- read_whole_work
  own <- read_own(campaign_dir, run_id, kind, run$doc, result$doc, contracts)
  list(
    run = if (!is.null(run$doc)) run_row(run_id, run$doc, result$doc, own),
    results = if (!is.null(run$doc)) result_rows(run_id, result$doc),
    flows = own$flows, arrivals = own$arrivals, certificates = own$certificates,
    problems = c(run$problems, result$problems, own$problems, doc_reasons(run$doc), doc_reasons(result$doc))
  )
}

#' What is read of a run of a load without documents of its own: all of its work, in the window of run.json
#'
#' @return list span (list arrived_start_s, arrived_end_s in s, arrived_work), has_intervals, whole, columns (of the
#'   run's row: what the load measured), problems.
#' @noRd
read_whole_work <- function(campaign_dir, run_id, kind, run, result, contracts) {
  window <- pick(run, "window", default = list())
  if (length(window) == 0L) window <- pick(run, "windows", "measure", default = list())
  span <- c(pick_number(window, "t_start_s"), pick_number(window, "t_end_s"))
  measures <- pick(result, "measures", default = list())
  list(
    span = arrived_columns(list(span = span, work = pick_number(run, "work", "quantity"))), has_intervals = TRUE,
    whole = TRUE, problems = list(),
    columns = c(
      list(
        window_kind = pick_text(window, "kind"), tail_s = pick_number(result, "nodes", 1L, "tail_s"),
        repeats = pick_number(run, "work", "repeat")
      ),
      lapply(measures, function(value) if (is.numeric(value)) as.numeric(value)[1] else NA_real_)
    )
  )
}

arrived_columns <- function(effective) {
  list(arrived_start_s = effective$span[1], arrived_end_s = effective$span[2], arrived_work = effective$work)
}

#' Read a document of a run
#'
#' @param lift gives a document of any version the fields that are read.
#' @param defects called with the document: list of problems (code, detail). One whose code
#'   invalidates takes the document away; the others are only told.
#' @return list doc (NULL when there is none to be used), problems (list of code, detail).
#' @noRd
read_run_json <- function(campaign_dir, run_id, name, defects = function(doc) list(), lift = identity) {
  document <- run_document(campaign_dir, run_id, name)
  refused <- function(code, ...) list(doc = NULL, problems = list(list(code = code, detail = paste0(name, " ", ...))))
  if (is.null(document)) {
    return(refused("half_written_run", "is missing"))
  }
  doc <- tryCatch(jsonlite::fromJSON(document, simplifyVector = FALSE), error = function(e) NULL)
  # An array or a bare value is JSON too, but no document.
  if (!is.list(doc) || is.null(names(doc))) {
    return(refused("half_written_run", "is not a whole JSON document"))
  }
  version <- pick_number(doc, "schema_version")
  if (!version %in% versions_of(name)) {
    return(refused(
      "schema_version_unsupported", "has schema_version ", format(version), ", this netjoule reads ",
      toString(versions_of(name))
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

# own: what the load read (read_whole_work()); `whole`: whether its documents can be used, without which a run does not
# count.
run_row <- function(run_id, run, result, own) {
  windows <- unlist(lapply(window_names, function(name) {
    stats::setNames(
      list(pick_number(run, "windows", name, "t_start_s"), pick_number(run, "windows", name, "t_end_s")),
      paste0(name, c("_start_s", "_end_s"))
    )
  }), recursive = FALSE)
  c(list(
    run_id = run_id, run_status = pick_text(run, "status"), radio_source = pick_text(run, "radio_source"),
    client_host = pick_text(run, "hosts", "client"),
    valid = isTRUE(pick_flag(result, "valid")) && own$whole, has_result = !is.null(result),
    has_intervals = own$has_intervals
  ), own$columns, windows, own$span)
}

# The columns of a run, without a run: of a campaign of which nothing was run.
no_run_rows <- function(load) {
  nothing <- load_parts[[load]]$read_nothing
  own <- if (is.null(nothing)) read_whole_work("", "", "work", list(), list(), NA) else nothing()
  as.data.table(run_row("", list(), list(), own))[0]
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

# Energies, which documents of the first version do not have.
energy_numbers <- c("e_d_j", "e_t_j")

result_rows <- function(run_id, result) {
  shared <- list(
    run_id = run_id, window_t_start_s = pick_number(result, "window", "t_start_s"),
    window_t_end_s = pick_number(result, "window", "t_end_s"),
    wake_ups_per_message = pick_number(result, "wake_ups_per_message")
  )
  radios <- pick(result, "radio_states", default = list())
  lapply(pick(result, "nodes", default = list()), function(node) {
    radio <- Find(function(one) identical(one$node, node$node), radios)
    # A client whose flows are not all flows of the run has a T_A of its own, whose uncertainty is not known.
    own <- "t_a_mbps" %in% names(node)
    c(
      shared,
      list(
        t_a_mbps = pick_number(if (own) node else result, "t_a_mbps"),
        u95_t_a_mbps = if (own) NA_real_ else pick_number(result, "u95_t_a_mbps")
      ),
      pick_texts(node, node_text),
      pick_numbers(node, node_numbers),
      pick_numbers(node, floor_numbers, "floor"),
      pick_numbers(node, energy_numbers),
      list(
        radio_e_j = pick_number(radio, "measure", "energy_j"), radio_tail_e_j = pick_number(radio, "tail", "energy_j"),
        u95_gain = pick_number(node, "u95_components", "gain"),
        floor_run_id = pick_text(node, "floor", "run_id"), floor_reason = pick_text(node, "floor", "reason"),
        below_resolution = isTRUE(pick_flag(node, "below_resolution")), hollow = isTRUE(pick_flag(node, "hollow"))
      )
    )
  })
}
