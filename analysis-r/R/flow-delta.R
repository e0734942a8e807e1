# SPDX-License-Identifier: Apache-2.0

#' Difference of E_A against UDP, from pairs inside mini-blocks
#'
#' (E_A - E_A of UDP) / E_A of UDP in percent, so a positive value means more energy
#' than UDP; dE_A of the publication has the other sign. Runs of different mini-blocks are never paired; hollow
#' runs are left out. A cell in which any run of either arm is below the meter's
#' resolution has no ratio: it is compared by the difference of P_A in W. The
#' intervals are per cell and uncorrected: exploratory. A cell without a pair whose E_A are
#' known, UDP's above 0, has no ratio either: nothing arrived, the radio has no air
#' time, or UDP drew no more than idle.
#'
#' @param campaign from [read_campaign()].
#' @param reference transport of the first arm.
#' @return data.table, one row per meter, transport, payload and load, with
#'   n_pairs, method ("ratio", "p_a_difference" or "no_ratio"), difference_percent, difference_p_a_w
#'   (P_A - P_A of UDP), each with ci95 low and high; difference_j_per_mbit (J/Mb) with the
#'   uncertainties of `joules_of()`.
#' @examples
#' delta_ea(example_campaign())
#' @export
delta_ea <- function(campaign, reference = "udp") {
  rows <- usable_results(campaign$results)
  pairs <- mini_block_pairs(rows[hollow == FALSE & transport != "null"], reference)
  cells <- pairs[, c(delta_of(.SD), joules_of(.SD)), by = c(cell_keys(campaign))]
  in_cell_order(table_of("delta_ea", cells[, reference := reference]))
}

#' Join each run with the reference run of its own mini-block and attempt
#' @noRd
mini_block_pairs <- function(rows, reference) {
  values <- c("ea", "t_a_mbps", "p_a_w", "below_resolution", "u95_ea_j_per_mbit", "u95_gain")
  where <- c("meter_id", "mini_block", "attempt")
  arm <- unique(rows[transport == reference, c(where, values), with = FALSE], by = where)
  setnames(arm, values, paste0(values, "_ref"))
  merge(rows[transport != reference], arm, by = where)
}

delta_of <- function(pairs) {
  below <- sum(pairs$below_resolution) + sum(pairs$below_resolution_ref)
  by_ratio <- below == 0L
  ratio <- fifelse(by_ratio & pairs$ea_ref > 0, 100 * (pairs$ea - pairs$ea_ref) / pairs$ea_ref, NA_real_)
  energy <- interval_columns(block_means(pairs, ratio), "difference_percent", "difference")
  power <- block_means(pairs, pairs$p_a_w - pairs$p_a_w_ref)
  c(
    list(
      n_pairs = nrow(pairs), below_resolution_n = below,
      method = fcase(!by_ratio, "p_a_difference", is.na(energy$difference_percent), "no_ratio", default = "ratio")
    ),
    energy, interval_columns(power, "difference_p_a_w", "difference_p_a")
  )
}
