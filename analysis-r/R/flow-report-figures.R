# SPDX-License-Identifier: Apache-2.0

# Figures of flows that show the same in every cell.

# Goodput and its differences up to here are one line: nothing to see.
least_news_percent <- 1

#' What a figure of a flow shows where it is the same in every cell, as a sentence; NULL where there is more to see
#' @noRd
same_words <- function(name, campaign, tables) {
  if (startsWith(name, "goodput")) {
    same_goodput(campaign, tables$ea_summary)
  } else if (startsWith(name, "delta-goodput")) {
    same_delta_goodput(tables$delta_goodput)
  } else if (startsWith(name, "loss")) {
    same_loss(tables$ea_summary)
  } else if (startsWith(name, "phy-rates") && length(unique(tables$phy_rates$phy_rate_mbps)) == 1L) {
    sprintf("Every reading of the radio shows a PHY rate of %s Mb/s.", number_text(tables$phy_rates$phy_rate_mbps[1]))
  }
}

# Of several flows the load is one's and the goodput that of all.
same_goodput <- function(campaign, summary) {
  if (is.null(summary) || !is.null(flow_words(campaign))) {
    return(NULL)
  }
  rows <- first_meter_rows(summary)
  off <- function(goodput) 100 * abs(goodput / rows$offered_rate_mbps - 1)
  ends <- c(off(rows$goodput_ci95_low), off(rows$goodput_ci95_high))
  most <- max(off(rows$goodput_mbps), 0)
  if (nrow(rows) > 0L && isTRUE(most < least_news_percent) && !any(ends > least_news_percent, na.rm = TRUE)) {
    sprintf(
      "Everything that was offered arrived: goodput is within %s %% of the offered load in all %d cells.",
      short(without_rounding(most)), nrow(rows)
    )
  }
}

same_delta_goodput <- function(rows) {
  if (NROW(rows) == 0L) {
    return(NULL)
  }
  size <- abs(rows$shortfall_percent)
  ends <- abs(c(rows$shortfall_percent_ci95_low, rows$shortfall_percent_ci95_high))
  if (isTRUE(max(size) < least_news_percent) && !any(ends > least_news_percent, na.rm = TRUE)) {
    # Nothing differs "by at most 0 %".
    most <- without_rounding(max(size))
    if (most == 0) {
      "Goodput is that of UDP in every cell."
    } else {
      sprintf("Goodput is that of UDP in every cell: it differs by at most %s %%.", short(most))
    }
  }
}

same_loss <- function(summary) {
  if (is.null(summary)) {
    return(NULL)
  }
  loss <- stats::na.omit(first_meter_rows(summary)$loss_ratio)
  if (length(loss) > 0L && all(loss == 0)) sprintf("No message was lost in any of %d cells.", length(loss))
}
