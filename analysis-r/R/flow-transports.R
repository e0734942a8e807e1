# SPDX-License-Identifier: Apache-2.0

# Which transports there are. Colours and shapes of those known here are chosen; what the contract
# transports.json lists beyond them is drawn all the same, with the name and the kind that it tells.

# Dark enough for white paper, none of them chosen for a transport.
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

# Okabe and Ito's palette, distinguishable with the common colour-vision deficiencies.
# Shapes are the fillable ones, so that a hollow point is a point without fill;
# 25, the downward triangle, is kept for upper limits.
transport_styles <- data.frame(
  transport = c("udp", "tcp", "quic", "quic-datagram", "dccp", "dccp-kernel", "null", "mptcp", "sctp"),
  label = c("UDP", "TCP", "QUIC", "QUIC datagram", "DCCP", "DCCP (kernel)", "generator floor (null)", "MPTCP", "SCTP"),
  colour = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#882255", "#999933"),
  shape = c(21, 22, 23, 23, 24, 24, 21, 22, 22),
  linetype = c("solid", "solid", "solid", "42", "solid", "42", "22", "42", "42"),
  kind = c("datagram", "stream", "stream", "datagram", "datagram", "datagram", "none", "stream", "stream"),
  # Sends less than it is asked when the path is the limit: that is the transport's answer, not a defect.
  controlled = c(FALSE, TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TRUE, TRUE)
)

style_values <- function(column) {
  styles <- transport_looks()
  stats::setNames(styles[[column]], styles$transport)
}

# Of figures with a panel for each transport, which need no legend.
panel_colours <- function() {
  scale_colour_manual(
    values = style_values("colour"), na.value = "#999999", guide = "none", aesthetics = c("colour", "fill")
  )
}

transport_label <- function(transport) {
  styles <- transport_looks()
  label <- styles$label[match(transport, styles$transport)]
  ifelse(is.na(label), plain_text(transport, 20L), label)
}

transport_factor <- function(transport) {
  known <- transport_looks()$transport
  levels <- c(known, setdiff(sort(unique(transport)), known))
  factor(transport, levels = levels)
}

#' Points of flows as every figure over a factor takes them: a panel per message size, placed at their offered load
#'
#' @param points with transport, payload_bytes and offered_rate_mbps.
#' @return the same with arm, at, panel, x, and `name` for a reader who points at one.
#' @noRd
spread_loads <- function(points) {
  arms <- if (is.factor(points$transport)) points$transport else transport_factor(points$transport)
  points[, `:=`(arm = arms, at = offered_rate_mbps, name = load_names(points))]
  if (!"panel" %in% names(points)) points[, panel := payload_bytes]
  spread_arms(points)
}

load_names <- function(rows) {
  paste0(
    transport_label(as.character(rows$transport)), ", ", number_text(rows$payload_bytes), " bytes, ",
    number_text(rows$offered_rate_mbps), " Mb/s"
  )
}

load_axis <- function(rates_mbps, label = "Offered load (Mb/s of payload)") place_axis(rates_mbps, label)
