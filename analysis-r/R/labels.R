# SPDX-License-Identifier: Apache-2.0

# Words that every figure and table must carry: where its numbers come from.

#' Source line of a figure
#'
#' @param campaign from [read_campaign()].
#' @param meter_id one meter, or NULL for all of the campaign.
#' @return one string, wrapped for a caption.
#' @noRd
source_line <- function(campaign, meter_id = NULL, width = 118L) {
  chosen <- meter_id
  meters <- if (is.null(chosen)) campaign$meters else campaign$meters[meter_id == chosen]
  items <- c(
    meters_words(meters, width), paste0("radio_source: ", radio_source(campaign)),
    paste0("campaign: ", plain_text(campaign$name)), commit_words(campaign), generator_words(campaign),
    option_words(campaign), congestion_words(campaign), flow_words(campaign), campaign$pacing_words,
    if (is_modelled(campaign, chosen)) "in this model"
  )
  wrap_items(items, " \u00b7 ", width)
}

#' Join items and break lines between them, never inside one
#' @noRd
wrap_items <- function(items, separator, width) {
  # strwrap() does not break at a no-break space; the separator stays with the item before it.
  ends <- c(rep(trimws(separator, "right"), length(items) - 1L), "")
  glued <- gsub(" ", "\u00a0", paste0(items, ends), fixed = TRUE)
  paste(strwrap(paste(glued, collapse = " "), width), collapse = "\n")
}

# Of several meters: what is the same of all once, then the rest of each together, so that the two do not mix.
meters_words <- function(meters, width) {
  each <- lapply(split(meters, seq_len(nrow(meters))), meter_words)
  shared <- Reduce(intersect, each)
  own <- vapply(each, function(words) paste(setdiff(words, shared), collapse = ", "), "", USE.NAMES = FALSE)
  if (length(each) < 2L || any(nchar(own) > width - 4L)) {
    return(unlist(each, use.names = FALSE))
  }
  c(shared, own[nzchar(own)])
}

meter_words <- function(meter) {
  if (meter$power_source %in% "unknown") {
    return(c("power_source: unknown (no power was logged)", paste0("node: ", plain_text(meter$node, 40L))))
  }
  device <- if (is.na(meter$device_model)) {
    "device: as metered"
  } else {
    form <- if (is.na(meter$device_form)) "" else paste0(" (", plain_text(meter$device_form, 20L), ")")
    paste0("device model: ", plain_text(meter$device_model, 40L), form)
  }
  instrument <- plain_text(paste(c(meter$make, meter$model)[!is.na(c(meter$make, meter$model))], collapse = " "), 40L)
  c(
    paste0("power_source: ", plain_text(meter$power_source, 20L)),
    if (meter$quantity %in% "apparent_power") "apparent power, not active power", device,
    paste0(
      "meter: ", plain_text(meter$meter_id, 40L), " (", instrument, if (isTRUE(meter$emulated)) ", emulated", ")"
    ),
    paste0("node: ", plain_text(meter$node, 40L))
  )
}

# Whose power a figure shows, for the line under its title.
meter_title <- function(campaign, meter_id) {
  chosen <- meter_id
  meter <- campaign$meters[meter_id == chosen]
  device <- if (!is.na(meter$device_model)) paste0(", device model ", plain_text(meter$device_model, 40L))
  paste0("Power at ", plain_text(meter$node, 40L), device)
}

#' Other generators than our own, with their versions: their numbers are theirs
#' @noRd
generator_words <- function(campaign) {
  made <- unique(campaign$runs[, intersect(c("generator", "generator_version"), names(campaign$runs)), with = FALSE])
  if (!all(c("generator", "generator_version") %in% names(made))) {
    return(NULL)
  }
  made <- made[!is.na(generator) & generator != "netjoule-traffic"]
  what <- if (is_imported(campaign)) "imported from " else "generator: "
  vapply(sort(unique(made$generator)), function(name) {
    version <- listed(made[generator == name, generator_version])
    paste0(what, plain_text(name, 20L), " ", plain_text(if (nzchar(version)) version else NA, 40L))
  }, "", USE.NAMES = FALSE)
}

# Whether another program made the flows before netjoule saw its files.
is_imported <- function(campaign) "imported" %in% names(campaign$meta)

commit_words <- function(campaign) {
  versions <- pick(campaign$meta, "versions", default = list())
  commit <- pick_text(versions, "commit")
  version <- pick_text(versions, "netjoule")
  if (!is.na(commit)) {
    paste0("commit: ", plain_text(commit, 20L))
  } else if (!is.na(version)) {
    paste0("netjoule ", plain_text(version, 24L))
  }
}

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

radio_source <- function(campaign) {
  source <- unique(stats::na.omit(c(campaign$results$radio_source, campaign$runs$radio_source)))
  if (length(source) == 0L) source <- pick_text(campaign$meta, "radio_source")
  paste(plain_text(source, 20L), collapse = ", ")
}

#' Does any of the numbers of this meter (or of any meter) come from a model?
#' @noRd
is_modelled <- function(campaign, meter_id = NULL) {
  chosen <- meter_id
  meters <- if (is.null(chosen)) campaign$meters else campaign$meters[meter_id == chosen]
  sources <- unique(c(campaign$results$radio_source, pick_text(campaign$meta, "radio_source")))
  # Whatever is not said to be measured on a real radio counts as modelled; imported results have nobody's model.
  !all(meters$power_source %in% c("measured", "unknown")) ||
    !all(stats::na.omit(sources) %in% c("real", "wired", "unknown"))
}

#' Words about the intervals of a figure
#'
#' @param total of each interval that is drawn, whether it holds metering and the drawn parameters of the model beside
#'   the runs' scatter.
#' @param held names of the model's parameters that are not drawn.
#' @param up_to TRUE when runs are left out, so that a point may rest on fewer blocks than `n` says.
#' @noRd
interval_words <- function(campaign, meter_id, n, up_to = FALSE, total = FALSE, held = NULL) {
  blocks <- range(n)
  count <- if (blocks[1] == blocks[2]) blocks[1] else paste0(blocks[1], " to ", blocks[2])
  if (up_to) count <- paste("up to", blocks[2])
  bars <- if (blocks[2] < 2L) {
    "Single block: no interval can be given."
  } else {
    sprintf("Mean and 95 %% t interval, %s blocks", count)
  }
  if (any(total)) {
    without <- sum(!total)
    paste0(
      "Mean and 95 % intervals, ", count, " blocks: thick run to run, thin with metering + model parameters (drawn",
      if (length(held) > 0L) paste0("; held: ", paste(held, collapse = ", ")), ").",
      if (without > 0L) paste0(" ", without, " ", plural("cell", without), ": run to run only.")
    )
  } else if (is_modelled(campaign, meter_id) && blocks[2] >= 2L) {
    paste0(bars, ": ", scatter_alone, ".")
  } else {
    paste0(bars, if (blocks[2] >= 2L) "; meter uncertainty apart (u95_meter).")
  }
}

# Of a t interval over blocks in a modelled campaign: one instrument and one model serve all of its runs.
scatter_alone <- "run to run only (metering, model held)"

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
    frames <- rows[payload_bytes == size, list(text = range_text(frames_per_message)), by = list(transport)]
    frames <- frames[order(transport_factor(transport))]
    head <- paste0(format(size, big.mark = ""), "-byte messages")
    if (nrow(frames) == 0L) {
      return(head)
    }
    words <- paste0(transport_label(frames$transport), " ", frames$text, c(rep(",", nrow(frames) - 1L), ""))
    paste0(head, "\n", wrap_items(c("frames per message:", words), " ", label_width))
  }, "")
  stats::setNames(labels, as.character(sizes))
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

# Alt text travels as an attribute: composed figures have no place for it in their labels.
with_alt <- function(plot, alt) {
  attr(plot, "netjoule_alt") <- paste(strwrap(alt, 100000L), collapse = " ")
  plot
}

figure_alt <- function(plot) attr(plot, "netjoule_alt")
