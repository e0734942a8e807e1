# SPDX-License-Identifier: Apache-2.0

# Does power that stays constant over load come from the sender? Runs of one
# schedule, sent by a pacer that spins and by one that sleeps, decide.

pacer_arms <- c("spin", "absolute")

# An exponent within this of 0 is constant power: 1.26 times the power at ten times the load.
constant_limit <- 0.1
# Two powers are alike when their difference, with its interval, is under this share of the greater arm's.
alike_ratio <- 0.2
# What is left without spinning is small when it is under this share of the power with it.
small_ratio <- 0.5
# Loads closer than this factor do not tell constant power from power that grows.
least_load_ratio <- 3

verdict_keys <- c(
  "node", "meter_id", "device_model", "device_form", "power_source", "radio_source", "transport", "direction",
  "payload_bytes", "window_us", "gso"
)

#' Say whether constant power came from the sender
#'
#' E_A times T_A is P_A - P_I. Per meter, transport (null too: the pacer alone) and
#' message size: the exponent of P_A - P_I over load in each arm (0: constant, so
#' that E_A falls as 1 / load; 1: E_A is constant), and per load the difference
#' spin - absolute. The arms lie in different mini-blocks, so cells are compared, not
#' runs paired: Welch's interval over blocks. To it, and to each cell's t interval,
#' 1.96 times the metering uncertainty of one run is added in quadrature, because
#' most of that is common to all blocks. Hollow runs are left out.
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per cell with both arms, with the verdict of its
#'   meter, transport and size: sender, sender_in_part, not_sender,
#'   no_constant_power or cannot_tell, with a reason; NULL when the campaign has not
#'   both pacings spin and absolute.
#' @examples
#' # NULL: nothing was paced in two ways.
#' pacer_verdict(example_campaign())
#' @export
pacer_verdict <- function(campaign) {
  rows <- usable_results(campaign$results)
  if (!all(pacer_arms %in% rows$pacing)) {
    return(NULL)
  }
  kept <- rows[hollow == FALSE & pacing %in% pacer_arms & !is.na(delta_p_w)]
  cells <- kept[, pacer_cell(.SD), by = c(verdict_keys, "pacing", "offered_rate_mbps")]
  if (nrow(cells) == 0L) {
    return(NULL)
  }
  verdict <- cells[, judge_pacer(.SD, .BY), by = verdict_keys]
  verdict[, words := pacer_words(campaign, .SD, .BY), by = verdict_keys]
  verdict <- verdict[order(
    match(meter_id, campaign$meters$meter_id), window_us, gso, payload_bytes, transport_factor(transport), direction,
    offered_rate_mbps
  )]
  verdict[]
}

# Power above idle of one cell: mean over blocks, and what is uncertain about it (W).
pacer_cell <- function(rows) {
  blocks <- block_means(rows, rows$delta_p_w)
  n <- length(blocks)
  variance <- if (n > 1L) stats::var(blocks) / n else NA_real_
  cell <- list(
    n = n, delta_p_w = mean(blocks), variance = variance, u_w = fcoalesce(mean_or_na(rows$u_delta_p_w), 0),
    below_n = sum(rows$below_resolution)
  )
  c(cell, list(half_w = half_width(variance, n - 1, cell$u_w)))
}

#' Half-width of a 95 % interval: t (Welch-Satterthwaite) over blocks, metering in quadrature
#'
#' @param variances of the means; NA where there is a single block.
#' @param freedom degrees of freedom of each.
#' @param u standard uncertainty that does not shrink with the number of blocks.
#' @noRd
half_width <- function(variances, freedom, u) {
  total <- sum(variances)
  if (is.na(total)) {
    return(NA_real_)
  }
  scatter <- if (total > 0) qt(0.975, total^2 / sum(variances^2 / freedom)) * sqrt(total) else 0
  sqrt(scatter^2 + (normal_97_5 * u)^2)
}

#' Exponent of power over load: slope of the logarithms, by least squares over the loads
#'
#' @param cells of one arm, one row per load.
#' @return list exponent, low, high (95 %), shape: constant, grows, falls, unclear, or
#'   why there is none: arm_missing, below_resolution, few_loads, few_blocks.
#' @noRd
power_exponent <- function(cells) {
  none <- function(shape) list(exponent = NA_real_, low = NA_real_, high = NA_real_, shape = shape)
  if (nrow(cells) == 0L) {
    return(none("arm_missing"))
  }
  if (any(cells$below_n > 0) || any(cells$delta_p_w <= 0)) {
    return(none("below_resolution"))
  }
  if (max(cells$offered_rate_mbps) < least_load_ratio * min(cells$offered_rate_mbps)) {
    return(none("few_loads"))
  }
  x <- log(cells$offered_rate_mbps)
  weights <- (x - mean(x)) / sum((x - mean(x))^2)
  exponent <- sum(weights * log(cells$delta_p_w))
  relative <- weights / cells$delta_p_w
  half <- half_width(relative^2 * cells$variance, cells$n - 1, sqrt(sum((relative * cells$u_w)^2)))
  if (is.na(half)) {
    return(none("few_blocks"))
  }
  list(exponent = exponent, low = exponent - half, high = exponent + half, shape = shape_of(exponent, half))
}

shape_of <- function(exponent, half) {
  fcase(
    abs(exponent) + half < constant_limit, "constant", exponent - half > constant_limit, "grows",
    exponent + half < -constant_limit, "falls",
    default = "unclear"
  )
}

# All loads of one meter, transport and size. A load that lacks an arm is shown and decides nothing.
judge_pacer <- function(cells, keys) {
  loads <- pacer_loads(merge(
    cells[pacing == "spin"], cells[pacing == "absolute"],
    by = "offered_rate_mbps", suffixes = c("_spin", "_absolute"), all = TRUE
  ))
  whole <- loads[!is.na(difference_w)]
  shared <- cells[offered_rate_mbps %in% whole$offered_rate_mbps]
  spin <- power_exponent(shared[pacing == "spin"])
  absolute <- power_exponent(shared[pacing == "absolute"])
  decision <- if (!keys$power_source %in% "measured" && !keys$device_form %in% "cpu") {
    cannot_tell("model_without_cpu")
  } else {
    pacer_decision(spin, absolute, whole)
  }
  loads[, `:=`(
    exponent_spin = spin$exponent, exponent_spin_ci95_low = spin$low, exponent_spin_ci95_high = spin$high,
    exponent_absolute = absolute$exponent, exponent_absolute_ci95_low = absolute$low,
    exponent_absolute_ci95_high = absolute$high, shape_spin = spin$shape, shape_absolute = absolute$shape,
    verdict = decision$verdict, reason = decision$reason
  )]
  loads[]
}

pacer_loads <- function(both) {
  difference <- both$delta_p_w_spin - both$delta_p_w_absolute
  both[, half := half_width(
    c(variance_spin, variance_absolute), c(n_spin, n_absolute) - 1, sqrt(u_w_spin^2 + u_w_absolute^2)
  ), by = offered_rate_mbps]
  both[, list(
    offered_rate_mbps,
    n_spin, n_absolute,
    delta_p_spin_w = delta_p_w_spin, delta_p_spin_ci95_low = delta_p_w_spin - half_w_spin,
    delta_p_spin_ci95_high = delta_p_w_spin + half_w_spin, delta_p_absolute_w = delta_p_w_absolute,
    delta_p_absolute_ci95_low = delta_p_w_absolute - half_w_absolute,
    delta_p_absolute_ci95_high = delta_p_w_absolute + half_w_absolute, below_resolution_spin_n = below_n_spin,
    below_resolution_absolute_n = below_n_absolute, difference_w = difference, difference_ci95_low = difference - half,
    difference_ci95_high = difference + half
  )]
}

#' Decide from both arms' shapes and the differences at each load
#'
#' @param spin,absolute from [power_exponent()].
#' @param loads from pacer_loads().
#' @return list verdict, reason (NA unless cannot_tell).
#' @noRd
pacer_decision <- function(spin, absolute, loads) {
  lacking <- intersect(c("arm_missing", "few_blocks", "few_loads"), c(spin$shape, absolute$shape))
  if (anyNA(loads$difference_ci95_low)) lacking <- "few_blocks"
  if (length(lacking) > 0L) {
    return(cannot_tell(lacking[1]))
  }
  if (spin$shape == "below_resolution") {
    return(cannot_tell("below_resolution"))
  }
  farthest <- pmax(abs(loads$difference_ci95_low), abs(loads$difference_ci95_high))
  if (spin$shape == "constant" && all(loads$difference_ci95_low > 0)) {
    spinning_explains(absolute$shape, max(loads$delta_p_absolute_ci95_high / loads$delta_p_spin_ci95_low))
  } else if (absolute$shape == "constant" && all(farthest < alike_ratio * loads$delta_p_spin_w)) {
    list(verdict = "not_sender", reason = NA_character_)
  } else if (spin$shape == "grows" && absolute$shape %in% c("grows", "below_resolution")) {
    list(verdict = "no_constant_power", reason = NA_character_)
  } else {
    unresolved <- absolute$shape == "below_resolution" && spin$shape != "unclear"
    cannot_tell(if (unresolved) "below_resolution" else "intervals_overlap")
  }
}

#' With spinning the power is constant and greater at every load: how much is left without it?
#'
#' @param shape of the arm that sleeps. left: its power's upper limit over the other's lower one, at most.
#' @noRd
spinning_explains <- function(shape, left) {
  if (shape == "constant") {
    list(verdict = "sender_in_part", reason = NA_character_)
  } else if (shape == "grows" || left < small_ratio) {
    list(verdict = "sender", reason = NA_character_)
  } else {
    cannot_tell(if (shape == "below_resolution") "below_resolution" else "intervals_overlap")
  }
}

cannot_tell <- function(reason) list(verdict = "cannot_tell", reason = reason)
