# SPDX-License-Identifier: Apache-2.0

# The look of every figure: colours, shapes, names of transports, theme.

# Okabe and Ito's palette, distinguishable with the common colour-vision deficiencies.
# Shapes are the fillable ones, so that a hollow point is a point without fill;
# 25, the downward triangle, is kept for upper limits.
transport_styles <- data.frame(
  transport = c("udp", "tcp", "quic", "quic-datagram", "dccp", "dccp-kernel", "null", "mptcp", "sctp"),
  label = c("UDP", "TCP", "QUIC", "QUIC datagram", "DCCP", "DCCP (kernel)", "generator floor (null)", "MPTCP", "SCTP"),
  colour = c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555", "#882255", "#999933"),
  shape = c(21, 22, 23, 23, 24, 24, 21, 22, 22),
  linetype = c("solid", "solid", "solid", "42", "solid", "42", "22", "42", "42"),
  kind = c("datagram", "stream", "stream", "datagram", "datagram", "datagram", "none", "stream", "stream"),
  # Sends less than it is asked when the path is the limit: that is the transport's answer, not a defect.
  controlled = c(FALSE, TRUE, TRUE, TRUE, TRUE, TRUE, FALSE, TRUE, TRUE)
)

style_values <- function(column) {
  styles <- transport_looks()
  stats::setNames(styles[[column]], styles$transport)
}

transport_label <- function(transport) {
  styles <- transport_looks()
  label <- styles$label[match(transport, styles$transport)]
  ifelse(is.na(label), plain_text(transport, 20L), label)
}

transport_factor <- function(transport) {
  known <- transport_looks()$transport
  levels <- c(known, setdiff(sort(unique(transport)), known))
  factor(transport, levels = levels)
}

# Contract values only; a transport that this version does not know is drawn grey.
transport_scales <- function(labels = transport_label) {
  list(
    scale_colour_manual(name = NULL, values = style_values("colour"), labels = labels, na.value = "#999999"),
    scale_fill_manual(
      name = NULL, values = style_values("colour"), labels = labels, na.value = "#999999", guide = "none"
    ),
    scale_shape_manual(name = NULL, values = style_values("shape"), labels = labels, na.value = 21),
    scale_linetype_manual(name = NULL, values = style_values("linetype"), labels = labels, na.value = "solid")
  )
}

netjoule_theme <- function(base_size = 11) {
  theme_minimal(base_size = base_size) +
    theme(
      plot.title = element_text(face = "bold", size = rel(1.15)),
      plot.subtitle = element_text(colour = "grey25", margin = margin(b = 8)),
      plot.caption = element_text(colour = "grey35", hjust = 0, size = rel(0.72), lineheight = 1.15),
      plot.title.position = "plot", plot.caption.position = "plot",
      panel.grid.minor = element_blank(), panel.grid.major = element_line(colour = "grey90", linewidth = 0.3),
      panel.border = element_rect(fill = NA, colour = "grey70", linewidth = 0.4),
      panel.spacing = unit(12, "pt"),
      strip.text = element_text(
        hjust = 0, vjust = 1, size = rel(0.85), lineheight = 1.1, margin = margin(b = 4, t = 2)
      ),
      axis.title = element_text(size = rel(0.9)), axis.ticks = element_line(colour = "grey70", linewidth = 0.3),
      legend.position = "top", legend.justification = "left", legend.box = "vertical",
      legend.box.just = "left", legend.margin = margin(0, 0, 0, 0), legend.spacing.y = unit(0, "pt"),
      legend.text = element_text(size = rel(0.88)), legend.key.width = unit(26, "pt"),
      plot.margin = margin(8, 12, 6, 8), plot.background = element_rect(fill = "white", colour = NA)
    )
}

# A logarithmic axis where positive values span a decade, else a linear one.
spans_decades <- function(values) {
  values <- values[is.finite(values) & values > 0]
  length(values) > 0L && max(values) / min(values) >= 10
}

load_axis <- function(rates_mbps, label = "Offered load (Mb/s of payload)") {
  rates <- sort(unique(rates_mbps))
  breaks <- if (length(rates) <= 8L) rates else waiver()
  # Loads that lie close together would write over each other.
  guide <- if (length(rates) > 4L) guide_axis(check.overlap = TRUE) else waiver()
  if (length(rates) == 1L) {
    # Around the one place: an axis that ends at the outer transports would show each as a load of its own.
    around <- function(drawn) range(drawn, rates * c(0.5, 1.5))
    scale_x_continuous(name = label, breaks = breaks, labels = number_text, limits = around)
  } else if (spans_decades(rates)) {
    if (length(rates) > 8L) breaks <- scales::breaks_log(n = 6)
    scale_x_log10(name = label, breaks = breaks, labels = number_text, guide = guide)
  } else {
    scale_x_continuous(name = label, breaks = breaks, labels = number_text, guide = guide)
  }
}

# `foot`: where intervals that reach zero end on a logarithmic axis; the panel then ends there too.
value_axis <- function(values, label, foot = NULL) {
  if (spans_decades(values)) {
    scale_y_log10(
      name = label, breaks = scales::breaks_log(n = 6), labels = number_text, limits = if (!is.null(foot)) c(foot, NA),
      expand = if (is.null(foot)) waiver() else expansion(mult = c(0, 0.05))
    )
  } else {
    scale_y_continuous(name = label, labels = apart_text)
  }
}

number_text <- function(x, digits = 3) {
  ifelse(is.na(x), NA_character_, trimws(vapply(x, function(value) {
    scientific <- abs(value) >= 1e5 || (value != 0 && abs(value) < 1e-4)
    format(value, digits = digits, drop0trailing = TRUE, scientific = scientific)
  }, "")))
}

# Numbers of an axis, with as many digits as tell each from its neighbours.
apart_text <- function(x) {
  for (digits in 3:12) {
    text <- number_text(x, digits)
    if (anyDuplicated(stats::na.omit(text)) == 0L) break
  }
  text
}

#' Place the transports of one load side by side, a few per cent of the axis apart
#'
#' The offset belongs to the transport, so that lines, intervals and points of
#' one transport meet whatever subset of rows a layer draws.
#'
#' @param points with transport (factor) and offered_rate_mbps.
#' @return points with `x` added, in Mb/s.
#' @noRd
spread_loads <- function(points) {
  rates <- sort(unique(points$offered_rate_mbps))
  logarithmic <- spans_decades(rates)
  positions <- if (logarithmic) log10(rates) else rates
  width <- if (length(rates) < 2L) {
    0.08 * rates
  } else {
    min(0.35 * min(diff(positions)), 0.04 * diff(range(positions)))
  }
  present <- droplevels(points$transport)
  count <- nlevels(present)
  offset <- width * ((as.integer(present) - (count + 1) / 2) / max(1, count - 1))
  at <- if (logarithmic) 10^(log10(points$offered_rate_mbps) + offset) else points$offered_rate_mbps + offset
  points[, x := at]
  points[]
}
