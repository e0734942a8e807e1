# SPDX-License-Identifier: Apache-2.0

# Does one rig of a campaign measure more than the others? The block is the unit: it holds every cell once, and one rig
# had all of it. Contrasts of arms do not need this: their pairs lie inside mini-blocks, so that the rig cancels out.

# From so many rigs on they are a sample of rigs, whose scatter is what is asked for.
least_random_rigs <- 5L

#' E_A of each rig beside the others
#'
#' The value of a block is the mean of ln E_A of its runs over the means of their cells and arms. Fewer than five rigs
#' are fixed: the effect of a rig is the mean of its blocks over that of the other rigs, its interval from Student's t
#' with the scatter inside rigs, pooled. From five on they are random over blocks: effects are the best linear unbiased
#' predictions of a one-way model with components of variance from its analysis of variance (Searle, Casella,
#' McCulloch, Variance Components, 1992, chapters 3 and 7), and `sd_between_percent` says how much rigs scatter.
#' Intervals of several rigs hold together (Bonferroni), so that none is named by looking at many.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per meter and rig, without rows where one rig ran alone: runs_n, blocks_n, model (fixed
#'   or random), effect_percent (+: the rig measures more than the others; of random rigs than their mean) with its
#'   interval, sd_between_percent, verdict (differs, no_difference_seen, cannot_tell).
#' @examples
#' rig_effects(example_campaign())
#' @export
rig_effects <- function(campaign) {
  rows <- without_control(usable_results(campaign$results), campaign)[!hollow & !below_resolution & !is.na(ea) & ea > 0]
  # A core of a simulation measures nothing.
  if (uniqueN(rows$rig) < 2L || is_simulated(campaign)) {
    return(table_of("rig_effects"))
  }
  rows[, value := log(ea) - mean(log(ea)), by = c(cell_keys(campaign))]
  blocks <- rows[, list(value = mean(value), runs = .N), by = c(meter_keys, "rig", "block")]
  found <- blocks[, rig_table(.SD), by = c(meter_keys)]
  rows <- table_of("rig_effects", found)
  rows[order(match(meter_id, campaign$meters$meter_id), rig)]
}

# One meter's blocks (rig, value, runs) as rows of rig_effects().
rig_table <- function(blocks) {
  by_rig <- blocks[, list(runs_n = sum(runs), blocks_n = .N, mean = mean(value)), keyby = rig]
  freedom <- nrow(blocks) - nrow(by_rig)
  within <- sum(blocks[, (value - mean(value))^2, by = rig]$V1) / freedom
  random <- nrow(by_rig) >= least_random_rigs
  told <- if (freedom < 1L) {
    list(effect = by_rig$mean - mean(by_rig$mean), error = NA_real_, between = NA_real_)
  } else if (random) {
    random_effects(by_rig, within)
  } else {
    fixed_effects(by_rig, within)
  }
  # Two fixed rigs differ by one number, which both rows tell.
  looks <- if (nrow(by_rig) == 2L) 1L else nrow(by_rig)
  half <- if (freedom < 1L) NA_real_ else stats::qt(1 - 0.025 / looks, freedom) * told$error
  percent <- function(x) 100 * expm1(x)
  by_rig[, list(
    rig, runs_n, blocks_n, model = if (random) "random" else "fixed", effect_percent = percent(told$effect),
    effect_ci95_low = percent(told$effect - half), effect_ci95_high = percent(told$effect + half),
    sd_between_percent = 100 * told$between,
    verdict = fcase(is.na(half), "cannot_tell", abs(told$effect) > half, "differs", default = "no_difference_seen")
  )]
}

# Each rig over the mean of the others.
fixed_effects <- function(by_rig, within) {
  others <- nrow(by_rig) - 1L
  of_mean <- within / by_rig$blocks_n
  list(
    effect = by_rig$mean - (sum(by_rig$mean) - by_rig$mean) / others,
    error = sqrt(of_mean + (sum(of_mean) - of_mean) / others^2), between = NA_real_
  )
}

# Best linear unbiased predictions, with the prediction error of each (the mean of all rigs taken as known).
random_effects <- function(by_rig, within) {
  n <- by_rig$blocks_n
  rigs <- nrow(by_rig)
  centre <- sum(n * by_rig$mean) / sum(n)
  among <- sum(n * (by_rig$mean - centre)^2) / (rigs - 1L)
  between <- max(0, (among - within) / ((sum(n) - sum(n^2) / sum(n)) / (rigs - 1L)))
  weight <- if (between > 0) 1 / (between + within / n) else n
  centre <- sum(weight * by_rig$mean) / sum(weight)
  kept <- between / (between + within / n)
  list(
    effect = kept * (by_rig$mean - centre), error = sqrt(kept * within / n), between = sqrt(between)
  )
}

#' What rigs have to do with the results, a sentence for each meter
#'
#' @param effects from [rig_effects()], NULL of a campaign on one rig.
#' @noRd
rig_sentences <- function(campaign, effects) {
  if (is.null(effects)) {
    return(NULL)
  }
  vapply(unique(effects$meter_id), function(id) {
    rows <- effects[meter_id == id]
    apart <- rows[verdict == "differs"]
    head <- sprintf("%d rigs ran its blocks (%s). ", nrow(rows), paste(rows$rig, rows$blocks_n, collapse = ", "))
    told <- if (any(rows$verdict == "cannot_tell")) {
      "Whether they measure alike cannot be told: no rig had two blocks."
    } else if (nrow(apart) == 0L) {
      paste0("None differs from the others by more than its interval", widest_words(rows), ".")
    } else {
      paste0(paste(sprintf("%s measures %s", apart$rig, mapply(
        side_words, apart$effect_percent, apart$effect_ci95_low, apart$effect_ci95_high, than = " than the others"
      )), collapse = "; "), ": look for what is different there before figures of several rigs are put together.")
    }
    model_sentence(campaign, id, head, told)
  }, "", USE.NAMES = FALSE)
}

widest_words <- function(rows) {
  ends <- c(min(rows$effect_ci95_low), max(rows$effect_ci95_high))
  sprintf(" (%s to %s %%)", short(ends[1]), short(ends[2]))
}
