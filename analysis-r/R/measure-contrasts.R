# SPDX-License-Identifier: Apache-2.0

# What a load measured beside energy, arms compared cell by cell, from pairs inside mini-blocks.

#' Measures of the load that any run has
#' @noRd
told_measures <- function(campaign, rows) {
  Filter(function(name) !all(is.na(rows[[name]])), intersect(measure_names(campaign), names(rows)))
}

reference_arm <- function(campaign) first_arm(planned_arms(campaign), pick_text(campaign$entry, "reference"))

#' Runs of the other arms, each beside the reference's of its mini-block
#'
#' @param values columns that are compared; those of the reference get the ending _ref.
#' @noRd
with_reference <- function(campaign, rows, values) {
  where <- c("mini_block", "attempt")
  is_reference <- rows$arm == reference_arm(campaign)
  merge(rows[!is_reference], rows[is_reference, c(where, values), with = FALSE], by = where, suffixes = c("", "_ref"))
}

#' Arms compared by each measure, in each cell
#'
#' The block is the unit of replication; nothing is corrected for how much is compared, so all of it is exploratory.
#'
#' @return data.table by the contract measure_contrasts.table.json; NULL without two arms or without a measure.
#' @noRd
measure_contrasts <- function(campaign) {
  # A measure is of a run, whichever meter looks.
  rows <- unique(without_control(energy_rows(campaign), campaign), by = "run_id")
  measures <- told_measures(campaign, rows)
  pairs <- with_reference(campaign, rows, measures)
  if (length(measures) == 0L || nrow(pairs) == 0L) {
    return(NULL)
  }
  pairs[, cell := cell_name(campaign, pairs)]
  keys <- c("arm", "cell", campaign$factors)
  found <- rbindlist(lapply(measures, function(name) {
    pairs[, c(list(measure = name), measure_contrast(.SD, name)), by = keys]
  }))
  found[, reference := reference_arm(campaign)]
  table_of("measure_contrasts", found[in_arm_order(campaign, found, found$arm)])
}

measure_contrast <- function(pairs, name) {
  of_arm <- pairs[[name]]
  of_reference <- pairs[[paste0(name, "_ref")]]
  # Of nothing there is no percentage.
  percent <- fifelse(of_reference != 0, 100 * (of_arm / of_reference - 1), NA_real_)
  c(
    list(
      blocks_n = uniqueN(pairs$block), reference_mean = mean_or_na(block_means(pairs, of_reference)),
      arm_mean = mean_or_na(block_means(pairs, of_arm))
    ),
    interval_columns(block_means(pairs, of_arm - of_reference), "difference"),
    interval_columns(block_means(pairs, percent), "difference_percent")
  )
}
