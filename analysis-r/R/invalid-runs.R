# SPDX-License-Identifier: Apache-2.0

#' Runs that do not count, with every coded reason, its meaning and the next step
#'
#' @param campaign from [read_campaign()].
#' @return data.table run_id, block, mini_block, attempt, arm and factors, status, code, detail, meaning, next_step; one
#'   row per run and reason. Notes on runs that do count are not in it.
#' @noRd
invalid_runs <- function(campaign) {
  plan <- campaign$plan
  usable <- campaign$runs$run_id[campaign$runs$usable]
  finished <- plan[status %in% c("done", "invalid") & !run_id %in% usable]
  listed <- merge(
    finished[, c(
      "run_id", "block", "mini_block", "attempt", campaign$arm, of_load(campaign, "invalid_factors", campaign$factors),
      "status"
    ), with = FALSE],
    campaign$problems,
    by = "run_id", all.x = TRUE, sort = FALSE
  )
  listed[is.na(code), `:=`(code = "unknown", detail = "no reason was recorded")]
  listed <- explain(listed)
  # What merely describes a run is no reason for its being invalid, unless nothing else is known.
  listed[, describes := invalidates %in% FALSE]
  listed <- listed[!describes | !(run_id %in% listed[describes == FALSE, run_id])]
  listed[, c("describes", "invalidates") := NULL]
  listed[]
}

# Said of every null run: no news.
expected_codes <- "null_has_no_throughput"

#' Notes on runs that do count (and on the campaign's tables)
#' @noRd
run_notes <- function(campaign) {
  usable <- campaign$runs$run_id[campaign$runs$usable]
  notes <- rbind(campaign$problems[run_id %in% c(usable, "") & !code %in% expected_codes], negative_powers(campaign))
  explain(unique(notes))[, invalidates := NULL][]
}

# Power below idle by more than 3 u: too much to be noise, so something else drew power while idle.
negative_powers <- function(campaign) {
  rows <- usable_results(campaign$results)[delta_p_w < -3 * fcoalesce(u_delta_p_w, 0)]
  data.table(
    run_id = as.character(rows$run_id), code = rep("p_a_below_p_i", nrow(rows)),
    detail = sprintf("meter %s: P_A - P_I is %.4g W", rows$meter_id, rows$delta_p_w)
  )
}

explain <- function(rows) {
  reasons <- reason_table()
  index <- match(rows$code, reasons$code)
  rows[, `:=`(
    meaning = reasons$meaning[index], next_step = reasons$next_step[index], invalidates = reasons$invalidates[index]
  )]
  rows[]
}
