# SPDX-License-Identifier: Apache-2.0

# Up to so many values all 2^n flips are looked at; two halves of 20 signs are a million sums each.
most_enumerated <- 40L
# Draws beyond that; the least p is then 1e-5.
sign_flip_draws <- 99999L

#' Two-sided sign-flip test that values lie symmetrically about 0
#'
#' Under the hypothesis the sign of each value is as good as its opposite: p is the share of the 2^n sign
#' patterns whose sum is at least as far from 0 as the one seen (Fisher 1935, section 21). All patterns are
#' counted up to `enumerate_to` values: sums of one half of the values are looked up among the sorted sums of the
#' other (Horowitz and Sahni 1974). Beyond, patterns are drawn and p = (hits + 1) / (draws + 1), which is valid
#' as it stands (Phipson and Smyth 2010).
#'
#' @param x numeric vector; missing values are left out.
#' @param seed of the draws; not used when all patterns are counted.
#' @param enumerate_to greatest number of values with all patterns.
#' @param draws number of patterns drawn beyond.
#' @return list n, p (NA without a value), method "exact" or "monte_carlo".
#' @noRd
sign_flip_test <- function(x, seed, enumerate_to = most_enumerated, draws = sign_flip_draws) {
  x <- x[!is.na(x)]
  n <- length(x)
  if (n == 0L) {
    return(list(n = 0L, p = NA_real_, method = NA_character_))
  }
  if (n <= enumerate_to) {
    return(list(n = n, p = extreme_share(x), method = "exact"))
  }
  list(n = n, p = extreme_share_drawn(x, seed, draws), method = "monte_carlo")
}

#' Least two-sided p that a sign-flip test over n values can give: 2 / 2^n, at most 1
#' @noRd
least_p <- function(n, enumerate_to = most_enumerated, draws = sign_flip_draws) {
  ifelse(n > enumerate_to, 1 / (draws + 1), pmin(1, 2 / 2^n))
}

# Sums that differ by rounding alone are ties, and ties count as far out as what was seen.
tie_limit <- function(x) abs(sum(x)) - 1e-9 * sum(abs(x))

extreme_share <- function(x) {
  limit <- tie_limit(x)
  if (limit <= 0) {
    return(1)
  }
  # Sizes have the same set of sums as the values; by symmetry the first sign may stay.
  size <- abs(x)
  half <- max(1L, length(size) %/% 2L)
  one <- size[1] + signed_sums(size[seq_len(half)[-1]])
  other <- sort(signed_sums(size[-seq_len(half)]))
  above <- length(other) - findInterval(limit - one, other, left.open = TRUE)
  below <- findInterval(-limit - one, other)
  # As doubles: the counts of 40 values exceed R's integers.
  (sum(as.numeric(above)) + sum(as.numeric(below))) / 2^(length(size) - 1)
}

signed_sums <- function(x) {
  sums <- 0
  for (value in x) sums <- c(sums + value, sums - value)
  sums
}

extreme_share_drawn <- function(x, seed, draws) {
  limit <- tie_limit(x)
  at_once <- 10000L
  hits <- with_seed(seed, {
    found <- 0
    for (count in c(rep(at_once, draws %/% at_once), draws %% at_once)) {
      flips <- matrix(sample(c(-1, 1), length(x) * count, replace = TRUE), nrow = length(x))
      found <- found + sum(abs(colSums(x * flips)) >= limit)
    }
    found
  })
  (hits + 1) / (draws + 1)
}

#' Holm's step-down adjustment over a family whose size was fixed beforehand
#'
#' @param p numeric vector; NA where a test could not be made.
#' @param tests size of the family; tests that could not be made count as those with the greatest p.
#' @return adjusted p, NA where p is.
#' @noRd
holm <- function(p, tests = length(p)) {
  stats::p.adjust(p, "holm", n = max(tests, sum(!is.na(p))))
}
