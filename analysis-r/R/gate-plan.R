# SPDX-License-Identifier: Apache-2.0

# How many blocks a gate may take, by what a pilot of two builds of one source scattered.

# Of the greatest number of blocks, in percent.
look_percents <- c(25L, 40L, 60L, 80L, 100L)
# Two sessions have to find what is there: 0.895 twice makes 0.80.
fail_power <- 0.895
pass_power <- 0.8
most_gate_blocks <- 1000L

#' Blocks after which a gate looks
#' @noRd
gate_looks <- function(blocks_max) unique(pmax(least_look_blocks, ceiling(blocks_max * look_percents / 100)))

#' The greatest number of blocks that a gate may take
#'
#' The least with which the last look, were it the only one, FAILs an increase of the margin with probability 0.895
#' and PASSes no change with 0.8, when blocks scatter as the upper 80 % limit of the pilot has it.
#'
#' @param sd standard deviation of the pilot's log ratios; `blocks` behind it.
#' @return number of blocks, NA beyond 1000.
#' @noRd
gate_blocks_max <- function(sd, blocks, margin_percent, tolerance_percent) {
  upper <- sd_upper(sd, blocks)
  margin <- log1p(margin_percent / 100)
  above <- margin - log1p(tolerance_percent / 100)
  enough <- function(n, level) {
    n <= most_gate_blocks && one_sided_power(n, above, upper, level) >= fail_power &&
      one_sided_power(n, margin, upper, level) >= pass_power
  }
  n <- least_look_blocks
  # The last look has a little less than the whole level, so what is not enough with all of it need not be asked.
  while (n <= most_gate_blocks && !enough(n, gate_alpha)) n <- n + 1L
  while (n <= most_gate_blocks && !enough(n, last_level(n))) n <- n + 1L
  if (n > most_gate_blocks) NA_integer_ else n
}

# Nominal level of the last look.
last_level <- function(blocks_max) {
  critical <- critical_values(gate_looks(blocks_max) / blocks_max)
  stats::pnorm(critical[length(critical)], lower.tail = FALSE)
}

one_sided_power <- function(n, effect, sd, level) {
  if (sd == 0) {
    return(1)
  }
  limit <- qt(level, n - 1, lower.tail = FALSE)
  # At great non-centrality pt() warns of lost precision in a tail that is 0 or 1 anyway.
  suppressWarnings(stats::pt(limit, n - 1, ncp = effect * sqrt(n) / sd, lower.tail = FALSE))
}

#' What a gate plans, as fields of an event; without looks where it would take too many blocks
#' @noRd
gate_plan <- function(sd, blocks, margin_percent, tolerance_percent) {
  if (anyNA(c(sd, blocks)) || sd < 0 || blocks < 2) {
    return(list(blocks_max = NA_integer_, looks = list(), critical_values = list()))
  }
  blocks_max <- gate_blocks_max(sd, blocks, margin_percent, tolerance_percent)
  looks <- if (!is.na(blocks_max)) gate_looks(blocks_max)
  list(
    blocks_max = blocks_max, looks = as.list(looks),
    critical_values = as.list(if (!is.na(blocks_max)) critical_values(looks / blocks_max))
  )
}

#' Tell the plan of a gate: analyse.R --gate-plan SD BLOCKS MARGIN TOLERANCE
#' @noRd
tell_gate_plan <- function(numbers, tell) {
  given <- suppressWarnings(as.numeric(numbers))
  if (length(given) != 4L || anyNA(given) || given[4] < 0 || given[4] >= given[3]) {
    abort_netjoule(
      "--gate-plan takes a standard deviation of log ratios, its blocks, and margin and tolerance in percent, the ",
      "tolerance below the margin.\n", usage,
      exit_code = exit_codes$usage
    )
  }
  found <- gate_plan(given[1], given[2], given[3], given[4])
  words <- if (is.na(found$blocks_max)) {
    sprintf("A gate on this rig would need over %d blocks.", most_gate_blocks)
  } else {
    sprintf("At most %d blocks, looked at after %s.", found$blocks_max, enumerated(unlist(found$looks)))
  }
  tell(c(list(event = "gate_plan", words = words), found))
}
