# SPDX-License-Identifier: Apache-2.0

section_of_summary <- function(campaign, tables = campaign_tables(campaign)) {
  as.character(section_summary(campaign, tables))
}

test_that("what was tested stands first, each verdict before its sentence", {
  campaign <- read_campaign(synthetic_campaign(blocks = 8, payload_bytes = 1440, noise_w = 0.001))
  tables <- campaign_tables(campaign)
  html <- section_of_summary(campaign, tables)
  family <- tables$contrasts[in_family == TRUE]
  expect_identical(unique(family$inference), "tested")
  for (i in seq_len(nrow(family))) {
    label <- sprintf("<span class=\"verdict %s\">%s</span>", family$verdict[i], family$verdict[i])
    expect_match(html, label, fixed = TRUE)
    expect_match(html, family$words[i], fixed = TRUE)
  }
  place <- function(text) regexpr(text, html, fixed = TRUE)[1]
  expect_lt(place("class=\"verdicts\""), place("exploratory</h3>"))
  expect_lt(place("exploratory</h3>"), place("the generator alone"))
  expect_lt(place("the generator alone"), place("from the first to the last run"))
  expect_lt(place("from the first to the last run"), place("No run is flagged"))
  expect_lt(place("No run is flagged"), place("No finished run is invalid"))
})

test_that("what was not tested is not called told apart", {
  row <- function(...) as.list(c(list(blocks_n = 3L, inference = "intervals_only", verdict = NA), list(...)))
  changed <- function(...) utils::modifyList(row(), list(...))
  expect_identical(verdict_label(row())[["words"]], "not tested")
  expect_identical(verdict_label(changed(blocks_n = 0L))[["words"]], "no ratio")
  expect_identical(verdict_label(changed(inference = "attainable_only"))[["words"]], "not tested")
  tested <- changed(blocks_n = 9L, inference = "tested", verdict = "not_told_apart")
  expect_identical(verdict_label(tested), c(kind = "untold", words = "not told apart"))
  expect_identical(verdict_label(utils::modifyList(tested, list(verdict = "more")))[["words"]], "more")
})

test_that("the design is told in one sentence", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, offered_rate_mbps = c(1, 3)))
  expect_identical(
    design_sentence(campaign),
    paste0(
      "UDP, TCP and QUIC sent messages of 64 and 1440 bytes at 1 and 3 Mb/s; null ran the same schedules without a ",
      "network."
    )
  )
  alone <- read_campaign(synthetic_campaign(blocks = 1, transports = "null", payload_bytes = 64))
  expect_match(design_sentence(alone), "^The generator alone ran")
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
      "In this model, from the first to the last run (120 min) E_A drifted by -30.9 % [-40.1 to -21.7], which pairs",
      "inside mini-blocks do not see; no drift of P_I is seen (0.1 % [-0.2 to 0.4])."
    )
  )
  few <- drift_row(verdict = "cannot_tell", change_percent = NA_real_)
  expect_match(drift_sentences(campaign, few), "a trend of E_A cannot be told, there are too few mini-blocks.")
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
  expect_match(words, "less than UDP's: DCCP, skype, published 26 %, here in this model 25 %", fixed = TRUE)
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
