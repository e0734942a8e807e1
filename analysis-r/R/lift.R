# SPDX-License-Identifier: Apache-2.0

# Documents of every version in the shape that the rest of this package reads: the one place that tests a version.

# Versions of the documents of a run that can be read, by file; any other document has the campaign's.
readable_versions <- list("run.json" = 1:2, "result.json" = 1:2)

#' Versions of a document of a run that can be read
#' @noRd
versions_of <- function(name) {
  known <- readable_versions[[name]]
  if (is.null(known)) supported_schema_version else known
}

#' A result of any version with the fields of the first
#'
#' @param result result.json as nested lists; it may be broken.
#' @param run run.json of the same run, which says what was asked of its flows; NULL when it cannot be used.
#' @noRd
lift_result <- function(result, run) {
  if (!identical(pick_number(result, "schema_version"), 2)) {
    return(result)
  }
  work <- value_at(result, "work")
  of_work <- list(t_a_mbps = value_at(work, "work_per_s"), u95_t_a_mbps = value_at(work, "u95_work_per_s"))
  result <- with_fields(with_fields(result, of_work), value_at(result, "measures"))
  if (is.list(result[["nodes"]])) result[["nodes"]] <- lapply(result[["nodes"]], lift_node)
  if (is.list(result[["parts"]])) {
    asked <- value_at(run, "flows")
    result[["flows"]] <- lapply(seq_along(result[["parts"]]), function(i) {
      lift_part(result[["parts"]][[i]], if (i <= length(asked)) asked[[i]])
    })
    fairness <- result[["fairness"]]
    result[["fairness"]] <- list(
      jain_goodput = value_at(fairness, "jain_work"), jain_demand_met = value_at(fairness, "jain_met")
    )
  }
  result
}

# Energy per work is E_A where the work is in Mb; of other work the columns keep that name.
of_megabits <- c(
  ea_j_per_mbit = "energy_per_work_j", u95_ea_j_per_mbit = "u95_energy_per_work_j",
  ea_upper_limit_j_per_mbit = "upper_limit_energy_per_work_j",
  ea_above_floor_j_per_mbit = "energy_per_work_above_floor_j",
  u95_ea_above_floor_j_per_mbit = "u95_energy_per_work_above_floor_j"
)

lift_node <- function(node) {
  if (!is.list(node)) {
    return(node)
  }
  if ("work_per_s" %in% names(node)) node["t_a_mbps"] <- list(node[["work_per_s"]])
  node <- with_energy_per_work(node)
  if (is.list(node[["floor"]])) node[["floor"]] <- with_energy_per_work(node[["floor"]])
  node
}

with_energy_per_work <- function(object) {
  lacking <- of_megabits[of_megabits %in% names(object) & !names(of_megabits) %in% names(object)]
  with_fields(object, stats::setNames(lapply(lacking, function(name) object[[name]]), names(lacking)))
}

#' run.json of flows of any version with what the first version said of them
#'
#' @param flows reports of all flows, that of flow 1 first; NULL for each that cannot be used.
#' @noRd
lift_flows <- function(run, flows) {
  parts <- pick(run, "work", "parts", default = list())
  if (identical(pick_number(run, "schema_version"), 1) || length(parts) != length(flows)) {
    return(run)
  }
  asked <- Map(function(part, flow) {
    c(
      list(flow = as.numeric(part$part), client = part$node, t_first_packet_s = part$t_start_s),
      flow[intersect(c(plan_1_columns, "pacing", "profile"), names(flow))]
    )
  }, parts, flows)
  if (length(asked) > 1L) run$flows <- asked
  with_fields(run, asked[[1]])
}

#' How many flows a run of any version has
#' @noRd
flow_count <- function(run) {
  max(length(pick(run, "flows", default = list())), length(pick(run, "work", "parts", default = list())), 1L)
}

lift_part <- function(part, asked) {
  of_part <- list(
    flow = suppressWarnings(as.numeric(value_at(part, "part"))), client = value_at(part, "node"),
    goodput_mbps = value_at(part, "work_per_s"), demand_met_ratio = value_at(part, "met_ratio")
  )
  with_fields(with_fields(with_fields(list(), asked), of_part), value_at(part, "measures"))
}

# A list with further fields, those that are null among them.
with_fields <- function(object, fields) {
  for (name in names(fields)) object[name] <- list(fields[[name]])
  object
}

#' Receivers' intervals of a run of any version
#'
#' @param run run.json as nested lists.
#' @return list rows (data.table flow, t_start_s, t_end_s (s), bytes; a file without the column
#'   flow has flow 1), problems (data.table code, detail).
#' @noRd
lift_intervals <- function(path, contracts, run) {
  if (identical(pick_number(run, "schema_version"), 1)) {
    read <- read_contract_csv(path, "intervals_1", contracts, c("end", "t_start_s", "t_end_s", "bytes", "flow"))
    rows <- read$rows
    if (!"flow" %in% names(rows)) set(rows, j = "flow", value = 1)
    return(list(rows = rows[which(rows$end == "receiver")], problems = read$problems))
  }
  read <- read_contract_csv(path, "intervals", contracts, c("part", "t_start_s", "t_end_s", "work"))
  rows <- read$rows
  set(rows, j = "flow", value = suppressWarnings(as.numeric(rows$part)))
  # Payload is counted in whole bytes, and work in Mb of it.
  set(rows, j = "bytes", value = round(rows$work / 8e-6))
  list(rows = rows, problems = read$problems)
}

plan_1_columns <- c(
  "run_id", "block", "mini_block", "order", "attempt", "transport", "payload_bytes", "offered_rate_mbps", "direction",
  "status", "reason"
)

#' Runs of a campaign with their factors and status
#'
#' An older plan.csv held the status of each run; now status.csv has a row for each change of it, and the last row
#' of a run holds. The arm becomes a column of its factor's name again.
#'
#' @param campaign_dir folder of the campaign.
#' @param meta its campaign.json.
#' @param contracts folder of the contracts.
#' @return list(rows = data.table with load, kind, arm, the factors, status and reason, in the order of execution,
#'   problems = data.table(code, detail), arm = name of the factor that is compared, load).
#' @noRd
read_plan <- function(campaign_dir, meta, contracts) {
  path <- file.path(campaign_dir, "plan.csv")
  if (!file.exists(path) || dir.exists(path) || !"arm" %in% csv_header(path)) {
    read <- read_contract_csv(path, "plan_1", contracts)
    kinds <- fifelse(read$rows$transport %in% "null", "control", "work")
    read$rows[, `:=`(load = rep("flow", .N), kind = kinds, arm = transport, rig = rep(first_rig, .N))]
    return(c(read, list(arm = "transport", load = "flow")))
  }
  plan <- read_contract_csv(path, "plan", contracts)
  settled <- read_status(campaign_dir, contracts)
  rows <- in_order_of_execution(plan$rows)
  load <- c(rows$load, pick_text(meta$workload, "load"))[1]
  factor <- c(pick_text(meta$workload, "arm"), pick_text(load_entry(load, contracts), "arm"), "transport")
  factor <- factor[!is.na(factor)][1]
  of_type <- match.fun(paste0("as.", factor_columns(factor, contracts)))
  # The name of the control arm is no number.
  rows[, (factor) := suppressWarnings(of_type(arm))]
  maker <- pick(meta$workload, "generator", default = "netjoule-traffic")
  rows[, generator := fifelse(kind == "control", "netjoule-traffic", maker)]
  rows[, c("status", "reason", "rig") := list("planned", NA_character_, first_rig)]
  known <- match(rows$run_id, settled$rows$run_id)
  rows[!is.na(known), c("status", "reason", "rig") := settled$rows[known[!is.na(known)], list(status, reason, rig)]]
  # Stopped, or lost with its block's worker, while it ran: it runs again, under its id.
  stopped <- rows$status == "invalid" & rows$reason %in% c("interrupted", "worker_lost")
  rows[stopped, c("status", "reason") := list("planned", NA_character_)]
  # The rule that ended a campaign is no defect of the runs that it spared.
  rows[status == "not_needed", reason := NA_character_]
  rows[, latest := max(attempt), by = "mini_block"]
  rows[status == "valid", status := fifelse(attempt < latest, "superseded", "done")]
  rows[, latest := NULL]
  list(rows = rows[], problems = unique(rbind(plan$problems, settled$problems)), arm = factor, load = load)
}

# A repeat stands at the end of the file, and was run at the end of its block.
in_order_of_execution <- function(rows) {
  place <- seq_len(nrow(rows))
  first <- rows$attempt == 1
  ends <- tapply(place[first], rows$block[first], max)
  after <- ends[as.character(rows$block)] + place / (nrow(rows) + 1)
  rows[order(ifelse(first, place, after))]
}

# What the one rig of a campaign without others is called.
first_rig <- "rig1"

read_status <- function(campaign_dir, contracts) {
  path <- file.path(campaign_dir, "status.csv")
  if (!file.exists(path)) {
    none <- data.table(run_id = character(), status = character(), reason = character(), rig = character())
    return(list(rows = none, problems = problem_rows(list())))
  }
  read <- read_contract_csv(path, "status", contracts)
  # A late writer of an older session changes nothing.
  newest <- read$rows[read$rows[, .I[owner_token >= cummax(owner_token)], by = "run_id"]$V1]
  list(rows = newest[, .SD[.N], by = "run_id"], problems = read$problems)
}

#' Types of the columns of a plan that are factors
#'
#' @param header columns of the file.
#' @return named character vector, as [schema_columns()].
#' @noRd
factor_columns <- function(header, contracts) {
  factors <- pick(read_contract_json("factors.json", contracts = contracts), "factors", default = list())
  r_types <- c(integer = "numeric", number = "numeric", boolean = "logical")
  types <- vapply(factors, function(one) {
    kind <- unlist(one$value$type)
    if (length(kind) == 1L && kind %in% names(r_types)) unname(r_types[kind]) else "character"
  }, "")
  types <- stats::setNames(types, vapply(factors, function(one) one$name, ""))
  others <- setdiff(header, names(types))
  c(types[intersect(header, names(types))], stats::setNames(rep("character", length(others)), others))
}

#' A workload of any version with the fields of the first, as far as flows have them
#'
#' @param workload effective workload as nested lists.
#' @noRd
lift_workload <- function(workload) {
  if (!identical(pick_number(workload, "schema_version"), 2) || !identical(pick_text(workload, "load"), "flow")) {
    return(workload)
  }
  lifted <- with_fields(with_fields(workload, workload$flow), workload$factors)
  lifted$flow <- NULL
  lifted$transports <- c(as.list(unlist(workload$factors$transport)), if (!isFALSE(workload$control)) "null")
  lifted$statistics$contrasts <- lapply(pick(workload, "statistics", "contrasts", default = list()), function(one) {
    c(list(transport = one$arm, reference = one$reference), one$at)
  })
  lifted
}
