# SPDX-License-Identifier: Apache-2.0

# Runs that lie far from the others of their cell. They are named and stay in every number: a run leaves the
# analysis for a broken rule of measurement, never for its result.

# Distance from the median, in standard deviations as the median absolute deviation estimates them, beyond which a
# run is flagged: far, because from few values that estimate is often small. Of cells with six normal values 1 % have
# a flagged one, of those with eight 0.4 %; the customary 3.5 would flag in every seventh.
outlier_limit <- 10
# With fewer values the deviation is nobody's estimate.
least_outlier_values <- 6L
# Standard deviation of a normal distribution over its median absolute deviation.
mad_to_sd <- 1.4826

#' Distance of each value from the median of all, in robust standard deviations
#'
#' The modified z-score (Iglewicz and Hoaglin 1993): |x - median| / (1.4826 MAD). What cannot be told from the rest by
#' the meter is no outlier, so the scale is at least the metering's standard uncertainty.
#'
#' @param x numeric vector.
#' @param least_scale least scale, in the unit of x.
#' @return numeric vector, NA where x is, all NA with fewer than 6 values.
#' @noRd
robust_distance <- function(x, least_scale = 0) {
  known <- x[!is.na(x)]
  if (length(known) < least_outlier_values) {
    return(rep(NA_real_, length(x)))
  }
  centre <- stats::median(known)
  # Rounding is no distance.
  scale <- max(mad_to_sd * stats::median(abs(known - centre)), least_scale, 1e-9 * abs(centre))
  distance <- abs(x - centre)
  fifelse(distance == 0, 0, distance / scale)
}

#' Runs whose E_A (control runs: P_A - P_I) lies far from that of their cell
#'
#' @param campaign from [read_campaign()].
#' @return data.table by the contract outliers.table.json: one row per run, meter and flagged quantity, with the
#'   value, the median of its cell, the distance in robust standard deviations; no rows when none is flagged, NULL
#'   when the campaign has no E_A.
#' @examples
#' outlier_runs(example_campaign())
#' @export
outlier_runs <- function(campaign) {
  rows <- usable_results(campaign$results)
  if (all(is.na(rows$ea))) {
    return(NULL)
  }
  rows[, `:=`(
    quantity = fifelse(kind == "control", "delta_p_w", "ea_j_per_mbit"),
    value = fifelse(kind == "control", delta_p_w, ea),
    u = fifelse(kind == "control", u_delta_p_w, u95_ea_j_per_mbit / normal_97_5)
  )]
  rows[, cell_n := .N, by = c(cell_keys(campaign))]
  rows[, cell_median := stats::median(value, na.rm = TRUE), by = c(cell_keys(campaign))]
  rows[, distance_sd := robust_distance(value, fcoalesce(mean_or_na(u), 0)), by = c(cell_keys(campaign))]
  flagged <- rows[!is.na(distance_sd) & distance_sd > outlier_limit]
  flagged[order(match(meter_id, campaign$meters$meter_id), mini_block, order), outlier_columns(campaign), with = FALSE]
}

outlier_columns <- function(campaign) {
  c(
    "run_id", "block", "mini_block", "meter_id", campaign$arm, campaign$factors, "quantity", "value", "cell_median",
    "cell_n", "distance_sd"
  )
}
