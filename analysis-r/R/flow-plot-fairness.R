# SPDX-License-Identifier: Apache-2.0

#' Plot Jain's fairness index against offered load
#'
#' Of goodput; where flows asked for different rates a second row of panels shows it
#' of demand met (goodput over offered load).
#'
#' @param cells from [fairness()].
#' @param summary from [summarise_ea()], for the frames per message of each size.
#' @param campaign from [read_campaign()], for the labels.
#' @return a ggplot with alt text, or NULL without any index.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' cells <- fairness(campaign)
#' if (NROW(cells) > 0L) plot_fairness(cells, summary, campaign)
#' @export
plot_fairness <- function(cells, summary, campaign) {
  points <- fairness_points(cells, summary)
  if (is.null(points)) {
    return(NULL)
  }
  points <- spread_loads(points)
  what <- paste0("Jain's fairness index of ", paste(levels(points$measure), collapse = " and of "))
  parts <- flow_parts(
    points, summary, campaign, NULL,
    scale_y_continuous(name = "Jain's index", labels = number_text, limits = c(1 / max(cells$flows), 1)),
    c(
      start_sentence("", paste0(flow_words(campaign), ".")), flow_interval_words(points$n),
      "1: all got the same; grey dashes: one flow got everything."
    ), what, "(1 is even)",
    facets = facet_wrap(ggplot2::vars(panel), ncol = facet_columns(points)),
    x = load_axis(points$at, "Offered load of one flow of the transport (Mb/s of payload)"),
    behind = geom_hline(yintercept = 1 / unique(cells$flows), colour = "grey60", linetype = "44", linewidth = 0.4)
  )
  parts$alt <- paste0(parts$alt, " Of ", flow_words(campaign), ".")
  draw_listed(list(title = "How evenly flows that ran at once shared the path"), parts, campaign, NULL)
}

# Both indices in long form, one panel for each and each size; one index alone where it tells all.
fairness_points <- function(cells, summary) {
  measures <- c(goodput = "jain_goodput", "demand met" = "jain_demand_met")
  if (isTRUE(all.equal(cells$jain_goodput, cells$jain_demand_met))) measures <- measures[1]
  points <- rbindlist(lapply(names(measures), function(measure) {
    column <- measures[[measure]]
    found <- cells[!is.na(cells[[column]])]
    flow_points(found, column)[, `:=`(flows = found$flows, measure = measure)]
  }))
  if (nrow(points) == 0L) {
    return(NULL)
  }
  # An index cannot leave 1/n..1; the t interval can, and is cut there.
  points[, `:=`(
    low = pmax(low, 1 / flows), high = pmin(high, 1), measure = factor(measure, levels = names(measures))
  )]
  points <- points[order(measure, payload_bytes)]
  label <- payload_labels(summary)[as.character(points$payload_bytes)]
  if (length(measures) > 1L) label <- paste0("of ", points$measure, "\n", label)
  points[, panel := factor(unname(label), levels = unique(unname(label)))][]
}

fairness_rows <- function(cells) {
  measures <- if (isTRUE(all.equal(cells$jain_goodput, cells$jain_demand_met))) 1 else 2
  measures * panel_rows(cells)
}
