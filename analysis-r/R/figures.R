# SPDX-License-Identifier: Apache-2.0

#' All figures of a campaign
#'
#' One set per meter and pacing; the first meter's set carries the plain names, the
#' sets of the others end in -<meter_id>, those of further pacings in -<pacing>.
#' Goodput and loss belong to the flow and are drawn once per pacing, PHY rates once.
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
  sets <- lapply(by_variant(campaign, tables), function(part) {
    ids <- setdiff(campaign$meters$meter_id, outside_meters(campaign, tables$ea_summary))
    per_meter <- lapply(ids, function(id) meter_figures(part$campaign, part$tables, id, part$suffix))
    c(unlist(per_meter, recursive = FALSE), flow_figures(part$campaign, part$tables, part$suffix))
  })
  all <- c(
    unlist(sets, recursive = FALSE), phy_figures(campaign, tables$phy_rates),
    pacer_figures(campaign, tables$pacer_verdict), time_figures(campaign, tables)
  )
  all <- all[!vapply(all, function(one) is.null(one$plot), NA)]
  # Those of the measurement itself last.
  all[order(is_diagnostic(figure_ids(all)))]
}

flow_figures <- function(campaign, tables, suffix) {
  summary <- tables$ea_summary
  height <- 1.9 + 3 * panel_rows(summary)
  shared <- tables$fairness
  list(
    if (!is.null(shared)) {
      plot <- plot_fairness(shared, summary, campaign)
      figure(paste0("fairness", suffix), "Fairness", plot, 2.2 + 2.4 * fairness_rows(shared), tables = "fairness")
    },
    figure(paste0("goodput", suffix), "Goodput", plot_goodput(summary, campaign), height, tables = "ea_summary"),
    figure(
      paste0("delta-goodput", suffix), "Goodput against UDP",
      plot_delta_goodput(tables$delta_goodput, summary, campaign), height,
      tables = "delta_goodput"
    ),
    figure(paste0("loss", suffix), "Loss", plot_loss(summary, campaign), height, tables = "ea_summary"),
    figure(
      paste0("pacing", suffix), "Pacing certificates", plot_pacing(tables$pacing_overview, summary, campaign), 7.6,
      tables = c("pacing_overview", "pacing_certificates")
    ),
    figure(
      paste0("message-cost", suffix), "Sender cost per message", plot_message_cost(summary, campaign), 9.2,
      tables = "ea_summary"
    )
  )
}

pacer_figures <- function(campaign, verdict) {
  if (is.null(verdict)) {
    return(NULL)
  }
  lapply(unique(verdict$meter_id), function(id) {
    sizes <- length(unique(verdict[meter_id == id, payload_bytes]))
    name <- paste0("pacer", meter_suffix(campaign, id))
    figure(
      name, "Spinning against sleeping", plot_pacer(verdict, campaign, id), 2.2 + 2.6 * sizes, id, "pacer_verdict"
    )
  })
}

# What is in the order of time is of all pacings together.
time_figures <- function(campaign, tables) {
  summary <- tables$ea_summary
  ids <- setdiff(campaign$meters$meter_id, outside_meters(campaign, summary))
  figures <- lapply(ids, function(id) {
    suffix <- meter_suffix(campaign, id)
    has_trace <- any(tables$power_trace$meter_id == id)
    list(
      figure(
        paste0("power", suffix), "Power over time", plot_power(tables$power_trace, summary, campaign, id),
        if (has_trace) 7.4 else 4.4, id, c("runs", "power_trace")
      ),
      figure(
        paste0("ea-order", suffix), "Energy per megabit by campaign order",
        plot_ea_order(tables$ea_order, tables$ea_drift, summary, campaign, id, tables$ea_drift_sessions), 4.8, id,
        c("ea_order", "ea_drift", "ea_drift_sessions")
      )
    )
  })
  unlist(figures, recursive = FALSE)
}

# One figure for all nodes while their panels find room side by side, else one per node.
phy_figures <- function(campaign, shares) {
  most_columns <- 4L
  columns <- nrow(unique(shares[, c("node", "payload_bytes"), with = FALSE]))
  parts <- if (columns > most_columns) split(shares, by = "node") else list(shares)
  lapply(seq_along(parts), function(i) {
    suffix <- if (i > 1L) paste0("-", parts[[i]]$node[1]) else ""
    plot <- plot_phy_rates(parts[[i]], campaign)
    figure(paste0("phy-rates", suffix), "PHY rates", plot, phy_height(parts[[i]]), tables = "phy_rates")
  })
}

meter_suffix <- function(campaign, id) if (identical(id, campaign$meters$meter_id[1])) "" else paste0("-", id)

meter_figures <- function(campaign, tables, id, of_pacing = "") {
  summary <- tables$ea_summary
  rows <- panel_rows(summary[meter_id == id])
  suffix <- paste0(meter_suffix(campaign, id), of_pacing)
  transports <- length(unique(tables$envelope$transport))
  envelope_rows <- panel_rows_of(transports)
  model_rows <- panel_rows_of(length(unique(tables$model_fit[meter_id == id & !is.na(form), transport])))
  list(
    figure(
      paste0("ea", suffix), "Energy per megabit", plot_ea(summary, campaign, id, tables$model_parameters),
      2.2 + 3 * rows, id, "ea_summary"
    ),
    figure(
      paste0("envelope", suffix), "Energy envelope", plot_envelope(tables$envelope, summary, campaign, id),
      2.2 + 2.1 * envelope_rows, id, "envelope"
    ),
    figure(
      paste0("delta-ea", suffix), "Difference against UDP", plot_delta_ea(tables$delta_ea, summary, campaign, id),
      2.2 + 3 * rows, id, "delta_ea"
    ),
    figure(
      paste0("floor", suffix), "Generator floor", plot_floor(summary, campaign, id), 2.4 + 5 * rows, id, "ea_summary"
    ),
    figure(
      paste0("model-fit", suffix), "Power model",
      plot_model_fit(tables$model_fit, tables$model_residuals, campaign, id), 2.2 + 2.3 * model_rows, id,
      c("model_fit", "model_residuals")
    ),
    figure(
      paste0("model-residuals", suffix), "Residuals of the power model",
      plot_model_residuals(tables$model_fit, tables$model_residuals, campaign, id), 1.9 + 2.1 * model_rows, id,
      c("model_residuals", "model_fit")
    )
  )
}

figure <- function(name, title, plot, height_in, meter_id = NA_character_, tables = character()) {
  list(
    name = name, title = title, plot = plot, width_in = 8.5, height_in = height_in, meter_id = meter_id, tables = tables
  )
}

panel_rows <- function(summary) panel_rows_of(length(unique(summary$payload_bytes)))

panel_rows_of <- function(panels) ceiling(max(1L, panels) / panel_columns(max(1L, panels)))

phy_height <- function(shares) {
  rates <- max(1L, length(unique(shares$phy_rate_mbps)))
  transports <- max(1L, length(unique(shares$transport)))
  # Many transports are many rows of panels: then each rate gets no more than its name needs.
  row <- if (transports > 4L) min(1.8, 0.2 * rates + 0.3) else min(2.5, 0.32 * rates + 0.25)
  1.9 + transports * max(0.7, row)
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
  of_cells <- c("x", "value", "low", "high", "transport", "payload_bytes", "offered_rate_mbps")
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
  paste0(
    transport_label(as.character(points$transport)), ", ", number_text(points$payload_bytes), " bytes, ",
    number_text(points$offered_rate_mbps), " Mb/s: ", range_words(points$value, low, points$high)
  )
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
