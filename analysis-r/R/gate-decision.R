# SPDX-License-Identifier: Apache-2.0

# How a gate decides, from the log ratios of its blocks alone: group-sequential with O'Brien-Fleming spending
# (Lan and DeMets 1983), looks at planned blocks and at no others. Pure: no files, no chance, one series or many.

# One-sided level of each of both questions, over all looks.
gate_alpha <- 0.05
# With fewer blocks a standard deviation says nothing.
least_look_blocks <- 4L

boundary_memory <- new.env(parent = emptyenv())

#' Boundaries of the standard normal statistic at each look
#'
#' Those of a look hang on the looks until then, not on what may come.
#'
#' @param information shares of the greatest number of blocks, increasing.
#' @return critical values, one per look.
#' @noRd
critical_values <- function(information) {
  key <- paste(c("at", signif(information, 12)), collapse = " ")
  if (is.null(boundary_memory[[key]])) assign(key, new_critical_values(information), envir = boundary_memory)
  boundary_memory[[key]]
}

new_critical_values <- function(information) {
  # What is spent at the end is spent at all of the information, whether or not it is reached.
  whole <- if (max(information) < 1 - 1e-9) c(information, 1) else information
  if (length(whole) == 1L) {
    return(stats::qnorm(1 - gate_alpha))
  }
  design <- rpact::getDesignGroupSequential(
    informationRates = whole, alpha = gate_alpha, sided = 1, typeOfDesign = "asOF"
  )
  design$criticalValues[seq_along(information)]
}

#' Mean of log ratios with the bounds that a look allows
#'
#' @param d matrix, a series in each row, of at least two blocks.
#' @param critical boundary of the look: Student's t at its nominal level, as the scatter is estimated.
#' @return list mean, sd, low, high: a number for each series.
#' @noRd
look_bounds <- function(d, critical) {
  n <- ncol(d)
  d <- unname(d)
  centre <- rowMeans(d)
  scatter <- sqrt(rowSums((d - centre)^2) / (n - 1))
  level <- stats::pnorm(critical, lower.tail = FALSE)
  half <- qt(level, n - 1, lower.tail = FALSE) * scatter / sqrt(n)
  list(mean = centre, sd = scatter, low = centre - half, high = centre + half)
}

# PASS is asked first: with both shown, the change is less than what matters.
look_verdict <- function(bounds, design, last) {
  fcase(
    bounds$high < log1p(design$margin_percent / 100), "pass",
    bounds$low > log1p(design$tolerance_percent / 100), "fail",
    default = if (last) "inconclusive" else "continue"
  )
}

#' Decide over log ratios of blocks
#'
#' A planned look at which no block more counts than at the one before, or fewer than four, is not taken and spends
#' nothing. Blocks that do not count are less information.
#'
#' @param d log ratios (head over base) of blocks 1 to the last that is finished, NA of one that does not count; a
#'   matrix of many such series, a row each, without NA; or a function that gives, for a number of blocks, the matrix
#'   of what counts of them.
#' @param design list looks (blocks, increasing), blocks_max, margin_percent, tolerance_percent.
#' @param finished blocks that are finished.
#' @return list verdict (of each series: pass, fail, inconclusive, continue), look (number of the look that decided,
#'   else of the last that was taken; 0 before one was), looks (list of list blocks_planned, blocks, information,
#'   critical_value, mean, sd, low, high, verdict).
#' @noRd
gate_decision <- function(d, design, finished = if (is.function(d)) max(design$looks) else NCOL(rbind(d))) {
  at <- if (is.function(d)) d else blocks_until(rbind(d))
  verdict <- "continue"
  place <- 0L
  taken <- list()
  for (planned in design$looks[design$looks <= finished]) {
    last <- planned == max(design$looks)
    look <- new_look(at(planned), planned, last, taken, design)
    if (is.null(look)) {
      if (last) verdict[verdict == "continue"] <- "inconclusive"
      next
    }
    taken <- c(taken, list(look))
    open <- rep_len(verdict == "continue", length(look$verdict))
    place <- fifelse(open, length(taken), place + integer(length(open)))
    verdict <- fifelse(open, look$verdict, verdict[rep_len(seq_along(verdict), length(open))])
    if (all(verdict != "continue")) break
  }
  list(verdict = verdict, look = place, looks = taken)
}

blocks_until <- function(d) {
  function(planned) {
    given <- d[, seq_len(min(planned, ncol(d))), drop = FALSE]
    given[, colSums(is.na(given)) == 0, drop = FALSE]
  }
}

new_look <- function(d, planned, last, taken, design) {
  before <- vapply(taken, `[[`, 0, "blocks")
  if (ncol(d) < least_look_blocks || ncol(d) <= max(before, 0)) {
    return(NULL)
  }
  coming <- design$looks[design$looks > planned]
  information <- c(before, ncol(d), coming) / design$blocks_max
  place <- length(taken) + 1L
  critical <- critical_values(information)[place]
  bounds <- look_bounds(d, critical)
  c(
    list(
      blocks_planned = planned, blocks = ncol(d) + 0, information = information[place], critical_value = critical
    ), bounds, list(verdict = look_verdict(bounds, design, last))
  )
}
