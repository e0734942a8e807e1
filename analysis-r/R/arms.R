# SPDX-License-Identifier: Apache-2.0

# How arms look: as a load says of those that it knows (`looks`), else in the order of their names.

# Okabe and Ito's palette, distinguishable with the common colour-vision deficiencies.
arm_colours <- c("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#555555")
# Fillable, so that a hollow point is a point without fill; 25, the downward triangle, is kept for upper limits.
arm_shapes <- c(21, 22, 23, 24)

#' Looks of arms
#'
#' @param arms factor or names; where a load knows any of them, one that it does not know is drawn grey.
#' @return data.frame arm, label, colour, shape, linetype.
#' @noRd
arm_looks <- function(arms) {
  levels <- if (is.factor(arms)) levels(droplevels(arms)) else unique(as.character(arms))
  known <- lapply(mget(ls(load_parts), load_parts), function(parts) lapply(unname(parts$of_arm), `[[`, "looks"))
  for (looks in unlist(known)) {
    if (any(levels %in% looks()$arm)) {
      return(looks())
    }
  }
  places <- seq_along(levels)
  data.frame(
    arm = levels, label = plain_text(levels, 32L), colour = rep_len(arm_colours, length(levels)),
    shape = rep_len(arm_shapes, length(levels)),
    linetype = c("solid", "42", "22", "12")[(places - 1L) %/% length(arm_colours) %% 4L + 1L]
  )
}

arm_values <- function(arms, column) {
  looks <- arm_looks(arms)
  stats::setNames(looks[[column]], looks$arm)
}

arm_label <- function(arms) {
  looks <- arm_looks(arms)
  label <- looks$label[match(arms, looks$arm)]
  ifelse(is.na(label), plain_text(arms, 20L), label)
}

# In the order of the load's looks, or of the workload.
arm_factor <- function(campaign, arms) {
  known <- if (is.null(of_load(campaign, "looks"))) {
    c(planned_arms(campaign), campaign$control)
  } else {
    intersect(arm_looks(arms)$arm, arms)
  }
  factor(arms, levels = union(known, sort(unique(as.character(arms)))))
}

# One that nobody knows is drawn grey.
arm_scales <- function(arms) {
  values <- function(column) arm_values(arms, column)
  list(
    scale_colour_manual(name = NULL, values = values("colour"), labels = arm_label, na.value = "#999999"),
    scale_fill_manual(name = NULL, values = values("colour"), labels = arm_label, na.value = "#999999", guide = "none"),
    scale_shape_manual(name = NULL, values = values("shape"), labels = arm_label, na.value = 21),
    scale_linetype_manual(name = NULL, values = values("linetype"), labels = arm_label, na.value = "solid")
  )
}

# Where no line joins the points, variants of an arm look alike: then each has its own shape, none of them the
# downward triangle of upper limits.
spare_shapes <- c(5, 2, 4, 0, 7, 8, 3, 10, 12, 9, 1, 13, 14)

#' One shape per arm: its own for the first that has it, spare ones for the others
#' @noRd
scatter_shapes <- function(arms) {
  shapes <- arm_values(arms, "shape")
  twice <- which(duplicated(shapes))
  shapes[twice] <- rep_len(spare_shapes, length(twice))
  shapes
}

scatter_scales <- function(arms) {
  scales <- arm_scales(arms)[1:2]
  c(scales, list(scale_shape_manual(name = NULL, values = scatter_shapes(arms), labels = arm_label, na.value = 21)))
}
