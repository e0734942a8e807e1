# SPDX-License-Identifier: Apache-2.0

html_of <- function(parts) as.character(htmltools::tagList(parts))

test_that("long tables are cut in the report and name their file", {
  rows <- data.table(run_id = sprintf("r%d", seq_len(most_rows + 5)), code = "x", detail = "x")
  html <- html_of(long_table("All", "run_notes", rows))
  expect_match(html, "5 more rows are in tables/run_notes.csv", fixed = TRUE)
  expect_match(html, sprintf("%d rows, tables/run_notes.csv", most_rows + 5), fixed = TRUE)
  expect_length(gregexpr("<tr>", html, fixed = TRUE)[[1]], most_rows + 1)
  # On paper its name and file stand for it.
  expect_match(html, "<details class=\"many\"", fixed = TRUE)
  # Too long to be printed unasked; a short one is printed although it is folded.
  expect_match(html_of(folded("All", "x", rows = most_printed_rows + 1L)), "class=\"many\"", fixed = TRUE)
  expect_no_match(html_of(folded("All", "x", rows = 3L)), "class=\"many\"", fixed = TRUE)
})

test_that("cells are escaped, missing ones dashes, numbers and their intervals to the right", {
  rows <- data.table(
    name = c("<b>&\"'", NA), value = c(1.23456, NA), interval = c("1.2 [1.1 to 1.3]", NA), flag = c(TRUE, FALSE)
  )
  html <- html_of(html_table(rows, c("a<b" = "name", value = "value", interval = "interval", flag = "flag")))
  expect_match(html, "<th scope=\"col\" class=\"text\">a&lt;b</th>", fixed = TRUE)
  expect_match(html, "<th scope=\"row\" class=\"text\">&lt;b&gt;&amp;\"'</th><td>1.23</td>", fixed = TRUE)
  expect_match(html, "<td>1.2 [1.1 to 1.3]</td><td class=\"text\">yes</td>", fixed = TRUE)
  expect_match(html, "\u2013</th><td>\u2013</td><td>\u2013</td>", fixed = TRUE)
  expect_match(html_of(html_table(rows[0], c(name = "name"))), "<tbody>\\s*</tbody>")
})

test_that("characters that are not seen are shown by their code", {
  expect_identical(plain_text("a\u202eb"), "a<U+202E>b")
  expect_identical(plain_text("\u2066x\u2069\u200b\ufeff"), "<U+2066>x<U+2069><U+200B><U+FEFF>")
  expect_identical(plain_text("a\u2028b\nc\td"), "a<U+2028>b c d")
  # Letters of any script, emoji and their joiners stay.
  kept <- c("\u0639\u0631\u0628\u064a", "\u05e2\u05d1", "caf\u00e9", "\U0001f469\u200d\U0001f4bb")
  expect_identical(plain_text(kept), kept)
})

test_that("what is nested, long or hostile in campaign.json is a flat list of bounded texts", {
  x <- list(a = list(b = 1, c = list(1, 2)), d = list(list(e = "<i>"), list(e = strrep("x", 5000))), f = NULL)
  flat <- flatten(x)
  expect_identical(unname(flat[c("a.b", "a.c", "d.1.e")]), c("1", "1, 2", "<i>"))
  expect_identical(nchar(flat[["d.2.e"]]), most_cell_characters)
  expect_match(html_of(definitions_of(x)), "<dd>&lt;i&gt;</dd>", fixed = TRUE)
  expect_no_match(html_of(definitions_of(x)), "<dt>f</dt>|\u2013")
  many <- definitions_of(as.list(stats::setNames(seq_len(most_definitions + 7L), seq_len(most_definitions + 7L))))
  expect_match(html_of(many), "7 more entries are in campaign.json", fixed = TRUE)
})

# A campaign with its tables and figures, these written.
drawn <- local({
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64)
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  write_figures(figures, file.path(dir, "figures"))
  list(dir = dir, campaign = campaign, tables = tables, figures = figures)
})

test_that("drawings beyond the page's share are named, with what they show", {
  first <- file.size(file.path(drawn$dir, "figures", "ea.svg"))
  html <- html_of(figure_parts(drawn$campaign, drawn$figures, most_bytes = first))
  expect_length(gregexpr("<svg", html, fixed = TRUE)[[1]], 1)
  expect_on_page(html, "see figures/envelope.svg", fixed = TRUE)
  expect_on_page(html, said_at_head(figure_alt(drawn$figures[[2]]$plot)), fixed = TRUE)
  # A large drawing keeps none of the small ones after it out.
  expect_identical(find_room(c(3, 9, 4, 1, 1), 8), c(TRUE, FALSE, TRUE, TRUE, FALSE))
})

test_that("an estimate and its interval have the same decimals, by the interval", {
  expect_identical(range_words(-38, -41.37, -34.69), "-38.0 [-41.4 to -34.7]")
  expect_identical(range_words(0.6, 0.5534, 0.6478), "0.600 [0.553 to 0.648]")
  expect_identical(
    range_words(c(1.5, NA, 2.345), c(NA, NA, 2.3), c(NA, NA, 2.39), " J"), c("1.5 J", NA, "2.345 J [2.300 to 2.390]")
  )
  # No digits beyond the fourth, no zeros that say nothing, no minus before nothing.
  expect_identical(range_words(0.4, 0.4, 0.4), "0.4 [0.4 to 0.4]")
  expect_identical(range_words(100, 99.99999, 100.00001), "100 [100 to 100]")
  expect_identical(range_words(0.01, -0.5, 0.51), "0.01 [-0.50 to 0.51]")
  expect_identical(range_words(12347, 12100, 12600), "12350 [12100 to 12600]")
  # From least to greatest is no interval about the median: each by itself.
  expect_identical(range_words(53.21, 45.4, 21512), "53.2 [45.4 to 21500]")
  expect_identical(range_words(numeric(), numeric(), numeric()), character())
})

test_that("a number keeps its percent sign and has a true minus, a name its hyphens", {
  expect_identical(
    prose("-3.1 % to -2 % [-4 to 1] % of b-2"),
    "\u22123.1\u202f% to \u22122\u202f% [\u22124 to 1]\u202f% of b-2"
  )
  rows <- data.table(name = c("a -1", "-b"), value = c(-1.5, 2), interval = c("-2 [-3 to -1]", "1"))
  html <- html_of(html_table(rows, c(name = "name", value = "value", interval = "interval")))
  expect_match(html, ">a -1</th><td>\u22121.5</td><td>\u22122 [\u22123 to \u22121]</td>", fixed = TRUE)
})

test_that("a figure in which all is the same is folded behind a sentence, one with news is not", {
  even <- read_campaign(synthetic_campaign(blocks = 2, transports = c("udp", "dccp", "null")))
  tables <- campaign_tables(even)
  expect_match(
    same_words("goodput", even, tables),
    "^Everything that was offered arrived: goodput is within .* % of the offered load in all 8 cells\\.$"
  )
  expect_identical(same_words("loss", even, tables), "No message was lost in any of 8 cells.")
  expect_match(same_words("delta-goodput-spin", even, tables), "^Goodput is that of UDP in every cell")
  expect_identical(
    same_words("phy-rates", even, tables), "Every reading of the radio shows a PHY rate of 216 Mb/s."
  )
  expect_null(same_words("ea", even, tables))
  expect_null(same_words("loss", even, list()))
  uneven <- read_campaign(synthetic_campaign(
    blocks = 2, transports = c("udp", "dccp", "null"), loss = function(rate) if (rate == 10) 0.02 else 0,
    held_back = function(rate) 0.05, phy_rate_mbps = function(n) rep_len(c(216, 162), n)
  ))
  tables <- campaign_tables(uneven)
  for (name in c("goodput", "delta-goodput", "loss", "phy-rates")) expect_null(same_words(name, uneven, tables))
})

test_that("a folded figure keeps its caption and source, an open one has its source in the drawing alone", {
  parts <- figure_parts(drawn$campaign, drawn$figures, drawn$tables)
  of <- function(name) html_of(parts[[match(name, figure_ids(drawn$figures))]])
  source <- function(html) length(regmatches(html, gregexpr("<p class=\"source\">\\s*power_source", html))[[1]])
  expect_match(of("loss"), "<p class=\"same\">No message was lost", fixed = TRUE)
  expect_match(of("loss"), "<details class=\"many\">", fixed = TRUE)
  expect_identical(source(of("loss")), 1L)
  expect_no_match(of("ea"), "<details")
  expect_identical(source(of("ea")), 0L)
  expect_match(of("ea"), "aria-label='[^']* Source: power_source: modelled[^']*in this model\\.'")
  # What stands in the summary is not told twice.
  titles <- figure_titles(drawn$campaign, drawn$figures)
  section <- html_of(section_figures(drawn$figures, titles, parts, figure_ids(drawn$figures) == "ea"))
  expect_false(grepl("id=\"figure-ea\"", section, fixed = TRUE))
  expect_match(section, "href=\"#figure-ea\"", fixed = TRUE)
  expect_match(section, "Figure 1 stands in the", fixed = TRUE)
})

test_that("meters are a table with a column each, without what none of them tells", {
  meters <- list(
    a = list(meter_id = "a", make = "<i>", range = list(current_a = 0.1), serial = NULL),
    b = list(meter_id = "b", make = "Y", firmware = "F2")
  )
  html <- html_of(meters_part(meters))
  expect_match(html, ">a</th><th scope=\"col\" class=\"text long\">b</th>", fixed = TRUE)
  expect_match(html, ">make</th><td class=\"text long\">&lt;i&gt;</td><td class=\"text long\">Y</td>", fixed = TRUE)
  expect_match(
    html, ">range current a</th><td class=\"text long\">0.1</td><td class=\"text long\">\u2013</td>",
    fixed = TRUE
  )
  expect_no_match(html, "serial|meter id")
  expect_null(meters_part(list()))
})

test_that("sessions are told with their pauses", {
  session <- function(...) {
    one <- list(started_utc = "2026-01-02T10:00:00.1Z", ended_utc = "2026-01-02T11:30:00Z", end = "stopped")
    utils::modifyList(one, list(...))
  }
  two <- list(
    session(t_start_s = 0, t_end_s = 3600),
    session(t_start_s = 9000, t_end_s = 12600, started_utc = "2026-01-02T12:30:00Z", end = "complete")
  )
  html <- html_of(sessions_part(two))
  expect_match(html, "Run in 2 sessions of 120 min, pauses between them of 90 min.", fixed = TRUE)
  expect_match(
    html, "Session 1: 2026-01-02 10:00 to 2026-01-02 11:30 UTC (60 min), stopped; then a pause of 90 min.",
    fixed = TRUE
  )
  expect_match(html, "12:30 to 2026-01-02 11:30 UTC (60 min), complete.", fixed = TRUE)
  open <- html_of(sessions_part(list(list(t_start_s = 0, started_utc = "2026-01-02T10:00:00Z"))))
  expect_match(open, "Session 1: 2026-01-02 10:00, not ended.", fixed = TRUE)
  expect_null(sessions_part(NULL))
})

test_that("a report of 7,680 runs with notes to each stays small", {
  # The drawings are the same in both.
  written <- function(tables) report(drawn$campaign, tables, list())
  tables <- drawn$tables
  small <- file.size(written(tables))
  many <- function(rows) rows[rep_len(seq_len(nrow(rows)), 7680L)]
  tables$runs <- many(tables$runs)
  notes <- data.table(
    run_id = sprintf("r%d", 1:7680), code = "x", detail = strrep("y", 200), meaning = "m", next_step = "n"
  )
  tables$run_notes <- notes
  tables$invalid_runs <- cbind(notes, transport = "udp", payload_bytes = 64, offered_rate_mbps = 1)
  path <- written(tables)
  expect_gt(file.size(path), small)
  expect_lt(file.size(path), small + 400000)
  html <- page_text(path)
  expect_on_page(html, "7680 rows, tables/runs.csv", fixed = TRUE)
  expect_on_page(html, "7380 more rows are in tables/runs.csv", fixed = TRUE)
})

test_that("composed figures have marks that tell their values, in all of their parts", {
  campaign <- example_campaign()
  summary <- summarise_ea(campaign)
  id <- campaign$meters$meter_id[1]
  marks <- function(plot) with_marks(plot)$words
  floor <- marks(plot_floor(summary, campaign, id))
  expect_length(floor, nrow(summary))
  expect_match(floor[1], "null.*64 bytes, 1 Mb/s: 0.05")
  expect_match(floor[length(floor)], "^TCP, 1440 bytes, 10 Mb/s: ")
  envelope <- marks(plot_envelope(ea_envelope(campaign), summary, campaign, id))
  expect_match(envelope, "^(UDP|TCP), .* Mb/s, (least|greatest) E_A: ")
  power <- marks(plot_power(power_trace(campaign), summary, campaign, id))
  # Every run above, those of one mini-block below.
  expect_length(power, sum(campaign$runs$usable) + 3L)
  expect_match(power, "P_A [0-9.]+ W, P_I 8 W$")
  expect_gte(length(marks(plot_message_cost(summary, campaign))), 2L * nrow(summary))
})

test_that("each mark bears its own words where they stand in the drawing", {
  path <- tempfile(fileext = ".svg")
  campaign <- example_campaign()
  plot <- plot_floor(summarise_ea(campaign), campaign, campaign$meters$meter_id[1])
  write_svg(figure("floor", "Floor", plot, 6), path)
  lines <- grep("class='mark'", readLines(path), value = TRUE, fixed = TRUE)
  expect_identical(sub(".*<title>(.*)</title>.*", "\\1", lines), with_marks(plot)$words)
})

test_that("a mark without another beside it is as unseen and tells its value as well", {
  expect_identical(scales::alpha("#000001", mark_layer(data.frame(x = 1, value = 2), 0)$aes_params$alpha), "#00000101")
  campaign <- read_campaign(synthetic_campaign(
    blocks = 1, transports = c("udp", "tcp", "null"), payload_bytes = 1440, offered_rate_mbps = 6
  ))
  summary <- summarise_ea(campaign)
  id <- campaign$meters$meter_id[1]
  for (plot in list(plot_delta_ea(delta_ea(campaign), summary, campaign, id), plot_floor(summary, campaign, id))) {
    path <- tempfile(fileext = ".svg")
    write_svg(figure("one", "One", plot, 6), path)
    circles <- grep("<circle .*r='5.69'", readLines(path), value = TRUE)
    expect_identical(sub(".*<title>(.*)</title>.*", "\\1", circles), with_marks(plot)$words)
    expect_match(circles, "class='mark' style='stroke: none; fill-opacity: 0;'", fixed = TRUE)
  }
})

test_that("a narrow figure has its panels below each other and no line that is wider than it", {
  campaign <- example_campaign()
  tables <- campaign_tables(campaign)
  for (one in campaign_figures(campaign, tables)) {
    narrow <- narrow_figure(one)
    expect_identical(narrow$width_in, narrow_width_in)
    expect_gt(narrow$height_in, 2)
    words <- if (inherits(narrow$plot, "patchwork")) narrow$plot$patches$annotation else narrow$plot$labels
    longest <- function(text) max(nchar(strsplit(text, "\n", fixed = TRUE)[[1]]))
    expect_lte(longest(words$title), narrow_characters[["title"]])
    expect_lte(longest(words$caption), narrow_characters[["caption"]])
    if (inherits(one$plot$facet, "FacetWrap") && !inherits(one$plot, "patchwork")) {
      expect_identical(narrow$plot$facet$params$ncol, 1L)
      # The wide one is as it was.
      expect_false(identical(one$plot$facet, narrow$plot$facet))
    }
  }
})
