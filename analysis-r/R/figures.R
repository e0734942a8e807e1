# SPDX-License-Identifier: Apache-2.0

#' All figures of a campaign
#'
#' One set per meter and pacing; the first meter's set carries the plain names, the
#' sets of the others end in -<meter_id>, those of further pacings in -<pacing>.
#' Goodput and loss belong to the flow and are drawn once per pacing, PHY rates once.
#' A figure without data is left out.
#'
#' @return list of list(name, title, plot, width_in, height_in, meter_id or NA).
#' @noRd
campaign_figures <- function(campaign, tables) {
  sets <- lapply(by_variant(campaign, tables), function(part) {
    per_meter <- lapply(campaign$meters$meter_id, function(id) {
      meter_figures(part$campaign, part$tables, id, part$suffix)
    })
    c(unlist(per_meter, recursive = FALSE), flow_figures(part$campaign, part$tables, part$suffix))
  })
  phy <- figure("phy-rates", "PHY rates", plot_phy_rates(tables$phy_rates, campaign), phy_height(tables$phy_rates))
  all <- c(unlist(sets, recursive = FALSE), list(phy), pacer_figures(campaign, tables$pacer_verdict))
  all[!vapply(all, function(one) is.null(one$plot), NA)]
}

flow_figures <- function(campaign, tables, suffix) {
  summary <- tables$ea_summary
  height <- 1.9 + 3 * panel_rows(summary)
  shared <- tables$fairness
  list(
    if (!is.null(shared)) {
      plot <- plot_fairness(shared, summary, campaign)
      figure(paste0("fairness", suffix), "Fairness", plot, 2.2 + 2.4 * fairness_rows(shared))
    },
    figure(paste0("goodput", suffix), "Goodput", plot_goodput(summary, campaign), height),
    figure(paste0("loss", suffix), "Loss", plot_loss(summary, campaign), height)
  )
}

pacer_figures <- function(campaign, verdict) {
  if (is.null(verdict)) {
    return(NULL)
  }
  lapply(unique(verdict$meter_id), function(id) {
    sizes <- length(unique(verdict[meter_id == id, payload_bytes]))
    name <- paste0("pacer", meter_suffix(campaign, id))
    figure(name, "Spinning against sleeping", plot_pacer(verdict, campaign, id), 2.2 + 2.6 * sizes, id)
  })
}

meter_suffix <- function(campaign, id) if (identical(id, campaign$meters$meter_id[1])) "" else paste0("-", id)

meter_figures <- function(campaign, tables, id, of_pacing = "") {
  summary <- tables$ea_summary
  rows <- panel_rows(summary[meter_id == id])
  suffix <- paste0(meter_suffix(campaign, id), of_pacing)
  transports <- length(unique(tables$envelope$transport))
  envelope_rows <- ceiling(max(1L, transports) / panel_columns(max(1L, transports)))
  list(
    figure(paste0("ea", suffix), "Energy per megabit", plot_ea(summary, campaign, id), 2.2 + 3 * rows, id),
    figure(
      paste0("envelope", suffix), "Energy envelope", plot_envelope(tables$envelope, summary, campaign, id),
      2.2 + 2.1 * envelope_rows, id
    ),
    figure(
      paste0("delta-ea", suffix), "Difference against UDP", plot_delta_ea(tables$delta_ea, summary, campaign, id),
      2.2 + 3 * rows, id
    ),
    figure(paste0("floor", suffix), "Generator floor", plot_floor(summary, campaign, id), 2.4 + 5 * rows, id)
  )
}

figure <- function(name, title, plot, height_in, meter_id = NA_character_) {
  list(name = name, title = title, plot = plot, width_in = 8.5, height_in = height_in, meter_id = meter_id)
}

panel_rows <- function(summary) ceiling(max(1L, length(unique(summary$payload_bytes))) / 3)

phy_height <- function(shares) {
  rates <- max(1L, length(unique(shares$phy_rate_mbps)))
  transports <- max(1L, length(unique(shares$transport)))
  1.9 + transports * max(0.7, min(2.5, 0.32 * rates + 0.25))
}

#' Write figures as SVG and PNG, with an index of titles and alt texts
#'
#' @param figures from campaign_figures().
#' @param out_dir folder, created when missing.
#' @return paths of the files written; index.json holds alt texts.
#' @export
write_figures <- function(figures, out_dir) {
  dir.create(out_dir, showWarnings = FALSE, recursive = TRUE)
  paths <- unlist(lapply(unname(figures), function(one) {
    c(write_svg(one, out_dir), write_png(one, out_dir))
  }))
  index <- lapply(unname(figures), function(one) {
    list(
      svg = paste0(one$name, ".svg"), png = paste0(one$name, ".png"), title = one$title,
      meter_id = if (is.na(one$meter_id)) NULL else one$meter_id, alt = figure_alt(one$plot)
    )
  })
  index_path <- file.path(out_dir, "index.json")
  writeLines(jsonlite::toJSON(index, auto_unbox = TRUE, null = "null", pretty = TRUE), index_path)
  c(paths, index_path)
}

write_svg <- function(one, out_dir) {
  path <- file.path(out_dir, paste0(one$name, ".svg"))
  # fix_text_size would stretch text where the reader's fonts differ.
  svglite::svglite(path, width = one$width_in, height = one$height_in, fix_text_size = FALSE)
  tryCatch(print(one$plot), finally = grDevices::dev.off())
  describe_svg(path, one$title, figure_alt(one$plot))
  path
}

write_png <- function(one, out_dir) {
  path <- file.path(out_dir, paste0(one$name, ".png"))
  ragg::agg_png(path, width = one$width_in, height = one$height_in, units = "in", res = 160, background = "white")
  tryCatch(print(one$plot), finally = grDevices::dev.off())
  path
}

# A screen reader meets an SVG by its title and description; a reader without our font still gets one without serifs.
describe_svg <- function(path, title, alt) {
  text <- paste(readLines(path, warn = FALSE, encoding = "UTF-8"), collapse = "\n")
  head <- paste0(
    "\\1<title>", escape_for_sub(title), "</title>\n<desc>", escape_for_sub(alt), "</desc>\n"
  )
  text <- sub("(<svg [^>]*>\n?)", head, text)
  text <- sub("<svg ", "<svg role='img' ", text, fixed = TRUE)
  text <- gsub("font-family: (\"[^\"]+\");", "font-family: \\1, Verdana, Arial, sans-serif;", text)
  connection <- file(path, "wb")
  on.exit(close(connection))
  writeLines(enc2utf8(text), connection, useBytes = TRUE)
}

escape_for_sub <- function(text) {
  gsub("\\", "\\\\", htmltools::htmlEscape(enc2utf8(text)), fixed = TRUE)
}
