# SPDX-License-Identifier: Apache-2.0

# Where more files, ranges or bytes at once still bring throughput but no longer save energy.

# Factors of a client that a study sweeps, in the order in which they become the axis of a figure.
swept_names <- c(
  "concurrency", "parallelism", "connections", "request_bytes", "streams", "max_connections", "window_bytes"
)

#' Factors of a client that have several levels in the campaign
#' @noRd
swept_factors <- function(campaign) {
  work <- campaign$plan[kind == "work"]
  levels <- function(name) work[[if (identical(name, campaign$arm)) "arm" else name]]
  Filter(function(name) {
    name %in% c(campaign$arm, campaign$factors) && uniqueN(levels(name)) > 1L
  }, swept_names)
}

#' The break point of a sweep: the lowest level whose energy interval contains the minimum while throughput still rises
#'
#' It still rises at a level if the next level has a higher mean.
#'
#' @param levels of the factor, rising; throughput_mbps mean of each; energy_j mean of each with its 95 % interval from
#'   low_j to high_j.
#' @return logical, at most one TRUE; none where no level has an interval or throughput stops rising before.
#' @noRd
break_point <- function(levels, throughput_mbps, energy_j, low_j, high_j) {
  ordered <- order(levels)
  least_j <- if (all(is.na(energy_j))) NA_real_ else min(energy_j, na.rm = TRUE)
  rises <- c(diff(throughput_mbps[ordered]) > 0, FALSE)
  holds <- low_j[ordered] <= least_j & high_j[ordered] >= least_j
  seq_along(levels) %in% ordered[which(rises & holds)[1]]
}

#' Cells with the column break_point: of the first swept factor, with all else held
#' @noRd
with_break_points <- function(cells, swept) {
  cells[, break_point := NA]
  if (length(swept) > 0L && nrow(cells) > 0L) {
    names <- names(cells)
    held <- setdiff(names[seq_len(match("n", names) - 1L)], swept[1])
    cells[, break_point := break_point(
      as.numeric(get(swept[1])), throughput_mbps, e_d_per_100_mb_j, e_d_per_100_mb_j_ci95_low,
      e_d_per_100_mb_j_ci95_high
    ), by = held]
  }
  cells[]
}
