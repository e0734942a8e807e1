# SPDX-License-Identifier: Apache-2.0

#' Plot the PHY rates seen, as a histogram per load
#'
#' One column per offered load: how much of the measured time the radio spent at
#' each PHY rate, darker for more.
#'
#' @param shares from [phy_rate_shares()].
#' @param campaign from [read_campaign()], for the labels.
#' @return a ggplot with alt text, or NULL without radio samples.
#' @examples
#' campaign <- example_campaign()
#' plot_phy_rates(phy_rate_shares(campaign), campaign)
#' @export
plot_phy_rates <- function(shares, campaign) {
  if (nrow(shares) == 0L) {
    return(NULL)
  }
  tiles <- shares[, list(share = 100 * sum(share)), by = list(
    node, transport, payload_bytes, offered_rate_mbps, phy_rate_mbps
  )]
  loads <- sort(unique(tiles$offered_rate_mbps))
  rates <- sort(unique(tiles$phy_rate_mbps))
  modes <- shares[, list(mcs = mcs_words(mcs)), by = phy_rate_mbps]
  tiles[, load := factor(offered_rate_mbps, levels = loads, labels = number_text(loads))]
  tiles[, rate := factor(phy_rate_mbps, levels = rates, labels = paste0(
    number_text(rates), modes$mcs[match(rates, modes$phy_rate_mbps)]
  ))]
  tiles[, transport := transport_factor(transport)]
  tiles[, column := panel_column(node, payload_bytes)]
  plot <- ggplot(tiles, aes(x = load, y = rate, fill = share)) +
    geom_tile(colour = "white", linewidth = 0.6) +
    phy_numbers(tiles, length(loads) * nlevels(tiles$column)) +
    facet_grid(
      rows = ggplot2::vars(transport), cols = ggplot2::vars(column),
      labeller = labeller(transport = as_labeller(transport_label))
    ) +
    scale_x_discrete(guide = guide_axis(check.overlap = TRUE), breaks = some_loads(nlevels(tiles$column))) +
    scale_fill_gradient(
      name = "share of measured time (%)", low = "#E8EEF4", high = "#0072B2", limits = c(0, 100),
      guide = guide_colourbar(barheight = unit(7, "pt"), barwidth = unit(110, "pt"), title.vjust = 1)
    ) +
    labs(
      x = "Offered load (Mb/s of payload)", y = "PHY rate (Mb/s)", title = "PHY rates seen, by offered load",
      caption = source_line(campaign)
    ) +
    netjoule_theme() +
    theme(
      panel.grid.major = element_blank(), strip.text.y = element_text(angle = 0, vjust = 0.5),
      legend.title = element_text(size = rel(0.85))
    )
  with_alt(plot, alt_phy(tiles, campaign))
}

# As many loads by name as narrow panels have room for, at even steps.
some_loads <- function(columns) {
  function(levels) {
    most <- max(3L, 24L %/% columns)
    levels[seq(1L, length(levels), by = ceiling(length(levels) / most))]
  }
}

panel_column <- function(node, payload_bytes) {
  several <- length(unique(node)) > 1L
  label <- paste0(payload_bytes, "-byte messages", if (several) paste0(", ", plain_text(node, 30L)))
  factor(label, levels = unique(label[order(node, payload_bytes)]))
}

# One MCS index as a rule; a rate that several modes share names them all.
mcs_words <- function(mcs) {
  mcs <- sort(unique(mcs[!is.na(mcs)]))
  if (length(mcs) > 0L) paste0(" (MCS ", paste(mcs, collapse = ", "), ")") else ""
}

phy_numbers <- function(tiles, columns) {
  crowded <- 24L
  if (columns <= crowded) {
    geom_text(
      data = tiles, aes(label = format(round(share), trim = TRUE)), size = 3,
      colour = ifelse(tiles$share > 55, "white", "grey15")
    )
  }
}

alt_phy <- function(tiles, campaign) {
  top <- tiles[, list(share = mean(share)), by = list(phy_rate_mbps)][order(-share)][1]
  paste0(
    "Histogram of PHY rates per offered load, one panel per transport and message size. Rates seen: ",
    paste(number_text(sort(unique(tiles$phy_rate_mbps))), collapse = ", "), " Mb/s; most often ",
    number_text(top$phy_rate_mbps), " Mb/s. ", if (is_modelled(campaign)) "In this model. ",
    "Radio source: ", radio_source(campaign), "."
  )
}
