# SPDX-License-Identifier: Apache-2.0

#' Write the report of a campaign: one self-contained HTML file
#'
#' No network: style, script and figures are inside, and a Content-Security-Policy
#' forbids the rest. Without scripts the page reads the same; figures are then not
#' enlarged. All names are escaped.
#'
#' @param campaign from [read_campaign()].
#' @param tables,figures of the campaign; the figures are already written.
#' @param path of the report.
#' @return path.
#' @examples
#' campaign <- example_campaign()
#' tables <- campaign_tables(campaign)
#' figures <- campaign_figures(campaign, tables)
#' write_figures(figures, file.path(campaign$dir, "figures"))
#' report(campaign, tables, figures)
#' @export
report <- function(campaign, tables, figures, path = file.path(campaign$dir, "report.html")) {
  write_page(campaign, report_body(campaign, tables, figures), path)
}

#' @param campaign whose name is the title.
#' @noRd
write_page <- function(campaign, body, path) {
  body <- htmltools::HTML(htmltools::doRenderTags(body, indent = FALSE))
  page <- tag$html(lang = "en", report_head(campaign, dark_colours(body)), body)
  # Rendered where it stands: as.character() would take the head out of the page.
  html <- htmltools::doRenderTags(page, indent = FALSE)
  write_whole(path, function(path) write_utf8(paste0("<!DOCTYPE html>\n", html), path))
}

report_head <- function(campaign, style = "") {
  tag$head(
    tag$meta(charset = "utf-8"),
    # Before anything that it has to hold for.
    tag$meta(`http-equiv` = "Content-Security-Policy", content = content_policy(report_script())),
    tag$meta(name = "viewport", content = "width=device-width, initial-scale=1"),
    tag$meta(name = "color-scheme", content = "light dark"),
    tag$title(paste("netjoule:", plain_text(campaign$name))),
    # An icon of its own, or a browser asks the host of the page for one.
    tag$link(rel = "icon", href = "data:,"), tag$style(htmltools::HTML(paste0(report_css(), "\n", style)))
  )
}

report_body <- function(campaign, tables, figures) {
  parts <- table_parts(campaign, tables)
  drawn <- figure_parts(campaign, figures, tables, table_anchors(parts, tables))
  # Energy per work belongs to the answer.
  ids <- figure_ids(figures)
  first <- seq_along(figures) == 1L & !is_diagnostic(ids) & ids %in% of_load(campaign, "answer_figure", ids)
  own <- of_load(campaign, "sections", energy_sections)(campaign, tables, figures, drawn, drawn[first])
  sections <- c(list(own$answer), own$before, list(
    section_figures(figures, figure_titles(campaign, figures), drawn, first, own$figures_note), own$after, own$appendix,
    section_tables(parts), section_method(campaign), section_invalid(campaign, tables), section_environment(campaign),
    section_glossary(campaign)
  ))
  page_body(report_header(campaign), sections, paste0(
    source_line(campaign, NULL, 10000L), ". ", made_by(), "; rebuilt at any time from the campaign's files."
  ))
}

# The links lead to the sections that there are.
page_body <- function(header, sections, footer) {
  present <- unlist(lapply(sections, function(one) one$attribs$id))
  tag$body(
    tag$a(class = "skip", href = "#summary", "Skip to the answer"), header, section_links(section_names[present]),
    tag$main(sections), tag$footer(footer), tag$script(htmltools::HTML(report_script()))
  )
}

made_by <- function() paste("Written by the R package netjoule", utils::packageVersion("netjoule"))

section_names <- c(
  summary = "Answer", applications = "Application", pacer = "Pacer", fairness = "Fairness", figures = "Figures",
  published = "Published values", appendix = "Statistics", tables = "Tables", method = "Method",
  invalid = "Invalid runs", environment = "Environment", glossary = "Glossary"
)

report_header <- function(campaign) {
  meters <- campaign$meters
  subject <- if (is_unpowered(campaign)) "Measures" else per_work_words(campaign)
  tag$header(
    class = "top",
    tag$h1(of_load(campaign, "title", paste0(subject, ": ")), plain_text(campaign$name)),
    tag$ul(
      class = "labels",
      tag$li(paste("power_source:", paste(unique(plain_text(meters$power_source)), collapse = ", "))),
      tag$li(paste("radio_source:", radio_source(campaign))),
      lapply(stats::na.omit(unique(meters$device_model)), function(name) {
        tag$li(paste("device model:", plain_text(name)))
      }),
      if (any(meters$quantity %in% "apparent_power")) {
        tag$li(class = "model", "apparent power: current times a nominal voltage, grade C at most")
      },
      if (is_modelled(campaign)) tag$li(class = "model", "in this model, not measured on hardware"),
      if (is_imported(campaign)) {
        tag$li(class = "model", paste(c(generator_words(campaign), "no power was logged"), collapse = "; "))
      }
    )
  )
}

section_links <- function(sections) {
  tag$nav(class = "sections", `aria-label` = "Sections", tag$ul(lapply(names(sections), function(id) {
    tag$li(tag$a(href = paste0("#", id), sections[[id]]))
  })))
}
