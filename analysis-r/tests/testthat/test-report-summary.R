# SPDX-License-Identifier: Apache-2.0

section_of_summary <- function(campaign, tables = campaign_tables(campaign)) {
  as.character(tag$div(section_summary(campaign, tables), section_appendix(campaign, tables, list(), list())))
}

test_that("what was tested stands first, each verdict before its words, p-values folded", {
  campaign <- read_campaign(synthetic_campaign(blocks = 8, payload_bytes = 1440, noise_w = 0.001))
  tables <- campaign_tables(campaign)
  html <- section_of_summary(campaign, tables)
  family <- tables$contrasts[in_family == TRUE]
  expect_identical(unique(family$inference), "tested")
  for (i in seq_len(nrow(family))) {
    label <- sprintf("<span class=\"verdict %s\">%s</span>", family$verdict[i], family$verdict[i])
    expect_match(html, label, fixed = TRUE)
    expect_match(html, prose(family$words[i]), fixed = TRUE)
  }
  place <- function(text) regexpr(text, html, fixed = TRUE)[1]
  expect_lt(place("class=\"lead\""), place("class=\"verdicts\""))
  expect_false(grepl("p = ", sub("<details.*", "", html), fixed = TRUE))
  expect_lt(place("<details"), place("Sign-flip p = "))
  expect_lt(place("Sign-flip p = "), place("exploratory</h3>"))
  expect_lt(place("exploratory</h3>"), place("he generator alone"))
  expect_lt(place("he generator alone"), place("rom the first to the last run"))
  expect_lt(place("rom the first to the last run"), place("No run is flagged"))
  expect_lt(place("No run is flagged"), place("No finished run is invalid"))
})

test_that("the first figure stands behind the answer, before what is exploratory", {
  campaign <- read_campaign(synthetic_campaign(blocks = 8, payload_bytes = 1440, noise_w = 0.001))
  html <- as.character(section_summary(campaign, campaign_tables(campaign), tag$figure("drawn")))
  place <- function(text) regexpr(text, html, fixed = TRUE)[1]
  expect_lt(place("What it rests on"), place("<figure>drawn"))
  expect_lt(place("<figure>drawn"), place("Sign-flip p = "))
  expect_lt(place("<figure>drawn"), place("exploratory</h3>"))
})

family_row <- function(transport, percent, low = percent - 2, high = percent + 2, payload_bytes = 64, ...) {
  row <- list(
    meter_id = "client-wt210", reference = "udp", transport = transport, payload_bytes = payload_bytes, blocks_n = 9L,
    inference = "tested", verdict = if (percent > 0) "more" else "less", difference_percent = percent,
    difference_ci95_low = low, difference_ci95_high = high
  )
  as.data.table(utils::modifyList(row, list(...)))
}

test_that("the lead says who took least, by how much the others differ and how sure, never from a mean alone", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, transports = c("udp", "tcp", "quic", "null")))
  tables <- campaign_tables(campaign)
  lead <- function(...) {
    told <- lead_sentences(campaign, tables, rbind(...))
    if (!is.null(told)) paste(told, collapse = " ")
  }
  all_more <- rbind(
    family_row("tcp", 13), family_row("tcp", 8, payload_bytes = 1440), family_row("quic", 38),
    family_row("quic", 44, payload_bytes = 1440)
  )
  expect_identical(lead(all_more), paste(
    "In this model, UDP took the least energy per megabit over all loads, at 64 and 1440 bytes: TCP 13 and 8 % more;",
    "QUIC 38 and 44 % more.",
    "All 4 comparisons are tested over 9 blocks, corrected for their number."
  ))
  # Nobody is first of those that were not all compared.
  part <- lead(all_more[-1])
  expect_match(part, "^In this model, energy per megabit over all loads, against UDP: TCP 8 % more at 1440 bytes; QUIC")
  expect_match(part, "; QUIC 38 and 44 % more at 64 and 1440 bytes.", fixed = TRUE)
  mixed <- lead(
    family_row("tcp", -13), family_row("tcp", 1, payload_bytes = 1440, verdict = "no_clear_difference"),
    family_row("quic", 38, inference = "intervals_only", verdict = NA, blocks_n = 5L)
  )
  expect_match(mixed, "TCP 13 % less at 64 bytes and no clear difference at 1440 bytes; QUIC", fixed = TRUE)
  expect_match(mixed, "; QUIC 36 to 40 % more (mean 38 %) at 64 bytes (not tested).", fixed = TRUE)
  expect_match(mixed, "2 of 3 comparisons are tested, the others have too few repetitions (blocks).", fixed = TRUE)
  single <- family_row(
    "tcp", 20, low = NA_real_, high = NA_real_, inference = "intervals_only", verdict = NA, blocks_n = 1L
  )
  expect_match(
    lead(single), fixed = TRUE, paste(
      "TCP 20 % more at 64 bytes (one block: no verdict).",
      "1 repetition (block) is too few for a significance test; 8 are needed."
    )
  )
  expect_null(lead(family_row("tcp", 13, blocks_n = 0L)))
  expect_null(lead_sentences(campaign, tables, data.table()))
})

test_that("what no test was made of stands in the headline with size and interval, and with that it was not tested", {
  headline <- function(blocks, ...) {
    campaign <- read_campaign(synthetic_campaign(blocks = blocks, transports = c("udp", "tcp", "quic", "null"), ...))
    html <- as.character(section_summary(campaign, campaign_tables(campaign)))
    expect_match(html, "<p class=\"lead\">")
    gsub("[\u00a0\u202f]", " ", sub("</p>.*", "", sub(".*<p class=\"lead\">", "", html)))
  }
  one <- headline(1, payload_bytes = 1440)
  expect_match(one, "TCP against UDP 20 % less at 1440 bytes (one block: no verdict); QUIC", fixed = TRUE)
  expect_match(one, "1 repetition (block) is too few for a significance test; 8 are needed.", fixed = TRUE)
  expect_no_match(one, "no clear difference|took the")
  few <- headline(5, noise_w = 0.001)
  expect_match(few, "TCP against UDP [0-9.]+ to [0-9.]+ % less .mean [0-9.]+ %. at 64 bytes and .* at 1440 bytes; Q")
  expect_match(few, "[0-9.]+ to [0-9.]+ % more [(]mean")
  expect_match(few, "5 repetitions (blocks) are too few for a significance test; 8 are needed.", fixed = TRUE)
  expect_no_match(few, "took the")
})

test_that("the lead names the loads of which least is known", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1))
  cells <- data.table(
    meter_id = "m", method = "ratio", offered_rate_mbps = c(1, 1, 4, 4), difference_ci95_low = c(1, -9, -1, -2),
    difference_ci95_high = c(2, -8, 1, 2)
  )
  doubt <- function(rows) {
    tables <- list(ea_summary = campaign_tables(campaign)$ea_summary, delta_ea = rows)
    lead_doubt(campaign, tables, "m")
  }
  expect_identical(doubt(cells), "At 4 Mb/s most pairs show no clear difference.")
  expect_null(doubt(cells[1:2]))
  expect_null(doubt(cells[c(1, 2, 4, 2)][, offered_rate_mbps := c(1, 1, 4, 4)]))
  expect_identical(
    doubt(cells[c(3, 4)][, offered_rate_mbps := c(1, 4)]), "At single loads most pairs show no clear difference."
  )
})

test_that("an interval is told with its low end first, on both sides where it holds both", {
  expect_identical(side_words(11.498, 8.938, 14.119, " than UDP"), "8.9 to 14.1 % more than UDP (mean 11.5 %)")
  expect_identical(side_words(-26, -28.1, -24.4), "24.4 to 28.1 % less (mean 26.0 %)")
  expect_identical(side_words(1.6, -2.1, 5.3), "between 2.1 % less and 5.3 % more (mean 1.6 % more)")
  expect_identical(side_words(20, 20, 20), "20 % more")
  expect_identical(side_words(-20, NA, NA), "20 % less, in a single block")
})

test_that("what was not tested is not called a difference", {
  row <- function(...) as.list(c(list(blocks_n = 3L, inference = "intervals_only", verdict = NA), list(...)))
  changed <- function(...) utils::modifyList(row(), list(...))
  expect_identical(verdict_label(row())[["words"]], "not tested")
  expect_identical(verdict_label(changed(blocks_n = 0L))[["words"]], "no ratio")
  expect_identical(verdict_label(changed(inference = "attainable_only"))[["words"]], "not tested")
  tested <- changed(blocks_n = 9L, inference = "tested", verdict = "no_clear_difference")
  expect_identical(verdict_label(tested), c(kind = "untold", words = "no clear difference"))
  expect_identical(verdict_label(utils::modifyList(tested, list(verdict = "more")))[["words"]], "more")
})

test_that("the design is told in one sentence", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, offered_rate_mbps = c(1, 3)))
  expect_identical(
    design_sentence(campaign),
    paste0(
      "UDP, TCP and QUIC sent messages of 64 and 1440 bytes at 1 and 3 Mb/s; null ran the same schedules and sent no ",
      "packets."
    )
  )
  alone <- read_campaign(synthetic_campaign(blocks = 1, transports = "null", payload_bytes = 64))
  expect_match(design_sentence(alone), "^Only the null transport ran")
})

test_that("a meter without any energy per megabit says why", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, transports = c("udp", "null"))
  for (id in grep("udp", list.files(file.path(dir, "runs")), value = TRUE)) {
    edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
      doc$nodes[[1]]["ea_j_per_mbit"] <- list(NULL)
      doc$nodes[[1]]$ea_reason <- "radio_without_air_time"
      doc
    })
  }
  campaign <- read_campaign(dir)
  expect_identical(
    load_sentences(campaign, campaign_tables(campaign), "client-wt210"),
    paste(
      "No energy per megabit could be computed for this meter: the radio has no air time (hwsim), so E_A has no",
      "meaning."
    )
  )
})

drift_row <- function(...) {
  row <- list(
    meter_id = "client-wt210", quantity = "E_A", span_s = 7200, change_percent = -30.94, change_ci95_low = -40.1,
    change_ci95_high = -21.7, verdict = "drift"
  )
  as.data.table(utils::modifyList(row, list(...)))
}

test_that("drift is told with its interval, in this model where it is one", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1))
  rows <- rbind(
    drift_row(),
    drift_row(
      quantity = "P_I", verdict = "no_drift_seen", change_percent = 0.1, change_ci95_low = -0.2, change_ci95_high = 0.4
    )
  )
  expect_identical(
    drift_sentences(campaign, rows),
    paste(
      "In this model, from the first to the last run (120 min) E_A drifted by -30.9 % [-40.1 to -21.7], which does not",
      "affect comparisons, because runs are compared only inside a mini-block; no drift of P_I is seen (0.1 % [-0.2 to",
      "0.4])."
    )
  )
  few <- drift_row(verdict = "cannot_tell", change_percent = NA_real_)
  expect_match(drift_sentences(campaign, few), "a trend of E_A is unknown: there are too few mini-blocks.")
  expect_identical(drift_sentences(campaign, NULL), character())
})

test_that("published values are counted, and the ratio that was printed stands beside ours", {
  skype <- synthetic_meter(u_delta_p_w = 1e-5, power = function(transport, size, rate) {
    if (transport == "udp") 0.4 * rate else 0.3 * rate
  })
  campaign <- read_campaign(synthetic_campaign(
    payload_bytes = 300, offered_rate_mbps = 0.065, transports = c("udp", "dccp"), blocks = 2, meters = list(skype)
  ))
  words <- published_sentence(campaign_tables(campaign)$side_by_side)
  expect_match(words, "^[0-9]+ of 17 published values have a counterpart here")
  expect_match(
    words, "against UDP's (+: more): DCCP, skype, published -26 % (printed as dE_A: 26 %), here in this model -25 %",
    fixed = TRUE
  )
  expect_null(published_sentence(NULL))
})

test_that("no cell of any table on the page says NA", {
  dir <- synthetic_campaign(
    blocks = 2, held_back = function(rate) if (rate == 10) 0.3 else 0, transports = c("udp", "dccp", "tcp", "null"),
    meters = list(
      synthetic_meter(hollow = function(rate) rate == 10), synthetic_meter(meter_id = "coarse", u_delta_p_w = 0.1)
    )
  )
  campaign <- read_campaign(dir)
  parts <- table_parts(campaign, campaign_tables(campaign))
  expect_gt(length(parts), 9)
  for (name in names(parts)) {
    html <- as.character(htmltools::tagList(parts[[name]]$content))
    expect_false(grepl("\\bNA\\b|NaN|\\bInf\\b", html), info = name)
    expect_match(html, "power_source", info = name)
  }
})

test_that("a mini-block that was repeated is planned once", {
  campaign <- memory_campaign(c(udp = 0, dccp = 0.1), blocks = 2)
  planned <- nrow(campaign$plan)
  whole <- sprintf("%d of %d planned runs count, 0 are invalid or unfinished; blocks: 2.", planned, planned)
  expect_identical(counts_sentence(campaign), whole)
  earlier <- copy(campaign$plan[mini_block == 1])
  earlier[, `:=`(run_id = paste0(run_id, "-earlier"), status = "superseded")][1, status := "invalid"]
  campaign$plan[mini_block == 1, attempt := 2]
  campaign$plan <- rbind(earlier, campaign$plan)
  expect_identical(counts_sentence(campaign), sub("; blocks", "; 1 mini-block was repeated; blocks", whole))
  campaign$runs[1, usable := FALSE]
  expect_match(counts_sentence(campaign), sprintf("^%d of %d planned runs count, 1 are", planned - 1, planned))
})

test_that("without any ratio the verdict has the difference of power", {
  words <- function(mean_w, low, high) {
    contrast_side_words(list(
      reference = "udp", blocks_n = 0L, difference_p_a_w = mean_w, difference_p_a_ci95_low = low,
      difference_p_a_ci95_high = high
    ))
  }
  expect_identical(
    words(0.0138, 0.00998, 0.0175), "no load has a ratio to UDP; P_A 0.0138 W more [0.00998 to 0.0175]"
  )
  expect_identical(words(-0.02, -0.03, -0.01), "no load has a ratio to UDP; P_A 0.02 W less [0.01 to 0.03]")
  expect_identical(words(0.01, -0.02, 0.04), "no load has a ratio to UDP; P_A between 0.02 W less and 0.04 W more")
  expect_identical(words(0.01, NA, NA), "no load has a ratio to UDP; P_A 0.01 W more")
  expect_identical(words(NA, NA, NA), "no load has a ratio to UDP")
})

test_that("what would change the answer is named where it applies, and nothing else", {
  power <- function(transport, size, rate) if (transport == "null") 0.4 else rate
  changing <- function(blocks, ...) {
    meters <- list(synthetic_meter(...))
    campaign <- read_campaign(synthetic_campaign(blocks = blocks, payload_bytes = 64, meters = meters))
    tables <- campaign_tables(campaign)
    change_sentences(campaign, tables, family_rows(tables))
  }
  few <- changing(2, power = power)
  expect_identical(few, c(
    "More blocks: there are 2; significance tests need 8 or more.",
    paste(
      "A cheaper sender: its own work (the floor) is over 20 % of P_A - P_I in 3 of 6 cells; Figure 1 also shows E_A",
      "above the floor."
    ),
    "A real device, radio and meter: read shapes and ratios here, not absolute joules."
  ))
  outside <- changing(1, hollow = function(rate) rate == 10, u_delta_p_w = 1)
  expect_match(outside, "^A device model valid here: 3 of 6 cells lie outside its stated range", all = FALSE)
})

test_that("a page says at its head that it is a model, and its sentences do not", {
  expect_identical(
    said_at_head(
      c("In this model, the floor.", "In this model, UDP", "P_I is constant in this model and", "b. In this model.")
    ),
    c("The floor.", "UDP", "P_I is constant and", "b.")
  )
})

test_that("colours of drawings have a counterpart on a dark ground: greys turned over, others light enough", {
  style <- dark_colours("<rect style='fill: var(--cFFFFFF, #FFFFFF)'/><path style='stroke: var(--c0072B2, #0072B2)'/>")
  expect_match(style, "--c000000: #E[0-9A-F]E[0-9A-F]E[0-9A-F];")
  expect_match(style, "--cFFFFFF: #1[0-9A-F]1[0-9A-F]1[0-9A-F];")
  blue <- regmatches(style, regexpr("(?<=--c0072B2: )#[0-9A-F]{6}", style, perl = TRUE))
  lab <- grDevices::convertColor(t(grDevices::col2rgb(c(blue, "#0072B2"))) / 255, "sRGB", "Lab")
  expect_gt(lab[1, 1], 55)
  expect_lt(lab[1, 3], -20)
})

test_that("a table is carried whole by the page, unless it is large", {
  link <- as.character(csv_link(data.table(a = c(1 / 3, NA), b = c("28 % less %s", "y")), "one"))
  data <- sub(".*base64,([^\"]*)\".*", "\\1", link)
  expect_identical(rawToChar(jsonlite::base64_dec(data)), "a,b\n0.333333333,28 % less %s\n,y\n")
  expect_null(csv_link(data.table(a = strrep("x", most_csv_bytes)), "one"))
})
