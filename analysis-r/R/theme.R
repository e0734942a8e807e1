# SPDX-License-Identifier: Apache-2.0

# The look of every figure: theme, axes, numbers.

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

place_axis <- function(places, label) {
  places <- sort(unique(places))
  breaks <- if (length(places) <= 8L) places else waiver()
  # Places that lie close together would write over each other.
  guide <- if (length(places) > 4L) guide_axis(check.overlap = TRUE) else waiver()
  if (length(places) == 1L) {
    # Around the one place: an axis that ends at the outer arms would show each as a place of its own.
    around <- function(drawn) range(drawn, places * c(0.5, 1.5))
    scale_x_continuous(name = label, breaks = breaks, labels = number_text, limits = around)
  } else if (spans_decades(places)) {
    if (length(places) > 8L) breaks <- scales::breaks_log(n = 6)
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
