# SPDX-License-Identifier: Apache-2.0

# Documents of every version in the shape that the rest of this package reads: the one place that tests a version.

# Versions of the documents of a run that can be read, by file; any other document has the campaign's.
readable_versions <- list("run.json" = 1:2, "result.json" = 1:2)

#' Whether a document of a run is of a version that can be read
#' @noRd
is_readable_version <- function(name, version) {
  known <- readable_versions[[name]]
  !is.na(version) && version %in% (if (is.null(known)) supported_schema_version else known)
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
  result["t_a_mbps"] <- list(value_at(value_at(result, "work"), "work_per_s"))
  result["u95_t_a_mbps"] <- list(value_at(value_at(result, "work"), "u95_work_per_s"))
  result <- with_fields(result, value_at(result, "measures"))
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

lift_part <- function(part, asked) {
  found <- with_fields(list(), asked)
  found["flow"] <- list(suppressWarnings(as.numeric(value_at(part, "part"))))
  found["client"] <- list(value_at(part, "node"))
  found["goodput_mbps"] <- list(value_at(part, "work_per_s"))
  found["demand_met_ratio"] <- list(value_at(part, "met_ratio"))
  with_fields(found, value_at(part, "measures"))
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
