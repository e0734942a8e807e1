# SPDX-License-Identifier: Apache-2.0

# Transports compared over all loads: the main comparisons with their tests, every other pair with its interval.

#' Compare transports over loads: one contrast per pair of transports and payload size
#'
#' The unit is the block: the mean over loads of ln(E_A of the transport / E_A of the reference), from pairs inside
#' mini-blocks; above 0 the transport takes more, as in every difference. Its mean over blocks has a 95 % t interval.
#' The main comparisons, at the first meter and the plan's first pacing, are tested from as many blocks
#' on as can reach the level (8, more for a stricter one): sign-flip test, Holm over the family's size. With fewer, but
#' 6, the least p that a test could give stands here and none is made; below, and outside of the family, there are
#' intervals alone. Loads with a run below the meter's resolution have no ratio: for them the difference of P_A stands
#' beside it.
#' Every planned load is counted: in the mean, by P_A, hollow, without E_A, or incomplete (too few pairs). Loads at
#' which a sender filled its core stay in it, as the family was fixed beforehand; the estimate without them stands
#' beside, and the contrast of E_A above the floor.
#'
#' @param campaign from [read_campaign()].
#' @param margin_percent margin of equivalence in percent, NA or NULL: not asked; by default the workload's.
#' @param outliers from [outlier_runs()].
#' @param model from model_sensitivity(): adds the device model's parameters to the intervals; NULL without.
#' @return data.table by the contract contrasts.table.json, family first; NULL when the campaign has no E_A.
#' @examples
#' campaign <- example_campaign()
#' transport_contrasts(campaign)[, c("transport", "payload_bytes", "difference_percent", "words")]
#' @export
transport_contrasts <- function(campaign, margin_percent = NULL, outliers = outlier_runs(campaign), model = NULL) {
  rows <- usable_results(campaign$results)
  if (all(is.na(rows$ea))) {
    return(NULL)
  }
  design <- contrast_design(campaign, margin_percent)
  if (nrow(design$contrasts) == 0L) {
    return(NULL)
  }
  context <- list(
    outliers = outliers, model = model, seed = campaign_seed(campaign, "contrasts"), design = design
  )
  found <- rows[transport != "null", contrasts_of(.SD, .BY, context), by = c(meter_keys, "direction", pacing_keys)]
  found <- with_tests(found, design)
  found[, words := contrast_words(found, campaign, design$least_blocks)]
  found[, `:=`(further = !in_family, meter = match(meter_id, campaign$meters$meter_id))]
  found <- in_cell_order(found, c("further", "meter", pacing_keys, "direction", "place"))
  table_of("contrasts", found[, c("further", "meter", "place") := NULL])
}

#' What is compared and how: the workload's rule, at the first meter and the plan's first pacing
#' @noRd
contrast_design <- function(campaign, margin_percent = NULL) {
  workload <- campaign$meta$workload
  settings <- statistics_settings(workload)
  if (!is.null(margin_percent)) settings$margin_percent <- margin_percent
  family <- family_of(workload, campaign$plan)
  candidates <- workload_contrasts(workload, campaign$plan)
  others <- candidates[!contrast_key(candidates) %in% contrast_key(family$contrasts)]
  plan <- campaign$plan
  if (!all(pacing_keys %in% names(plan))) plan <- copy(plan)[, `:=`(pacing = "absolute", window_us = 0, gso = FALSE)]
  tests <- nrow(family$contrasts)
  c(settings, family[c("named", "others")], list(
    contrasts = rbind(family$contrasts, others), tests = tests, meter_id = campaign$meters$meter_id[1],
    variant = pacing_variants(plan)[1], direction = plan$direction[1],
    least_blocks = least_blocks_for(max(tests, 1L), settings$alpha),
    loads = unique(plan[, c("transport", "payload_bytes", "offered_rate_mbps"), with = FALSE])
  ))
}

#' All contrasts of one meter, pacing and direction
#' @noRd
contrasts_of <- function(rows, keys, context) {
  design <- context$design
  primary <- identical(keys$meter_id, design$meter_id) && identical(keys$direction, design$direction) &&
    all(vapply(pacing_keys, function(key) keys[[key]] == design$variant[[key]], NA))
  found <- lapply(seq_len(nrow(design$contrasts)), function(place) {
    asked <- as.list(design$contrasts[place])
    in_family <- primary && place <= design$tests
    c(asked, list(place = place, in_family = in_family), contrast_of(rows, asked, keys, context, in_family))
  })
  rbindlist(found)
}

#' Numbers of one contrast
#'
#' @param rows of one meter, pacing and direction; asked: reference, transport, payload_bytes.
#' @param in_family whether it may be tested.
#' @return list, the columns of one row that need no other contrast.
#' @noRd
contrast_of <- function(rows, asked, keys, context, in_family) {
  found <- compared(flow_pairs(rows, asked))
  d <- found$d
  flagged <- context$outliers$run_id[context$outliers$meter_id == keys$meter_id]
  counted <- ncol(found$grid) + found$power$places_n
  names(found$power)[1] <- "loads_by_p_a_n"
  c(
    list(
      blocks_n = length(d), loads_n = ncol(found$grid), log_ratio_mean = mean_or_na(d),
      log_ratio_sd = if (length(d) > 1L) sd(d) else NA_real_
    ),
    ratio_interval(d), model_interval(d, found$used, keys, context),
    without_outliers(found$grid, found$used, flagged), without_core_busy(found$grid, found$used),
    above_floor_ratio(found$grid, found$used), found$power,
    loads_left_out(found$places, asked, context$design, counted),
    tests_of(d, context, in_family && length(d) >= context$design$least_blocks)
  )
}

# Pairs of transports at one message size, over the offered loads.
flow_pairs <- function(rows, asked) {
  rows <- copy(rows[payload_bytes == asked$payload_bytes])[, `:=`(arm = transport, place = offered_rate_mbps)]
  arm_pairs(rows, asked$transport, asked$reference)
}

#' Planned loads that are in no number of a contrast, by why; with those that are they add up to the plan's
#'
#' @param loads from place_methods(); counted: how many loads are in the ratio or in the difference of P_A.
#' @noRd
loads_left_out <- function(loads, asked, design, counted) {
  of_size <- design$loads[design$loads$payload_bytes == asked$payload_bytes]
  of <- function(name) of_size$offered_rate_mbps[of_size$transport == name]
  planned <- length(union(intersect(of(asked$transport), of(asked$reference)), loads$place))
  hollow <- sum(loads$how == "hollow")
  no_ea <- sum(loads$how == "no_ea")
  list(
    loads_hollow_n = hollow, loads_no_ea_n = no_ea,
    loads_incomplete_n = as.integer(planned - counted - hollow - no_ea)
  )
}

# What the estimate becomes when blocks with a flagged run are left out: how much hangs on them.
without_outliers <- function(grid, used, outliers) {
  flagged <- unique(used[run_id %in% outliers | run_id_ref %in% outliers, block])
  kept <- grid[!rownames(grid) %in% flagged, , drop = FALSE]
  runs <- unique(c(used$run_id, used$run_id_ref))
  list(
    outlier_n = sum(runs %in% outliers),
    difference_without_outliers_percent = if (nrow(kept) > 0L) as_percent(mean(rowMeans(kept))) else NA_real_
  )
}

# What it becomes without the loads at which the sender of a run, or of its null run, nearly filled its core: there
# full cores are compared, whatever they send.
without_core_busy <- function(grid, used) {
  busy <- used$floor_reason %in% "floor_core_busy" | used$floor_reason_ref %in% "floor_core_busy"
  loads <- unique(used$place[busy])
  kept <- grid[, !colnames(grid) %in% loads, drop = FALSE]
  list(
    loads_core_busy_n = length(loads),
    difference_without_core_busy_percent = if (length(kept) > 0L) as_percent(mean(rowMeans(kept))) else NA_real_
  )
}

#' The contrast of E_A above the generator floor, over the loads at which every run of the pairs resolves it
#'
#' As of E_A: at least three standard uncertainties. What is left of E_A decides that, so the loads are not the
#' contrast's; E_A at the same loads stands beside it.
#'
#' @param grid log-ratios of E_A.
#' @param used pairs behind them, so that the blocks are the same.
#' @noRd
above_floor_ratio <- function(grid, used) {
  own <- used$ea_above_floor_j_per_mbit
  reference <- used$ea_above_floor_j_per_mbit_ref
  resolved <- above_floor_resolved(own, used$u95_ea_above_floor_j_per_mbit) &
    above_floor_resolved(reference, used$u95_ea_above_floor_j_per_mbit_ref)
  kept <- !used$place %in% used$place[!resolved]
  above <- pair_grid(used[kept], log(own[kept] / reference[kept]))
  interval <- ratio_interval(rowMeans(above))
  loads <- as.numeric(colnames(above))
  some <- length(loads) > 0L
  c(
    list(
      loads_above_floor_n = length(loads), above_floor_from_mbps = if (some) min(loads) else NA_real_,
      above_floor_to_mbps = if (some) max(loads) else NA_real_
    ),
    stats::setNames(interval, sub("difference", "difference_above_floor", names(interval))),
    list(difference_at_these_loads_percent = if (some) as_percent(mean(grid[, colnames(above)])) else NA_real_)
  )
}

# As of P_A - P_I (docs/method/uncertainty.md).
least_resolved_u <- 3

# u95 is that of one run; where nothing is known of the metering, only the sign is asked.
above_floor_resolved <- function(value, u95) {
  u <- fifelse(is.na(u95), 0, u95 / 2)
  (value > 0 & value >= least_resolved_u * u) %in% TRUE
}
