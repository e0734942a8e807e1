# SPDX-License-Identifier: Apache-2.0

# The report of a load without files of its own.

#' Its sections: the answer, and how sure it is
#' @noRd
energy_sections <- function(campaign, tables, figures, drawn, first) {
  later <- drawn[is_diagnostic(figure_ids(figures))]
  rests <- c(arms_sentence(campaign), counts_sentence(campaign))
  contrasts <- tables$arm_contrasts
  limits <- c(
    rig_sentences(campaign, tables$rig_effects), drift_sentences(campaign, tables$ea_drift, tables$ea_drift_sessions),
    outlier_sentence(tables$outliers),
    invalid_sentence(campaign)
  )
  list(
    answer = tag$section(
      id = "summary", tag$h2("Answer"),
      lapply(prose(energy_sentences(campaign, tables)), function(words) tag$p(class = "lead", words)),
      tag$h3("What it rests on"), tag$p(prose(paste(rests, collapse = " "))), first,
      if (!is.null(contrasts)) {
        list(tag$h3("What is compared over all cells"), tag$ul(lapply(prose(contrasts$words), tag$li)))
      }
    ),
    appendix = tag$section(
      id = "appendix", tag$h2("Appendix: statistics"), tag$ul(lapply(prose(limits), tag$li)),
      diagnostics_part(later, "Power over time, drift")
    )
  )
}

#' What a unit of work cost at each meter, from the least to the greatest of arms and cells
#' @noRd
energy_sentences <- function(campaign, tables) {
  cells <- without_control(tables$energy_summary, campaign)
  unit <- sub("^Energy per ", "", per_work_words(campaign))
  unlist(lapply(campaign$meters$meter_id, function(id) {
    rows <- cells[meter_id == id & !is.na(energy_per_work_j)]
    if (nrow(rows) == 0L && is_unpowered(campaign)) {
      unpowered <- "Nothing tells the power of a host, so there is no energy per work."
      return(c(router_sentences(campaign, tables), unpowered))
    }
    if (nrow(rows) == 0L) {
      return(paste0("At meter ", plain_text(id, 40L), " no energy per ", unit, " could be computed."))
    }
    ends <- rows[unique(c(which.min(energy_per_work_j), which.max(energy_per_work_j)))]
    ends[, arm := get(campaign$arm)]
    amounts <- interval_words_of(ends, "energy_per_work_j", " J")
    model_sentence(
      campaign, id, "a ", unit, " cost ", if (nrow(ends) > 1L) "from ",
      paste0(amounts, " (", arm_and_cell(campaign, ends), ")", collapse = " to "), " above idle, at meter ",
      plain_text(id, 40L), "."
    )
  }))
}

arms_sentence <- function(campaign) {
  arms <- planned_arms(campaign)
  cells <- uniqueN(campaign$plan[kind == "work", campaign$factors, with = FALSE])
  label <- pick_text(campaign$entry, "label")
  paste0(
    plain_text(label), ": ", length(arms), " ", plural("arm", length(arms)), " (",
    paste(arm_names(campaign, utils::head(arms, 12L)), collapse = ", "), ") in ", cell_words(max(1L, cells)), "."
  )
}

# A quantity with the interval that stands beside it: "6.0 [5.8 to 6.2]".
interval_words_of <- function(rows, name, unit = "") {
  range_words(rows[[name]], rows[[paste0(name, "_ci95_low")]], rows[[paste0(name, "_ci95_high")]], unit)
}
