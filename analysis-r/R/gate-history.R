# SPDX-License-Identifier: Apache-2.0

# The history of gates as one page: a figure per series (rig, meter, kernel, workload version), its change points
# marked. Which runs belong together, and where they change, is netjoule's (history --html).

#' Write the page of a history of gates: one self-contained HTML file
#'
#' @param csv file with the columns series, power_source, run, id, finished_utc, verdict, head_over_reference, change
#'   (true at the first run after a change; empty where nobody looked for changes).
#' @param path of the page.
#' @param tell called with the event list(event = "report", path = ).
#' @return path, invisibly.
#' @noRd
history_page <- function(csv, path, tell = function(event) NULL) {
  rows <- fread(csv, encoding = "UTF-8", na.strings = "", colClasses = list(
    character = c("series", "power_source", "id", "finished_utc", "verdict"), numeric = c("run", "head_over_reference"),
    logical = "change"
  ))
  if (nrow(rows) == 0L) abort_invalid_data("The history has no session with a reference workload yet.")
  series <- split(with_parts(rows), by = "series")
  folder <- withr::local_tempdir()
  figures <- Map(history_figure, series, seq_along(series), MoreArgs = list(folder = folder))
  header <- tag$header(class = "top", tag$h1("History of gates"), history_labels(series))
  sections <- list(history_summary(series), tag$section(id = "figures", tag$h2("Figures"), unname(figures)))
  write_page(list(name = "history of gates"), page_body(header, sections, paste0(made_by(), ".")), path)
  tell(list(event = "report", path = path))
  invisible(path)
}

# A part of a series is what lies between two changes.
with_parts <- function(rows) {
  rows[, part := cumsum(change %in% TRUE), by = series]
  rows[, mean := mean(head_over_reference), by = list(series, part)][]
}

history_figure <- function(rows, number, folder) {
  name <- paste0("history-", number)
  one <- figure(name, plain_text(rows$series[1], 200L), plot_history(rows), 4)
  path <- file.path(folder, paste0(name, ".svg"))
  write_svg(one, path)
  title <- paste0("Figure ", number, ". ", one$title, ".")
  figure_html(one, title, both_drawings(one, path, figure_alt(one$plot), number), character(), file = NULL)
}

# What is no measurement says so at the head of the page and in its figure.
history_labels <- function(series) {
  modelled <- vapply(series, is_modelled_history, NA)
  tag$ul(class = "labels", if (any(modelled)) {
    which <- if (all(modelled)) "all series" else sprintf("figure %s", enumerated(as.character(which(modelled))))
    tag$li(class = "model", paste0("in this model, not measured on hardware: ", which))
  })
}

is_modelled_history <- function(rows) any(rows$power_source == "modelled")

plot_history <- function(rows) {
  changes <- rows[change %in% TRUE]
  plot <- ggplot(rows, aes(x = run, y = head_over_reference)) +
    geom_vline(xintercept = changes$run - 0.5, colour = "grey40", linetype = "42", linewidth = 0.5) +
    geom_line(aes(y = mean, group = part), colour = "grey30", linewidth = 0.6) +
    geom_point(aes(shape = verdict), size = 1.9, colour = "grey15", fill = "white", stroke = 0.5) +
    scale_shape_manual(name = NULL, values = c(pass = 16, fail = 17, inconclusive = 21, skipped = 4)) +
    scale_x_continuous(name = "Session, in the order of time", labels = number_text) +
    scale_y_continuous(name = "Head over the reference workload", labels = apart_text) +
    netjoule_theme() +
    labs(subtitle = history_words(rows), caption = sprintf(
      "%d sessions from %s to %s. Line: mean between changes. Power %s.", nrow(rows), rows$finished_utc[1],
      rows$finished_utc[nrow(rows)],
      if (is_modelled_history(rows)) "modelled, not measured on hardware" else "measured"
    ))
  with_alt(plot, paste0(
    if (is_modelled_history(rows)) "In this model. ", "The head's ratio to the reference workload over ", nrow(rows),
    " sessions, from ", short(min(rows$head_over_reference)), " to ", short(max(rows$head_over_reference)), ". ",
    history_words(rows)
  ))
}

# Changes of a series as a sentence.
history_words <- function(rows) {
  if (all(is.na(rows$change))) {
    return("Nobody looked for changes: the package apache-otava is not installed.")
  }
  at <- which(rows$change %in% TRUE)
  if (length(at) == 0L) {
    return("No lasting change was found.")
  }
  told <- sprintf(
    "%s %% since %s (%s)", sprintf("%+.2g", 100 * (rows$mean[at] / rows$mean[at - 1L] - 1)),
    plain_text(rows$id[at], 96L), substr(rows$finished_utc[at], 1L, 10L)
  )
  paste0(if (length(at) == 1L) "A lasting change: " else "Lasting changes: ", paste(told, collapse = "; "), ".")
}

history_summary <- function(series) {
  words <- vapply(series, function(rows) {
    paste0(plain_text(rows$series[1], 200L), ": ", history_words(rows))
  }, "")
  tag$section(
    id = "summary", tag$h2("Answer"), lapply(prose(unname(words)), tag$p),
    tag$p(
      "Each point is the head of one session against the reference workload of the same session, so that what the ",
      "rig does over weeks is in both. Changes are found by apache-otava (p under 1e-5, at least the gate's margin, ",
      "at least 3 sessions after it); they warn and decide nothing."
    )
  )
}
