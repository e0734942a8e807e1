# SPDX-License-Identifier: Apache-2.0

# The statistics across runs of flows.

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
