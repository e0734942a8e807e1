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
#' @param cache file of the per-run pass, from [run_cache_path()]: what its runs' files said
#'   when it was written is taken from there as long as they are the same files. NULL reads
#'   every run.
#' @return nj_campaign: list of load, entry (of loads.json), arm (name of the factor that is compared), factors (names
#'   of the others), control (value of the control arm, of length 0 without one), dir, name, meta (campaign.json as
#'   nested lists), plan, meters, runs, results (one row per run and meter), flows (one row per run and flow, of runs
#'   with several), arrivals (bytes by run and flow of these), problems (run_id, code, detail), certificates (one row
#'   per run and flow with a pacing certificate), contracts, cache.
#' @examples
#' read_campaign(example_campaign()$dir)
#' @export
read_campaign <- function(campaign_dir, contracts = contracts_dir(), cache = NULL) {
  if (!dir.exists(campaign_dir)) {
    abort_netjoule("There is no campaign folder ", campaign_dir, ": name a folder that netjoule run has written.",
      exit_code = exit_codes$usage
    )
  }
  meta <- read_meta(campaign_dir)
  plan <- read_plan(campaign_dir, meta, contracts)
  assert_path_ids(plan$rows$run_id, "The run id")
  assert_unique_runs(plan$rows, campaign_dir)
  assert_whole_plan(plan$rows, plan$arm, campaign_dir)
  load <- plan$load
  ended <- plan$rows$status %in% c("done", "invalid", "superseded")
  finished <- plan$rows[ended, c("run_id", "block", "load", "kind"), with = FALSE]
  read <- read_runs(campaign_dir, finished, contracts, cache)
  meters <- passport_rows(meta, read$results)
  assert_path_ids(meters$meter_id, "The meter id")
  runs <- join_runs(plan$rows, read$runs, load)
  entry <- load_entry(load, contracts)
  factors <- cell_factors(plan$rows, plan$arm, load, contracts)
  structure(class = "nj_campaign", list(
    load = load, entry = entry, arm = plan$arm, factors = factors,
    control = unique(plan$rows$arm[plan$rows$kind == "control"]), dir = campaign_dir,
    name = campaign_name(meta, campaign_dir), meta = meta, plan = plan$rows, meters = meters, runs = runs,
    results = join_results(runs, read$results, meters, entry, c(plan$arm, factors)), flows = read$flows,
    arrivals = read$arrivals, problems = join_problems(plan, read$problems), certificates = read$certificates,
    contracts = contracts, cache = cache
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
  meta$workload <- lift_workload(meta$workload)
  meta
}

campaign_name <- function(meta, campaign_dir) {
  fcoalesce(pick_text(meta, "campaign"), basename(normalizePath(campaign_dir)))
}

assert_unique_runs <- function(plan, campaign_dir) {
  twice <- plan$run_id[duplicated(plan$run_id)]
  if (length(twice) > 0L) {
    abort_invalid_data("The file ", file.path(campaign_dir, "plan.csv"), " names the run ", twice[1], " twice.")
  }
}

# A run that does not say what it is would fall out of every table without a word.
assert_whole_plan <- function(plan, arm, campaign_dir) {
  for (column in setdiff(union(intersect(plan_1_columns, names(plan)), needed_columns$plan), "reason")) {
    # A control run has no value of the arm, only its name.
    empty <- which(is.na(plan[[column]]) & !(column == arm & plan$kind == "control"))
    if (length(empty) > 0L) {
      abort_invalid_data(
        "The file ", file.path(campaign_dir, "plan.csv"), " has an empty cell in column ", column, ", run ",
        plan$run_id[empty[1]], ": run netjoule check on the campaign."
      )
    }
  }
}

passport_text <- c(
  "meter_id", "node", "make", "model", "power_source", "device_model", "device_form", "semantics", "quantity"
)
passport_numbers <- c("update_interval_s", "lag_s", "counter_modulus_j")

# A lag that a sync pulse gave takes the place of the passport's from this confidence on.
least_confidence <- 0.9

passport_row <- function(passport) {
  as.data.table(c(
    pick_texts(passport, passport_text), pick_numbers(passport, passport_numbers),
    list(emulated = pick_flag(passport, "emulated"))
  ))
}

passport_rows <- function(meta, results) {
  rows <- lapply(pick(meta, "meters", default = list()), passport_row)
  rows <- rbindlist(rows)
  # A model's own terms need no meter: what its results say of themselves stands for one, and none has a log.
  if (nrow(rows) == 0L && NROW(results) > 0L) {
    modelled <- unique(results[power_source %in% "modelled", intersect(passport_text, names(results)), with = FALSE])
    rows <- rbind(passport_row(list())[0], modelled, fill = TRUE)[, lag_s := 0]
  }
  if (nrow(rows) == 0L && is_simulated(list(meta = meta))) {
    abort_invalid_data("No simulated run tells the power of a node, so there is no energy to analyse.")
  }
  if (nrow(rows) == 0L) {
    abort_invalid_data("campaign.json names no meter: no session of this campaign has started a meter yet.")
  }
  rows[is.na(semantics), semantics := "interval_mean"]
  rows[is.na(quantity), quantity := "active_power"]
  rows <- with_measured_lags(rows, pick(meta, "alignment", default = list()))
  # Imported results have no power: what stands for their meter has no update interval.
  logged <- length(pick(meta, "meters", default = list())) > 0L
  unready <- rows[(is.na(update_interval_s) & !power_source %in% "unknown" & logged) | is.na(lag_s), meter_id]
  if (length(unready) > 0L) {
    abort_invalid_data("The passport of meter ", unready[1], " in campaign.json lacks update_interval_s or lag_s.")
  }
  rows
}

# The last sure lag of each meter, where a sync pulse gave one.
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
join_runs <- function(plan, rows, load) {
  if (nrow(rows) == 0L) rows <- no_run_rows(load)
  edges <- as.vector(outer(setdiff(window_names, "warm_up"), c("_start_s", "_end_s"), paste0))
  rows[, measurable := rowSums(is.na(as.matrix(.SD))) == 0L, .SDcols = edges]
  runs <- plan[rows, on = "run_id"]
  own <- load_parts[[load]]$join_runs
  if (!is.null(own)) runs <- own(runs)
  runs[, usable := status == "done" & valid & has_result]
  runs[, measurable := measurable & usable & (has_intervals | kind == "control")]
  runs[]
}

# Results with the cell of their run; device and source labels fall back on the meter's passport.
join_results <- function(runs, rows, meters, entry, factors) {
  # Without a result the table has its columns all the same.
  if (nrow(rows) == 0L) rows <- rbindlist(result_rows("", list(nodes = list(list()))))[0]
  for (column in c("device_model", "device_form")) {
    missing <- is.na(rows[[column]])
    set(rows, which(missing), column, meters[[column]][match(rows$meter_id[missing], meters$meter_id)])
  }
  # A run's device is in a column of its own; the label of its meter, which may not part cells, names all.
  if ("device" %in% factors) {
    own <- meters[match(rows$meter_id, meters$meter_id), c("device_model", "device_form"), with = FALSE]
    set(rows, j = names(own), value = own)
  }
  measured <- intersect(c(measure_names(list(entry = entry)), "repeats"), names(runs))
  own <- of_load(list(load = entry$name, arm = factors[1]), "run_columns", measured)
  cell <- unique(c("run_id", "block", "rig", "mini_block", "order", "attempt", "kind", "arm", factors, "usable", own))
  # A plan without the column is a problem that is named, not the end.
  if (!"generator" %in% names(runs)) runs <- copy(runs)[, generator := NA_character_]
  merge(rows, runs[, cell, with = FALSE], by = "run_id", sort = FALSE)
}

join_problems <- function(plan, of_runs) {
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
#' @return data.table t_s (s), power_w (W), flag ("" when good), of an energy counter also
#'   energy_j (J, NA without a count).
#' @noRd
read_meter <- function(campaign, meter_id) {
  chosen <- meter_id
  counts <- campaign$meters[meter_id == chosen, semantics] %in% "energy_counter"
  path <- file.path(campaign$dir, "meters", paste0(meter_id, ".csv"))
  columns <- c("t_s", "power_w", "flag", if (counts) "energy_j")
  rows <- read_contract_csv(path, "meters", campaign$contracts, columns)$rows
  if (anyNA(rows$t_s)) {
    abort_invalid_data("The file ", path, " has a reading without t_s: run netjoule check on the campaign.")
  }
  if (counts && !"energy_j" %in% names(rows)) {
    abort_invalid_data("The file ", path, " lacks the column energy_j, but its meter counts energy.")
  }
  # In place: a copy of a column of a long log is 144 MB.
  set(rows, which(is.na(rows$flag)), "flag", "")
  if (is.unsorted(rows$t_s)) setorderv(rows, "t_s")
  rows[]
}

#' Print a campaign in one line
#'
#' @param x from [read_campaign()].
#' @param ... not used.
#' @return x, invisibly.
#' @examples
#' print(example_campaign())
#' @export
print.nj_campaign <- function(x, ...) {
  cat(
    "netjoule campaign ", plain_text(x$name), ": ", sum(x$runs$usable), " usable of ", nrow(x$plan),
    " planned runs, ", nrow(x$meters), " meter(s)\n",
    sep = ""
  )
  invisible(x)
}
