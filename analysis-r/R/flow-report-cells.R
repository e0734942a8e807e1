# SPDX-License-Identifier: Apache-2.0

# What the report's tables of flows show beside the columns of their rows: told_ and the name of the table, as
# report-tables.json has it.

told_contrasts <- function(rows) {
  rows[!drawn_wider(rows), difference_model_ci95_low := NA_real_]
  rows[, `:=`(
    pair = paste0(
      transport_label(transport), " against ", transport_label(reference), ", ", number_text(payload_bytes), " B",
      variant_note(rows)
    ),
    part = part_words(in_family),
    unbusy = ifelse(loads_core_busy_n > 0L, short(difference_without_core_busy_percent), NA)
  )]
}

told_floor <- function(rows) {
  rows <- rows[transport != "null" & (!is.na(floor_w) | !is.na(floor_reason))]
  if (all(is.na(rows$floor_reason))) rows[, floor_n := NA_integer_]
  rows[!all(floor_reason %in% "no_null_run")]
}

# What the flow tells is the same at every meter: the rows of one stand for all.
told_flow <- function(rows) {
  rows <- rows[transport != "null"]
  if (uniqueN(rows$generator) < 2L) rows[, generator := NA_character_]
  rows
}

told_message_cost <- function(rows) rows[!all(is.na(cpu_user_us_per_message))]

told_envelope <- function(rows) {
  rows[, band := paste0(transport_label(transport), ", ", number_text(offered_rate_mbps), " Mb/s", variant_note(rows))]
}

told_model_fit <- function(rows) {
  rows[, `:=`(
    flow = paste0(transport_label(transport), variant_note(rows)),
    loads = span_of(offered_rate_least_mbps, offered_rate_greatest_mbps)
  )]
}

# Least and greatest, where others have the ends of an interval.
told_pacing_overview <- function(rows) {
  setnames(rows, function(names) sub("_greatest_.*", "_high", sub("_least_.*", "_low", names)))
  rows[, held := fifelse(held_back_high > 0, held_back_ratio, NA_real_)]
}

# Which pacing a row is of, only where a campaign has several.
told_fairness <- told_flow_shares <- told_table_iv <- function(rows) {
  several <- nrow(pacing_variants(rows)) > 1L
  rows[, `:=`(
    pacing = if (several) pacing else NA_character_,
    window_us = if (several && any(window_us > 0)) window_us else NA_real_, gso = if (several && any(gso)) gso else NA
  )]
}

#' Name of each row's cell: transport, size, load, and what else distinguishes the rows
#'
#' Rows of another load stay as they are.
#' @noRd
with_cell_names <- function(rows) {
  if (!all(c("transport", "payload_bytes", "offered_rate_mbps") %in% names(rows))) {
    return(rows)
  }
  rows <- copy(rows)
  text <- paste0(
    transport_label(as.character(rows$transport)), ", ", number_text(rows$payload_bytes), " B, ",
    number_text(rows$offered_rate_mbps), " Mb/s", variant_note(rows)
  )
  set(rows, j = "cell", value = text)[]
}

# Direction, pacing and flows, where the rows have several.
variant_note <- function(rows) {
  several <- function(column) column %in% names(rows) && length(unique(rows[[column]])) > 1L
  paste0(
    if (several("direction")) paste0(", ", rows$direction) else "",
    if (any(vapply(pacing_keys, several, NA))) paste0(", ", variant_words(rows)) else "",
    if ("flows_at_once" %in% names(rows)) paste0(", ", plain_text(rows$flows_at_once, 200L)) else ""
  )
}
