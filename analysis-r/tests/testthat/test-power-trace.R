# SPDX-License-Identifier: Apache-2.0

long_campaign <- function(...) {
  read_campaign(synthetic_campaign(transports = c("udp", "tcp", "null"), blocks = 6, ...))
}

test_that("a half-written last row, a header alone and no file are no obstacle", {
  campaign <- long_campaign()
  path <- file.path(campaign$dir, "meters", "client-wt210.csv")
  before <- power_trace(campaign)
  last <- max(read_meter(campaign, "client-wt210")$t_s)
  cat(sprintf("%.6f,9999,1", last + 0.1), file = path, append = TRUE)
  expect_equal(max(read_meter(campaign, "client-wt210")$t_s), last)
  expect_equal(power_trace(campaign), before)
  writeLines(readLines(path, n = 1), path)
  expect_identical(nrow(power_trace(campaign)), 0L)
  unlink(path)
  expect_identical(names(power_trace(campaign)), c(trace_columns, "transport"))
  # P_A and P_I of the runs are drawn without it.
  plot <- plot_power(power_trace(campaign), summarise_ea(campaign), campaign, "client-wt210")
  expect_match(figure_alt(plot), "72 runs: P_A from")
})

test_that("readings lie in the windows that they belong to, with the meter's delay taken off", {
  trace <- power_trace(long_campaign(payload_bytes = 64, offered_rate_mbps = c(1, 10)))
  expect_equal(unique(trace$readings_n), 1)
  # Power is constant in each window of the synthetic runs: 8 W idle, 8 W and more while sending.
  expect_equal(unique(trace[window == "idle", power_w]), 8)
  expect_true(all(trace[window == "measure", power_w] > 8))
  expect_true(all(is.na(trace[window == "idle", run_id])))
  per_run <- trace[window == "measure", list(n = .N, values = length(unique(power_w))), by = list(run_id, transport)]
  expect_setequal(per_run$transport, c("udp", "tcp", "null"))
  expect_equal(per_run$n, rep(timeline$measure / tick_s, 3), tolerance = 0.06)
  expect_equal(per_run$values, rep(1, 3))
})

test_that("the mini-block shown is whole and the one with the greatest power", {
  campaign <- long_campaign(payload_bytes = 64, offered_rate_mbps = c(1, 10))
  shown <- shown_mini_block(campaign, "client-wt210")
  expect_identical(nrow(shown), 3L)
  expect_identical(unique(shown$offered_rate_mbps), 10)
  campaign$results[offered_rate_mbps == 10 & transport == "tcp", usable := FALSE]
  expect_identical(unique(shown_mini_block(campaign, "client-wt210")$offered_rate_mbps), 1)
  campaign$results[, usable := FALSE]
  expect_null(shown_mini_block(campaign, "client-wt210"))
  expect_null(plot_power(power_trace(campaign), summarise_ea(campaign), campaign, "client-wt210"))
})

test_that("of the mini-blocks of that load the one with the most usual P_A is shown, not the one with the greatest", {
  campaign <- long_campaign(payload_bytes = 64, offered_rate_mbps = c(1, 10))
  at_ten <- sort(unique(campaign$results[offered_rate_mbps == 10, mini_block]))
  # The first has a run of more power than any; the others but the fourth are a little off their cells' medians.
  campaign$results[mini_block == at_ten[1] & transport == "tcp", `:=`(p_a_w = p_a_w + 1, delta_p_w = delta_p_w + 1)]
  campaign$results[mini_block %in% at_ten[2:3], p_a_w := p_a_w - 0.02]
  campaign$results[mini_block == at_ten[5], p_a_w := p_a_w + 0.02]
  campaign$results[mini_block == at_ten[6] & transport == "udp", p_a_w := p_a_w + 0.5]
  expect_identical(unique(shown_mini_block(campaign, "client-wt210")$mini_block), at_ten[4])
})

test_that("many readings are thinned to means with their least and greatest", {
  readings <- data.table(t_s = 1:2500, power_w = rep(c(1, 3, 2), length.out = 2500), flag = "")
  thin <- thinned(readings, 1000)
  expect_identical(nrow(thin), 834L)
  expect_equal(thin$power_w[1], 2)
  expect_equal(c(thin$power_least_w[1], thin$power_greatest_w[1]), c(1, 3))
  expect_identical(sum(thin$readings_n), 2500L)
  expect_identical(nrow(thinned(readings[1:1000], 1000)), 1000L)
})

test_that("many runs are drawn mini-block by mini-block, at the times at which they were run", {
  campaign <- long_campaign()
  runs <- power_runs(campaign, "client-wt210")
  built <- ggplot2::ggplot_build(power_over_time(runs, campaign, TRUE))$data
  expect_identical(nrow(built[[1]]), 24L)
  expect_equal(built[[1]]$ymax, runs[, max(p_a_w), by = mini_block]$V1)
  expect_equal(built[[1]]$x, runs[, mean(t_s), by = mini_block]$V1 / time_unit(max(runs$t_s))$seconds)
  expect_identical(time_unit(100)$name, "s")
  expect_identical(time_unit(3000)$name, "min")
  expect_identical(time_unit(1e6)$name, "h")
})

test_that("the line of P_I ends where the campaign paused", {
  campaign <- long_campaign()
  middle <- stats::median(campaign$results$window_t_start_s)
  campaign$meta$sessions <- list(list(t_start_s = 0), list(t_start_s = middle))
  runs <- power_runs(campaign, "client-wt210")
  expect_identical(sort(unique(runs$session)), 1:2)
  for (panel in lapply(c(FALSE, TRUE), power_over_time, runs = runs, campaign = campaign)) {
    built <- ggplot2::ggplot_build(panel)$data
    lines <- Filter(function(layer) !"shape" %in% names(layer) && !"ymin" %in% names(layer), built)
    expect_length(lines, 1)
    expect_identical(length(unique(lines[[1]]$group)), 2L)
  }
})

test_that("idle power that is one number by the model is said to be that, not measured to be steady", {
  campaign <- long_campaign(payload_bytes = 64)
  plot <- plot_power(power_trace(campaign), summarise_ea(campaign), campaign, "client-wt210")
  expect_match(gsub("\n", " ", plot$patches$annotation$subtitle), "line: P_I, constant in this model.", fixed = TRUE)
  expect_match(figure_alt(plot), ", P_I 8 W, constant in this model.", fixed = TRUE)
  expect_true(constant_idle(c(8, 8.0009), "modelled", "m", list(meta = list(
    meters = list(list(meter_id = "m", resolution = 0.001))
  ))))
  expect_false(constant_idle(c(8, 8.0009), "modelled", "m", list(meta = list())))
  expect_false(constant_idle(c(8, 8), "measured", "m", list(meta = list())))
  expect_false(constant_idle(8, "modelled", "m", list(meta = list())))
})

test_that("streams and datagrams share the panels only with frames per message shown", {
  campaign <- long_campaign()
  plot <- plot_power(power_trace(campaign), summarise_ea(campaign), campaign, "client-wt210")
  caption <- gsub("[\u00a0\n]", " ", plot$patches$annotation$caption)
  expect_match(caption, "frames per message: UDP 1, TCP 0\\.[0-9]+\u20131")
  expect_match(caption, "in this model", fixed = TRUE)
  expect_null(frames_words(data.table(transport = c("udp", "dccp", "null"), frames_per_message = 1)))
})

test_that("idle and measure windows of every run of the mini-block are shaded, P_A and P_I lie on them", {
  campaign <- long_campaign(payload_bytes = 64, offered_rate_mbps = c(1, 10))
  trace <- power_trace(campaign)
  layers <- ggplot2::ggplot_build(power_detail(trace, power_runs(campaign, "client-wt210"), campaign))$data
  runs <- campaign$runs[match(unique(trace[!is.na(run_id), run_id]), run_id)]
  spans <- function(layer) sort(unique(round(c(layer$xmin, layer$xmax), 6)))
  expect_identical(unique(layers[[1]]$fill), "#EDEDED")
  idle <- runs[, c(idle_before_start_s, idle_before_end_s, idle_after_start_s, idle_after_end_s)]
  expect_equal(spans(layers[[1]]), sort(unique(round(idle, 6))))
  expect_identical(unique(layers[[2]]$fill), "#CFE0EE")
  expect_equal(spans(layers[[2]]), sort(unique(round(runs[, c(measure_start_s, measure_end_s)], 6))))
  segments <- Filter(function(layer) "xend" %in% names(layer), layers)
  expect_length(segments, 2)
  expect_equal(unique(segments[[1]]$y), 8) # P_I, dashed
  shown <- campaign$results[run_id %in% runs$run_id]
  expect_equal(sort(segments[[2]]$y), sort(shown$p_a_w))
})
