# SPDX-License-Identifier: Apache-2.0

# What a load has of its own: its files register it by one call; a load without one gets what every load has.

load_parts <- new.env(parent = emptyenv())

#' Say what the analysis has of one load alone
#'
#' @param name of the load, as in loads.json.
#' @param ... parts by name, functions or data; which there are, say the places that ask of_load() for them.
#' @noRd
register_load <- function(name, ...) assign(name, list(...), envir = load_parts)

#' A part that the campaign's load has of its own, else what every load has
#' @noRd
of_load <- function(campaign, part, default = NULL) {
  own <- load_parts[[campaign$load]][[part]]
  if (is.null(own)) default else own
}

#' What loads.json says of a load
#' @noRd
load_entry <- function(name, contracts) {
  listed <- pick(read_contract_json("loads.json", contracts = contracts), "loads", default = list())
  found <- Find(function(entry) identical(pick_text(entry, "name"), name), listed)
  if (is.null(found) && is.null(load_parts[[name]])) {
    abort_invalid_data(
      "The campaign's load ", encodeString(name, quote = "\""), " is not in loads.json of these contracts: analyse it ",
      "with the netjoule that wrote it, or set NETJOULE_CONTRACTS to contracts that list it."
    )
  }
  if (is.null(found)) list(name = name) else found
}

meter_keys <- c("node", "meter_id", "device_model", "power_source", "radio_source")

#' What distinguishes the cells of a campaign at its meters: every factor but the arm, and the arm beside them
#'
#' The one rule for a cell. Factors that a load's tables always have stand first, in their order there.
#' @noRd
cell_keys <- function(campaign) c(meter_keys, campaign$arm, campaign$factors)

#' Factors of a campaign but its arm, as columns of its plan
#'
#' A load with columns of its own has these, and of the others those that vary.
#' @noRd
cell_factors <- function(plan, arm, load, contracts) {
  own <- load_parts[[load]]$factors
  listed <- setdiff(names(factor_columns(setdiff(names(plan), no_factors), contracts)), arm)
  if (is.null(own)) {
    return(listed)
  }
  varied <- Filter(function(name) uniqueN(plan[[name]]) > 1L, setdiff(listed, own))
  c(setdiff(own, arm), varied)
}

# Columns of a plan, of either version and lifted, that are no factors.
no_factors <- c(
  "run_id", "block", "mini_block", "order", "attempt", "load", "kind", "arm", "seed", "generator", "status", "reason"
)

#' Rows of runs or cells that are compared: all but those of the control arm
#' @noRd
without_control <- function(rows, campaign) {
  if (nrow(rows) == 0L || is.null(campaign$control)) rows else rows[!rows[[campaign$arm]] %in% campaign$control]
}

#' A cell in words, without its arm: "size small, LEVEL 7"; "" for a campaign of one cell
#' @noRd
cell_name <- function(campaign, rows) {
  own <- of_load(campaign, "cell_name")
  if (!is.null(own)) {
    return(own(rows))
  }
  parts <- lapply(campaign$factors, function(name) {
    values <- rows[[name]]
    paste(gsub("_", " ", name, fixed = TRUE), if (is.numeric(values)) number_text(values) else plain_text(values, 40L))
  })
  if (length(parts) == 0L) rep("", nrow(rows)) else do.call(paste, c(parts, sep = ", "))
}

# "small, size 3": arm and cell, for marks and tables.
arm_and_cell <- function(campaign, rows) {
  cell <- cell_name(campaign, rows)
  paste0(arm_label(as.character(rows$arm)), ifelse(nzchar(cell), ", ", ""), cell)
}
