# SPDX-License-Identifier: Apache-2.0

certificate_doc <- function(p50 = 12, passed = TRUE, limits = list(max_error_p50_us = 400, min_achieved_ratio = 0.99)) {
  list(
    error_basis = "hand_over", departures = 1000L, error_us = list(p50 = p50, p99 = 90, p99_9 = 400, max = 2000),
    within_5us_ratio = 0.1, within_50us_ratio = 0.9, within_500us_ratio = 1, back_to_back_ratio = 0.2,
    train_messages = list(mean = 1.2, p99 = 2, max = 3), messages_early = 0L, held_back_ratio = 0,
    held_back_not_sent_ratio = 0, achieved_ratio = 1, cpu_s = 0.1, cpu_ratio = 0.02, limits = limits,
    failed = if (isFALSE(passed)) list("the median error is 500 us, over 400 us") else list(), passed = passed
  )
}

# Writes a certificate into each flow report; `change` makes it from the run's name.
certified <- function(dir, change = function(run_id) certificate_doc()) {
  for (id in list.files(file.path(dir, "runs"))) {
    edit_json(file.path(dir, "runs", id, "flow.json"), function(flow) {
      flow$pacing_certificate <- change(id)
      flow
    })
  }
  read_campaign(dir)
}

test_that("certificates are those of the flow report's contract", {
  properties <- contract("schemas", "flow_report.schema.json")$properties$pacing_certificate$properties
  expect_true(all(c(certificate_shares, "error_basis", "departures", "messages_early") %in% names(properties)))
  expect_true(all(certificate_errors %in% names(properties$error_us$properties)))
  expect_true(all(c("max_error_p50_us", "max_error_p99_us") %in% names(properties$limits$properties)))
})

test_that("every finished run's certificate is listed, that of an invalid one too", {
  dir <- synthetic_campaign(blocks = 2, transports = c("udp", "null"), payload_bytes = 64)
  campaign <- certified(dir, function(id) {
    if (startsWith(id, "b01") && grepl("udp", id)) certificate_doc(p50 = 500, passed = FALSE) else certificate_doc()
  })
  campaign$runs[startsWith(run_id, "b01") & transport == "udp", usable := FALSE]
  listed <- pacing_certificates(campaign)
  expect_identical(names(listed), columns_of("pacing_certificates"))
  expect_identical(nrow(listed), 8L)
  failed <- listed[passed == FALSE]
  expect_identical(nrow(failed), 2L)
  expect_identical(unique(failed$usable), FALSE)
  expect_match(failed$failed[1], "over 400 us")
  expect_identical(unique(listed$limits), "max_error_p50_us 400; min_achieved_ratio 0.99")
  overview <- pacing_overview(listed)
  expect_identical(names(overview), columns_of("pacing_overview"))
  udp <- overview[transport == "udp" & offered_rate_mbps == 1]
  expect_equal(c(udp$certificates_n, udp$passed_n, udp$failed_n, udp$unjudged_n), c(2, 1, 1, 0))
  expect_equal(c(udp$error_p50_us, udp$error_p50_least_us, udp$error_p50_greatest_us), c(256, 12, 500))
  expect_equal(udp$limit_error_p50_us, 400)
  expect_true(is.na(udp$limit_error_p99_us))
})

test_that("without certificates, without limits and without departures nothing is made up", {
  plain <- read_campaign(synthetic_campaign(blocks = 1))
  expect_identical(names(pacing_certificates(plain)), columns_of("pacing_certificates"))
  expect_identical(names(pacing_overview(pacing_certificates(plain))), columns_of("pacing_overview"))
  expect_null(plot_pacing(pacing_overview(pacing_certificates(plain)), summarise_ea(plain), plain))
  campaign <- certified(synthetic_campaign(blocks = 1, payload_bytes = 64), function(id) {
    doc <- certificate_doc(passed = NA, limits = list())
    if (grepl("tcp", id)) doc["error_us"] <- list(NULL)
    doc
  })
  overview <- pacing_overview(pacing_certificates(campaign))
  expect_equal(overview$unjudged_n, rep(1, 8))
  expect_true(all(is.na(overview[transport == "tcp", error_p50_us])))
  expect_match(certificate_words(overview)[1], "8 certificates, held to no limits", fixed = TRUE)
  plot <- plot_pacing(overview, summarise_ea(campaign), campaign)
  expect_match(figure_alt(plot), "Median departure error 12 us.* In this model\\.$")
})

test_that("a certificate of a hostile file stays one line of text", {
  campaign <- certified(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1), function(id) {
    doc <- certificate_doc(passed = FALSE)
    doc$failed <- list("a\nb\u0007")
    doc$limits <- list("x\ny" = "z")
    doc
  })
  listed <- pacing_certificates(campaign)
  expect_identical(unique(listed$failed), "a b ")
  expect_identical(unique(listed$limits), "x y unknown")
})

test_that("the figure shows medians with their ranges and what failed", {
  campaign <- certified(synthetic_campaign(blocks = 2), function(id) {
    if (grepl("b01.*udp", id)) certificate_doc(p50 = 500, passed = FALSE) else certificate_doc()
  })
  overview <- pacing_overview(pacing_certificates(campaign))
  plot <- plot_pacing(overview, summarise_ea(campaign), campaign)
  subtitle <- gsub("\n", " ", plot$patches$annotation$subtitle)
  expect_match(subtitle, "28 of 32 certificates kept their limits (of errors the median alone).", fixed = TRUE)
  expect_no_match(subtitle, "99th percentile of all runs", fixed = TRUE)
  expect_match(subtitle, "Crossed out: a run failed. Grey dashes: the limit.", fixed = TRUE)
  panel <- certificate_panel(overview, summarise_ea(campaign), "error_p50", "_us", "Median error (us)")
  built <- ggplot2::ggplot_build(panel)$data
  points <- rbindlist(Filter(function(data) "shape" %in% names(data), built), fill = TRUE)
  expect_identical(nrow(points[shape == 4]), 4L)
  # Hollow is for what a device model does not hold for.
  expect_false("white" %in% points$fill)
  ranges <- rbindlist(Filter(function(data) all(c("ymin", "ymax") %in% names(data)), built), fill = TRUE)
  expect_equal(max(10^ranges$ymax, na.rm = TRUE), 500)
})

test_that("a run that is late ten times as far as all is named, though no limit looks at its 99th percentile", {
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64, transports = c("udp", "null"))
  campaign <- certified(dir, function(id) {
    doc <- certificate_doc()
    if (grepl("b02.*udp", id)) doc$error_us$p99 <- 901
    doc
  })
  listed <- pacing_certificates(campaign)
  late <- late_runs(listed)
  expect_equal(late$typical_us, 90)
  expect_setequal(late$runs$run_id, listed[block == 2 & transport == "udp", run_id])
  overview <- pacing_overview(listed)
  plot <- plot_pacing(overview, summarise_ea(campaign), campaign)
  words <- "Over 10 times the median 99th percentile of all runs \\(90 us\\): b02m003-udp-a1 \\(901 us\\) and b02m004"
  expect_match(gsub("\n", " ", plot$patches$annotation$subtitle), words)
  expect_match(figure_alt(plot), words)
  expect_match(late_words(list(typical_us = 90, runs = listed[c(1, 1, 1, 1)])), "and 2 more.", fixed = TRUE)
  expect_null(late_words(late_runs(listed[0])))
  held <- copy(overview)[, held_back_greatest_ratio := 0.048]
  html <- as.character(htmltools::tagList(table_html("pacing_overview", held)))
  expect_match(html, "held back, share", fixed = TRUE)
  expect_no_match(as.character(htmltools::tagList(table_html("pacing_overview", overview))), "held back", fixed = TRUE)
})
