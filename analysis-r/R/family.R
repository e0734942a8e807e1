# SPDX-License-Identifier: Apache-2.0

# Which comparisons are tested. The rule looks at the workload alone, never at a result: it is fixed before the
# first packet, and `netjoule plan` names the same tests.

# More tests than this would leave none of them with power.
most_tests <- 6L
# The least number of blocks at which six tests can reach 0.05 after Holm: 6 x 2 / 2^8 = 0.047.
least_blocks_tested <- 8L
# Below this no single test can: 2 / 2^5 = 0.0625.
least_blocks_attainable <- 6L
default_alpha <- 0.05

#' What a workload says of its statistics, with defaults
#'
#' @param workload effective workload as nested lists (campaign.json has it).
#' @return list alpha (of the whole family), margin_percent (NA: equivalence is not asked).
#' @noRd
statistics_settings <- function(workload) {
  alpha <- pick_number(workload, "statistics", "alpha")
  list(
    alpha = if (is.na(alpha)) default_alpha else alpha,
    margin_percent = pick_number(workload, "statistics", "equivalence_margin_percent")
  )
}

#' The pairs of a workload's transports, those with the reference first
#'
#' The reference is UDP, or the first transport where there is no UDP. In every pair the transport that the
#' workload names later is compared with the one it names earlier, the reference counting as the earliest.
#'
#' @param transports in the workload's order; null is left out.
#' @return data.table reference, transport.
#' @noRd
transport_pairs <- function(transports) {
  transports <- setdiff(transports, "null")
  if (length(transports) < 2L) {
    return(data.table(reference = character(), transport = character()))
  }
  first <- if ("udp" %in% transports) "udp" else transports[1]
  places <- utils::combn(length(transports), 2L)
  ordered <- c(first, setdiff(transports, first))
  data.table(reference = ordered[places[1, ]], transport = ordered[places[2, ]])
}

#' All contrasts of a workload: pair by pair, each at every payload size, both in the workload's order
#'
#' @param workload effective workload as nested lists.
#' @param plan rows of plan.csv, for what an older workload does not say; NULL for none.
#' @return data.table reference, transport, payload_bytes.
#' @noRd
workload_contrasts <- function(workload, plan = NULL) {
  transports <- as.character(unlist(pick(workload, "transports", default = list())))
  sizes <- as.numeric(unlist(pick(workload, "payload_bytes", default = list())))
  if (length(setdiff(transports, "null")) == 0L) transports <- sort(unique(plan$transport))
  if (length(sizes) == 0L) sizes <- sort(unique(plan$payload_bytes))
  pairs <- transport_pairs(transports)
  place <- rep(seq_len(nrow(pairs)), each = length(sizes))
  pairs[place][, payload_bytes := rep(sizes, nrow(pairs))][]
}

#' The main comparisons: the contrasts that the workload names, else the first six of [workload_contrasts()]
#'
#' @inheritParams workload_contrasts
#' @return list contrasts (data.table reference, transport, payload_bytes), named (whether the workload names
#'   them), others (number of contrasts that are not in the family).
#' @noRd
family_of <- function(workload, plan = NULL) {
  candidates <- workload_contrasts(workload, plan)
  named <- pick(workload, "statistics", "contrasts", default = list())
  contrasts <- if (length(named) > 0L) {
    rbindlist(lapply(named, function(one) {
      list(
        reference = pick_text(one, "reference"), transport = pick_text(one, "transport"),
        payload_bytes = pick_number(one, "payload_bytes")
      )
    }))
  } else {
    candidates
  }
  contrasts <- utils::head(unique(contrasts), most_tests)
  # A pair is the same whichever of the two is called the reference.
  others <- sum(!contrast_key(candidates) %in% contrast_key(contrasts))
  list(contrasts = contrasts, named = length(named) > 0L, others = others)
}

contrast_key <- function(contrasts) {
  paste(
    pmin(contrasts$reference, contrasts$transport), pmax(contrasts$reference, contrasts$transport),
    contrasts$payload_bytes
  )
}

#' Fewest blocks with which a family of tests can reach its level after Holm, and which are tested at all
#' @noRd
least_blocks_for <- function(tests, alpha) {
  attainable <- ceiling(1 + log2(tests / alpha) - 1e-9)
  max(least_blocks_tested, attainable)
}
