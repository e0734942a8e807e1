# SPDX-License-Identifier: Apache-2.0

# Pacing, coalescing window and offload are factors of a workload: the same for all
# transports and null of a mini-block, and part of what identifies a cell.

pacing_keys <- c("pacing", "window_us", "gso")

#' Pacing of runs: the plan's columns, or run.json's for campaigns without them
#'
#' What the sender says that it did wins over what was asked, where the two differ in kind.
#'
#' @param runs data.table of the plan's rows joined with run_pacing, run_window_us,
#'   run_gso (asked, by run.json) and sent_pacing (done, by flow.json).
#' @return runs with pacing, window_us, gso set.
#' @noRd
with_pacing <- function(runs) {
  asked <- asked_value(runs, "pacing", "run_pacing", as.character, "absolute")
  sent <- runs$sent_pacing
  differs <- !is.na(sent) & sent != "other" & pacing_kind(sent) != pacing_kind(asked)
  runs[, `:=`(
    pacing = fifelse(differs, sent, asked), window_us = asked_value(runs, "window_us", "run_window_us", as.numeric, 0),
    gso = asked_value(runs, "gso", "run_gso", as.logical, FALSE)
  )]
  runs[, c("run_pacing", "run_window_us", "run_gso") := NULL]
  runs[]
}

asked_value <- function(runs, column, of_run, type, default) {
  planned <- if (column %in% names(runs)) type(runs[[column]]) else type(rep(NA, nrow(runs)))
  fcoalesce(planned, type(runs[[of_run]]), type(default))
}

# "burst:8" is a burst, whatever its length.
pacing_kind <- function(pacing) sub(":.*", "", pacing)

#' The pacings that a table holds, absolute first
#' @noRd
pacing_variants <- function(rows) {
  variants <- unique(rows[, pacing_keys, with = FALSE])
  variants[order(pacing != "absolute", pacing, window_us, gso)]
}

of_variant <- function(rows, variant) rows[variant, on = pacing_keys, nomatch = NULL]

variant_words <- function(variants) {
  paste0(
    "pacing ", plain_text(variants$pacing, 20L),
    ifelse(variants$window_us > 0, paste0(", window ", variants$window_us, " us"), ""),
    ifelse(variants$gso, ", offload", "")
  )
}

# Part of a file's name, so letters and digits only.
variant_slug <- function(variants) {
  text <- paste0(
    plain_text(variants$pacing, 20L), ifelse(variants$window_us > 0, paste0("-window", variants$window_us), ""),
    ifelse(variants$gso, "-gso", "")
  )
  gsub("[^A-Za-z0-9]+", "-", text)
}

#' A campaign and its tables, one pacing at a time
#'
#' A figure that mixed pacings would show their mean. With one pacing the campaign
#' comes back as it is; with several, each copy bears its pacing's words.
#'
#' @return list of list(campaign, tables, suffix); the suffix names files, "" for the first.
#' @noRd
by_variant <- function(campaign, tables) {
  variants <- pacing_variants(tables$ea_summary)
  if (nrow(variants) < 2L) {
    return(list(list(campaign = campaign, tables = tables, suffix = "")))
  }
  lapply(seq_len(nrow(variants)), function(i) {
    one <- variants[i]
    campaign$variant <- variant_words(one)
    split <- intersect(c(
      "ea_summary", "envelope", "delta_ea", "fairness", "delta_goodput", "pacing_overview", "model_fit",
      "model_residuals"
    ), names(tables))
    for (name in split) tables[[name]] <- of_variant(tables[[name]], one)
    list(campaign = campaign, tables = tables, suffix = if (i > 1L) paste0("-", variant_slug(one)) else "")
  })
}
