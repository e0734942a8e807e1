# SPDX-License-Identifier: Apache-2.0

# Two arms of a campaign, or two campaigns, compared once: by the gate's two numbers, without looks.

compare_margin_percent <- 3
compare_tolerance_percent <- 1

#' The event `comparison`
#'
#' Of two campaigns the second is compared with the first. Whatever changed between them is in the ratio, so an increase
#' is called none of the change's unless both ran one reference workload, to which all is held then.
#'
#' @param campaigns one or two from [read_campaign()].
#' @param arm,reference arms of one campaign; of two the second's and the first's. NULL: those of the workload's gate,
#'   or the only pair; of two campaigns every arm that both have.
#' @noRd
comparison <- function(campaigns, arm = NULL, reference = NULL, margin_percent = NULL, tolerance_percent = NULL) {
  assert_powered(campaigns)
  last <- campaigns[[length(campaigns)]]
  gate <- pick(last$meta$workload, "gate", default = list())
  number <- function(given, name, otherwise) {
    if (is.null(given)) fcoalesce(pick_number(gate, name), otherwise) else given
  }
  rule <- list(
    margin_percent = number(margin_percent, "margin_percent", compare_margin_percent),
    tolerance_percent = number(tolerance_percent, "tolerance_percent", compare_tolerance_percent)
  )
  if (rule$tolerance_percent >= rule$margin_percent) {
    abort_netjoule("The tolerance must be below the margin.", exit_code = exit_codes$usage)
  }
  found <- if (length(campaigns) == 1L) {
    within_campaign(last, compared_arms(last, arm, reference), rule)
  } else {
    across_campaigns(campaigns, arm, reference, rule)
  }
  comparison_event(last, found, rule)
}

# What is compared is energy per work.
assert_powered <- function(campaigns) {
  without <- Filter(is_unpowered, campaigns)
  if (length(without) > 0L) {
    dir <- without[[1]]$dir
    abort_netjoule(
      "Nothing tells the power of a host in the campaign ", dir, ", so it has no energy per work to compare: what its ",
      "runs measured is compared, arm by arm in each cell, in ", file.path(dir, "tables", "measure_contrasts.csv"),
      ", which 'netjoule analyse' writes.",
      exit_code = exit_codes$usage
    )
  }
}

#' Which two arms of a campaign are compared
#' @noRd
compared_arms <- function(campaign, arm, reference) {
  gate <- pick(campaign$meta$workload, "gate", default = list())
  arms <- setdiff(planned_arms(campaign), pick_text(gate, "reference"))
  pairs <- pairs_of_arms(arms, pick_text(campaign$entry, "reference"))
  default <- if (length(gate) > 0L) {
    list(arm = gate$head, reference = gate$base)
  } else {
    as.list(pairs[1, c("arm", "reference")])
  }
  if (length(gate) == 0L && nrow(pairs) != 1L && (is.null(arm) || is.null(reference))) {
    abort_netjoule(
      "The campaign ", campaign$dir, " has the arms ", enumerated(arms), ": name two with --arm and --reference.",
      exit_code = exit_codes$usage
    )
  }
  chosen <- list(
    arm = if (is.null(arm)) default$arm else arm, reference = if (is.null(reference)) default$reference else reference
  )
  assert_arms(campaign, unlist(chosen))
  if (chosen$arm == chosen$reference) {
    abort_netjoule("An arm cannot be compared with itself.", exit_code = exit_codes$usage)
  }
  chosen
}

assert_arms <- function(campaign, arms) {
  missing <- setdiff(arms, campaign$plan$arm)
  if (length(missing) > 0L) {
    abort_netjoule("The campaign ", campaign$dir, " has no arm ", missing[1], ".", exit_code = exit_codes$usage)
  }
}

# Pairs inside mini-blocks, as a gate has them.
within_campaign <- function(campaign, arms, rule) {
  force(arms) # data.table would take its refusal for a failure
  changes <- changes_of(arm_pairs(gate_rows(campaign), arms$arm, arms$reference), rule$margin_percent)
  d <- rowMeans(changes$grid)
  names <- arm_names(campaign, unlist(arms))
  list(
    paired = TRUE, arm = arms$arm, reference = arms$reference, names = names, may_fail = TRUE,
    blocks = list(length(d), length(d)), bounds = if (length(d) > 1L) look_bounds(t(d), stats::qnorm(1 - gate_alpha)),
    cells = cell_verdicts(campaign, changes, rule$margin_percent)
  )
}

#' Campaigns that were taken apart in time: means of logarithms of each, by Welch's t
#' @noRd
across_campaigns <- function(campaigns, arm, reference, rule) {
  same_rig <- one_reference_workload(campaigns)
  chosen <- list(reference, arm)
  if (is.null(arm)) chosen[2] <- list(reference)
  if (is.null(reference)) chosen[1] <- list(arm)
  sides <- Map(function(campaign, name) {
    if (!is.null(name)) assert_arms(campaign, name)
    side_rows(campaign, name, same_rig)
  }, campaigns, chosen)
  keys <- common_cells(campaigns, sides)
  grids <- lapply(seq_along(sides), function(i) {
    rows <- merge(sides[[i]], keys, by = setdiff(names(keys), "cell"))[!is.na(value)]
    rows[, place := as.character(cell)]
    complete_grid(tapply(rows$value, list(rows$block, rows$place), mean))
  })
  common <- intersect(colnames(grids[[1]]), colnames(grids[[2]]))
  d <- lapply(grids, function(grid) rowMeans(grid[, common, drop = FALSE]))
  names <- vapply(campaigns, function(one) plain_text(one$name), "")[2:1]
  list(
    paired = FALSE, arm = campaigns[[2]]$name, reference = campaigns[[1]]$name, names = names, may_fail = same_rig,
    same_rig = same_rig, blocks = unname(lapply(d, length)), bounds = welch_bounds(d[[2]], d[[1]], gate_alpha),
    cells = welch_cells(keys, grids, common)
  )
}

# Logarithm of what each run took, NA in a cell with a run that has none; with one reference workload that of its ratio
# to it, inside the mini-block.
side_rows <- function(campaign, arm, same_rig) {
  rows <- merge(gate_rows(campaign), gate_cells(campaign), by = "place", suffixes = c("_run", ""))
  reference <- pick_text(campaign$meta, "workload", "gate", "reference")
  chosen <- !rows$arm %in% reference & (is.null(arm) | rows$arm == c(arm, "")[1])
  own <- rows[chosen]
  own[, compared := !any(below_resolution | hollow | is.na(ea) | ea <= 0), by = list(arm, place)]
  own[, value := NA_real_]
  own[compared == TRUE, value := log(ea)]
  if (same_rig) {
    theirs <- rows[rows$arm == reference & ea > 0, list(mini_block, attempt, rig_value = log(ea))]
    own <- merge(own, theirs, by = c("mini_block", "attempt"))
    own[, value := value - rig_value]
  }
  # One arm of each is compared whatever they are called.
  if (!is.null(arm)) own[, arm := NA_character_]
  own
}

# Cells that both have, with the arm where none was named, numbered.
common_cells <- function(campaigns, sides) {
  of <- lapply(campaigns, gate_factors)
  factors <- intersect(of[[1]], of[[2]])
  varied <- setdiff(union(of[[1]], of[[2]]), factors)
  if (length(varied) > 0L) {
    abort_invalid_data("Only one of both campaigns has the factor ", varied[1], ": they have no cell in common.")
  }
  columns <- c("arm", factors)
  distinct <- lapply(sides, function(rows) unique(rows[, columns, with = FALSE]))
  keys <- merge(distinct[[2]], distinct[[1]], by = columns)
  if (nrow(keys) == 0L) {
    abort_invalid_data("The campaigns have no cell in common.")
  }
  keys[, cell := .I][]
}

#' Whether both ran one reference workload: named by both, of one build as recorded beside them
#' @noRd
one_reference_workload <- function(campaigns) {
  of <- lapply(campaigns, reference_build)
  !anyNA(unlist(of)) && identical(of[[1]], of[[2]])
}

# By its hash in the verdict of its gate; NA where it has none.
reference_build <- function(campaign) {
  rig <- pick_text(campaign$meta, "workload", "gate", "reference")
  path <- file.path(dirname(campaign$dir), "verdict.json")
  if (is.na(rig) || !file.exists(path)) {
    return(NA_character_)
  }
  verdict <- tryCatch(jsonlite::fromJSON(path, simplifyVector = FALSE), error = function(e) NULL)
  named <- Find(function(one) identical(pick_text(one, "name"), rig), pick(verdict, "arms", default = list()))
  version <- pick_text(verdict, "workload_version")
  hash <- pick_text(named, "sha256")
  if (is.na(hash) || is.na(version)) NA_character_ else paste(version, hash)
}

#' Difference of two means with one-sided bounds at a level each
#' @noRd
welch_bounds <- function(x, y, level) {
  if (min(length(x), length(y)) < 2L) {
    return(NULL)
  }
  parts <- c(stats::var(x) / length(x), stats::var(y) / length(y))
  error <- sqrt(sum(parts))
  freedom <- if (error == 0) Inf else sum(parts)^2 / sum(parts^2 / (c(length(x), length(y)) - 1))
  centre <- mean(x) - mean(y)
  half <- qt(1 - level, freedom) * error
  p <- if (error == 0) as.numeric(centre == 0) else 2 * stats::pt(-abs(centre) / error, freedom)
  list(mean = centre, sd = NA_real_, low = centre - half, high = centre + half, p = p)
}

welch_cells <- function(keys, grids, common) {
  found <- lapply(as.character(keys$cell), function(place) {
    if (place %in% common) welch_bounds(grids[[2]][, place], grids[[1]][, place], 0.025)
  })
  p <- vapply(found, function(one) if (is.null(one)) NA_real_ else one$p, 0)
  adjusted <- holm(p)
  lapply(seq_along(found), function(i) {
    one <- found[[i]]
    known <- !is.null(one)
    one <- c(list(how = if (known) "ratio" else "none"), if (known) one else list(mean = NA_real_))
    c(
      list(
        cell = named_values(as.list(keys[i, setdiff(names(keys), "cell"), with = FALSE])),
        method = if (known) "ratio" else "left_out", blocks = min(vapply(grids, nrow, 0L))
      ), interval_fields(one), list(
        p_holm = adjusted[i], verdict = cell_verdict(known, adjusted[i], one$mean),
        reason = if (known) "" else "of one campaign too few blocks, or a run without a ratio"
      )
    )
  })
}

#' Verdict, sentence and numbers of a comparison
#' @noRd
comparison_event <- function(campaign, found, rule) {
  blocks <- min(unlist(found$blocks))
  bounds <- found$bounds
  verdict <- if (blocks < least_look_blocks) "inconclusive" else look_verdict(bounds, rule, last = TRUE)
  reason <- if (blocks < least_look_blocks) {
    list(code = "too_few_blocks", detail = sprintf("%d blocks count and %d are needed.", blocks, least_look_blocks))
  } else if (verdict == "fail" && !found$may_fail) {
    list(code = "apart_in_time", detail = paste(
      "The campaigns were taken apart in time and without one reference workload: what changed between them may be",
      "the rig."
    ))
  } else if (verdict == "inconclusive") {
    list(code = "neither_shown", detail = "Neither is the margin ruled out nor the tolerance exceeded.")
  }
  if (identical(reason$code, "apart_in_time")) verdict <- "inconclusive"
  ratio <- if (is.null(bounds)) rep(NA_real_, 3L) else exp(c(bounds$mean, bounds$low, bounds$high))
  c(
    list(
      event = "comparison", words = comparison_words(campaign, found, rule, verdict, reason), verdict = verdict,
      reason = if (is.null(reason)) NA else reason, paired = found$paired, apart_in_time = !found$paired,
      one_reference_workload = isTRUE(found$same_rig), arm = found$arm, reference = found$reference,
      ratio = ratio[1], ratio_low = ratio[2], ratio_high = ratio[3], blocks = found$blocks, cells = found$cells
    ), rule, list(unit = objective_words(campaign, "energy")$unit)
  )
}

comparison_words <- function(campaign, found, rule, verdict, reason) {
  name <- objective_words(campaign, "energy")$name
  claim <- if (is.null(found$bounds)) {
    sprintf("%s cannot be compared with %s", found$names[1], found$names[2])
  } else {
    paste0(claim_words(found$names, found$bounds, name), " (90 % interval)")
  }
  apart <- if (!found$paired && !identical(reason$code, "apart_in_time")) {
    paste0(
      "; the campaigns were taken apart in time", if (isTRUE(found$same_rig)) " and are held to one reference workload"
    )
  }
  ends <- shown_words(verdict, rule)
  if (is.null(ends)) ends <- c("INCONCLUSIVE: ", tolower_first(sub("[.]$", "", reason$detail)))
  verdict_sentence(campaign, c(ends[1], paste0(ends[2], apart)), claim)
}

#' Tell how an arm, or the second campaign, compares: analyse.R A [B] --compare
#' @noRd
tell_comparison <- function(options, tell) {
  campaigns <- lapply(options$campaign_dir, function(dir) read_campaign(normalizePath(dir, mustWork = FALSE)))
  tell(comparison(campaigns, options$arm, options$reference, options$margin_percent, options$tolerance_percent))
}
