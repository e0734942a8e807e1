# SPDX-License-Identifier: Apache-2.0

#' All figures of a campaign
#'
#' What loads.json lists of the load, or what the load draws itself. Of each meter a set: the first has the plain names,
#' those of the others end in -<meter_id>.
#' A figure without data is left out, and so are those of further meters outside their device model's validity.
#'
#' @param campaign from [read_campaign()].
#' @param tables from [campaign_tables()].
#' @return list of list(name, title, plot, width_in, height_in, meter_id or NA, tables): the
#'   names of the tables that hold what is drawn.
#' @examples
#' campaign <- example_campaign()
#' names(campaign_figures(campaign, campaign_tables(campaign)))
#' @export
campaign_figures <- function(campaign, tables) {
  ids <- setdiff(campaign$meters$meter_id, outside_meters(campaign, headline(tables)))
  own <- of_load(campaign, "figures", listed_figures)(campaign, tables, ids)
  beside <- of_load(campaign, "figures_beside", function(campaign, tables) list())(campaign, tables)
  all <- c(own, beside, unlist(lapply(ids, function(id) time_figures(campaign, tables, id)), recursive = FALSE))
  all <- all[!vapply(all, function(one) is.null(one$plot), NA)]
  # Those of the measurement itself last.
  all[order(is_diagnostic(figure_ids(all)))]
}

# What is in the order of time, which simulated runs do not have.
time_figures <- function(campaign, tables, id) {
  if (is_simulated(campaign)) {
    return(list())
  }
  summary <- headline(tables)
  suffix <- meter_suffix(campaign, id)
  has_trace <- any(tables$power_trace$meter_id == id)
  list(
    figure(
      paste0("power", suffix), "Power over time", plot_power(tables$power_trace, summary, campaign, id),
      if (has_trace) 7.4 else 4.4, id, c(intersect(c("runs", "energy_runs"), names(tables)), "power_trace")
    ),
    figure(
      paste0("ea-order", suffix), paste(per_work_words(campaign), "by campaign order"),
      plot_ea_order(tables$ea_order, tables$ea_drift, summary, campaign, id, tables$ea_drift_sessions), 4.8, id,
      c("ea_order", "ea_drift", "ea_drift_sessions")
    )
  )
}

# "Energy per megabit", "Energy per run", "Energy per unit of work".
per_work_words <- function(campaign) {
  unit <- work_unit(campaign)
  paste("Energy per", switch(unit,
    "Mb" = "megabit", "1" = "unit of work", plain_text(unit, 20L)
  ))
}

meter_suffix <- function(campaign, id) if (identical(id, campaign$meters$meter_id[1])) "" else paste0("-", id)

figure <- function(name, title, plot, height_in, meter_id = NA_character_, tables = character()) {
  list(
    name = name, title = title, plot = plot, width_in = 8.5, height_in = height_in, meter_id = meter_id, tables = tables
  )
}

#' Write figures as SVG and PNG, with an index of titles and alt texts
#'
#' @param figures from campaign_figures().
#' @param out_dir folder, created when missing.
#' @return paths of the files written; index.json holds alt texts, source lines and the names of
#'   each figure's tables.
#' @examples
#' campaign <- example_campaign()
#' figures <- campaign_figures(campaign, campaign_tables(campaign))
#' write_figures(figures[1], tempfile("figures"))
#' @export
write_figures <- function(figures, out_dir) {
  paths <- unlist(lapply(unname(figures), function(one) {
    place <- file.path(out_dir, one$name)
    drawn <- laid_out(one)
    c(
      write_whole(paste0(place, ".svg"), function(path) write_svg(one, path, drawn)),
      write_whole(paste0(place, ".png"), function(path) write_png(one, path, drawn))
    )
  }))
  index <- lapply(unname(figures), function(one) {
    list(
      svg = paste0(one$name, ".svg"), png = paste0(one$name, ".png"), title = one$title,
      meter_id = if (is.na(one$meter_id)) NULL else one$meter_id, alt = figure_alt(one$plot),
      source = figure_source(one$plot), tables = I(paste0(one$tables, ".csv"))
    )
  })
  index_path <- write_whole(file.path(out_dir, "index.json"), function(path) {
    writeLines(jsonlite::toJSON(index, auto_unbox = TRUE, null = "null", pretty = TRUE), path)
  })
  c(paths, index_path)
}

# The caption as one line of text.
figure_source <- function(plot) {
  caption <- if (inherits(plot, "patchwork")) plot$patches$annotation$caption else plot$labels$caption
  gsub("[\u00a0\n]+", " ", caption)
}

#' A figure with its marks laid out: what takes most of the time, once for all files that it is drawn into
#'
#' @return list(grob =, words = of its marks).
#' @noRd
laid_out <- function(one) {
  # Words are measured by a device; this one writes nothing.
  ragg::agg_capture(width = one$width_in, height = one$height_in, units = "in", res = png_resolution)
  on.exit(grDevices::dev.off())
  marked <- with_marks(one$plot)
  compose <- if (inherits(marked$plot, "patchwork")) patchwork::patchworkGrob else ggplot2::ggplotGrob
  list(grob = compose(marked$plot), words = marked$words)
}

png_resolution <- 160

write_svg <- function(one, path, drawn = laid_out(one)) {
  # fix_text_size would stretch text where the reader's fonts differ.
  svglite::svglite(path, width = one$width_in, height = one$height_in, fix_text_size = FALSE)
  tryCatch(grid::grid.draw(drawn$grob), finally = grDevices::dev.off())
  describe_svg(path, one$title, figure_alt(one$plot), drawn$words)
}

write_png <- function(one, path, drawn = laid_out(one)) {
  ragg::agg_png(
    path,
    width = one$width_in, height = one$height_in, units = "in", res = png_resolution, background = "white"
  )
  tryCatch(grid::grid.draw(without_marks(drawn$grob)), finally = grDevices::dev.off())
}

# A picture tells nothing under a pointer.
without_marks <- function(grob) {
  if (inherits(grob, "points") && all(grepl("^#.{6}01$", grob$gp$col))) {
    return(grid::nullGrob(name = grob$name))
  }
  for (parts in intersect(c("grobs", "children"), names(grob))) grob[[parts]][] <- lapply(grob[[parts]], without_marks)
  grob
}

#' A figure with marks at the points whose values a reader can ask for, by pointer or keyboard
#'
#' @return list(plot =, words = what each mark tells, in their order).
#' @noRd
with_marks <- function(plot, before = 0L) {
  if (!inherits(plot, "patchwork")) {
    points <- marked_points(plot$data)
    return(list(plot = plot + mark_layer(points, before), words = mark_words(points)))
  }
  words <- character()
  for (i in seq_len(part_count(plot))) {
    panel <- with_marks(plot[[i]], before + length(words))
    plot[[i]] <- panel$plot
    words <- c(words, panel$words)
  }
  list(plot = plot, words = words)
}

# Plots that a composed one holds: the last is the object itself, unless that is a place to begin from.
part_count <- function(plot) length(plot$patches$plots) + !inherits(plot, "plot_filler")

# Points of cells, or those that say themselves what they tell (`told`); each at its x and value.
marked_points <- function(points) {
  of_cells <- c("x", "value", "low", "high", "name")
  own <- c("x", "value", "told")
  if (all(own %in% names(points)) || all(of_cells %in% names(points))) points[!is.na(value)]
}

# Circles that no eye sees, each with its number as its colour: the device says where they are, name_marks() what they
# are.
mark_layer <- function(points, before) {
  if (NROW(points) > 0L) {
    geom_point(
      data = points, aes(x = x, y = value), inherit.aes = FALSE, shape = 16, size = 5,
      # One part of 255, but not exactly: farver takes a single colour's alpha of 1 / 255 for none and draws it opaque.
      colour = sprintf("#%06X", before + seq_len(nrow(points))), alpha = 0.004, show.legend = FALSE
    )
  }
}

mark_words <- function(points) {
  if (NROW(points) == 0L) {
    return(character())
  }
  if ("told" %in% names(points)) {
    return(points$told)
  }
  low <- if ("low_open" %in% names(points)) fifelse(points$low_open, NA_real_, points$low) else points$low
  paste0(points$name, ": ", range_words(points$value, low, points$high))
}

name_marks <- function(lines, words) {
  at <- grep("^<circle .*fill-opacity: 0[.]00", lines)
  number <- strtoi(sub(".*fill: #([0-9A-F]{6});.*", "\\1", lines[at]), 16L)
  lines[at] <- paste0(
    sub(" style='.*", "", lines[at]), " class='mark' style='stroke: none; fill-opacity: 0;'><title>",
    htmltools::htmlEscape(enc2utf8(words[number])), "</title></circle>"
  )
  lines
}

# A screen reader meets an SVG by its title and description; a reader without our font still gets one without serifs.
describe_svg <- function(path, title, alt, marks = character()) {
  lines <- name_marks(readLines(path, warn = FALSE, encoding = "UTF-8"), marks)
  head <- paste0(
    "\\1<title>", escape_for_sub(title), "</title>\n<desc>", escape_for_sub(alt), "</desc>\n"
  )
  text <- sub("(<svg [^>]*>\n?)", head, paste(lines, collapse = "\n"))
  text <- sub("<svg ", "<svg role='img' ", text, fixed = TRUE)
  text <- gsub("font-family: (\"[^\"]+\");", "font-family: \\1, Verdana, Arial, sans-serif;", text)
  write_utf8(text, path)
}

escape_for_sub <- function(text) {
  gsub("\\", "\\\\", htmltools::htmlEscape(enc2utf8(text)), fixed = TRUE)
}
