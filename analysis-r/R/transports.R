# SPDX-License-Identifier: Apache-2.0

# Which transports there are. Colours and shapes of those known here are chosen (theme.R); what the contract
# transports.json lists beyond them is drawn all the same, with the name and the kind that it tells.

# Dark enough for white paper, none of them in theme.R.
spare_colours <- c("#332288", "#117733", "#661100", "#AA4499")

transport_memory <- new.env(parent = emptyenv())

#' Every transport with its look: those chosen here, then those that only the contract knows
#'
#' @param contracts folder of the contracts; NA for the chosen ones alone.
#' @return data.frame like `transport_styles`.
#' @noRd
transport_looks <- function(contracts = contracts_dir()) {
  key <- if (is.na(contracts)) "none" else contracts
  if (is.null(transport_memory[[key]])) {
    listed <- read_contract_json("transports.json", contracts = contracts)$transports
    assign(key, looks_with(listed), envir = transport_memory)
  }
  transport_memory[[key]]
}

looks_with <- function(listed) {
  added <- Filter(function(entry) !entry$name %in% transport_styles$transport, listed)
  if (length(added) == 0L) {
    return(transport_styles)
  }
  places <- seq_along(added)
  text <- function(field) vapply(added, function(entry) plain_text(pick_text(entry, field), 32L), "")
  rbind(transport_styles, data.frame(
    transport = vapply(added, function(entry) entry$name, ""), label = text("label"),
    colour = spare_colours[(places - 1L) %% length(spare_colours) + 1L],
    shape = 21, linetype = "12", kind = text("kind"),
    controlled = vapply(added, function(entry) isTRUE(entry$congestion_controlled), NA)
  ))
}
