# SPDX-License-Identifier: Apache-2.0

#' netjoule: what a megabit costs in joules, across the runs of a campaign
#'
#' One question per file: `read-*` reads (and is the only part that touches the
#' campaign's files), `compute-*`, `summarise`, `envelope` and `delta` are pure,
#' `plot-*` return a plot and never print or save, `write-*` and `report*` write.
#' [read_campaign()] is where to begin, `vignette("netjoule")` goes from a campaign to a figure.
#'
#' @import data.table
#' @import ggplot2
#' @importFrom stats qt sd
#' @keywords internal
"_PACKAGE"

.datatable.aware <- TRUE # nolint: object_name_linter. data.table looks for exactly this name.

utils::globalVariables(c(".", ".SD", ".N", ".I", ".GRP", ":="))
