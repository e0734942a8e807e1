# SPDX-License-Identifier: Apache-2.0

test_that("the slope within groups and its interval are those of least squares with a mean per group", {
  data <- data.frame(t = (1:30)^1.2, group = rep(1:5, 6))
  data$y <- 3 * data$group + 0.05 * data$t + rep_len(c(1, -0.8, 0.6, -1.2), 30)
  line <- stats::lm(y ~ t + factor(group), data)
  # The interval is widened only where neighbours err alike; here they do not.
  expect_lte(lag_one_correlation(stats::residuals(line)), 0)
  trend <- within_trend(data$t, data$y, data$group)
  expect_equal(trend$slope, unname(stats::coef(line)["t"]))
  expect_equal(c(trend$low, trend$high), unname(stats::confint(line)["t", ]))
  expect_equal(trend$freedom, line$df.residual)
})

test_that("neighbours that err alike leave fewer degrees of freedom, by the formula of Santer et al.", {
  t <- 1:12
  y <- rep(c(-1, 1, -1, 1), each = 3)
  trend <- within_trend(t, y, rep(1, 12))
  residuals <- stats::residuals(stats::lm(y ~ t))
  r <- lag_one_correlation(residuals)
  expect_gt(r, 0.3)
  expect_equal(trend$autocorrelation, r)
  expect_equal(trend$freedom, 10 * (1 - r) / (1 + r))
  spread <- sum((t - mean(t))^2)
  half <- stats::qt(0.975, trend$freedom) * sqrt(sum(residuals^2) / trend$freedom / spread)
  expect_equal(trend$high - trend$slope, unname(half))
})

test_that("too few values, or one time only, give no trend", {
  expect_true(is.na(within_trend(c(1, 2), c(1, 2), c(1, 1))$low))
  expect_true(is.na(within_trend(c(1, 1, 1, 1), 1:4, rep(1, 4))$low))
})

# Share of simulated campaigns whose interval holds the true trend; noise is white or, with `memory`, autoregressive.
trend_coverage <- function(seed, memory, runs = 400L, true_slope = 2) {
  with_seed(seed, {
    held <- replicate(runs, {
      group <- rep(1:6, 8)
      t <- seq(0, 1, length.out = 48)
      noise <- as.numeric(stats::filter(rnorm(48), memory, "recursive"))
      trend <- within_trend(t, 10 * group + true_slope * t + noise, group)
      trend$low <= true_slope && true_slope <= trend$high
    })
    mean(held)
  })
}

test_that("the interval holds the true trend as often as it says", {
  white <- trend_coverage(1, memory = 0)
  expect_gt(white, 0.92)
  expect_lt(white, 0.985)
  # Neighbours with a correlation of 0.5 triple the variance of a mean: taken for independent, 74 % would hold it.
  expect_gt(trend_coverage(2, memory = 0.5), 0.88)
})

drifting <- function(per_run, ...) {
  campaign <- read_campaign(synthetic_campaign(transports = c("udp", "tcp", "null"), blocks = 6, noise_w = 1e-4, ...))
  of_run <- match(campaign$results$run_id, campaign$plan$run_id) / nrow(campaign$plan)
  campaign$results[, ea_j_per_mbit := ea_j_per_mbit * (1 + per_run * of_run)]
  campaign
}

test_that("a drift over the campaign is told with its size, whatever the cells", {
  campaign <- drifting(0.1)
  drift <- ea_drift(ea_order(campaign), campaign)
  energy <- drift[quantity == "E_A"]
  expect_identical(energy$verdict, "drift")
  # 10 % of the first run's E_A are 9.5 % of the mean; from the middle of the first mini-block to that of the last.
  expect_equal(energy$change_percent, 100 * 0.1 / 1.05 * 23 / 24, tolerance = 0.1)
  expect_equal(energy$cells_n, 4)
  expect_equal(energy$mini_blocks_n, 24)
  expect_equal(energy$runs_n, 48)
  # Idle power is one number here, by the model.
  expect_identical(unlist(drift[quantity == "P_I", c("verdict", "reason")]), c(
    verdict = "constant", reason = "constant_in_model"
  ))
  expect_identical(columns_of("ea_drift"), names(drift))
  # In one session there is one trend.
  expect_equal(energy$sessions_n, 1)
  expect_equal(energy$within_percent_per_hour, energy$trend_percent_per_hour)
  sessions <- ea_drift_sessions(ea_order(campaign), campaign)
  expect_equal(sessions[quantity == "E_A", trend_ci95_low], energy$trend_ci95_low)
  expect_equal(sessions[quantity == "E_A", mean_percent], 0, tolerance = 1e-6)
})

test_that("a campaign without drift has none, although its loads differ by far", {
  campaign <- drifting(0)
  drift <- ea_drift(ea_order(campaign), campaign)[quantity == "E_A"]
  expect_identical(drift$verdict, "no_drift_seen")
  expect_lt(abs(drift$change_percent), 1)
})

test_that("deviations are from the mean of the run's own cell, in the order of time", {
  listed <- ea_order(drifting(0.1))
  expect_equal(listed[, list(mean = mean(deviation_percent)), by = list(transport, payload_bytes, offered_rate_mbps)
  ]$mean, rep(0, 8))
  expect_identical(listed$position, as.numeric(1:48))
  expect_false(is.unsorted(listed$t_s))
  expect_equal(listed$deviation_percent, 100 * (listed$ea_j_per_mbit / listed$cell_ea_j_per_mbit - 1))
})

test_that("null, hollow and unresolved runs and cells of one mini-block tell nothing of drift", {
  campaign <- drifting(0)
  campaign$results[mini_block == 1, hollow := TRUE]
  campaign$results[mini_block == 2, below_resolution := TRUE]
  listed <- ea_order(campaign)
  expect_false(any(listed$mini_block %in% 1:2))
  expect_false("null" %in% listed$transport)
  single <- read_campaign(synthetic_campaign(blocks = 1))
  expect_identical(nrow(ea_order(single)), 0L)
  expect_identical(names(ea_order(single)), order_columns(single))
  # Its idle power is looked at all the same.
  expect_identical(ea_drift(ea_order(single), single)$quantity, "P_I")
  single$results[, usable := FALSE]
  expect_identical(names(ea_drift(ea_order(single), single)), columns_of("ea_drift"))
})

test_that("the figure says how large the trend is and where the campaign paused", {
  campaign <- drifting(0.1)
  listed <- ea_order(campaign)
  campaign$meta$sessions <- list(list(t_start_s = 0), list(t_start_s = listed$t_s[20] - 1))
  drift <- ea_drift(listed, campaign)
  plot <- plot_ea_order(listed, drift, summarise_ea(campaign), campaign, "client-wt210")
  subtitle <- gsub("\n", " ", plot$labels$subtitle)
  expect_match(subtitle, "Over the campaign E_A changed by [0-9.]+ % \\[[0-9.]+ to [0-9.]+\\]: a drift\\.")
  expect_match(subtitle, "By session: .*; .*\\. Vertical line: a pause\\.")
  expect_equal(session_starts(listed, campaign), 20)
  # One panel for streams and datagrams: only with frames per message.
  expect_match(gsub("[\u00a0\n]", " ", plot$labels$caption), "frames per message: UDP 1, TCP 0", fixed = TRUE)
  expect_match(figure_alt(plot), "In this model. Meter client-wt210", fixed = TRUE)
})

# Two sessions with a long pause between them: nothing happens in the first, and in the second E_A falls by a tenth.
fallen <- function() {
  campaign <- drifting(0)
  results <- campaign$results
  late <- results$mini_block > 12
  # Mini-blocks differ in turn by 0.3 %: noise that is the same on every machine.
  results[
    transport != "null", ea_j_per_mbit := (1 + 0.003 * (-1)^mini_block) * (1 - 0.1 * pmax(0, mini_block - 13) / 11)
  ]
  results[late, `:=`(window_t_start_s = window_t_start_s + 5700, window_t_end_s = window_t_end_s + 5700)]
  start <- min(results[late, window_t_start_s])
  campaign$meta$sessions <- list(list(t_start_s = 0), list(t_start_s = start - 10))
  campaign
}

test_that("a fall within one session is told as that, and a pause has no part in the trend within sessions", {
  campaign <- fallen()
  listed <- ea_order(campaign)
  sessions <- ea_drift_sessions(listed, campaign)[quantity == "E_A"]
  expect_identical(sessions$session, 1:2)
  expect_identical(sessions$verdict, c("no_drift_seen", "drift"))
  expect_equal(sessions$mini_blocks_n, c(12, 12))
  expect_equal(sessions$change_percent[2], -10, tolerance = 0.1)
  expect_lt(abs(sessions$change_percent[1]), 1)
  expect_gt(sessions$mean_percent[1] - sessions$mean_percent[2], 4)
  drift <- ea_drift(listed, campaign)[quantity == "E_A"]
  expect_equal(drift$sessions_n, 2)
  # Of two slopes, 0 and -10 % in the length of a session, over equal sessions.
  span_h <- mean(sessions$span_s) / 3600
  expect_equal(drift$within_percent_per_hour, -5 / span_h, tolerance = 0.15)
  expect_gt(drift$trend_percent_per_hour / drift$within_percent_per_hour, 0)
  expect_lt(abs(drift$trend_percent_per_hour), 0.2 * abs(drift$within_percent_per_hour))
  words <- drift_sentences(campaign, ea_drift(listed, campaign), ea_drift_sessions(listed, campaign))
  expect_match(
    words, ": it fell by [0-9.]+ % \\[[0-9.]+ to [0-9.]+\\] in the second session, no trend is seen in the first;"
  )
  expect_match(words, "P_I is one constant in this device model, so it cannot show drift.", fixed = TRUE)
})

test_that("each session has its own line, and none is drawn over the pause", {
  campaign <- fallen()
  listed <- ea_order(campaign)
  sessions <- ea_drift_sessions(listed, campaign)
  plot <- plot_ea_order(listed, ea_drift(listed, campaign), summarise_ea(campaign), campaign, "client-wt210", sessions)
  expect_match(gsub("\n", " ", plot$labels$subtitle), "By session: no trend; fell by [0-9.]+ %")
  built <- ggplot2::ggplot_build(plot)$data
  bands <- Filter(function(layer) all(c("ymin", "ymax") %in% names(layer)), built)
  expect_length(bands, 1)
  expect_identical(length(unique(bands[[1]]$group)), 2L)
  expect_match(figure_alt(plot), "By session: no trend; fell by", fixed = TRUE)
})

test_that("sessions of a single mini-block have a level and no trend", {
  campaign <- drifting(0)
  starts <- sort(unique(ea_order(campaign)[, min(t_s), by = mini_block]$V1))
  campaign$meta$sessions <- lapply(starts, function(start) list(t_start_s = start - 1))
  listed <- ea_order(campaign)
  sessions <- ea_drift_sessions(listed, campaign)[quantity == "E_A"]
  expect_identical(nrow(sessions), 24L)
  expect_identical(unique(sessions$verdict), "cannot_tell")
  expect_false(anyNA(sessions$mean_percent))
  drift <- ea_drift(listed, campaign)[quantity == "E_A"]
  expect_identical(drift$reason, "few_in_sessions")
  expect_false(is.na(drift$trend_ci95_low))
  expect_true(is.na(drift$within_ci95_low))
})

test_that("slopes of sessions and their intervals are those of least squares", {
  data <- with_seed(4, data.frame(t = c(1:20, 101:125) + stats::runif(45), group = rep(1:5, 9)))
  data$session <- rep(1:2, c(20, 25))
  data$y <- data$group + 0.1 * data$session * data$t + rep_len(c(1, -0.9, 0.7, -1.1), 45)
  line <- stats::lm(y ~ factor(group) + factor(session) + factor(session):t, data)
  trend <- within_trend(data$t, data$y, data$group, data$session, each = TRUE)
  slopes <- grep(":t", names(stats::coef(line)), value = TRUE)
  expect_equal(trend$slope, unname(stats::coef(line)[slopes]))
  if (trend$autocorrelation == 0) expect_equal(trend$low, unname(stats::confint(line)[slopes, 1]))
  common <- stats::lm(y ~ factor(group) + factor(session) + t, data)
  expect_equal(within_trend(data$t, data$y, data$group, data$session)$slope, unname(stats::coef(common)["t"]))
})

test_that("many runs are drawn as means of mini-blocks or blocks", {
  rows <- data.table(
    transport = "udp", position = 1:3000, deviation_percent = 0, mini_block = rep(1:600, each = 5), attempt = 1,
    block = rep(1:30, each = 100)
  )
  campaign <- example_campaign()
  points <- function(rows) order_points(rows, campaign)
  expect_identical(points(rows[1:1000])$what[1], "run")
  expect_identical(nrow(points(rows)), 600L)
  rows[, mini_block := 1:3000]
  expect_identical(points(rows)$what[1], "block")
  expect_identical(nrow(points(rows)), 30L)
})
