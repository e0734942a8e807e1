# SPDX-License-Identifier: Apache-2.0

# The report of a load without files of its own.

#' Its sections: the answer, and how sure it is
#' @noRd
energy_sections <- function(campaign, tables, figures, drawn, first) {
  later <- drawn[is_diagnostic(figure_ids(figures))]
  rests <- c(arms_sentence(campaign), counts_sentence(campaign))
  contrasts <- tables$arm_contrasts
  limits <- c(
    drift_sentences(campaign, tables$ea_drift, tables$ea_drift_sessions), outlier_sentence(tables$outliers),
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
  vapply(campaign$meters$meter_id, function(id) {
    rows <- cells[meter_id == id & !is.na(energy_per_work_j)]
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
  }, "", USE.NAMES = FALSE)
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

energy_shown_tables <- function() {
  list(
    energy_summary = shown_table("Energy by arm and cell", energy_cells_html, TRUE),
    arm_contrasts = shown_table("Arms over all cells", arm_contrasts_html),
    ea_drift = shown_table("Drift over the campaign", drift_html),
    ea_drift_sessions = shown_table("Drift by session", drift_html),
    outliers = shown_table("Flagged runs", outliers_html),
    energy_runs = shown_table("Every run that counts", energy_runs_html)
  )
}

# Columns that name a row: whatever its table has that is neither of a meter nor a number of results.
naming_columns <- function(rows, until) {
  before <- names(rows)[seq_len(match(until, names(rows)) - 1L)]
  names <- setdiff(before, c(meter_keys, "order", "attempt", "mini_block"))
  stats::setNames(names, gsub("_", " ", names, fixed = TRUE))
}

# A quantity with the interval that stands beside it: "6.0 [5.8 to 6.2]".
interval_words_of <- function(rows, name, unit = "") {
  range_words(rows[[name]], rows[[paste0(name, "_ci95_low")]], rows[[paste0(name, "_ci95_high")]], unit)
}

energy_cells_html <- function(rows, source) {
  of_load <- setdiff(sub("_ci95_low$", "", grep("_ci95_low$", names(rows), value = TRUE)), names(energy_columns))
  measured <- stats::setNames(sprintf("%s ~ %s_ci95", of_load, of_load), gsub("_", " ", of_load, fixed = TRUE))
  html_table(rows, c(
    naming_columns(rows, "kind"), blocks = "n", "J per work" = "energy_per_work_j ~ energy_per_work_j_ci95",
    "u95 J" = "u95_energy_per_work_j", filled(rows, c(
      "upper limit J" = "upper_limit_energy_per_work_j", "above floor J" = "energy_per_work_above_floor_j"
    )),
    "E_d J" = "e_d_j ~ e_d_j_ci95", "u95 E_d J" = "u95_e_d_j", "E_t J" = "e_t_j ~ e_t_j_ci95", filled(rows, c(
      "tail J" = "tail_energy_j ~ tail_energy_j_ci95", "window s" = "window_s ~ window_s_ci95",
      work = "work ~ work_ci95", measured, "P_A W" = "p_a_w", "P_I W" = "p_i_w", grade = "grades"
    ))
  ), paste("Energy per arm and cell; intervals over blocks, uncorrected: exploratory.", source))
}

arm_contrasts_html <- function(rows, source) {
  shown <- copy(rows)[, `:=`(
    pair = paste(arm_label(arm), "against", arm_label(reference)),
    part = ifelse(in_family, "main comparison", "exploratory")
  )]
  html_table(shown, c(
    compared = "pair", meter = "meter_id", part = "part", blocks = "blocks_n", cells = "cells_n",
    "energy, more %" = "difference_percent ~ difference_ci95", filled(shown, c(
      "p after Holm" = "p_holm", "P_A more, W (cells below resolution)" = "difference_p_a_w ~ difference_p_a_ci95"
    ))
  ), paste("Arms over all cells; +: more energy per work than the reference.", source))
}

energy_runs_html <- function(rows, source) {
  html_table(rows, c(
    run = "run_id", meter = "meter_id", naming_columns(rows, "kind")[-1], filled(rows, c(
      "P_A W" = "p_a_w", "P_I W" = "p_i_w", "E_d J" = "e_d_j", "E_t J" = "e_t_j", "tail J" = "tail_energy_j",
      work = "work", "J per work" = "energy_per_work_j", "u95 J" = "u95_energy_per_work_j",
      "empty for" = "energy_reason", grade = "grade"
    ))
  ), paste("Runs that count, as result.json gives them.", source))
}
