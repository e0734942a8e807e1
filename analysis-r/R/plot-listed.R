# SPDX-License-Identifier: Apache-2.0

# The kinds of figures that loads.json lists, drawn of any load: arms, sweep, facets; trace is plot_power().

#' Figures of a load without files of its own: those of its entry, and what every load gets
#'
#' Of every load: energy per work by arm, over each factor of numbers that varies, and power over time.
#' @noRd
listed_figures <- function(campaign, tables, ids) {
  cells <- without_control(tables$energy_summary, campaign)
  listed <- Filter(function(one) pick_text(one, "kind") != "trace", pick(campaign$entry, "figures", default = list()))
  # E_A is energy per work, where that is in Mb.
  listed <- lapply(listed, function(one) replace(one, "y", sub("^ea_j_per_mbit$", "energy_per_work_j", one$y)))
  listed <- c(listed, figures_of_all(campaign, cells))
  # One place is no sweep; where there is power such a figure shows it.
  listed <- Filter(function(one) !is_unpowered(campaign) || one$kind != "sweep" || uniqueN(cells[[one$x]]) > 1L, listed)
  known <- vapply(listed, function(one) paste(one$kind, one$x, one$y), "")
  listed <- listed[!duplicated(known)]
  figures <- lapply(ids, function(id) {
    lapply(listed, function(one) {
      plot <- draw_listed(one, listed_parts(one, cells, campaign, id), campaign, id)
      name <- paste(c(one$kind, gsub("_", "-", one$y, fixed = TRUE), if (one$kind != "arms") one$x), collapse = "-")
      name <- gsub("[^A-Za-z0-9-]+", "-", name)
      panels <- if (is.null(plot)) 1L else length(unique(plot$data$panel))
      figure(
        paste0(name, meter_suffix(campaign, id)), plain_text(one$title, 100L), plot,
        2.2 + 3 * ceiling(panels / panel_columns(panels)), id, "energy_summary"
      )
    })
  })
  unlist(figures, recursive = FALSE)
}

figures_of_all <- function(campaign, cells) {
  swept <- Filter(function(name) is.numeric(cells[[name]]) && uniqueN(cells[[name]]) > 1L, campaign$factors)
  one <- function(kind, x, title) list(kind = kind, x = x, y = "energy_per_work_j", title = title)
  c(
    list(one("arms", campaign$arm, per_work_words(campaign))),
    lapply(swept, function(name) {
      one("sweep", name, paste(per_work_words(campaign), "against", factor_label(campaign, name)))
    })
  )
}

#' A figure of cells that an entry lists
#'
#' @param one entry of `figures` in loads.json; NULL, what it does not list, is not drawn.
#' @param parts what is drawn of it: points, facets, x and y (axes), words (below the title), alt, and layers behind and
#'   over those of the cells; NULL for no figure.
#' @param id of a meter, NULL where it is about none.
#' @return a ggplot with alt text, or NULL.
#' @noRd
draw_listed <- function(one, parts, campaign, id) {
  if (is.null(one) || is.null(parts)) {
    return(NULL)
  }
  plot <- sweep_plot(
    parts$points, parts$facets, parts$x, parts$y,
    behind = parts$behind, over = parts$over, title = plain_text(one$title, 100L),
    subtitle = subtitle_words(campaign, id, parts$words), caption = source_line(campaign, id)
  )
  with_alt(plot, parts$alt)
}

# Names below an axis of panels side by side that fit in one line, characters.
widest_names <- 40L

#' What is drawn of an entry for any load: y over x by arm, a panel for each combination of the other factors
#'
#' @param one entry; of facets `panel` is the rows and `colour` the columns of panels.
#' @param cells of energy_summary(), without the control arm.
#' @return parts of draw_listed(), NULL where the campaign has no such column or no value.
#' @noRd
listed_parts <- function(one, cells, campaign, id) {
  rows <- cells[meter_id == id]
  if (!all(c(one$x, one$y) %in% names(rows)) || all(is.na(rows[[one$y]]))) {
    return(NULL)
  }
  points <- hide_unplottable(listed_points(one, rows, campaign))
  # Arms that are the places themselves stand where they are.
  drawn <- settle_lows(if (one$x == campaign$arm) points[, x := at] else spread_arms(points))
  across <- factor_label(campaign, one$x)
  x <- if (is.numeric(rows[[one$x]])) {
    place_axis(drawn$at, across)
  } else {
    names <- levels(place_of(one$x, rows, campaign))
    scale_x_continuous(
      name = across, breaks = seq_along(names), labels = arm_label(names), limits = c(0.5, length(names) + 0.5),
      guide = ggplot2::guide_axis(n.dodge = if (sum(nchar(names)) > widest_names) 2L else 1L)
    )
  }
  label <- value_label(campaign, one$y)
  list(
    points = drawn, facets = listed_facets(one, drawn), x = x, y = value_axis(drawn$value, label, attr(drawn, "foot")),
    words = c(
      interval_words(campaign, id, rows$n), paste0("Colours: ", factor_label(campaign, campaign$arm), "."),
      point_words(drawn)
    ), alt = paste0(
      plain_text(one$title, 100L), ": ", label, " by ", across, " for ",
      paste(arm_label(levels(droplevels(drawn$arm))), collapse = ", "), ". Values: ",
      span_words(stats::na.omit(rows[[one$y]])), ". ", alt_end(campaign, id)
    )
  )
}

listed_points <- function(one, rows, campaign) {
  column <- function(end) rows[[paste0(one$y, end)]]
  energy <- one$y == "energy_per_work_j"
  limit <- energy & mostly_below(rows$below_resolution_n, rows$runs_n) & !is.na(rows$upper_limit_energy_per_work_j)
  points <- data.table(
    arm = arm_factor(campaign, as.character(rows[[campaign$arm]])), at = as.numeric(place_of(one$x, rows, campaign)),
    value = fifelse(limit, rows$upper_limit_energy_per_work_j, column("")),
    low = fifelse(limit, NA_real_, as.numeric(column("_ci95_low"))),
    high = fifelse(limit, NA_real_, as.numeric(column("_ci95_high"))),
    hollow = rows$hollow, limit = limit, below_n = fifelse(limit, 0L, rows$below_resolution_n)
  )
  facets <- if (one$kind == "facets") unlist(one[c("panel", "colour")]) else character()
  others <- setdiff(campaign$factors, c(one$x, facets))
  inner <- campaign
  inner$factors <- others
  panels <- cell_name(inner, rows)
  points[, `:=`(
    panel = factor(panels, levels = unique(panels)),
    name = arm_and_cell(campaign, copy(rows)[, arm := get(campaign$arm)])
  )]
  for (name in facets) set(points, j = paste0("facet_", name), value = rows[[name]])
  points[!is.na(value)]
}

# Where on the x axis a cell stands: at its number, or at the place of its name.
place_of <- function(x, rows, campaign) {
  values <- rows[[x]]
  if (is.numeric(values)) {
    values
  } else if (identical(x, campaign$arm)) {
    droplevels(arm_factor(campaign, as.character(values)))
  } else {
    factor(as.character(values), levels = unique(as.character(values)))
  }
}

listed_facets <- function(one, points) {
  if (one$kind == "facets") {
    names <- paste0("facet_", unlist(one[c("panel", "colour")]))
    return(ggplot2::facet_grid(
      rows = ggplot2::vars(.data[[names[1]]]), cols = if (length(names) > 1L) ggplot2::vars(.data[[names[2]]])
    ))
  }
  panels <- unique(points$panel)
  columns <- panel_columns(length(panels))
  if (length(panels) > 1L) {
    facet_wrap(ggplot2::vars(panel), ncol = columns, labeller = ggplot2::label_wrap_gen(90L %/% columns))
  }
}

# Names of factors and values, with their units, by the contracts.
factor_label <- function(campaign, name) labelled(factor_entry(campaign, name), name)

factor_entry <- function(campaign, name) {
  listed <- pick(read_contract_json("factors.json", contracts = campaign$contracts), "factors", default = list())
  Find(function(one) identical(pick_text(one, "name"), name), listed)
}

value_label <- function(campaign, name) {
  unit <- work_unit(campaign)
  per <- paste0(" (J", if (unit == "1") "" else paste0("/", plain_text(unit, 12L)), ")")
  energies <- c(
    energy_per_work_j = paste0(per_work_words(campaign), per), e_d_j = "Energy above idle E_d (J)",
    e_t_j = "Energy in all E_t (J)", tail_energy_j = "Tail energy (J)", window_s = "Length of the window (s)",
    work = "Work", work_per_s = "Work per second"
  )
  if (name %in% names(energies)) {
    return(energies[[name]])
  }
  measures <- pick(campaign$entry, "measures", default = list())
  labelled(Find(function(one) identical(pick_text(one, "name"), name), measures), name)
}

labelled <- function(entry, name) {
  label <- fcoalesce(pick_text(entry, "label"), gsub("_", " ", name, fixed = TRUE))
  unit <- pick_text(entry, "unit")
  if (is.na(unit) || unit == "1") label else paste0(label, " (", unit, ")")
}
