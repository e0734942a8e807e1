# SPDX-License-Identifier: Apache-2.0

#' Read a campaign
#'
#' Documents and per-run numbers are read at once; raw samples (meters, intervals,
#' radio) stay on disk until a function asks for them. A defect of one run is
#' named in `problems` and the run is left out; a defect of the campaign stops
#' with one sentence and exit code 4.
#'
#' @param campaign_dir folder of the campaign.
#' @param contracts folder of the contracts, NA when there is none.
#' @return nj_campaign: list of dir, name, meta (campaign.json as nested lists),
#'   plan, meters, runs, results (one row per run and meter), flows (one row per run
#'   and flow, of runs with several), problems (run_id, code, detail), contracts.
#' @export
read_campaign <- function(campaign_dir, contracts = contracts_dir()) {
  if (!dir.exists(campaign_dir)) {
    abort_netjoule("There is no campaign folder ", campaign_dir, ": name a folder that netjoule run has written.",
      exit_code = exit_codes$usage
    )
  }
  meta <- read_meta(campaign_dir)
  plan <- read_contract_csv(file.path(campaign_dir, "plan.csv"), "plan", contracts)
  assert_path_ids(plan$rows$run_id, "The run id")
  assert_unique_runs(plan$rows, campaign_dir)
  meters <- passport_rows(meta)
  assert_path_ids(meters$meter_id, "The meter id")
  read <- lapply(plan$rows[status %in% c("done", "invalid", "superseded"), run_id], function(id) {
    read_run(campaign_dir, id)
  })
  structure(class = "nj_campaign", list(
    dir = campaign_dir, name = campaign_name(meta, campaign_dir), meta = meta, plan = plan$rows, meters = meters,
    runs = join_runs(plan$rows, read), results = join_results(plan$rows, read, meters),
    flows = rbindlist(lapply(read, function(one) one$flows)), problems = join_problems(plan, read),
    contracts = contracts
  ))
}

read_meta <- function(campaign_dir) {
  path <- file.path(campaign_dir, "campaign.json")
  if (!file.exists(path)) {
    abort_invalid_data(campaign_dir, " holds no campaign.json: it is no campaign, or was cut off before it began.")
  }
  meta <- tryCatch(jsonlite::fromJSON(path, simplifyVector = FALSE), error = function(e) {
    abort_invalid_data("The file ", path, " is not a whole JSON document: run netjoule check on the campaign.")
  })
  version <- pick_number(meta, "schema_version")
  if (!identical(version, as.numeric(supported_schema_version))) {
    abort_invalid_data(
      "The file ", path, " has schema_version ", format(version), " but this netjoule reads version ",
      supported_schema_version, ": analyse it with the netjoule that wrote it."
    )
  }
  meta
}

campaign_name <- function(meta, campaign_dir) {
  name <- pick_text(meta, "campaign")
  if (is.na(name)) basename(normalizePath(campaign_dir)) else name
}

assert_unique_runs <- function(plan, campaign_dir) {
  twice <- plan$run_id[duplicated(plan$run_id)]
  if (length(twice) > 0L) {
    abort_invalid_data("The file ", file.path(campaign_dir, "plan.csv"), " names the run ", twice[1], " twice.")
  }
}

passport_text <- c(
  "meter_id", "node", "make", "model", "power_source", "device_model", "device_form", "semantics", "quantity"
)
passport_numbers <- c("update_interval_s", "lag_s", "counter_modulus_j")

# A lag that a load pulse told takes the place of the passport's from this confidence on.
least_confidence <- 0.9

passport_rows <- function(meta) {
  rows <- lapply(pick(meta, "meters", default = list()), function(passport) {
    as.data.table(c(
      stats::setNames(lapply(passport_text, function(name) pick_text(passport, name)), passport_text),
      stats::setNames(lapply(passport_numbers, function(name) pick_number(passport, name)), passport_numbers),
      list(emulated = pick_flag(passport, "emulated"))
    ))
  })
  rows <- rbindlist(rows)
  if (nrow(rows) == 0L) {
    abort_invalid_data("campaign.json names no meter: no session of this campaign has started a meter yet.")
  }
  rows[is.na(semantics), semantics := "interval_mean"]
  rows[is.na(quantity), quantity := "active_power"]
  rows <- with_measured_lags(rows, pick(meta, "alignment", default = list()))
  # Imported results have no power: what stands for their meter has no update interval.
  unready <- rows[(is.na(update_interval_s) & !power_source %in% "unknown") | is.na(lag_s), meter_id]
  if (length(unready) > 0L) {
    abort_invalid_data("The passport of meter ", unready[1], " in campaign.json lacks update_interval_s or lag_s.")
  }
  rows
}

# The last sure lag of each meter, where a load pulse told one.
with_measured_lags <- function(meters, alignment) {
  for (entry in alignment) {
    confidence <- pick_number(entry, "confidence")
    lag <- pick_number(entry, "lag_s")
    if (is.na(confidence) || is.na(lag) || confidence < least_confidence) next
    meters[meter_id == pick_text(entry, "meter_id"), lag_s := lag]
  }
  meters
}

# Rows of the plan with what their run wrote; `usable` runs count, `measurable` ones can be recomputed from raw files.
join_runs <- function(plan, read) {
  rows <- rbindlist(lapply(read, function(one) one$run), fill = TRUE)
  if (nrow(rows) == 0L) {
    return(data.table(run_id = character(), measurable = logical(), usable = logical()))
  }
  edges <- as.vector(outer(setdiff(window_names, "warm_up"), c("_start_s", "_end_s"), paste0))
  rows[, measurable := rowSums(is.na(as.matrix(.SD))) == 0L, .SDcols = edges]
  runs <- with_pacing(plan[rows, on = "run_id"])
  runs[, usable := status == "done" & valid & has_result]
  runs[, measurable := measurable & usable & (has_intervals | transport == "null")]
  runs[]
}

# Results with the cell of their run; device and source labels fall back on the meter's passport.
join_results <- function(plan, read, meters) {
  rows <- rbindlist(lapply(read, function(one) one$results), fill = TRUE)
  runs <- join_runs(plan, read)
  if (nrow(rows) == 0L || nrow(runs) == 0L) {
    return(data.table())
  }
  for (column in c("device_model", "device_form")) {
    missing <- is.na(rows[[column]])
    set(rows, which(missing), column, meters[[column]][match(rows$meter_id[missing], meters$meter_id)])
  }
  cell <- c(
    "run_id", "block", "mini_block", "order", "attempt", "transport", "payload_bytes", "offered_rate_mbps", "direction",
    "frames_per_message", "mean_ip_packet_bytes", "packetisation_source", "loss_ratio", "achieved_ratio", "usable",
    "generator", "generator_version", "jitter_ms", "flows", "jain_goodput", "jain_demand_met", pacing_keys
  )
  # A plan without the column is a problem that is told, not the end.
  if (!"generator" %in% names(runs)) runs[, generator := NA_character_]
  merge(rows, runs[, cell, with = FALSE], by = "run_id", sort = FALSE)
}

join_problems <- function(plan, read) {
  finished <- plan$rows[status %in% c("done", "invalid", "superseded"), run_id]
  of_runs <- rbindlist(Map(function(id, one) {
    if (nrow(one$problems) > 0L) cbind(run_id = id, one$problems)
  }, finished, read))
  # A run that never wrote run.json still has the reason that the plan gives.
  from_plan <- plan$rows[!is.na(reason) & reason != "", list(
    code = trimws(unlist(strsplit(reason, "[;, ]+")))
  ), by = list(run_id)]
  from_plan[, detail := ""]
  known <- if (nrow(of_runs) > 0L) paste(of_runs$run_id, of_runs$code) else character()
  from_plan <- from_plan[!paste(run_id, code) %in% known]
  of_plan <- if (nrow(plan$problems) > 0L) cbind(run_id = "", plan$problems)
  empty <- data.table(run_id = character(), code = character(), detail = character())
  unique(rbind(empty, of_runs, from_plan[, c("run_id", "code", "detail"), with = FALSE], of_plan))
}

#' Read the readings of one meter, in time order
#'
#' @return data.table t_s (s), power_w (W), energy_j (J, NA without a counter), flag ("" when good).
#' @noRd
read_meter <- function(campaign, meter_id) {
  path <- file.path(campaign$dir, "meters", paste0(meter_id, ".csv"))
  rows <- read_contract_csv(path, "meters", campaign$contracts)$rows
  if (!"energy_j" %in% names(rows)) rows[, energy_j := NA_real_]
  rows <- rows[, list(t_s, power_w, energy_j, flag = fifelse(is.na(flag), "", flag))]
  setorderv(rows, "t_s")
}

#' Receivers' intervals of a run
#'
#' @return data.table flow, t_start_s, t_end_s (s), bytes; a file without the column has flow 1.
#' @noRd
read_receiver_intervals <- function(campaign, run_id, transport) {
  if (transport == "null") {
    return(data.table(flow = numeric(), t_start_s = numeric(), t_end_s = numeric(), bytes = numeric()))
  }
  path <- file.path(campaign$dir, "runs", run_id, "intervals.csv")
  rows <- read_contract_csv(path, "intervals", campaign$contracts)$rows
  if (!"flow" %in% names(rows)) rows[, flow := 1]
  rows[end == "receiver", list(flow, t_start_s, t_end_s, bytes)]
}

#' @export
print.nj_campaign <- function(x, ...) {
  cat(
    "netjoule campaign ", plain_text(x$name), ": ", sum(x$runs$usable), " usable of ", nrow(x$plan),
    " planned runs, ", nrow(x$meters), " meter(s)\n",
    sep = ""
  )
  invisible(x)
}
