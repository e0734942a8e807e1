# SPDX-License-Identifier: Apache-2.0

# Where no line joins the points, variants of a transport look alike: then each has its own shape.

# None of them is the downward triangle of upper limits.
spare_shapes <- c(5, 2, 4, 0, 7, 8, 3, 10, 12, 9, 1, 13, 14)

#' One shape per transport: that of theme.R for the first that has it, spare ones for the others
#' @noRd
scatter_shapes <- function() {
  shapes <- style_values("shape")
  twice <- which(duplicated(shapes))
  shapes[twice] <- rep_len(spare_shapes, length(twice))
  shapes
}

scatter_scales <- function() {
  list(
    scale_colour_manual(name = NULL, values = style_values("colour"), labels = transport_label, na.value = "#999999"),
    scale_fill_manual(
      name = NULL, values = style_values("colour"), labels = transport_label, na.value = "#999999", guide = "none"
    ),
    scale_shape_manual(name = NULL, values = scatter_shapes(), labels = transport_label, na.value = 21)
  )
}
