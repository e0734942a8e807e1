# SPDX-License-Identifier: Apache-2.0

# Words that every figure and table must carry: where its numbers come from.

#' Source line of a figure
#'
#' @param campaign from [read_campaign()].
#' @param meter_id one meter, or NULL for all of the campaign.
#' @return one string, wrapped for a caption.
#' @noRd
source_line <- function(campaign, meter_id = NULL, width = 118L) {
  meters <- if (is.null(meter_id)) campaign$meters else of_meter(campaign$meters, meter_id)
  items <- c(
    meters_words(meters, width), paste0("radio_source: ", radio_source(campaign)),
    paste0("campaign: ", plain_text(campaign$name)), commit_words(campaign), generator_words(campaign),
    of_load(campaign, "source_words", function(campaign) NULL)(campaign), campaign$variant,
    if (is_modelled(campaign, meter_id)) "in this model"
  )
  wrap_items(items, " \u00b7 ", width)
}

# With what else the load says below its figures.
source_line_with <- function(campaign, meter_id, summary) {
  more <- of_load(campaign, "caption", function(summary) NULL)(summary)
  paste(c(source_line(campaign, meter_id), more), collapse = "\n")
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
    paste0("device model: ", plain_text(meter$device_model, 80L), form)
  }
  instrument <- plain_text(paste(c(meter$make, meter$model)[!is.na(c(meter$make, meter$model))], collapse = " "), 40L)
  emulated <- if (isTRUE(meter$emulated)) ", emulated"
  c(
    paste0("power_source: ", plain_text(meter$power_source, 20L)),
    if (meter$quantity %in% "apparent_power") "apparent power, not active power", device,
    if (meter$power_source %in% "modelled" && !nzchar(instrument)) {
      "no meter: the model's own terms"
    } else {
      paste0("meter: ", plain_text(meter$meter_id, 40L), " (", instrument, emulated, ")")
    },
    paste0("node: ", plain_text(meter$node, 40L))
  )
}

# Whose power a figure shows, for the line under its title.
meter_title <- function(campaign, meter_id) {
  meter <- of_meter(campaign$meters, meter_id)
  device <- if (!is.na(meter$device_model)) paste0(", device model ", plain_text(meter$device_model, 80L))
  paste0("Power at ", plain_text(meter$node, 40L), device)
}

#' Other generators than our own, with their versions: their numbers are theirs
#' @noRd
generator_words <- function(campaign) {
  columns <- c("generator", "generator_version")
  if (!all(columns %in% names(campaign$runs))) {
    return(NULL)
  }
  made <- unique(campaign$runs[, columns, with = FALSE])[!is.na(generator) & generator != "netjoule-traffic"]
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

radio_source <- function(campaign) {
  source <- unique(stats::na.omit(c(campaign$results$radio_source, campaign$runs$radio_source)))
  if (length(source) == 0L) source <- pick_text(campaign$meta, "radio_source")
  paste(plain_text(source, 20L), collapse = ", ")
}

#' Does any of the numbers of this meter (or of any meter) come from a model?
#' @noRd
is_modelled <- function(campaign, meter_id = NULL) {
  meters <- if (is.null(meter_id)) campaign$meters else of_meter(campaign$meters, meter_id)
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
  if (blocks[2] < 2L) {
    return("Single block: no interval can be given.")
  }
  if (any(total)) {
    without <- sum(!total)
    paste0(
      "Mean and 95 % intervals, ", count, " blocks: thick run to run, thin with metering + model parameters (drawn",
      if (length(held) > 0L) paste0("; held: ", paste(held, collapse = ", ")), ").",
      if (without > 0L) paste0(" ", without, " ", plural("cell", without), ": run to run only.")
    )
  } else {
    modelled <- is_modelled(campaign, meter_id)
    holds <- if (modelled) paste0(": ", scatter_alone) else "; meter uncertainty apart (u95_meter)"
    if (is_unpowered(campaign)) holds <- ""
    sprintf("Mean and 95 %% t interval, %s blocks%s.", count, holds)
  }
}

# Of a t interval over blocks in a modelled campaign: one instrument and one model serve all of its runs.
scatter_alone <- "run to run only (metering, model held)"

# Alt text travels as an attribute: composed figures have no place for it in their labels.
with_alt <- function(plot, alt) {
  attr(plot, "netjoule_alt") <- paste(strwrap(alt, 100000L), collapse = " ")
  plot
}

# What every alt text of a meter's figure ends with; `id` NULL where it is about none.
alt_end <- function(campaign, id = NULL) {
  paste0(if (is_modelled(campaign, id)) "In this model. ", if (!is.null(id)) paste0("Meter ", plain_text(id), "."))
}

figure_alt <- function(plot) attr(plot, "netjoule_alt")
