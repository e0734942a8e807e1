# SPDX-License-Identifier: Apache-2.0

# Runs that count, and what is said of several: means with intervals, codes, what is left out.

#' Mean with a 95 % t interval
#'
#' @param x numeric; missing values are left out.
#' @return list n, mean, low, high; no interval (NA) below two values.
#' @noRd
mean_interval <- function(x) {
  x <- x[!is.na(x)]
  n <- length(x)
  if (n == 0L) {
    return(list(n = 0L, mean = NA_real_, low = NA_real_, high = NA_real_))
  }
  half <- if (n > 1L) qt(0.975, n - 1) * sd(x) / sqrt(n) else NA_real_
  list(n = n, mean = mean(x), low = mean(x) - half, high = mean(x) + half)
}

#' Rate with its 95 % Clopper-Pearson interval
#'
#' @param x how often it happened, of how many times.
#' @return list rate, low, high.
#' @noRd
binomial_interval <- function(x) {
  ends <- stats::binom.test(x[1], x[2])$conf.int
  list(rate = x[1] / x[2], low = ends[1], high = ends[2])
}

#' A mean with its interval as columns of a table: the mean, and its ends by the name of `ends`
#' @noRd
interval_columns <- function(x, name, ends = name) {
  stats::setNames(mean_interval(x)[c("mean", "low", "high")], c(name, paste0(ends, c("_ci95_low", "_ci95_high"))))
}

#' Mean of each block, in their order: several runs of a cell in a block count once
#'
#' @param values one per row.
#' @noRd
block_means <- function(rows, values) {
  vapply(split(values, factor(rows$block, unique(rows$block))), mean_or_na, 0, USE.NAMES = FALSE)
}

# Means over blocks of some columns, without intervals.
means_over_blocks <- function(rows, columns) {
  lapply(stats::setNames(nm = columns), function(name) mean_or_na(block_means(rows, rows[[name]])))
}

#' Runs that tables and figures are made of: valid, with the E_A that averages without bias
#'
#' result.json leaves E_A empty when power while sending is below idle power.
#' Dropping those runs would bias a cell near the resolution upwards, so the mean
#' uses (P_A - P_I) / T_A as it is wherever something arrived. A client without a
#' flow in a run has no part in what the run cost.
#'
#' @param results campaign$results.
#' @return data.table, usable runs with `ea` added (J/Mb; NA when nothing arrived).
#' @noRd
usable_results <- function(results) {
  rows <- copy(results[usable == TRUE & !ea_reason %in% "took_no_part"])
  arrived <- !is.na(rows$t_a_mbps) & rows$t_a_mbps > 0
  rows[, ea := fifelse(!is.na(ea_j_per_mbit), ea_j_per_mbit, fifelse(arrived, delta_p_w / t_a_mbps, NA_real_))]
  # hwsim has no air time: there E_A is not computed, whatever the powers say.
  rows[!is.na(ea_reason) & ea_reason == "radio_without_air_time", ea := NA_real_]
  rows[]
}

# Rows of one meter.
of_meter <- function(rows, id) rows[meter_id == id]

# How many, of those of which it is known; NA where it is known of none.
count_or_na <- function(x) if (all(is.na(x))) NA_integer_ else sum(x, na.rm = TRUE)

# What runs of a cell were made with; more than one where their generator was changed between them.
listed <- function(x) paste(sort(unique(x[!is.na(x)])), collapse = ", ")

#' Whether so many of a cell's runs are below the meter's resolution that its E_A is an upper limit
#'
#' @param below_n runs below resolution; n: blocks, each of which has one run of the cell.
#' @return logical.
#' @noRd
mostly_below <- function(below_n, n) 2 * below_n > n

#' Meters but the first of which every cell lies outside the device model's validity: a line tells all there is to tell
#' @noRd
outside_meters <- function(campaign, summary) {
  Filter(function(id) {
    cells <- without_control(summary[meter_id == id], campaign)
    nrow(cells) > 0L && all(cells$hollow)
  }, campaign$meters$meter_id[-1])
}

codes_text <- function(codes) {
  codes <- sort(unique(codes[!is.na(codes)]))
  if (length(codes) > 0L) paste(codes, collapse = ";") else NA_character_
}

mean_or_na <- function(x) {
  x <- x[!is.na(x)]
  if (length(x) == 0L) NA_real_ else mean(x)
}

blocks_of <- function(campaign) length(unique(campaign$runs$block[campaign$runs$usable]))
