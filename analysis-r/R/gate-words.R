# SPDX-License-Identifier: Apache-2.0

# What a gate says: a sentence, and a verdict for each cell.

#' The decision in one sentence
#'
#' @param found from decide_arms().
#' @param name of what is decided upon, "energy per megabit".
#' @noRd
gate_words <- function(campaign, found, gate, reference, name) {
  names <- arm_names(campaign, c(gate$head, reference))
  if (is.null(found$look)) {
    return(if (found$verdict == "inconclusive") {
      sprintf("INCONCLUSIVE: no cell of %s can be compared with %s.", names[1], names[2])
    } else {
      sprintf("Not decided: the first look is after block %d.", min(gate$looks))
    })
  }
  if (!"ratio" %in% found$changes$cells$how) name <- "of 3u (the least power that the meter resolves)"
  claim <- sprintf("%s, over %d blocks", claim_words(names, found$look, name), found$look$blocks)
  margin <- number_text(gate$margin_percent)
  tolerance <- number_text(gate$tolerance_percent)
  ends <- switch(found$verdict,
    inconclusive = c("INCONCLUSIVE: ", sprintf(
      "neither is an increase of %s %% ruled out nor one of %s %% shown", margin, tolerance
    )),
    continue = c("Not decided: ", sprintf("at most %d blocks are taken", gate$blocks_max)),
    shown_words(found$verdict, gate)
  )
  verdict_sentence(campaign, ends, claim)
}

#' What the first of two arms took more or less than the second
#' @noRd
claim_words <- function(names, bounds, name) {
  percent <- as_percent(unlist(bounds[c("mean", "low", "high")]))
  than <- paste0(" ", name, " than ", names[2])
  sprintf("%s took %s", names[1], side_words(percent[1], percent[2], percent[3], than))
}

# How a sentence of a pass or a fail begins and ends.
shown_words <- function(verdict, rule) {
  switch(verdict,
    pass = c("PASS: ", sprintf("an increase of %s %% is ruled out", number_text(rule$margin_percent))),
    fail = c("FAIL: ", sprintf("an increase of more than %s %% is shown", number_text(rule$tolerance_percent)))
  )
}

verdict_sentence <- function(campaign, ends, claim) {
  modelled <- if (is_modelled(campaign, campaign$meters$meter_id[1])) "in this model, " else ""
  paste0(ends[1], modelled, claim, "; ", ends[2], ".")
}

#' Cells with their own intervals and verdicts by Holm: shown, not decided upon
#'
#' @param changes from changes_of().
#' @return list, one per cell of the campaign in the workload's order, with the fields of cells[] of gate_verdict.
#' @noRd
cell_verdicts <- function(campaign, changes, margin_percent) {
  cells <- merge(gate_cells(campaign), changes$cells, by = "place", all.x = TRUE, sort = FALSE)
  cells <- cells[order(as.integer(place))]
  part <- cells$takes_part %in% TRUE
  adjusted <- rep(NA_real_, nrow(cells))
  adjusted[part] <- holm(cells$p[part])
  lapply(seq_len(nrow(cells)), function(i) {
    one <- as.list(cells[i])
    fields <- list(
      cell = named_values(one[gate_factors(campaign)]), method = if (part[i]) one$how else "left_out",
      blocks = fcoalesce(one$blocks, 0L)
    )
    c(fields, interval_fields(one), list(
      p_holm = adjusted[i], verdict = cell_verdict(part[i], adjusted[i], one$mean),
      reason = if (part[i]) "" else why_left_out(one, margin_percent)
    ))
  })
}

interval_fields <- function(one) {
  ratio <- if (one$how %in% "ratio") exp(c(one$mean, one$low, one$high)) else rep(NA_real_, 3L)
  watts <- if (one$how %in% "p_a_difference") one$resolution_w * c(one$mean, one$low, one$high) else rep(NA_real_, 3L)
  list(
    ratio = ratio[1], ratio_low = ratio[2], ratio_high = ratio[3], difference_w = watts[1],
    difference_low_w = watts[2], difference_high_w = watts[3]
  )
}

cell_verdict <- function(part, p, mean) {
  if (!part) {
    "left_out"
  } else if (is.na(p) || p > gate_alpha) {
    "no_clear_difference"
  } else if (mean > 0) {
    "more"
  } else {
    "less"
  }
}

why_left_out <- function(one, margin_percent) {
  switch(fcoalesce(one$how, "none"),
    p_a_difference = sprintf(
      "below the meter's resolution, and known in watts to %s W only, where %s %% of 3u are %s W",
      short(one$resolution_w * (one$high - one$mean)), number_text(margin_percent),
      short(one$resolution_w * margin_percent / 100)
    ),
    hollow = "a run lies outside the device model's validity",
    no_ea = "a run has no value above 0",
    "no pair of runs counts"
  )
}

# A cell as an object, also without a factor.
named_values <- function(values) {
  values <- values[!vapply(values, is.na, NA)]
  stats::setNames(values, as.character(names(values)))
}

# Why nothing is left, and which cell comes nearest.
no_cell_left <- function(changes, campaign, margin_percent) {
  none <- "No cell takes part"
  nearest <- changes$cells[how == "p_a_difference" & !is.na(high)][order(high - mean)]
  detail <- if (nrow(nearest) == 0L) {
    paste0(none, ": in each of them a run has no value that could be compared.")
  } else {
    one <- as.list(nearest[1])
    cell <- cell_name(campaign, gate_cells(campaign)[place == one$place])
    sprintf(
      "%s: each is below the meter's resolution; %s comes nearest (%s).", none,
      if (nzchar(cell)) cell else "its one cell", why_left_out(one, margin_percent)
    )
  }
  list(code = "no_cell_left", detail = detail)
}
