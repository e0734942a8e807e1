# SPDX-License-Identifier: Apache-2.0

# What routers that scale their rate save. They have no E_A: what one draws while idle depends on its scaling.

# Shares of a router's power that do not follow its rate, P_s / P(r_max).
static_ratios <- c(0, 0.5, 0.9)

#' Power and energy of the routers on a path, by arm and cell
#'
#' P = P_s + f(r), with f linear (frequency scaling) or cubic (voltage scaling) in the rate and averaged over time;
#' P(r_max) is the unit of power; where the topology tells it, energy is given in joules too. Both arms of a difference
#' are of one mini-block.
#'
#' @return data.table by the contract router_energy.table.json; NULL without such routers.
#' @noRd
router_energy <- function(campaign) {
  rows <- unique(without_control(energy_rows(campaign), campaign), by = "run_id")[!is.na(saving_linear_ratio)]
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  rows[, cell := cell_name(campaign, rows)]
  cases <- CJ(form = c("linear", "cubic"), static_ratio = static_ratios, sorted = FALSE)
  found <- rbindlist(Map(
    function(form, static_ratio) router_case(campaign, copy(rows), form, static_ratio), cases$form, cases$static_ratio
  ))
  table_of("router_energy", found[in_arm_order(campaign, found, found$arm)])
}

router_case <- function(campaign, rows, form, static_ratio) {
  saving <- rows[[paste0("saving_", form, "_ratio")]]
  rows[, power := static_ratio + (1 - static_ratio) * (1 - saving)]
  rows[, energy := power / t_a_mbps]
  max_power_w <- pick_number(campaign$meta, "topology", "link", "router_max_power_w")
  keys <- c("arm", "cell", campaign$factors)
  cells <- rows[, c(
    list(n = uniqueN(block), service_rate_mbps = mean_or_na(block_means(.SD, service_rate_mbps))),
    interval_columns(block_means(.SD, 1 - power), "saving_ratio"),
    interval_columns(block_means(.SD, energy), "energy_per_mbit_of_p_max"),
    interval_columns(block_means(.SD, energy * max_power_w), "energy_j_per_mbit")
  ), by = keys]
  pairs <- with_reference(campaign, rows, c("power", "energy"))
  differences <- pairs[, c(
    interval_columns(block_means(.SD, 100 * (power / power_ref - 1)), "power_difference_percent"),
    interval_columns(block_means(.SD, 100 * (energy / energy_ref - 1)), "energy_difference_percent")
  ), by = keys]
  reference <- reference_arm(campaign)
  merge(cells, differences, by = keys, all.x = TRUE)[, `:=`(
    form = form, static_ratio = static_ratio, reference = fifelse(arm == reference, NA_character_, reference)
  )][]
}

#' What each way of scaling saved and took, from the least to the greatest of cells
#' @noRd
router_sentences <- function(campaign, tables) {
  if (is.null(tables$router_energy) || is.null(tables$measure_contrasts)) {
    return(NULL)
  }
  saved <- tables$router_energy[form == "linear" & static_ratio == 0 & !is.na(reference)]
  goodput <- tables$measure_contrasts[measure == "t_a_mbps"]
  vapply(intersect(unique(saved$arm), goodput$arm), function(way) {
    sprintf(
      "In this model, the service rate with %s differs from that with %s by %s, and goodput by %s, from cell to cell.",
      plain_text(way, 40L), plain_text(reference_arm(campaign), 40L),
      percent_span(saved[arm == way, power_difference_percent]),
      percent_span(goodput[arm == way, difference_percent])
    )
  }, "", USE.NAMES = FALSE)
}

# "-17 to -4 %".
percent_span <- function(values) paste(paste(sprintf("%.1f", round(range(values), 1) + 0), collapse = " to "), "%")
