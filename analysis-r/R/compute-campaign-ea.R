# SPDX-License-Identifier: Apache-2.0

#' Recompute every run that counts from its raw files
#'
#' Reads meters/*.csv, each once, and takes the windows of run.json and what the
#' receivers' intervals say arrived in them; the numbers of result.json are not looked at.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per run and meter: run_id, meter_id, the arm by the name of its factor, kind,
#'   mini_block, attempt and the columns of [compute_ea()]; p_null_w, floor_w (W),
#'   ea_above_floor_j_per_mbit and floor_reason from the control run of the same
#'   mini-block and attempt; of flows wake_ups_per_message of the senders, and
#'   wake_ups_differ, whether those of the null run are far from it (NA without a floor). Its attribute `campaign`
#'   lets [summarise_ea()] take it in place of the campaign.
#' @examples
#' campaign <- example_campaign()
#' recomputed <- compute_campaign_ea(campaign)
#' recomputed[, c("run_id", "p_a_w", "p_i_w", "t_a_mbps", "ea_j_per_mbit")]
#' summarise_ea(recomputed)
#' @export
compute_campaign_ea <- function(campaign) {
  rows <- rbindlist(lapply(by_block(campaign), recompute_folder))
  if (nrow(rows) == 0L) {
    return(setattr(data.table(), "campaign", campaign))
  }
  setattr(add_floor(rows, campaign), "campaign", campaign)[]
}

# All runs of one folder at all of its meters, without the floor.
recompute_folder <- function(campaign) {
  runs <- campaign$runs[measurable == TRUE]
  if (nrow(runs) == 0L) {
    return(NULL)
  }
  meters <- lapply(split(campaign$meters[!is.na(update_interval_s)], by = "meter_id"), as.list)
  rbindlist(unname(lapply(meters, recompute_meter, campaign = campaign, runs = runs)))
}

#' Recompute all runs at one meter
#'
#' The log is read whole and each run looks only at the rows around its own windows.
#'
#' @param meter one row of campaign$meters, as list.
#' @param runs those of campaign$runs that can be recomputed.
#' @return data.table as [compute_campaign_ea()], without the floor.
#' @noRd
recompute_meter <- function(meter, campaign, runs) {
  readings <- read_meter(campaign, meter$meter_id)
  assert_readings(readings, meter$meter_id, campaign, runs)
  columns <- as.list(readings)
  windows <- run_windows(runs)
  if ("until_done" %in% runs[["window_kind"]]) {
    windows <- end_tails(windows, runs, radio_states(campaign, meter$node))
  }
  rows <- rows_of_runs(columns$t_s, windows, meter)
  arrived <- arrived_at(meter$node, campaign, runs)
  results <- lapply(seq_len(nrow(runs)), function(i) {
    near <- if (rows$first[i] <= rows$last[i]) rows$first[i]:rows$last[i] else integer()
    ea_of_run(lapply(columns, `[`, near), arrived[[i]], windows[[i]], meter)
  })
  cbind(
    runs[, c(
      "run_id", campaign$arm, "kind", "mini_block", "attempt", intersect("wake_ups_per_message", names(runs))
    ), with = FALSE],
    meter_id = meter$meter_id, rbindlist(results)
  )
}

# Results of a meter whose log holds nothing cannot have come from it.
assert_readings <- function(readings, meter_id, campaign, runs) {
  if (nrow(readings) == 0L) {
    abort_invalid_data(sprintf(
      "The file %s holds no reading, but %d run(s) count: their results cannot be checked; run netjoule check.",
      file.path(campaign$dir, "meters", paste0(meter_id, ".csv")), nrow(runs)
    ))
  }
}

#' Windows of each run
#'
#' @return list, one per run, of idle_before, measure, tail, idle_after, each c(start_s, end_s).
#' @noRd
run_windows <- function(runs) {
  names <- c("idle_before", "measure", "tail", "idle_after")
  edges <- lapply(names, function(name) {
    cbind(runs[[paste0(name, "_start_s")]], runs[[paste0(name, "_end_s")]])
  })
  lapply(seq_len(nrow(runs)), function(i) stats::setNames(lapply(edges, function(of) of[i, ]), names))
}

#' States of a node's radio
#'
#' @return data.table t_s, state, in order; NULL where no log tells them.
#' @noRd
radio_states <- function(campaign, node) {
  path <- file.path(campaign$dir, "radio", paste0(node, ".csv"))
  if (!file.exists(path)) {
    return(NULL)
  }
  rows <- read_contract_csv(path, "radio", campaign$contracts, c("t_s", "state"))$rows
  if (!"state" %in% names(rows)) {
    return(NULL)
  }
  rows <- rows[which(!is.na(rows$state) & rows$state != "" & !is.na(rows$t_s))]
  if (nrow(rows) > 0L) setorderv(rows, "t_s")[]
}

#' End the tail of work until done when the radio is idle
#'
#' @param windows from [run_windows()].
#' @param states from [radio_states()].
#' @noRd
end_tails <- function(windows, runs, states) {
  for (i in which(!is.null(states) & runs[["window_kind"]] %in% "until_done")) {
    tail <- windows[[i]]$tail
    before <- findInterval(tail[1], states$t_s)
    later <- seq_len(nrow(states)) > before & states$state == "idle"
    idle_s <- if (before > 0L && states$state[before] == "idle") tail[1] else states$t_s[later][1]
    windows[[i]]$tail[2] <- min(tail[2], idle_s, na.rm = TRUE)
  }
  windows
}

#' First and last row of a log that any window of each run can need
#'
#' All runs at once: a search looks at the whole log to see that it is in order.
#'
#' @noRd
rows_of_runs <- function(t_s, windows, meter) {
  reach <- (count_spacing + 1) * meter$update_interval_s
  low <- vapply(windows, function(of) min(unlist(of)), 0)
  high <- vapply(windows, function(of) max(unlist(of)), 0)
  list(
    first = findInterval(low + meter$lag_s - reach, t_s) + 1L, last = findInterval(high + meter$lag_s + reach, t_s)
  )
}

#' What arrived in each run, and of that what the node's own flows brought
#'
#' @return list, one per run, of list(span, work, own_work).
#' @noRd
arrived_at <- function(node, campaign, runs) {
  several <- nrow(campaign$flows) > 0L
  lapply(seq_len(nrow(runs)), function(i) {
    run_id <- runs$run_id[i]
    own <- if (several) flows_of_node(campaign$flows, run_id, node)
    if (took_no_part(campaign, list(run_id = run_id, client_host = runs$client_host[i]), node)) own <- numeric()
    list(
      span = c(runs$arrived_start_s[i], runs$arrived_end_s[i]), work = runs$arrived_work[i],
      own_work = if (!is.null(own)) mbit_per_byte * bytes_of_flows(campaign$arrivals, run_id, own)
    )
  })
}

bytes_of_flows <- function(arrivals, run_id, flows) {
  sum(as.numeric(arrivals$bytes[arrivals$run_id %in% run_id & arrivals$flow %in% flows]))
}

#' Add the generator floor to recomputed runs
#'
#' A load with rules of its own says when a floor is refused, and adds what it knows of it (`floor_refusal`,
#' `with_floor`).
#' @noRd
add_floor <- function(rows, campaign) {
  if (nrow(rows) == 0L) {
    return(rows)
  }
  runs <- campaign$runs
  # A control run that does not count is no floor, but it was there.
  nulls <- runs[kind == "control"][, key := paste(mini_block, attempt)]
  key <- paste(rows$mini_block, rows$attempt)
  null_id <- nulls$run_id[match(key, nulls$key)]
  at <- match(paste(rows$meter_id, null_id), paste(rows$meter_id, rows$run_id))
  refusal <- of_load(campaign, "floor_refusal", function(own, control) rep(NA_character_, nrow(own)))
  reason <- refusal(runs[match(rows$run_id, run_id)], runs[match(null_id, run_id)])
  reason[is.na(at)] <- "null_run_invalid"
  reason[is.na(null_id)] <- "no_null_run"
  reason[rows$kind == "control"] <- "null_has_no_throughput"
  kinds <- if ("window_kind" %in% names(runs)) runs$window_kind[match(rows$run_id, runs$run_id)] else "fixed"
  until_done <- kinds %in% "until_done"
  floors <- floor_quantities(rows, rows[at], reason, until_done)
  rows[, names(floors) := floors]
  of_load(campaign, "with_floor", function(rows, at) rows)(rows, at)[]
}

#' Compare the recomputation with the results of the campaign
#'
#' @param campaign from [read_campaign()].
#' @param recomputed from [compute_campaign_ea()].
#' @param tolerance greatest difference of two equal figures, relative to the greater.
#' @param of_subtracted the same of two equal differences, relative to the powers that were subtracted:
#'   their rounding is what differs between processors (as netjoule_energy.agreement has it).
#' @return data.table run_id, meter_id, quantity, ours, theirs, relative_difference, agrees.
#' @examples
#' check <- compare_ea(example_campaign())
#' all(check$agrees)
#' @export
compare_ea <- function(campaign, recomputed = compute_campaign_ea(campaign), tolerance = 1e-9, of_subtracted = 1e-11) {
  floors <- c("p_null_w", "floor_w", "ea_above_floor_j_per_mbit")
  quantities <- c(
    "window_t_start_s", "window_t_end_s", "p_a_w", "p_i_before_w", "p_i_after_w", "p_i_w", "delta_p_w",
    "t_a_mbps", "ea_j_per_mbit", "tail_energy_j", intersect("wake_ups_per_message", names(recomputed)), floors
  )
  # These may be refused for what is not looked at here: a null run at fault elsewhere, a radio without air time. And
  # not every result.json tells of wake-ups.
  refusable <- c(floors, "ea_j_per_mbit", "wake_ups_per_message")
  both <- merge(recomputed, campaign$results, by = c("run_id", "meter_id"), suffixes = c("_ours", "_theirs"))
  # With constant power the difference is rounding, and its sign decides whether E_A is empty: that is no disagreement.
  rounding <- is.na(both$ea_j_per_mbit_ours) & both$t_a_mbps_ours > 0 &
    abs(both$delta_p_w_ours) <= of_subtracted * abs(both$p_a_w_ours)
  both[rounding %in% TRUE, ea_j_per_mbit_ours := delta_p_w_ours / t_a_mbps_ours]
  # A difference of two powers inherits their rounding, so it is judged against the powers.
  scales <- list(
    delta_p_w = both$p_a_w_ours, tail_energy_j = both$p_a_w_ours, floor_w = both$p_a_w_ours,
    ea_j_per_mbit = both$p_a_w_ours / both$t_a_mbps_ours,
    ea_above_floor_j_per_mbit = both$p_a_w_ours / both$t_a_mbps_ours
  )
  rows <- lapply(quantities, function(quantity) {
    ours <- both[[paste0(quantity, "_ours")]]
    theirs <- both[[paste0(quantity, "_theirs")]]
    powers <- abs(if (is.null(scales[[quantity]])) 0 else scales[[quantity]])
    greater <- pmax(abs(ours), abs(theirs))
    apart <- abs(ours - theirs)
    apart[is.na(ours) & is.na(theirs)] <- 0
    data.table(
      run_id = both$run_id, meter_id = both$meter_id, quantity = quantity, ours = ours, theirs = theirs,
      relative_difference = apart / pmax(greater, powers, .Machine$double.xmin, na.rm = TRUE),
      agrees = !is.na(apart) & apart <= pmax(tolerance * greater, of_subtracted * powers, na.rm = TRUE)
    )[!(quantity %in% refusable & is.na(theirs)) & !(quantity %in% floors & both$floor_reason_ours %in% without_null)]
  })
  setorderv(rbindlist(rows), c("run_id", "meter_id"))[]
}
