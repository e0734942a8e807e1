# SPDX-License-Identifier: Apache-2.0

html_of <- function(parts) as.character(htmltools::tagList(parts))

test_that("long tables are cut in the report and name their file", {
  rows <- data.table(run_id = sprintf("r%d", seq_len(most_rows + 5)), detail = "x")
  html <- html_of(long_table("All", "tables/x.csv", rows, c(run = "run_id", detail = "detail")))
  expect_match(html, "5 more rows are in tables/x.csv", fixed = TRUE)
  expect_match(html, sprintf("%d rows, tables/x.csv", most_rows + 5), fixed = TRUE)
  expect_length(gregexpr("<tr>", html, fixed = TRUE)[[1]], most_rows + 1)
  # Too long to be printed unasked; a short one is printed although it is folded.
  expect_match(html, "<details class=\"many\"", fixed = TRUE)
  expect_false(grepl("class=\"many\"", html_of(long_table("All", "t.csv", rows[1:3], c(run = "run_id")))))
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
  many <- definitions_of(as.list(stats::setNames(seq_len(most_definitions + 7L), seq_len(most_definitions + 7L))))
  expect_match(html_of(many), "7 more entries are in campaign.json", fixed = TRUE)
})

test_that("drawings beyond the page's share are named, with what they show", {
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64)
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  write_figures(figures, file.path(dir, "figures"))
  first <- file.size(file.path(dir, "figures", "ea.svg"))
  html <- html_of(section_figures(campaign, figures, most_bytes = first))
  expect_length(gregexpr("<svg", html, fixed = TRUE)[[1]], 1)
  expect_match(html, "see figures/envelope.svg", fixed = TRUE)
  expect_match(html, figure_alt(figures[[2]]$plot), fixed = TRUE)
  # A large drawing keeps none of the small ones after it out.
  expect_identical(find_room(c(3, 9, 4, 1, 1), 8), c(TRUE, FALSE, TRUE, TRUE, FALSE))
})

test_that("a report of 7,680 runs with notes to each stays small", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64)
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  write_figures(figures, file.path(dir, "figures"))
  report(campaign, tables, figures)
  small <- file.size(file.path(dir, "report.html"))
  many <- function(rows) rows[rep_len(seq_len(nrow(rows)), 7680L)]
  tables$runs <- many(tables$runs)
  notes <- data.table(
    run_id = sprintf("r%d", 1:7680), code = "x", detail = strrep("y", 200), meaning = "m", next_step = "n"
  )
  tables$run_notes <- notes
  tables$invalid_runs <- cbind(notes, transport = "udp", payload_bytes = 64, offered_rate_mbps = 1)
  report(campaign, tables, figures)
  expect_gt(file.size(file.path(dir, "report.html")), small)
  expect_lt(file.size(file.path(dir, "report.html")), small + 400000)
  html <- paste(readLines(file.path(dir, "report.html"), encoding = "UTF-8"), collapse = "\n")
  expect_match(html, "7680 rows, tables/runs.csv", fixed = TRUE)
  expect_match(html, "7380 more rows are in tables/runs.csv", fixed = TRUE)
})
