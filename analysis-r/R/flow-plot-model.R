# SPDX-License-Identifier: Apache-2.0

# Message sizes inside a transport's panel; the fillable shapes without the triangle of upper limits.
size_shapes <- c(21, 22, 23, 24)
size_linetypes <- c("solid", "42", "22", "12")

#' Plot the power model of each transport over what was measured
#'
#' One panel per transport: P_A - P_I of each cell against offered load, a point shape
#' per message size, and the model as a line through its values at the cells.
#'
#' @param fit,residuals from [fit_power_model()].
#' @inheritParams plot_ea
#' @return a ggplot with alt text, or NULL when no transport but null could be fitted.
#' @examples
#' campaign <- example_campaign()
#' meter <- campaign$meters$meter_id[1]
#' model <- fit_power_model(campaign)
#' plot_model_fit(model$fit, model$residuals, campaign, meter)
#' @export
plot_model_fit <- function(fit, residuals, campaign, meter_id) {
  points <- of_meter(residuals, meter_id)
  if (all(points$transport == "null")) {
    return(NULL)
  }
  fit <- of_meter(fit, meter_id)[!is.na(form)]
  drawn <- hide_unplottable(model_points(points, points$delta_p_w, 0)[, fitted_w := points$fitted_w])
  logarithmic <- spans_decades(drawn$value)
  drawn <- settle_lows(drawn)
  lines <- model_lines(drawn, logarithmic)
  plot <- model_panels(drawn, model_labels(fit)) +
    geom_line(data = lines, aes(y = fitted_w, linetype = size, group = size), linewidth = 0.5) +
    model_marks(drawn) +
    value_axis(drawn$value, expression(P[A] - P[I] ~ "(W)"), attr(drawn, "foot")) +
    labs(
      title = "Power above idle, and the model fitted to it (\u00b1 95 %, metering not in it)",
      subtitle = subtitle_words(campaign, meter_id, model_words(fit, points), point_words(drawn)),
      caption = source_line(campaign, meter_id)
    )
  with_alt(plot, alt_model(fit, campaign, meter_id))
}

#' Plot what the power model leaves
#'
#' @inheritParams plot_model_fit
#' @return a ggplot with alt text, or NULL when no transport but null could be fitted.
#' @examples
#' campaign <- example_campaign()
#' meter <- campaign$meters$meter_id[1]
#' model <- fit_power_model(campaign)
#' plot_model_residuals(model$fit, model$residuals, campaign, meter)
#' @export
plot_model_residuals <- function(fit, residuals, campaign, meter_id) {
  points <- of_meter(residuals, meter_id)
  if (all(points$transport == "null")) {
    return(NULL)
  }
  fit <- of_meter(fit, meter_id)[!is.na(form)]
  drawn <- model_points(points, points$residual_w, points$fitted_w)
  plot <- model_panels(drawn, residual_labels(fit)) +
    geom_hline(yintercept = 0, colour = "grey50", linewidth = 0.4) +
    model_marks(drawn) +
    scale_y_continuous(name = expression(P[A] - P[I] ~ "less the model's (W)"), labels = apart_text) +
    labs(
      title = "Residuals of the power model, by offered load",
      subtitle = subtitle_words(
        campaign, meter_id, "Bars: 95 % t interval over blocks. One that misses zero: there the model fails."
      ),
      caption = source_line(campaign, meter_id)
    )
  with_alt(plot, alt_residuals(fit, drawn, campaign, meter_id))
}

# `less`: what is taken off the ends of the intervals.
model_points <- function(rows, value, less) {
  points <- rows[, list(
    transport = transport_factor(transport), payload_bytes, offered_rate_mbps, size = factor(payload_bytes),
    low = delta_p_ci95_low - less, high = delta_p_ci95_high - less
  )]
  # Sizes of one load stand side by side, as transports do elsewhere.
  points[, x := spread_arms(data.table(arm = size, at = offered_rate_mbps))$x]
  points[, `:=`(value = value, name = load_names(points))]
  plain_points(points)
}

# Fitted values at the cells, as far as they lie in their panel: on a logarithmic axis a model that falls below all that
# was measured would run out of it.
model_lines <- function(drawn, logarithmic) {
  lines <- copy(drawn)[, foot_w := extreme_or_na(c(value, low[!is.na(value)]), min), by = transport]
  lines <- lines[is.finite(fitted_w) & (!logarithmic | fitted_w >= foot_w)]
  lines[lines[, .I[.N > 1L], by = list(transport, size)]$V1]
}

# Everything but what is drawn into the panels.
model_panels <- function(points, labels) {
  sizes <- levels(points$size)
  shapes <- rep_len(size_shapes, length(sizes))
  linetypes <- rep_len(size_linetypes, length(sizes))
  ggplot(points, aes(x = x, y = value, colour = transport)) +
    facet_wrap(
      ggplot2::vars(transport),
      labeller = as_labeller(labels), ncol = panel_columns(length(unique(points$transport))), scales = "free_y"
    ) +
    load_axis(points$offered_rate_mbps) +
    panel_colours() +
    scale_shape_manual(name = "message size (bytes)", values = stats::setNames(shapes, sizes)) +
    scale_linetype_manual(name = "message size (bytes)", values = stats::setNames(linetypes, sizes)) +
    netjoule_theme() +
    theme(legend.title = element_text(size = rel(0.85)))
}

model_marks <- function(points) {
  list(
    geom_linerange(data = points[!is.na(low) & !is.na(value)], aes(ymin = low, ymax = high), linewidth = 0.6),
    geom_point(data = points[!is.na(value)], aes(fill = transport, shape = size), size = 2, stroke = 0.5)
  )
}

# "UDP", and under it the model with half-widths: "0.310 +- 0.020 W", "+ 12.0 +- 1.0 uJ/packet", "+ 3.10 +- 0.20 mJ/Mb";
# those of a model that does not fit would say nothing.
model_labels <- function(fit) {
  missed <- fit$residuals_are_noise %in% FALSE
  half <- function(name) {
    fifelse(missed, NA_real_, (fit[[paste0(name, "_ci95_high")]] - fit[[paste0(name, "_ci95_low")]]) / 2)
  }
  bits <- signed_energy(fit$bit_energy_j_per_mbit, half("bit_energy"))
  text <- paste0(
    transport_label(fit$transport), "\n", ifelse(missed, "does not fit: ", ""), with_half(fit$p0_w, half("p0")), " W\n",
    signed_energy(fit$packet_energy_j, half("packet_energy")), "/packet",
    ifelse(is.na(fit$bit_energy_j_per_mbit), "", paste0("\n", bits, "/Mb"))
  )
  stats::setNames(text, fit$transport)
}

#' "11 +- 16": value and half-width to the same decimals, those of the half-width's second digit
#'
#' Where a half-width is nothing beside its value, or both are next to nothing, each stands by itself.
#' @noRd
with_half <- function(value, half) {
  decimals <- 1 - floor(log10(signif(half, 2)))
  apart <- !is.finite(decimals) | half < 1e-4 * abs(value) | decimals > 5
  decimals[apart] <- 0
  # Adding 0 takes the sign from a zero.
  fixed <- function(x) sprintf("%.*f", as.integer(pmax(0, decimals)), mapply(round, x, decimals) + 0)
  alone <- paste0(
    number_text(signif(value, 3)), ifelse(is.na(half), "", paste0(" \u00b1 ", number_text(signif(half, 2))))
  )
  ifelse(apart, alone, paste0(fixed(value), " \u00b1 ", fixed(half)))
}

residual_labels <- function(fit) {
  stats::setNames(
    paste0(transport_label(fit$transport), "\nroot mean square ", number_text(signif(fit$residual_rms_w, 2)), " W"),
    fit$transport
  )
}

# "+ 12.30 +- 0.40 uJ", "- 4 mJ": one prefix for both, by the greater.
signed_energy <- function(energy_j, half_j = rep(NA_real_, length(energy_j))) {
  size <- pmax(abs(energy_j), half_j, na.rm = TRUE)
  prefix <- ifelse(size < 1e-3, "u", ifelse(size < 1, "m", ""))
  scale <- ifelse(size < 1e-3, 1e6, ifelse(size < 1, 1e3, 1))
  paste0(ifelse(energy_j < 0, "- ", "+ "), with_half(abs(energy_j) * scale, half_j * scale), " ", prefix, "J")
}

model_words <- function(fit, points) {
  without_bits <- sum(is.na(fit$bit_energy_j_per_mbit))
  left_out <- sum(fit$extrapolated_n)
  missed <- fit$transport[fit$residuals_are_noise %in% FALSE]
  c(
    "Lines: P0 + a packets/s + b bits/s.",
    if (without_bits > 0L) sprintf("b cannot be determined for %d.", without_bits),
    if (length(missed) > 0L) {
      sprintf("%d of %d do not fit, %s.", length(missed), nrow(fit), farthest_words(points[transport %in% missed]))
    },
    if (left_out > 0L) paste(left_out, "extrapolated runs left out.")
  )
}

# Where and by how much a cell is farthest from its plane.
farthest_words <- function(points) {
  worst <- points[which.max(abs(residual_w))]
  sprintf(
    "farthest off %s: %s W at %s B, %s Mb/s", transport_label(worst$transport),
    number_text(signif(worst$residual_w, 2)), number_text(worst$payload_bytes), number_text(worst$offered_rate_mbps)
  )
}

alt_model <- function(fit, campaign, meter_id) {
  words <- gsub("\n", " ", sub("\n", ": ", model_labels(fit), fixed = TRUE), fixed = TRUE)
  paste0(
    "Points and fitted lines of power above idle against offered load, ",
    span_words(c(fit$offered_rate_least_mbps, fit$offered_rate_greatest_mbps)), " Mb/s, one panel per transport. ",
    paste(words, collapse = "; "), ". ",
    alt_end(campaign, meter_id)
  )
}

alt_residuals <- function(fit, points, campaign, meter_id) {
  paste0(
    "Points of power above idle less the fitted model against offered load, one panel per transport (",
    paste(transport_label(fit$transport), collapse = ", "), "), ", span_words(points$value),
    " W. ",
    alt_end(campaign, meter_id)
  )
}
