# SPDX-License-Identifier: Apache-2.0

#' All statistics across runs of a campaign, as data
#'
#' Pure: reads the campaign, writes nothing; the same campaign gives the same numbers (chance comes from its seed).
#'
#' @param campaign from [read_campaign()].
#' @param margin_percent margin of equivalence in percent; NULL: the workload's, if it has one.
#' @return named list of data.tables: contrasts ([transport_contrasts()]), ea_uncertainty, outliers ([outlier_runs()]),
#'   model_parameters, held_parameters; one that the campaign has nothing for is left out.
#' @examples
#' names(campaign_statistics(example_campaign()))
#' @export
campaign_statistics <- function(campaign, margin_percent = NULL) {
  model <- model_sensitivity(campaign)
  outliers <- outlier_runs(campaign)
  contrasts <- transport_contrasts(campaign, margin_percent, outliers, model)
  found <- list(
    contrasts = contrasts, ea_uncertainty = ea_uncertainty(campaign, model), outliers = outliers,
    model_parameters = model_parameters(campaign, model), held_parameters = held_parameters(campaign, contrasts, model)
  )
  found[!vapply(found, is.null, NA)]
}

# Names of the tables above; a campaign has those that there is something for.
statistics_tables <- c("contrasts", "ea_uncertainty", "outliers", "model_parameters", "held_parameters")

#' Add the interval with the model's parameters to the cells, where there is one
#'
#' @param summary from [summarise_ea()] or [table_iv()]; uncertainty: from ea_uncertainty() or NULL.
#' @return summary, with ea_total_ci95_low and ea_total_ci95_high where any cell has them.
#' @noRd
with_total_intervals <- function(summary, uncertainty) {
  if (is.null(uncertainty) || all(is.na(uncertainty$ea_total_ci95_low))) {
    return(summary)
  }
  totals <- uncertainty[, c(cell_keys, "ea_total_ci95_low", "ea_total_ci95_high"), with = FALSE]
  totals[summary, on = cell_keys][, c(names(summary), "ea_total_ci95_low", "ea_total_ci95_high"), with = FALSE]
}

# The interval that is shown with an E_A: with the model's parameters where a cell has it (total), else over blocks
# alone.
with_drawn_intervals <- function(summary) {
  rows <- copy(summary)
  if (!"ea_total_ci95_low" %in% names(rows)) rows[, `:=`(ea_total_ci95_low = NA_real_, ea_total_ci95_high = NA_real_)]
  rows[, `:=`(
    total = !is.na(ea_total_ci95_low), ea_drawn_low = fcoalesce(ea_total_ci95_low, ea_ci95_low),
    ea_drawn_high = fcoalesce(ea_total_ci95_high, ea_ci95_high)
  )]
  rows[]
}
