# SPDX-License-Identifier: Apache-2.0

# The numbers of a session of a gate, from its campaign as far as it has come. Nothing is kept: asked again after
# another block, all of it is computed anew, and what was decided at a look stays decided.

#' Blocks that are finished: all before the first with a run still to come
#'
#' Of a mini-block that is repeated the last attempt counts.
#' @noRd
finished_blocks <- function(campaign) {
  latest <- campaign$plan[, .SD[attempt == max(attempt)], by = "mini_block"]
  open <- latest[!status %in% c("done", "invalid"), block]
  whole <- sort(unique(latest$block))
  if (length(open) > 0L) whole <- whole[whole < min(open)]
  length(whole)
}

#' Decide over two arms of a campaign
#'
#' @param rows from gate_rows(), of finished blocks.
#' @param gate from gate_settings().
#' @param reference the arm that `gate$head` is compared with.
#' @return list decision (from gate_decision()), verdict, look (the one that decided, else the last; NULL before the
#'   first), changes (from changes_of() as of then), until (blocks as of then), possible.
#' @noRd
decide_arms <- function(rows, gate, reference, finished) {
  pairs <- arm_pairs(rows, gate$head, reference)
  changes <- function(planned) changes_of(pairs[block <= planned], gate$margin_percent)
  decision <- gate_decision(function(planned) t(rowMeans(changes(planned)$grid)), gate, finished)
  look <- if (decision$look > 0L) decision$looks[[decision$look]]
  until <- if (is.null(look)) finished else look$blocks_planned
  as_of <- changes(until)
  verdict <- decision$verdict
  # Cells without any number will have none later either.
  if (verdict == "continue" && finished >= min(gate$looks) && !as_of$possible) verdict <- "inconclusive"
  # A difference in shares of the meter's resolution is no ratio of energies.
  bounds <- bounds_of(if ("ratio" %in% as_of$cells$how) look)
  c(list(decision = decision, verdict = verdict, look = look, changes = as_of, until = until), bounds)
}

bounds_of <- function(look) {
  if (is.null(look)) {
    return(list(ratio = NA_real_, ratio_low = NA_real_, ratio_high = NA_real_))
  }
  list(ratio = exp(look$mean), ratio_low = exp(look$low), ratio_high = exp(look$high))
}

#' The event `gate_decision` of a campaign
#' @noRd
gate_session <- function(campaign) {
  gate <- gate_settings(campaign)
  assert_gate_arms(campaign, gate)
  finished <- finished_blocks(campaign)
  rows <- gate_rows(campaign, gate$objective)[block <= finished]
  # At a look with a rig that is not fit nothing is decided.
  sick <- sick_look(rows, gate, finished)
  until <- if (is.na(sick)) finished else sick - 1L
  found <- decide_arms(rows, gate, gate$base, until)
  anchor <- if (!is.na(gate$anchor)) decide_arms(rows, gate, gate$anchor, until)
  open <- found$verdict == "continue" || found$verdict == "pass" && identical(anchor$verdict, "continue")
  ended <- !is.na(sick) || finished >= gate$blocks_max
  name <- objective_words(campaign, gate$objective)$name
  rig <- rig_health(rows[block <= if (is.na(sick)) finished else sick], gate)
  noisy <- !is.na(sick) && found$verdict == "continue"
  words <- if (noisy) rig_words(rig, gate) else gate_words(campaign, found, gate, gate$base, name)
  c(
    list(
      event = "gate_decision", decided = if (open && !ended) "continue" else settled(found),
      words = words,
      reason = if (noisy) list(code = "rig_noisy", detail = words) else gate_reason(campaign, found, gate)
    ), session_fields(campaign, rows, gate, found), list(
      objective = gate$objective, unit = objective_words(campaign, gate$objective)$unit, blocks_finished = finished,
      rig = rig, anchor = if (is.null(anchor)) NA else anchor_fields(campaign, anchor, gate, name)
    )
  )
}

# Fields of sessions[] of gate_verdict.
session_fields <- function(campaign, rows, gate, found) {
  seen <- rows[block <= found$until]
  c(
    list(
      blocks_max = gate$blocks_max, looks = lapply(found$decision$looks[seq_len(found$decision$look)], look_fields),
      verdict = settled(found)
    ), found[c("ratio", "ratio_low", "ratio_high")], list(
      cells = cell_verdicts(campaign, found$changes, gate$margin_percent),
      reference_log_sd = rig_scatter(seen, gate)$sd, head_over_reference = over_rig(seen, gate),
      values = values_of(seen, gate, found$changes)
    )
  )
}

assert_gate_arms <- function(campaign, gate) {
  named <- unlist(gate[c("head", "base", "anchor", "reference")])
  missing <- setdiff(named[!is.na(named)], campaign$plan$arm)
  if (length(missing) > 0L) {
    abort_invalid_data(
      "The section gate of the workload names the arm ", missing[1], ", of which plan.csv of ", campaign$dir,
      " has no run."
    )
  }
}

# What was never decided.
settled <- function(found) if (found$verdict == "continue") "inconclusive" else found$verdict

look_fields <- function(look) {
  c(
    look[c("blocks_planned", "blocks", "information", "critical_value")],
    list(log_ratio_mean = look$mean, log_ratio_sd = look$sd), bounds_of(look), look["verdict"]
  )
}

gate_reason <- function(campaign, found, gate) {
  if (found$verdict != "inconclusive") {
    NA
  } else if (ncol(found$changes$grid) == 0L) {
    no_cell_left(found$changes, campaign, gate$margin_percent)
  } else {
    list(code = "blocks_used_up", detail = sprintf("Neither was shown with %d blocks.", gate$blocks_max))
  }
}

anchor_fields <- function(campaign, anchor, gate, name) {
  c(
    list(verdict = settled(anchor)), anchor[c("ratio", "ratio_low", "ratio_high")],
    list(words = gate_words(campaign, anchor, gate, gate$anchor, name))
  )
}

#' What each arm took per block: the geometric mean over the cells that take part by ratio
#' @noRd
values_of <- function(rows, gate, changes) {
  by_ratio <- changes$cells$place[changes$cells$how == "ratio"]
  grid <- changes$grid
  places <- intersect(colnames(grid), by_ratio)
  arms <- unlist(gate[c("base", "head", "anchor", "reference")], use.names = FALSE)
  arms <- arms[!is.na(arms)]
  lapply(stats::setNames(nm = arms), function(name) {
    if (length(places) == 0L) {
      return(list())
    }
    means <- log_grid(rows[rows$arm == name & place %in% places & block %in% rownames(grid)])
    as.list(unname(exp(rowMeans(means))))
  })
}

# Logarithms of what runs took, by block and cell; cells with a run that has none are left out.
log_grid <- function(rows) {
  good <- rows[, list(good = all(ea > 0) %in% TRUE), by = place][good == TRUE, place]
  rows <- rows[place %in% good]
  complete_grid(tapply(log(rows$ea), list(rows$block, rows$place), mean))
}

#' Scatter over blocks of what the reference workload took
#' @noRd
rig_scatter <- function(rows, gate) {
  d <- if (is.na(gate$reference)) numeric() else rowMeans(log_grid(rows[rows$arm == gate$reference]))
  list(sd = if (length(d) > 1L) sd(d) else NA_real_, blocks = length(d))
}

# One-sided level at which a reference workload that scatters more than the pilot's makes a rig unfit.
rig_level <- 0.001

#' Whether the rig scatters as its pilot did, by its reference workload (F test)
#' @noRd
rig_health <- function(rows, gate) {
  now <- rig_scatter(rows, gate)
  p <- if (now$blocks > 1L && !is.na(gate$reference_log_sd) && !is.na(gate$pilot_blocks)) {
    stats::pf((now$sd / gate$reference_log_sd)^2, now$blocks - 1, gate$pilot_blocks - 1, lower.tail = FALSE)
  } else {
    NA_real_
  }
  list(ok = !(p < rig_level) %in% TRUE, p = p, log_sd = now$sd, blocks = now$blocks)
}

# The first look at which the rig is not fit, NA where it always was.
sick_look <- function(rows, gate, finished) {
  looks <- gate$looks[gate$looks <= finished]
  sick <- vapply(looks, function(planned) !rig_health(rows[block <= planned], gate)$ok, NA)
  c(looks[sick], NA_integer_)[1]
}

rig_words <- function(rig, gate) {
  sprintf(
    paste(
      "The rig is noisy: its reference workload scatters by %s %% over %d blocks, in the pilot by %s %%",
      "(F test, p = %s)."
    ), short(100 * rig$log_sd), rig$blocks, short(100 * gate$reference_log_sd), p_text(rig$p)
  )
}

#' Mean ratio of the arm to the reference workload
#' @noRd
over_rig <- function(rows, gate) {
  if (is.na(gate$reference)) {
    return(NA_real_)
  }
  exp(mean_or_na(compared(arm_pairs(rows, gate$head, gate$reference))$d))
}
