# SPDX-License-Identifier: Apache-2.0

#' Plot the energy envelope of each transport
#'
#' One panel per transport: the band between least and greatest E_A over the
#' payload sizes, against offered load. Where a payload size is left out (hollow
#' or mostly below resolution) the band is incomplete and only its edges are drawn.
#'
#' @param envelope from [ea_envelope()].
#' @param summary from [summarise_ea()], for frames per message.
#' @inheritParams plot_ea
#' @return a ggplot with alt text, or NULL when nothing is left for a band.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' meter <- campaign$meters$meter_id[1]
#' plot_envelope(ea_envelope(campaign), summary, campaign, meter)
#' @export
plot_envelope <- function(envelope, summary, campaign, meter_id) {
  band <- of_meter(envelope, meter_id)[payload_sizes > 0]
  if (nrow(band) == 0L) {
    return(NULL)
  }
  band[, transport := transport_factor(transport)]
  setorderv(band, c("transport", "offered_rate_mbps"))
  # Neighbouring loads belong together only when both have every message size.
  band[, piece := cumsum(!complete | !shift(complete, fill = FALSE)), by = list(transport)]
  edges <- envelope_edges(band)
  edges[, `:=`(hollow = !complete, limit = FALSE)]
  edges <- settle_lows(hide_unplottable(edges))
  edges[, `:=`(x = offered_rate_mbps, told = edge_words(edges))]
  labels <- transport_panel_labels(of_meter(summary, meter_id))
  plot <- ggplot(edges, aes(x = offered_rate_mbps, y = value, colour = transport)) +
    envelope_ribbon(band) +
    geom_line(
      data = joined_edges(edges), aes(group = interaction(edge, piece), linetype = edge), linewidth = 0.6,
      na.rm = TRUE
    ) +
    geom_linerange(aes(ymin = low, ymax = high), linewidth = 0.6, na.rm = TRUE) +
    geom_point(data = edges[complete == TRUE], aes(fill = transport), shape = 21, size = 2, na.rm = TRUE) +
    geom_point(data = edges[complete == FALSE], fill = "white", shape = 21, size = 2, stroke = 0.8, na.rm = TRUE) +
    facet_wrap(
      ggplot2::vars(transport),
      labeller = as_labeller(labels), ncol = panel_columns(length(unique(band$transport)))
    ) +
    load_axis(band$offered_rate_mbps) +
    value_axis(edges$value, expression(E[A] ~ "(J/Mb)"), attr(edges, "foot")) +
    panel_colours() +
    scale_linetype_manual(name = NULL, values = c(greatest = "solid", least = "31"), labels = edge_labels(band)) +
    netjoule_theme() +
    labs(
      title = "Energy envelope: least to greatest energy per megabit over message sizes",
      subtitle = subtitle_words(campaign, meter_id, envelope_words(campaign, meter_id, band, edges)),
      caption = source_line(campaign, meter_id)
    )
  with_alt(plot, alt_envelope(band, campaign, meter_id))
}

joined_edges <- function(edges) {
  edges <- edges[complete == TRUE]
  edges[edges[, .I[.N > 1L], by = list(transport, edge, piece)]$V1]
}

envelope_edges <- function(band) {
  rbindlist(lapply(c("least", "greatest"), function(edge) {
    of <- function(name) band[[sprintf(name, edge)]]
    band[, list(
      transport, offered_rate_mbps, complete, piece,
      edge = edge, value = of("ea_%s_j_per_mbit"), low = of("ea_%s_ci95_low"), high = of("ea_%s_ci95_high")
    )]
  }))
}

edge_words <- function(edges) {
  paste0(
    transport_label(as.character(edges$transport)), ", ", number_text(edges$offered_rate_mbps), " Mb/s, ", edges$edge,
    " E_A: ", range_words(edges$value, fifelse(edges$low_open, NA_real_, edges$low), edges$high, " J/Mb")
  )
}

envelope_ribbon <- function(band) {
  whole <- band[complete == TRUE & ea_least_j_per_mbit > 0]
  whole[, size := .N, by = list(transport, piece)]
  whole <- whole[size > 1L]
  if (nrow(whole) == 0L) {
    return(NULL)
  }
  geom_ribbon(
    data = whole, aes(
      x = offered_rate_mbps, ymin = ea_least_j_per_mbit, ymax = ea_greatest_j_per_mbit, fill = transport,
      group = interaction(transport, piece)
    ), inherit.aes = FALSE, alpha = 0.22, show.legend = FALSE
  )
}

edge_labels <- function(band) {
  # Where a size is left out, the least or greatest of the rest says nothing about the sizes.
  if (any(band$complete)) band <- band[complete == TRUE]
  sizes <- function(column) paste(sort(unique(band[[column]])), collapse = " or ")
  c(
    greatest = paste0("greatest E_A (", sizes("payload_bytes_greatest"), " bytes)"),
    least = paste0("least E_A (", sizes("payload_bytes_least"), " bytes)")
  )
}

envelope_words <- function(campaign, meter_id, band, edges) {
  left_out <- sum(band$runs_left_out)
  below <- sum(band$below_resolution_n)
  c(
    interval_words(campaign, meter_id, blocks_of(campaign), up_to = left_out > 0L),
    if (left_out > 0L) paste(left_out, plural("run", left_out), "left out (extrapolated, or mostly below resolution)."),
    if (below > 0L) paste(below, plural("run", below), "below resolution in the means."),
    if (any(edges$low_open)) "Bars to the foot include zero.",
    if (any(!band$complete)) "Hollow: not every message size is left."
  )
}

transport_panel_labels <- function(summary) {
  rows <- summary[transport != "null"]
  text <- rows[, list(text = range_text(frames_per_message)), by = list(transport)]
  stats::setNames(
    paste0(transport_label(text$transport), "\nframes per message: ", text$text), text$transport
  )
}

alt_envelope <- function(band, campaign, meter_id) {
  paste0(
    "Bands of E_A between least and greatest over message sizes against offered load, one panel per transport (",
    paste(transport_label(levels(droplevels(band$transport))), collapse = ", "), "). Least ",
    number_text(signif(min(band$ea_least_j_per_mbit), 3)), ", greatest ",
    number_text(signif(max(band$ea_greatest_j_per_mbit), 3)), " J/Mb. ",
    alt_end(campaign, meter_id)
  )
}
