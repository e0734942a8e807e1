# SPDX-License-Identifier: Apache-2.0

#' Equivalence of two transports by two one-sided t tests
#'
#' The question is reversed: two transports count as equivalent when it can be ruled out that their ratio of E_A
#' lies beyond the margin on either side (Schuirmann 1987). The margin is symmetric on the logarithm: with 3 %
#' the ratio lies between 1 / 1.03 and 1.03.
#'
#' @param log_ratios one per block.
#' @param margin_percent margin, in percent, over 0.
#' @return list p, the greater of both sides' (NA below two values).
#' @noRd
tost <- function(log_ratios, margin_percent) {
  x <- log_ratios[!is.na(log_ratios)]
  n <- length(x)
  if (n < 2L) {
    return(list(p = NA_real_))
  }
  margin <- log1p(margin_percent / 100)
  error <- sd(x) / sqrt(n)
  if (error == 0) {
    return(list(p = if (abs(mean(x)) < margin) 0 else 1))
  }
  above_lower <- stats::pt((mean(x) + margin) / error, n - 1, lower.tail = FALSE)
  below_upper <- stats::pt((mean(x) - margin) / error, n - 1)
  list(p = max(above_lower, below_upper))
}
