# SPDX-License-Identifier: Apache-2.0

# Campaigns with known truth: a sender that spins, one that does not, an idle power
# that was read too low, and runs that decide nothing.

loads_mbps <- c(0.065, 0.639)

pacer_campaign <- function(power, ..., transports = c("udp", "dccp", "null"), blocks = 4, noise_w = 0,
                           device_form = "cpu", u_delta_p_w = 0.02, power_source = "modelled") {
  meter <- synthetic_meter(
    power = power, device_form = device_form, u_delta_p_w = u_delta_p_w, power_source = power_source
  )
  read_campaign(synthetic_campaign(
    name = "pacer", transports = transports, payload_bytes = c(300, 1431), offered_rate_mbps = loads_mbps,
    blocks = blocks, noise_w = noise_w, pacings = c("absolute", "spin"), meters = list(meter), ...
  ))
}

# What the study published: 29.5 W at 65 kb/s, 28.8 W at 639 kb/s.
spinning <- function(watts = 10, rest = function(rate) 0.01 * rate) {
  function(transport, size, rate, pacing) (if (pacing == "spin") watts else 0) + rest(rate)
}
not_spinning <- function(rest) function(transport, size, rate, pacing) rest(rate)

test_that("a sender that spins is found out, at every transport and for null by itself", {
  verdict <- pacer_verdict(pacer_campaign(spinning(), noise_w = 0.03))
  expect_identical(unique(verdict$verdict), "sender")
  expect_true(all(is.na(verdict$reason)))
  expect_setequal(verdict$transport, c("udp", "dccp", "null"))
  expect_identical(nrow(verdict), 12L)
  expect_true(all(verdict$shape_spin == "constant"))
  expect_true(all(abs(verdict$exponent_spin) < 0.01))
  expect_true(all(verdict$difference_ci95_low < 10 & 10 < verdict$difference_ci95_high))
  expect_true(all(verdict$shape_absolute == "below_resolution"))
})

test_that("constant power that is there without spinning did not come from the sender", {
  verdict <- pacer_verdict(pacer_campaign(not_spinning(function(rate) 29), noise_w = 0.2))
  expect_identical(unique(verdict$verdict), "not_sender")
  expect_identical(unique(verdict$shape_absolute), "constant")
  expect_gt(mean(verdict$difference_ci95_low < 0 & verdict$difference_ci95_high > 0), 0.7)
})

test_that("spinning may explain a part of it", {
  verdict <- pacer_verdict(pacer_campaign(spinning(10, function(rate) 20), noise_w = 0.2))
  expect_identical(unique(verdict$verdict), "sender_in_part")
})

test_that("a sleeping arm that grows with load leaves the constant part to the sender", {
  verdict <- pacer_verdict(pacer_campaign(function(transport, size, rate, pacing) {
    if (pacing == "spin") 10 else 14 * rate
  }, noise_w = 0.02))
  expect_identical(unique(verdict$verdict), "sender")
  expect_identical(unique(verdict$shape_absolute), "grows")
  expect_true(all(abs(verdict$exponent_absolute - 1) < 0.1))
})

test_that("power in proportion to load is no constant power", {
  verdict <- pacer_verdict(pacer_campaign(not_spinning(function(rate) 10 * rate), noise_w = 0.01))
  expect_identical(unique(verdict$verdict), "no_constant_power")
  expect_true(all(abs(verdict$exponent_spin - 1) < 0.1))
})

test_that("it cannot tell where intervals overlap, where nothing is resolved, or with one block", {
  reasons <- function(...) {
    verdict <- pacer_verdict(pacer_campaign(...))
    expect_identical(unique(verdict$verdict), "cannot_tell")
    unique(verdict$reason)
  }
  expect_identical(reasons(not_spinning(function(rate) 29), noise_w = 10, transports = "udp"), "intervals_overlap")
  expect_identical(reasons(not_spinning(function(rate) 0.001)), "below_resolution")
  expect_identical(reasons(spinning(), blocks = 1), "few_blocks")
})

test_that("a device model without CPU cannot tell, a real device can", {
  blind <- pacer_verdict(pacer_campaign(not_spinning(function(rate) 3), device_form = "cross_factor"))
  expect_identical(unique(blind$verdict), "cannot_tell")
  expect_identical(unique(blind$reason), "model_without_cpu")
  expect_length(unique(blind$words), 1)
  expect_match(
    blind$words[1], "meter client-wt210 is modelled without a CPU term (linear-test (cross_factor))",
    fixed = TRUE
  )
  real <- pacer_campaign(spinning(), noise_w = 0.03, device_form = NULL, power_source = "measured")
  expect_identical(unique(pacer_verdict(real)$verdict), "sender")
})

test_that("loads that are too close, or run in one arm alone, decide nothing", {
  close <- pacer_campaign(spinning(), transports = "udp")
  close$results[offered_rate_mbps == 0.065, offered_rate_mbps := 0.5]
  expect_identical(unique(pacer_verdict(close)$reason), "few_loads")
  campaign <- pacer_campaign(spinning(), transports = "udp")
  campaign$results[pacing == "spin" & offered_rate_mbps == 0.065, usable := FALSE]
  verdict <- pacer_verdict(campaign)
  expect_identical(unique(verdict$reason), "few_loads")
  expect_identical(is.na(verdict$difference_w), rep(c(TRUE, FALSE), 2))
  campaign$results[pacing == "spin" & payload_bytes == 300, usable := FALSE]
  expect_identical(pacer_verdict(campaign)[payload_bytes == 300, reason], rep("arm_missing", 2))
  expect_match(pacer_verdict(campaign)$words[1], "no load has runs with both pacings", fixed = TRUE)
})

test_that("hollow runs are left out, and a campaign without both arms has no verdict", {
  campaign <- pacer_campaign(spinning(), transports = "udp")
  campaign$results[pacing == "spin" & block == 1, `:=`(delta_p_w = 1000, hollow = TRUE)]
  verdict <- pacer_verdict(campaign)
  expect_identical(unique(verdict$n_spin), 3L)
  expect_true(all(verdict$delta_p_spin_w < 11))
  expect_null(pacer_verdict(read_campaign(synthetic_campaign(blocks = 1))))
  campaign$results[, usable := FALSE]
  expect_null(pacer_verdict(campaign))
})

test_that("the published figures are constant power by this measure", {
  published <- data.table(
    offered_rate_mbps = loads_mbps, n = 5L, delta_p_w = c(454 * 0.065, 45 * 0.639), variance = 0.01, u_w = 0.1,
    below_n = 0L
  )
  found <- power_exponent(published)
  expect_identical(found$shape, "constant")
  expect_equal(found$exponent, log(28.755 / 29.51) / log(0.639 / 0.065), tolerance = 1e-9)
  proportional <- copy(published)[, delta_p_w := 40 * offered_rate_mbps]
  expect_equal(power_exponent(proportional)$exponent, 1, tolerance = 1e-9)
})

test_that("the half-width is Welch's, with metering in quadrature", {
  set.seed(3)
  x <- rnorm(5, 10, 0.5)
  y <- rnorm(4, 3, 0.1)
  expected <- diff(t.test(x, y)$conf.int) / 2
  variances <- c(var(x) / 5, var(y) / 4)
  expect_equal(half_width(variances, c(4, 3), 0), expected, tolerance = 1e-12)
  expect_equal(half_width(variances, c(4, 3), 0.2), sqrt(expected^2 + (1.96 * 0.2)^2), tolerance = 1e-12)
  expect_identical(half_width(c(0, 0), c(4, 3), 0), 0)
  expect_identical(half_width(c(NA, 1), c(0, 3), 0.2), NA_real_)
})

# Cells drawn directly, as many campaigns would give them: 6 blocks, a range error that all blocks share.
drawn_cell <- function(truth_w, noise_w, offset_w) {
  blocks <- truth_w + rnorm(6, sd = noise_w) + runif(1, -offset_w, offset_w)
  pacer_cell(data.table(
    block = 1:6, delta_p_w = blocks, u_delta_p_w = sqrt(noise_w^2 + offset_w^2 / 3), below_resolution = FALSE
  ))
}

drawn_verdict <- function(spin_w, absolute_w, noise_w, offset_w) {
  truth_w <- c(spin = spin_w, absolute = absolute_w)
  cells <- rbindlist(lapply(loads_mbps, function(load) {
    rbindlist(lapply(names(truth_w), function(arm) {
      c(list(pacing = arm, offered_rate_mbps = load), drawn_cell(truth_w[[arm]], noise_w, offset_w))
    }))
  }))
  judge_pacer(cells, list(power_source = "measured", device_form = NA_character_))
}

test_that("intervals hold the truth, and a wrong verdict is rarer than one in twenty", {
  set.seed(11)
  sender <- rbindlist(lapply(1:300, function(i) drawn_verdict(12, 2, noise_w = 1, offset_w = 0.5)))
  held <- mean(sender$difference_ci95_low <= 10 & 10 <= sender$difference_ci95_high)
  expect_gt(held, 0.94)
  expect_gt(mean(sender$exponent_spin_ci95_low <= 0 & 0 <= sender$exponent_spin_ci95_high), 0.94)
  expect_false(any(sender$verdict %in% c("not_sender", "no_constant_power")))
  baseline <- rbindlist(lapply(1:300, function(i) drawn_verdict(20, 20, noise_w = 0.5, offset_w = 0.5)))
  expect_lt(mean(baseline$verdict %in% c("sender", "sender_in_part", "no_constant_power")), 0.05)
  expect_gt(mean(baseline$verdict == "not_sender"), 0.8)
})

test_that("a modelled verdict says that it is a model's, and a measured one does not", {
  campaign <- pacer_campaign(spinning(), noise_w = 0.03)
  words <- pacer_verdict(campaign)$words
  expect_true(all(startsWith(words, "In this model, ")))
  expect_match(words[1], "UDP, 300-byte messages (meter client-wt210): P_A - P_I (E_A times T_A) is ", fixed = TRUE)
  expect_match(
    words[1], "constant over load: consistent with a busy-waiting sender or a wrong idle baseline",
    fixed = TRUE
  )
  expect_match(words[1], "with pacing absolute it is at most 0\\.[0-9]+ W at 0.065 Mb/s")
  expect_match(words[1], "The constant power came from the busy-waiting sender in this model\\.$")
  real <- pacer_campaign(spinning(), noise_w = 0.03, device_form = NULL, power_source = "measured")
  real$results$radio_source <- "real"
  real$meta$radio_source <- "real"
  expect_false(any(grepl("model", pacer_verdict(real)$words)))
})

test_that("the report has the verdict, its table and its figure, and names are escaped", {
  campaign <- pacer_campaign(spinning(), noise_w = 0.03, transports = c("udp", "null"), blocks = 2)
  tables <- campaign_tables(campaign)
  figures <- Filter(function(one) startsWith(one$name, "pacer"), campaign_figures(campaign, tables))
  write_figures(figures, file.path(campaign$dir, "figures"))
  html <- page_text(report(campaign, tables, figures))
  expect_on_page(html, "<section id=\"pacer\"", fixed = TRUE)
  expect_on_page(html, "href=\"#pacer\"", fixed = TRUE)
  expect_on_page(html, "The constant power came from the busy-waiting sender in this model.", fixed = TRUE)
  expect_on_page(html, "id=\"figure-pacer\"", fixed = TRUE)
  plain <- campaign_tables(read_campaign(synthetic_campaign(blocks = 1)))
  expect_false("pacer_verdict" %in% names(plain))
  out <- file.path(campaign$dir, "tables")
  expect_true("pacer_verdict" %in% names(write_tables(tables, out)))
  write_tables(plain, out)
  expect_false(file.exists(file.path(out, "pacer_verdict.csv")))
})

test_that("the figure shows both pacings on one scale, limits as triangles", {
  campaign <- pacer_campaign(spinning(), noise_w = 0.03)
  verdict <- pacer_verdict(campaign)
  points <- pacer_points(verdict)
  expect_identical(levels(points$panel), c(
    "300-byte messages, pacing absolute", "300-byte messages, pacing spin", "1431-byte messages, pacing absolute",
    "1431-byte messages, pacing spin"
  ))
  expect_identical(points[limit == TRUE, unique(pacing)], "absolute")
  expect_true(all(points[limit == TRUE, value] > 0))
  plot <- plot_pacer(verdict, campaign, "client-wt210")
  expect_match(figure_alt(plot), "pacing absolute on the left and spin on the right")
  expect_match(gsub("[\u00a0\n]", " ", plot$labels$caption), "in this model", fixed = TRUE)
  built <- ggplot2::ggplot_build(plot)
  expect_identical(nrow(built$layout$layout), 4L)
  shapes <- unlist(lapply(built$data, function(data) data$shape))
  expect_identical(sum(shapes == 25, na.rm = TRUE), sum(points$limit))
})
