# SPDX-License-Identifier: Apache-2.0

# How many blocks a gate may take, by what a pilot of two builds of one source scattered.

# Of the greatest number of blocks, in percent.
look_percents <- c(25L, 40L, 60L, 80L, 100L)
# Two sessions have to find what is there: 0.895 twice makes 0.80.
fail_power <- 0.895
pass_power <- 0.8
most_gate_blocks <- 1000L

#' Blocks after which a gate looks: no later than the shares say, which finds a little more than no earlier
#' @noRd
gate_looks <- function(blocks_max) unique(pmax(least_look_blocks, (blocks_max * look_percents) %/% 100))

#' The greatest number of blocks that a gate may take
#'
#' The least with which a session, by all of its looks and with PASS asked first, FAILs an increase of the margin with
#' probability 0.895 and PASSes no change with 0.8, when blocks scatter as the upper 80 % limit of the pilot has it.
#'
#' @param sd standard deviation of the pilot's log ratios; `blocks` behind it.
#' @return number of blocks, NA beyond 1000.
#' @noRd
gate_blocks_max <- function(sd, blocks, margin_percent, tolerance_percent) {
  upper <- sd_upper(sd, blocks)
  enough <- function(n) upper <= most_scatter(n, margin_percent, tolerance_percent)
  low <- high <- least_look_blocks
  while (!enough(high)) {
    if (high == most_gate_blocks) {
      return(NA_integer_)
    }
    low <- high
    high <- min(2L * high, most_gate_blocks)
  }
  while (high - low > 1L) {
    middle <- (low + high) %/% 2L
    if (enough(middle)) high <- middle else low <- middle
  }
  high
}

scatter_memory <- new.env(parent = emptyenv())

#' The greatest standard deviation of blocks with which a session of so many has the power that is asked for
#' @noRd
most_scatter <- function(blocks_max, margin_percent, tolerance_percent) {
  key <- paste(blocks_max, margin_percent, tolerance_percent)
  if (is.null(scatter_memory[[key]])) {
    found <- new_most_scatter(blocks_max, log1p(margin_percent / 100), log1p(tolerance_percent / 100))
    assign(key, found, envir = scatter_memory)
  }
  scatter_memory[[key]]
}

new_most_scatter <- function(blocks_max, margin, tolerance) {
  drawn <- drawn_looks(gate_looks(blocks_max))
  share <- function(verdict, change, sd) {
    mean(drawn_verdicts(drawn, change / sd, margin / sd, tolerance / sd) == verdict)
  }
  low <- 0
  high <- (margin - tolerance) * sqrt(blocks_max)
  while (high - low > 1e-4 * high) {
    middle <- (low + high) / 2
    enough <- share("fail", margin, middle) >= fail_power && share("pass", 0, middle) >= pass_power
    if (enough) low <- middle else high <- middle
  }
  low
}

# Sessions by which the power of a number of blocks is known: to 0.14 %. Their seed is one, so that a plan is, too.
sessions_drawn <- 50000L
sessions_seed <- 28L

#' Means of blocks and half-widths of their bounds at each look of many sessions, in standard deviations of a block
#'
#' Of normal blocks the sum and the sum of squares are enough, and of those between two looks they are drawn as such.
#' @return list mean, half: matrices, a session in each row.
#' @noRd
drawn_looks <- function(looks) {
  new <- diff(c(0, looks))
  drawn <- with_seed(sessions_seed, lapply(new, function(blocks) {
    sum <- stats::rnorm(sessions_drawn, 0, sqrt(blocks))
    list(sum = sum, squares = sum^2 / blocks + stats::rchisq(sessions_drawn, blocks - 1))
  }))
  sums <- Reduce(`+`, lapply(drawn, `[[`, "sum"), accumulate = TRUE)
  squares <- Reduce(`+`, lapply(drawn, `[[`, "squares"), accumulate = TRUE)
  levels <- stats::pnorm(critical_values(looks / max(looks)), lower.tail = FALSE)
  half <- Map(function(sum, squares, blocks, level) {
    qt(level, blocks - 1, lower.tail = FALSE) * sqrt((squares - sum^2 / blocks) / (blocks - 1) / blocks)
  }, sums, squares, looks, levels)
  list(mean = mapply(`/`, sums, looks), half = matrix(unlist(half), sessions_drawn))
}

# What each session comes to; all in standard deviations of a block.
drawn_verdicts <- function(drawn, change, margin, tolerance) {
  verdict <- rep("continue", sessions_drawn)
  for (look in seq_len(ncol(drawn$mean))) {
    centre <- change + drawn$mean[, look]
    open <- verdict == "continue"
    verdict[open & centre - drawn$half[, look] > tolerance] <- "fail"
    verdict[open & centre + drawn$half[, look] < margin] <- "pass"
  }
  verdict
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
