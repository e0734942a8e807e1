# SPDX-License-Identifier: Apache-2.0

# The tables of a load that has no file of its own: energy per work by arm and cell, every run, arms compared.

#' Energy of each arm and cell: the headline table of every load
#'
#' The block is the unit of replication. `u95_` is the metering uncertainty of one run, apart from the intervals over
#' blocks because most of it is common to all runs.
#'
#' @return data.table by the contract energy_summary.table.json, and what the load measured with intervals.
#' @noRd
energy_summary <- function(campaign) {
  rows <- energy_rows(campaign)
  keys <- cell_keys(campaign)
  measures <- told_measures(campaign, rows)
  cells <- rows[, energy_of_cell(.SD, measures), by = c(keys, "kind")]
  cells[, work_unit := rep(work_unit(campaign), .N)]
  cells[in_arm_order(campaign, cells, cells[[campaign$arm]])]
}

# Columns of energies that have an interval over blocks, and of which result they are.
energy_columns <- c(
  energy_per_work_j = "ea", e_d_j = "e_d_j", e_t_j = "e_t_j", tail_energy_j = "tail_energy_j", window_s = "window_s",
  work = "work", work_per_s = "t_a_mbps"
)

# Short work is repeated in one window, of one arm more often than of another: these are of one repetition.
of_a_repetition <- c("e_d_j", "e_t_j", "window_s", "work")

energy_of_cell <- function(rows, measures) {
  columns <- c(energy_columns, stats::setNames(nm = measures))
  values <- lapply(names(columns), function(name) {
    per <- if (name %in% of_a_repetition) rows$repeats else 1
    interval_columns(block_means(rows, rows[[columns[[name]]]] / per), name)
  })
  c(
    list(n = uniqueN(rows$block), runs_n = nrow(rows)), unlist(values, recursive = FALSE), list(
      u95_energy_per_work_j = mean_or_na(rows$u95_ea_j_per_mbit),
      u95_e_d_j = mean_or_na(normal_97_5 * rows$u_delta_p_w * rows$window_s / rows$repeats),
      upper_limit_energy_per_work_j = mean_or_na(rows$ea_upper_limit_j_per_mbit[rows$below_resolution]),
      energy_per_work_above_floor_j = mean_or_na(rows$ea_above_floor_j_per_mbit)
    ), lapply(rows[, c("p_a_w", "p_i_w", "delta_p_w", "floor_w"), with = FALSE], mean_or_na), list(
      floor_reason = codes_text(rows$floor_reason),
      below_resolution_n = sum(rows$below_resolution), hollow = any(rows$hollow), grades = codes_text(rows$grade)
    )
  )
}

# Runs that count, with the length of their window and their work.
energy_rows <- function(campaign) {
  rows <- usable_results(campaign$results)[, window_s := window_t_end_s - window_t_start_s]
  rows[, work := t_a_mbps * window_s]
  if (!"repeats" %in% names(rows)) rows[, repeats := 1]
  rows[, repeats := fcoalesce(as.numeric(repeats), 1)][]
}

measure_names <- function(campaign) {
  vapply(pick(campaign$entry, "measures", default = list()), pick_text, "", "name")
}

# A workload may name the unit of its own work, such as what a command counts.
work_unit <- function(campaign) {
  own <- pick_text(campaign$meta, "workload", campaign$load, "work_unit")
  units <- c(own, pick_text(campaign$entry, "work", "unit"))
  c(units[!is.na(units)], "1")[1]
}

# Cells in the order of the workload, and in each its arms.
in_arm_order <- function(campaign, rows, arms) {
  keys <- c(list(rows$meter_id), lapply(campaign$factors, function(name) in_named_order(campaign, name, rows[[name]])))
  do.call(order, c(Filter(Negate(is.null), keys), list(arm_factor(campaign, arms))))
}

# Numbers by their size, names as the workload has them.
in_named_order <- function(campaign, name, values) {
  named <- pick(campaign$meta, "workload", "factors", name, default = list())
  if (is.numeric(values)) values else factor(values, union(unlist(Filter(is.character, named)), sort(unique(values))))
}

#' Every run that counts, at every meter
#' @noRd
energy_runs <- function(campaign) {
  rows <- energy_rows(campaign)
  columns <- c(
    "run_id", "block", "mini_block", "order", "attempt", cell_keys(campaign), "kind", "window_t_start_s",
    "window_t_end_s", "p_a_w", "p_i_w", "delta_p_w", "u_delta_p_w", "e_d_j", "e_t_j", "tail_energy_j", "work",
    "ea_j_per_mbit", "u95_ea_j_per_mbit", "ea_upper_limit_j_per_mbit", "ea_reason", "below_resolution", "hollow",
    "floor_w", "floor_reason", "grade"
  )
  names <- sub("^ea_", "energy_per_work_", sub("_ea_", "_energy_per_work_", sub("_j_per_mbit", "_j", columns)))
  names[columns == "ea_reason"] <- "energy_reason"
  names[columns == "ea_upper_limit_j_per_mbit"] <- "upper_limit_energy_per_work_j"
  measures <- told_measures(campaign, rows)
  shown <- rows[, c(columns, measures), with = FALSE]
  setnames(shown, columns, names)
  setorderv(shown, c("mini_block", "attempt", "order", "meter_id"))[]
}

#' Arms compared over all cells: a contrast per meter and pair
#'
#' The mean over cells of ln(energy per work of the arm / of the reference), from pairs inside mini-blocks; above 0 the
#' arm takes more. The block is the unit, and the rule of tests is that of every load
#' (docs/method/statistics.md): the first six pairs at the first meter.
#'
#' @return data.table by the contract arm_contrasts.table.json; NULL without two arms or any power.
#' @noRd
arm_contrasts <- function(campaign, margin_percent = NULL) {
  rows <- without_control(energy_rows(campaign), campaign)
  pairs <- pairs_of_arms(planned_arms(campaign), pick_text(campaign$entry, "reference"))
  if (nrow(rows) == 0L || nrow(pairs) == 0L || is_unpowered(campaign)) {
    return(NULL)
  }
  rows[, place := cell_name(campaign, rows)]
  settings <- statistics_settings(campaign$meta$workload)
  if (!is.null(margin_percent)) settings$margin_percent <- margin_percent
  tests <- min(nrow(pairs), most_tests)
  design <- c(settings, list(tests = tests, least_blocks = least_blocks_for(tests, settings$alpha)))
  context <- list(design = design, seed = campaign_seed(campaign, "contrasts"))
  found <- rows[, arm_contrasts_of(.SD, pairs, context, .BY$meter_id == campaign$meters$meter_id[1]), by = meter_keys]
  found <- with_tests(found[order(match(meter_id, campaign$meters$meter_id))], design)
  found[, words := arm_contrast_words(found, campaign, design$least_blocks)]
  table_of("arm_contrasts", found)
}

#' Arms of a campaign, in the order of its workload
#' @noRd
planned_arms <- function(campaign) {
  named <- as.character(unlist(pick(campaign$meta, "workload", "factors", campaign$arm, default = list())))
  planned <- setdiff(unique(as.character(campaign$plan[kind == "work", arm])), campaign$control)
  c(intersect(named, planned), setdiff(planned, named))
}

# Every pair of arms at one meter; `first`: the main comparisons are tested there.
arm_contrasts_of <- function(rows, pairs, context, first) {
  rbindlist(lapply(seq_len(nrow(pairs)), function(i) {
    found <- compared(arm_pairs(rows, pairs$arm[i], pairs$reference[i]))
    in_family <- first && i <= context$design$tests
    names(found$power)[1] <- "cells_by_p_a_n"
    c(
      as.list(pairs[i]), list(
        in_family = in_family, blocks_n = length(found$d), cells_n = ncol(found$grid),
        log_ratio_mean = mean_or_na(found$d)
      ), ratio_interval(found$d), found$power,
      tests_of(found$d, context, in_family && length(found$d) >= context$design$least_blocks)
    )
  }))
}

#' A sentence per contrast
#' @noRd
arm_contrast_words <- function(found, campaign, least_blocks) {
  arms <- unique(c(found$arm, found$reference))
  names <- stats::setNames(arm_names(campaign, arms), arms)
  per_work <- tolower_first(per_work_words(campaign))
  said <- vapply(seq_len(nrow(found)), function(i) {
    one <- lapply(found, `[[`, i)
    than <- paste0(" ", per_work, " than ", names[[one$reference]])
    claim <- arm_claim(one, names[[one$arm]], names[[one$reference]], than)
    if (one$meter_id != campaign$meters$meter_id[1]) claim <- paste0(claim, ", at meter ", one$meter_id)
    paste0(claim, "; ", arm_test_words(one, least_blocks), ".")
  }, "")
  for (id in unique(found$meter_id)) {
    here <- found$meter_id == id
    said[here] <- model_sentence(campaign, id, said[here])
  }
  said
}

arm_claim <- function(one, arm, reference, than) {
  if (one$blocks_n == 0L) {
    return(sprintf("%s cannot be compared with %s by ratio: no cell has one", arm, reference))
  }
  size <- side_words(one$difference_percent, one$difference_ci95_low, one$difference_ci95_high, than)
  sprintf(
    "%s took %s, over %s and %d %s", arm, size, cell_words(one$cells_n), one$blocks_n, plural("block", one$blocks_n)
  )
}

arm_test_words <- function(one, least_blocks) {
  if (!is.na(one$p_holm)) {
    tests <- one$family_tests_n
    sprintf("p = %s after Holm over %d %s", p_text(one$p_holm), tests, plural("test", tests))
  } else if (one$in_family) {
    sprintf("not tested: %d blocks are needed", least_blocks)
  } else {
    "exploratory"
  }
}

#' All tables of a load without files of its own
#' @noRd
energy_tables <- function(campaign, margin_percent = NULL) {
  tables <- c(
    list(energy_summary = energy_summary(campaign), energy_runs = energy_runs(campaign)), tables_of_all(campaign)
  )
  tables$arm_contrasts <- arm_contrasts(campaign, margin_percent)
  tables$measure_contrasts <- measure_contrasts(campaign)
  tables$outliers <- outlier_runs(campaign)
  tables
}
