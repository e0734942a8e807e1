# SPDX-License-Identifier: Apache-2.0

# From runs to one number per block and contrast: pairs inside mini-blocks, their log-ratios of E_A, the mean
# over loads. Every choice here treats both transports of a pair alike, so that a sign-flip test stays exact.

#' Join the runs of two transports inside their mini-blocks
#'
#' @param rows from usable_results(), of one meter, pacing and direction.
#' @param asked list reference, transport, payload_bytes.
#' @return data.table block, offered_rate_mbps, and run_id, ea, p_a_w, below_resolution, hollow, E_A above the floor,
#'   its u95 and what refused it (floor_reason) of the transport and, with _ref, of the reference; one row per
#'   mini-block that has both.
#' @noRd
contrast_pairs <- function(rows, asked) {
  where <- c("mini_block", "attempt")
  values <- c(
    "run_id", "ea", "p_a_w", "below_resolution", "hollow", "ea_above_floor_j_per_mbit",
    "u95_ea_above_floor_j_per_mbit", "floor_reason"
  )
  of_size <- rows[rows$payload_bytes == asked$payload_bytes]
  arm <- function(name, columns) {
    unique(of_size[of_size$transport == name, columns, with = FALSE], by = where)
  }
  theirs <- arm(asked$reference, c(where, values))
  setnames(theirs, values, paste0(values, "_ref"))
  merge(arm(asked$transport, c(where, "block", "offered_rate_mbps", values)), theirs, by = where)
}

#' Loads of a contrast: how each can be compared
#'
#' @param pairs from contrast_pairs().
#' @return data.table offered_rate_mbps, how: "ratio"; "p_a_difference" (a run of either transport is below the
#'   meter's resolution, so the load has no ratio); "hollow" (a run outside the device model's validity);
#'   "no_ea" (E_A is empty or not above 0).
#' @noRd
load_methods <- function(pairs) {
  pairs[, list(how = fcase(
    any(hollow | hollow_ref), "hollow",
    any(below_resolution | below_resolution_ref), "p_a_difference",
    anyNA(c(ea, ea_ref)) || any(c(ea, ea_ref) <= 0), "no_ea",
    default = "ratio"
  )), by = offered_rate_mbps]
}

#' Log-ratio of E_A, transport over reference, by block and load
#'
#' @param pairs from contrast_pairs(), of loads that can be compared by ratio.
#' @return matrix, blocks by loads (as dimnames), NA where a mini-block has no pair.
#' @noRd
log_ratio_grid <- function(pairs) pair_grid(pairs, log(pairs$ea / pairs$ea_ref))

# The same of any value of each pair; of several pairs in a block and load their mean.
pair_grid <- function(pairs, values) {
  blocks <- sort(unique(pairs$block))
  loads <- sort(unique(pairs$offered_rate_mbps))
  grid <- matrix(NA_real_, length(blocks), length(loads), dimnames = list(blocks, loads))
  cells <- data.table(block = pairs$block, offered_rate_mbps = pairs$offered_rate_mbps, value = values)
  cells <- cells[, list(value = mean(value)), by = list(block, offered_rate_mbps)]
  grid[cbind(match(cells$block, blocks), match(cells$offered_rate_mbps, loads))] <- cells$value
  grid
}

#' Leave out blocks and loads until every block has every load
#'
#' Blocks with other loads than the rest would have another mean. What lacks the greatest share of its pairs goes
#' first; on a tie the load, because the block is the unit of replication. Only the presence of pairs decides,
#' which is the same for both transports.
#'
#' @param grid from log_ratio_grid().
#' @return grid without missing values; possibly without rows or columns.
#' @noRd
complete_grid <- function(grid) {
  while (anyNA(grid)) {
    of_blocks <- rowMeans(is.na(grid))
    of_loads <- colMeans(is.na(grid))
    if (max(of_loads) >= max(of_blocks)) {
      grid <- grid[, -which.max(of_loads), drop = FALSE]
    } else {
      grid <- grid[-which.max(of_blocks), , drop = FALSE]
    }
  }
  if (ncol(grid) == 0L) grid[integer(), , drop = FALSE] else grid
}
