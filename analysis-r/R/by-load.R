# SPDX-License-Identifier: Apache-2.0

# What a load has of its own: its files register it by one call; a load without one gets what every load has.

load_parts <- new.env(parent = emptyenv())

#' Say what the analysis has of one load alone
#'
#' @param name of the load, as in loads.json.
#' @param ... parts by name, functions or data; which there are, say the places that ask of_load() for them. `of_arm`
#'   names the parts that hold only where a certain factor is the arm: with another one the campaign gets what every
#'   load has.
#' @noRd
register_load <- function(name, ...) assign(name, list(...), envir = load_parts)

#' A part that the campaign's load has of its own, else what every load has
#' @noRd
of_load <- function(campaign, part, default = NULL) {
  parts <- load_parts[[campaign$load]]
  # What compares by E_A has nothing to say of a campaign without power.
  own <- c(parts, if (!is_simulated(campaign)) parts$of_arm[[campaign$arm]])[[part]]
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
  own <- of_load(list(load = load, arm = arm), "factors")
  listed <- setdiff(names(factor_columns(setdiff(names(plan), no_factors), contracts)), arm)
  if (is.null(own)) {
    return(listed)
  }
  varied <- Filter(function(name) uniqueN(plan[[name]]) > 1L, setdiff(listed, own))
  c(setdiff(own, arm), varied)
}

# Columns of a plan, of either version and lifted, that are no factors.
no_factors <- c(
  "run_id", "block", "mini_block", "order", "attempt", "load", "kind", "arm", "seed", "generator", "status", "reason",
  "rig"
)

#' Rows of runs or cells that are compared: all but those of the control arm
#' @noRd
without_control <- function(rows, campaign) {
  if (nrow(rows) == 0L || is.null(campaign$control)) {
    rows
  } else if ("kind" %in% names(rows)) {
    rows[kind != "control"]
  } else {
    rows[!rows[[campaign$arm]] %in% campaign$control]
  }
}

#' A cell in words, by the factors that vary but its arm: "Size 64 byte, LEVEL 7"; "" for a campaign of one cell
#' @noRd
cell_name <- function(campaign, rows) {
  own <- of_load(campaign, "cell_name")
  if (!is.null(own)) {
    return(own(rows))
  }
  varied <- Filter(function(name) uniqueN(campaign$plan[[name]]) > 1L, campaign$factors)
  parts <- lapply(varied, function(name) {
    entry <- factor_entry(campaign, name)
    paste(labelled(entry[names(entry) != "unit"], name), factor_values(entry, rows[[name]]))
  })
  if (length(parts) == 0L) rep("", nrow(rows)) else do.call(paste, c(parts, sep = ", "))
}

# Values of a factor with its unit: "64 byte".
factor_values <- function(entry, values) {
  unit <- pick_text(entry, "unit")
  text <- if (is.numeric(values)) number_text(values, 15) else arm_label(as.character(values))
  if (is.na(unit) || unit == "1") text else paste(text, unit)
}

# Arms of a campaign as words name them.
arm_names <- function(campaign, arms) factor_values(factor_entry(campaign, campaign$arm), as.character(arms))

# "small, size 3": arm and cell, for marks and tables.
arm_and_cell <- function(campaign, rows) {
  cell <- cell_name(campaign, rows)
  paste0(arm_names(campaign, rows$arm), ifelse(nzchar(cell), ", ", ""), cell)
}
