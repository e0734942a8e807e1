# SPDX-License-Identifier: Apache-2.0

two_pacings <- function(...) {
  power <- function(transport, size, rate, pacing) (if (pacing == "spin") 10 else 0) + 0.1 * rate
  synthetic_campaign(
    payload_bytes = 64, transports = c("udp", "tcp", "null"), blocks = 2, pacings = c("absolute", "spin"),
    meters = list(synthetic_meter(power = power)), ...
  )
}

test_that("pacing is part of a cell, and no table mixes two of them", {
  campaign <- read_campaign(two_pacings())
  summary <- summarise_ea(campaign)
  expect_true(all(summary$n == 2))
  expect_equal(summary[transport == "udp" & offered_rate_mbps == 1, ea_j_per_mbit_mean], c(0.1, 10.1))
  expect_identical(unique(summary$pacing), c("absolute", "spin"))
  expect_identical(unique(summary$window_us), 0)
  expect_identical(unique(summary$gso), FALSE)
  expect_equal(ea_envelope(campaign)[transport == "udp" & offered_rate_mbps == 1, ea_least_j_per_mbit], c(0.1, 10.1))
  delta <- delta_ea(campaign)
  expect_identical(nrow(delta), 4L)
  expect_identical(delta$pacing, c("absolute", "absolute", "spin", "spin"))
  expect_identical(nrow(run_table(campaign)[pacing == "spin"]), 12L)
})

test_that("with one pacing figures have their plain names, with two one set each", {
  names_of <- function(dir) {
    campaign <- read_campaign(dir)
    vapply(campaign_figures(campaign, campaign_tables(campaign)), function(one) one$name, "")
  }
  expect_false(any(grepl("absolute|spin|pacer", names_of(synthetic_campaign(blocks = 1)))))
  # The floor of a spinning pacer is empty, so it has no figure.
  expect_setequal(names_of(two_pacings()), c(
    "ea", "envelope", "delta-ea", "floor", "goodput", "loss", "ea-spin", "envelope-spin", "delta-ea-spin",
    "goodput-spin", "loss-spin", "phy-rates", "pacer", "delta-goodput", "delta-goodput-spin", "power",
    "ea-order"
  ))
})

test_that("figures and sentences of one of several pacings name it", {
  campaign <- read_campaign(two_pacings())
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  names(figures) <- vapply(figures, function(one) one$name, "")
  expect_match(figures$`ea-spin`$plot$labels$caption, "pacing\u00a0spin")
  expect_match(figures$`ea-spin`$plot$labels$subtitle, "Pacing spin.", fixed = TRUE)
  expect_match(figures$ea$plot$labels$subtitle, "Pacing absolute.", fixed = TRUE)
  sentences <- summary_sentences(campaign, tables, "client-wt210")
  expect_match(sentences, "In this model, with pacing spin, a megabit in 64-byte messages cost", all = FALSE)
  expect_match(sentences, "In this model, with pacing absolute, a megabit", all = FALSE)
  expect_match(
    sentences, "with pacing spin, E_A above floor is empty in 4 cells: floor_spinning",
    fixed = TRUE, all = FALSE
  )
})

test_that("what the sender did wins over what was asked, other programs' own pacers do not", {
  runs <- data.table(
    pacing = c("absolute", NA, NA, "burst:8", "absolute", NA), run_pacing = c(NA, "spin", NA, NA, NA, "absolute"),
    run_window_us = c(200, NA, NA, NA, NA, NA), run_gso = c(TRUE, NA, NA, NA, NA, NA),
    sent_pacing = c("absolute", NA, NA, "burst", "spin", "other")
  )
  found <- with_pacing(runs)
  expect_identical(found$pacing, c("absolute", "spin", "absolute", "burst:8", "spin", "absolute"))
  expect_identical(found$window_us, c(200, 0, 0, 0, 0, 0))
  expect_identical(found$gso, c(TRUE, rep(FALSE, 5)))
})

test_that("variants are ordered, named and fit for file names", {
  variants <- pacing_variants(data.table(
    pacing = c("spin", "burst:8", "absolute", "absolute", "spin"), window_us = c(0, 0, 200, 0, 0),
    gso = c(FALSE, FALSE, TRUE, FALSE, FALSE)
  ))
  expect_identical(variants$pacing, c("absolute", "absolute", "burst:8", "spin"))
  expect_identical(variant_words(variants), c(
    "pacing absolute", "pacing absolute, window 200 us, offload", "pacing burst:8", "pacing spin"
  ))
  expect_identical(variant_slug(variants), c("absolute", "absolute-window200-gso", "burst-8", "spin"))
  expect_identical(variant_slug(data.table(pacing = "../x", window_us = 0, gso = FALSE)), "-x")
})
