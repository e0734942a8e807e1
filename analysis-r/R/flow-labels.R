# SPDX-License-Identifier: Apache-2.0

# Words about flows: options, congestion control, frames per message, panels of message sizes.

#' Options of the transports that have some, as the workload gives them
#' @noRd
option_words <- function(campaign) {
  options <- pick(pick(campaign$meta, "workload", default = list()), "transport_options", default = list())
  vapply(names(options), function(transport) {
    ccid <- pick_number(options[[transport]], "ccid")
    carrier <- pick_text(options[[transport]], "carrier")
    over <- c(udp = "UDP", raw = "raw IP")[carrier]
    if (is.na(over)) over <- plain_text(carrier, 10L)
    others <- setdiff(names(options[[transport]]), c("ccid", "carrier"))
    words <- c(
      if (!is.na(ccid)) paste("CCID", number_text(ccid)), if (!is.na(carrier)) paste("over", over),
      vapply(others, function(name) option_setting(name, options[[transport]][[name]]), "", USE.NAMES = FALSE)
    )
    paste0(transport_label(transport), ": ", paste(words, collapse = " "))
  }, "", USE.NAMES = FALSE)
}

#' Congestion control as the senders reported it: what a workload does not name is the host's or the library's choice
#'
#' @return "congestion control: TCP bbr, QUIC cubic"; nothing where no sender tells. DCCP has its CCID.
#' @noRd
congestion_words <- function(campaign) {
  runs <- campaign$runs
  told <- runs[usable == TRUE & !is.na(congestion_control), list(
    found = paste(sort(unique(congestion_control)), collapse = " or ")
  ), by = list(transport)]
  if (nrow(told) == 0L) {
    return(NULL)
  }
  told <- told[order(transport_factor(transport))]
  paste0("congestion control: ", paste(transport_label(told$transport), plain_text(told$found, 30L), collapse = ", "))
}

# "congestion_control reno", "early_data", "no nodelay".
option_setting <- function(name, value) {
  name <- plain_text(name, 32L)
  if (isTRUE(value)) {
    return(name)
  }
  if (isFALSE(value)) paste("no", name) else paste(name, plain_text(as.character(value), 20L))
}

#' Panel labels: payload size, and frames per message where streams and datagrams meet
#'
#' A stream packs messages into frames as it likes, so its payload size is not a
#' datagram's: the two share a panel only with frames_per_message shown.
#'
#' @param summary from [summarise_ea()], one meter.
#' @param columns panels side by side.
#' @return named character vector, payload_bytes -> label.
#' @noRd
payload_labels <- function(summary, columns = facet_columns(summary)) {
  rows <- summary[transport != "null"]
  sizes <- sort(unique(summary$payload_bytes))
  label_width <- c(100L, 47L, 31L, 22L)[min(4L, max(1L, columns))] # characters that fit over a panel of 1 to 4 columns
  labels <- vapply(sizes, function(size) {
    paste(c(
      paste0(format(size, big.mark = ""), "-byte messages"), frames_list(rows[payload_bytes == size], label_width)
    ), collapse = "\n")
  }, "")
  stats::setNames(labels, as.character(sizes))
}

# "frames per message: UDP 1, TCP 0.05-1"; nothing of no cells.
frames_list <- function(rows, width) {
  frames <- in_cell_order(rows[, list(text = range_text(frames_per_message)), by = list(transport)])
  if (nrow(frames) > 0L) {
    words <- paste0(transport_label(frames$transport), " ", frames$text, c(rep(",", nrow(frames) - 1L), ""))
    wrap_items(c("frames per message:", words), " ", width)
  }
}

range_text <- function(x) {
  x <- x[!is.na(x)]
  if (length(x) == 0L) {
    return("unknown")
  }
  ends <- unique(number_text(signif(range(x), 2)))
  paste(ends, collapse = "\u2013")
}

payload_facets <- function(summary, scales = "fixed") {
  labels <- payload_labels(summary)
  facet_wrap(
    ggplot2::vars(payload_bytes),
    labeller = as_labeller(labels), ncol = facet_columns(summary), scales = scales
  )
}

facet_columns <- function(summary) panel_columns(length(unique(summary$payload_bytes)))

#' What is drawn of an entry of loads.json, or of another figure of cells of flows
#'
#' @param points from flow_points() or like them; y their axis; what, unit for the alt text; `...`: further parts.
#' @return parts of draw_listed().
#' @noRd
flow_parts <- function(points, summary, campaign, id, y, words, what, unit, ...) {
  parts <- list(
    points = points, facets = payload_facets(summary), x = load_axis(points$at), y = y, words = words,
    alt = alt_ea(points, campaign, id, what, unit)
  )
  more <- list(...)
  c(parts[setdiff(names(parts), names(more))], more)
}

# The entry of loads.json that has a quantity of flows.
entry_of <- function(campaign, y) {
  listed <- pick(campaign$entry, "figures", default = list())
  Find(function(one) identical(pick_text(one, "y"), y), listed)
}

#' @noRd
alt_ea <- function(points, campaign, meter_id, what, unit = "J/Mb", value = "value") {
  values <- points[[value]][is.finite(points[[value]])]
  transports <- transport_label(levels(droplevels(transport_factor(as.character(points$transport)))))
  sizes <- sort(unique(points$payload_bytes))
  paste0(
    "Line plot of ", what, " against offered load, ", span_words(points$offered_rate_mbps), " Mb/s, for ",
    paste(transports, collapse = ", "), "; one panel per message size (", paste(sizes, collapse = ", "), " bytes). ",
    "Values: ", span_words(values), " ", unit, ". ",
    alt_end(campaign, meter_id)
  )
}

#' Frames per message of each transport over all cells, for a caption
#'
#' A stream packs messages into frames as it likes: it shares a panel with datagrams
#' only with this shown. Datagrams alone need no such line.
#'
#' @param summary from [summarise_ea()].
#' @return one string, NULL when no stream is among the transports.
#' @noRd
frames_words <- function(summary, width = 118L) {
  rows <- summary[transport != "null"]
  styles <- transport_looks()
  if (any(rows$transport %in% styles$transport[styles$kind == "stream"])) frames_list(rows, width)
}
