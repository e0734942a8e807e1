# SPDX-License-Identifier: Apache-2.0

# From runs to one number per block and contrast: pairs inside mini-blocks, their log-ratios of E_A, the mean
# over places. Every choice here treats both arms of a pair alike, so that a sign-flip test stays exact.

#' Join the runs of two arms inside their mini-blocks
#'
#' @param rows from usable_results(), of one meter, with `arm` and `place`: the cell of a mini-block inside what the
#'   arms are compared over.
#' @param arm,reference the two.
#' @return data.table block, place, and run_id, ea, p_a_w, u_delta_p_w, below_resolution, hollow, E_A above the floor,
#'   its u95 and what refused it (floor_reason) of the arm and, with _ref, of the reference; one row per mini-block that
#'   has both.
#' @noRd
arm_pairs <- function(rows, arm, reference) {
  where <- c("mini_block", "attempt")
  values <- c(
    "run_id", "ea", "p_a_w", "u_delta_p_w", "below_resolution", "hollow", "ea_above_floor_j_per_mbit",
    "u95_ea_above_floor_j_per_mbit", "floor_reason"
  )
  of_arm <- function(name, columns) {
    unique(rows[as.character(rows$arm) == name, columns, with = FALSE], by = where)
  }
  theirs <- of_arm(reference, c(where, values))
  setnames(theirs, values, paste0(values, "_ref"))
  merge(of_arm(arm, c(where, "block", "place", values)), theirs, by = where)
}

#' Places of a contrast: how each can be compared
#'
#' @param pairs from arm_pairs().
#' @return data.table place, how: "ratio"; "p_a_difference" (a run of either arm is below the
#'   meter's resolution, so the place has no ratio); "hollow" (a run outside the device model's validity);
#'   "no_ea" (E_A is empty or not above 0).
#' @noRd
place_methods <- function(pairs) {
  pairs[, list(how = fcase(
    any(hollow | hollow_ref), "hollow",
    any(below_resolution | below_resolution_ref), "p_a_difference",
    anyNA(c(ea, ea_ref)) || any(c(ea, ea_ref) <= 0), "no_ea",
    default = "ratio"
  )), by = place]
}

#' What the pairs of a contrast say: log-ratios over blocks, and the difference of P_A where there is no ratio
#'
#' @param pairs from arm_pairs().
#' @return list places (from place_methods()), grid (of blocks and places that all have), d (its mean of each block),
#'   used (the pairs behind it), power (from power_difference()).
#' @noRd
compared <- function(pairs) {
  places <- place_methods(pairs)
  of <- function(what) pairs[pairs$place %in% places$place[places$how == what]]
  by_ratio <- of("ratio")
  grid <- complete_grid(log_ratio_grid(by_ratio))
  list(
    places = places, grid = grid, d = unname(rowMeans(grid)),
    used = by_ratio[block %in% rownames(grid) & place %in% colnames(grid)],
    power = power_difference(of("p_a_difference"))
  )
}

#' Log-ratio of E_A, arm over reference, by block and place
#'
#' @param pairs from arm_pairs(), of places that can be compared by ratio.
#' @return matrix, blocks by places (as dimnames), NA where a mini-block has no pair.
#' @noRd
log_ratio_grid <- function(pairs) pair_grid(pairs, log(pairs$ea / pairs$ea_ref))

# The same of any value of each pair; of several pairs in a block and place their mean.
pair_grid <- function(pairs, values) tapply(values, list(pairs$block, pairs$place), mean)

#' Leave out blocks and loads until every block has every load
#'
#' Blocks with other loads than the rest would have another mean. What lacks the greatest share of its pairs goes
#' first; on a tie the load, because the block is the unit of replication. Only the presence of pairs decides,
#' which is the same for both arms.
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

# The arm that the others are compared with.
first_arm <- function(arms, reference) if (reference %in% arms) reference else arms[1]

#' The pairs of a workload's arms, those with the reference first
#'
#' In every pair the arm that the workload names later is compared with the one that it names earlier, the reference
#' counting as the earliest.
#'
#' @param arms in the workload's order, without the control arm.
#' @param reference the first arm takes its place where it is not among them.
#' @return data.table reference, arm.
#' @noRd
pairs_of_arms <- function(arms, reference) {
  if (length(arms) < 2L) {
    return(data.table(reference = character(), arm = character()))
  }
  first <- first_arm(arms, reference)
  places <- utils::combn(length(arms), 2L)
  ordered <- c(first, setdiff(arms, first))
  data.table(reference = ordered[places[1, ]], arm = ordered[places[2, ]])
}
