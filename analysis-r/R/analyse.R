# SPDX-License-Identifier: Apache-2.0

#' Analyse a campaign: tables, figures and, when asked, the report
#'
#' Writes tables/*.csv, figures/*.svg and *.png, report.html into the campaign's
#' folder; all of them can be deleted and rebuilt.
#'
#' @param campaign_dir folder of the campaign.
#' @param with_report also write report.html.
#' @param margin_percent margin of equivalence in percent; NULL: the workload's, if it has one.
#' @param tell called with each event: list(event = "table" | "figure" | "report", path = ).
#' @return the tables, invisibly.
#' @examples
#' campaign <- example_campaign()
#' tables <- analyse(campaign$dir)
#' names(tables)
#' @export
analyse <- function(campaign_dir, with_report = FALSE, tell = function(event) NULL, margin_percent = NULL) {
  campaign_dir <- normalizePath(campaign_dir, mustWork = FALSE)
  refuse_links(campaign_dir)
  campaign <- read_campaign(campaign_dir, cache = run_cache_path(campaign_dir))
  tables <- campaign_tables(campaign, margin_percent)
  for (path in write_tables(tables, file.path(campaign_dir, "tables"))) {
    tell(list(event = "table", path = path))
  }
  if (!any(campaign$runs$usable)) {
    abort_invalid_data(
      "The campaign ", campaign_dir, " has no valid finished run, so there is nothing to draw: ",
      "tables/invalid_runs.csv gives the reasons."
    )
  }
  figures <- campaign_figures(campaign, tables)
  for (path in write_figures(figures, file.path(campaign_dir, "figures"))) {
    if (grepl("\\.(svg|png)$", path)) tell(list(event = "figure", path = path))
  }
  if (with_report) {
    # Made before it is told: who does not listen would get no report.
    path <- report(campaign, tables, figures)
    tell(list(event = "report", path = path))
  }
  refuse_disagreement(tables$ea_check, campaign_dir)
  invisible(tables)
}

# Two independent computations of one number that differ: nobody should trust either.
refuse_disagreement <- function(check, campaign_dir) {
  wrong <- check[agrees == FALSE]
  if (nrow(wrong) > 0L) {
    first <- wrong[1]
    abort_invalid_data(sprintf(
      paste(
        "In %s, %d number(s) of result.json disagree with the recomputation from raw files,",
        "first %s of run %s, meter %s: %.9g recomputed, %.9g in result.json; see tables/ea_check.csv."
      ),
      campaign_dir, nrow(wrong), first$quantity, first$run_id, first$meter_id, first$ours, first$theirs
    ))
  }
}
