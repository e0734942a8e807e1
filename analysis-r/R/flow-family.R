# SPDX-License-Identifier: Apache-2.0

# Which comparisons are tested. The rule looks at the workload alone, never at a result: it is fixed before the
# first packet, and `netjoule plan` names the same tests.

#' The pairs of a workload's transports, those with the reference first
#'
#' The reference is UDP, or the first transport where there is no UDP. In every pair the transport that the
#' workload names later is compared with the one it names earlier, the reference counting as the earliest.
#'
#' @param transports in the workload's order; null is left out.
#' @return data.table reference, transport.
#' @noRd
transport_pairs <- function(transports) {
  setnames(pairs_of_arms(setdiff(transports, "null"), "udp"), "arm", "transport")
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
      c(pick_texts(one, c("reference", "transport")), pick_numbers(one, "payload_bytes"))
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
