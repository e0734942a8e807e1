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
  changes <- changes_of(arm_pairs(rows, gate$arm, gate$reference), gate$margin_percent)
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
      narrow_enough = narrow, ranking = cell_ranking(campaign, changes, gate),
      plan = gate_plan(spread, found$n, gate$margin_percent, gate$tolerance_percent)
    ), session_fields(campaign, rows, gate, as_session), list(
      objective = gate$objective, unit = objective_words(campaign, gate$objective)$unit, blocks_finished = finished
    )
  )
}

#' Cells by how few blocks a gate over each alone would need
#' @noRd
cell_ranking <- function(campaign, changes, gate) {
  cells <- merge(gate_cells(campaign), changes$cells, by = "place", all.x = TRUE, sort = FALSE)
  cells[, seconds := mini_block_seconds(campaign)[place]]
  cells[, needed := mapply(function(one, n, part) {
    if (!part %in% TRUE || is.na(one)) {
      return(NA_integer_)
    }
    gate_blocks_max(one, n, gate$margin_percent, gate$tolerance_percent)
  }, log_sd, blocks, takes_part)]
  cells <- cells[order(needed, needed * seconds, as.integer(place))]
  lapply(seq_len(nrow(cells)), function(i) {
    one <- as.list(cells[i])
    list(
      cell = named_values(one[gate_factors(campaign)]), log_ratio_sd = one$log_sd, blocks_needed = one$needed,
      seconds_needed = one$needed * one$seconds
    )
  })
}

# Mean time of a mini-block of each cell, with all its arms: from the first idle window to the end of the last tail,
# and the guard before each run.
mini_block_seconds <- function(campaign) {
  runs <- campaign$runs[kind == "work" & usable == TRUE]
  settle <- fcoalesce(pick_number(campaign$meta, "workload", "timing", "settle_s"), 0)
  ends <- fcoalesce(runs$tail_end_s, runs$measure_end_s)
  lengths <- data.table(
    place = places_of(campaign, runs$mini_block), mini_block = runs$mini_block,
    s = ends - runs$idle_before_start_s + settle
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
  names <- arm_names(campaign, c(gate$arm, gate$reference))
  of <- objective_words(campaign, gate$objective)$name
  model_sentence(
    campaign, campaign$meters$meter_id[1], names[1], " took ",
    side_words(percent[1], percent[2], percent[3], paste0(" ", of, " than ", names[2])), ", over ", found$n,
    " blocks; half of the interval is ", short(as_percent(found$high - found$mean)), " %, and at most ",
    number_text(gate$margin_percent / 2), " % is asked."
  )
}
