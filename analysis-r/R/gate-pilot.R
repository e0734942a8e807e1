# SPDX-License-Identifier: Apache-2.0

# What a pilot found: two builds of one source compared, so that what they differ by is the rig's own scatter.

#' The event `gate_pilot` of a campaign
#'
#' @return list with the fields of `pilot` of gate_verdict, whether its 95 % interval contains 0 and is at most half the
#'   margin wide on a side, the plan of a gate on this rig, and cells and values as of a session.
#' @noRd
gate_pilot <- function(campaign) {
  gate <- gate_settings(campaign)
  assert_gate_arms(campaign, gate)
  finished <- finished_blocks(campaign)
  rows <- gate_rows(campaign, gate$objective)[block <= finished]
  changes <- changes_of(arm_pairs(rows, gate$head, gate$base), gate$margin_percent)
  d <- unname(rowMeans(changes$grid))
  found <- mean_interval(d)
  spread <- if (found$n > 1L) sd(d) else NA_real_
  half_percent <- as_percent(found$high - found$mean)
  contains_0 <- found$low <= 0 & found$high >= 0
  narrow <- half_percent <= gate$margin_percent / 2
  as_session <- list(
    verdict = if (isTRUE(contains_0 && narrow)) "pass" else "continue", changes = changes, until = finished,
    ratio = exp(found$mean), ratio_low = exp(found$low), ratio_high = exp(found$high),
    decision = list(look = 0L, looks = list())
  )
  c(
    list(
      event = "gate_pilot", words = pilot_words(campaign, found, gate),
      reason = if (ncol(changes$grid) == 0L) no_cell_left(changes, campaign, gate$margin_percent) else NA,
      log_ratio_sd = spread, half_width_percent = half_percent, blocks = found$n, contains_0 = contains_0,
      narrow_enough = narrow, ranking = cell_ranking(campaign, rows, changes, gate)
    ), session_fields(campaign, rows, gate, as_session), list(
      objective = gate$objective, unit = objective_words(campaign, gate$objective)$unit, blocks_finished = finished
    )
  )
}

#' Cells and windows by how soon a gate over each alone would be done
#'
#' What a shorter window had given is computed from the raw files of the runs: E_A with the measure window ended early.
#' @noRd
cell_ranking <- function(campaign, rows, changes, gate) {
  whole <- measure_seconds(campaign)
  ranked <- rbindlist(lapply(ranked_shares(campaign, gate, whole), function(share) {
    found <- if (share == 1) changes$cells else cut_cells(campaign, rows, gate, share)
    cells <- merge(gate_cells(campaign), found, by = "place", all.x = share == 1, sort = FALSE)
    saved_s <- if (share == 1) 0 else (1 - share) * whole
    cells[, `:=`(measure_s = share * whole, seconds = mini_block_seconds(campaign, saved_s)[place])][]
  }))
  ranked[, needed := mapply(function(one, n, part) {
    if (!part %in% TRUE || is.na(one)) {
      return(NA_integer_)
    }
    gate_blocks_max(one, n, gate$margin_percent, gate$tolerance_percent)
  }, log_sd, blocks, takes_part)]
  ranked <- ranked[order(needed * seconds, needed, as.integer(place), -measure_s)]
  lapply(seq_len(nrow(ranked)), function(i) {
    one <- as.list(ranked[i])
    list(
      cell = named_values(one[gate_factors(campaign)]), measure_s = one$measure_s, log_ratio_sd = one$log_sd,
      blocks_needed = one$needed, seconds_needed = one$needed * one$seconds
    )
  })
}

# Shares of the measure window that are ranked, from its begin.
window_shares <- c(1, 0.5, 0.25)
# Of fewer readings P_A says nothing.
least_updates <- 10

# The whole window, and of energy the parts of it that hold enough of the meter's updates.
ranked_shares <- function(campaign, gate, whole_s) {
  meter <- campaign$meters[1]
  logged <- file.exists(file.path(campaign$dir, "meters", paste0(meter$meter_id, ".csv")))
  if (is.na(whole_s) || gate$objective != "energy" || !logged || is.na(meter$update_interval_s)) {
    return(1)
  }
  window_shares[window_shares == 1 | window_shares * whole_s >= least_updates * meter$update_interval_s]
}

# Length of the measure window where it is fixed and can be cut, else NA.
measure_seconds <- function(campaign) {
  if (is.null(of_load(campaign, "arrived_until"))) {
    return(NA_real_)
  }
  runs <- campaign$runs[kind == "work" & usable == TRUE]
  fcoalesce(
    pick_number(campaign$meta, "workload", "timing", "measure_s"),
    round(mean_or_na(runs$measure_end_s - runs$measure_start_s), 6)
  )
}

#' Cells as with the measure window of every run ended after a share of it
#'
#' Cells that are compared in watts are left out: what is below resolution then is not known.
#' @noRd
cut_cells <- function(campaign, rows, gate, share) {
  runs <- campaign$runs[measurable == TRUE & run_id %in% rows$run_id]
  runs[, measure_end_s := measure_start_s + share * (measure_end_s - measure_start_s)]
  arrived <- of_load(campaign, "arrived_until")(campaign, runs)
  spans <- names(arrived$spans)
  runs[, (spans) := arrived$spans]
  cut <- replace(campaign, "arrivals", list(arrived$arrivals))
  found <- recompute_meter(as.list(campaign$meters[1]), cut, runs)
  rows <- copy(rows)[, ea := found$ea_j_per_mbit[match(rows$run_id, found$run_id)]]
  changes_of(arm_pairs(rows, gate$head, gate$base), gate$margin_percent)$cells[how == "ratio"]
}

# Mean time of a mini-block of each cell, with all its arms: from the first idle window to the end of the last tail,
# and the guard before each run; each run shorter by `saved_s`.
mini_block_seconds <- function(campaign, saved_s = 0) {
  runs <- campaign$runs[kind == "work" & usable == TRUE]
  settle <- fcoalesce(pick_number(campaign$meta, "workload", "timing", "settle_s"), 0)
  ends <- fcoalesce(runs$tail_end_s, runs$measure_end_s)
  lengths <- data.table(
    place = places_of(campaign, runs$mini_block), mini_block = runs$mini_block,
    s = ends - runs$idle_before_start_s + settle - saved_s
  )
  of_mini_blocks <- lengths[, list(s = sum(s)), by = list(place, mini_block)]
  of_cells <- of_mini_blocks[, list(s = mean(s)), by = place]
  stats::setNames(of_cells$s, of_cells$place)
}

pilot_words <- function(campaign, found, gate) {
  if (found$n < 2L) {
    return("Nothing is known yet: a pilot needs two blocks at least.")
  }
  percent <- as_percent(unlist(found[c("mean", "low", "high")]))
  names <- arm_names(campaign, c(gate$head, gate$base))
  of <- objective_words(campaign, gate$objective)$name
  model_sentence(
    campaign, campaign$meters$meter_id[1], names[1], " took ",
    side_words(percent[1], percent[2], percent[3], paste0(" ", of, " than ", names[2])), ", over ", found$n,
    " blocks; half of the interval is ", short(as_percent(found$high - found$mean)), " %, and at most ",
    number_text(gate$margin_percent / 2), " % is asked."
  )
}
