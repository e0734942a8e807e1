# SPDX-License-Identifier: Apache-2.0

test_that("a power that is linear in packets and bits is found again", {
  # In payload bits 0.02 W per Mb/s and 0.05 mJ per message; an IP packet holds 28 bytes more, which b pays for too.
  dir <- synthetic_campaign(
    transports = c("udp", "quic-datagram", "null"), payload_bytes = c(64, 1440), offered_rate_mbps = c(1, 3, 10),
    blocks = 2
  )
  fitted <- fit_power_model(read_campaign(dir))
  fit <- fitted$fit[transport == "udp"]
  expect_identical(fit$form, "packets_and_bits")
  expect_equal(fit$p0_w, 0, tolerance = 1e-6)
  expect_equal(fit$bit_energy_j_per_mbit, 0.02, tolerance = 1e-6)
  expect_equal(fit$packet_energy_j, 5e-5 - 0.02 * 28 * 8e-6, tolerance = 1e-6)
  expect_equal(fitted$fit[transport == "quic-datagram", bit_energy_j_per_mbit], 1.4 * 0.02, tolerance = 1e-6)
  expect_equal(fit$explained_ratio, 1)
  # Null makes no packets: its messages stand for them, and the synthetic floor is constant.
  floor <- fitted$fit[transport == "null"]
  expect_equal(c(floor$p0_w, floor$packet_energy_j, floor$bit_energy_j_per_mbit), c(0.05, 0, 0), tolerance = 1e-6)
  residuals <- fitted$residuals[transport == "udp"]
  expect_equal(residuals$residual_w, rep(0, 6), tolerance = 1e-6)
  expect_equal(residuals$packets_pps, residuals$offered_rate_mbps * 1e6 / 8 / residuals$payload_bytes)
  expect_equal(residuals$ip_mbps, residuals$packets_pps * 8e-6 * (residuals$payload_bytes + 28))
  expect_identical(names(fitted$fit), columns_of("model_fit"))
  expect_identical(names(fitted$residuals), columns_of("model_residuals"))
})

test_that("the range that a fit holds for is stated, and extrapolated runs are left out of it", {
  meter <- synthetic_meter(hollow = function(rate) rate == 30)
  dir <- synthetic_campaign(
    transports = c("udp", "null"), offered_rate_mbps = c(1, 3, 10, 30), blocks = 2, meters = list(meter)
  )
  fit <- fit_power_model(read_campaign(dir))$fit[transport == "udp"]
  expect_equal(fit$extrapolated_n, 4)
  expect_equal(fit$runs_n, 12)
  expect_equal(fit$cells_n, 6)
  expect_equal(c(fit$offered_rate_least_mbps, fit$offered_rate_greatest_mbps), c(1, 10))
  expect_equal(c(fit$packets_least_pps, fit$packets_greatest_pps), c(1, 10) * 1e6 / 8 / c(1440, 64))
  expect_equal(c(fit$payload_bytes_least, fit$payload_bytes_greatest), c(64, 1440))
})

test_that("what was lost was sent, what was held back was not", {
  dir <- synthetic_campaign(
    transports = c("udp", "dccp"), offered_rate_mbps = c(1, 10), blocks = 1, loss = function(rate) 0.5,
    held_back = function(rate) 0.2
  )
  residuals <- fit_power_model(read_campaign(dir))$residuals
  asked <- residuals$offered_rate_mbps * 1e6 / 8 / residuals$payload_bytes
  expect_equal(residuals$packets_pps / asked, ifelse(residuals$transport == "udp", 1, 0.8))
})

test_that("terms that the cells cannot tell apart are not told", {
  one_size <- read_campaign(synthetic_campaign(payload_bytes = 64, offered_rate_mbps = c(1, 3, 10, 30), blocks = 2))
  fit <- fit_power_model(one_size)$fit[transport == "udp"]
  expect_identical(c(fit$form, fit$reason), c("packets", "one_packet_size;no_noise"))
  expect_true(is.na(fit$bit_energy_j_per_mbit) && is.na(fit$bit_energy_ci95_low))
  # The packet's bits are in it: 0.02 W per Mb/s of 64 bytes and 0.05 mJ.
  expect_equal(fit$packet_energy_j, 5e-5 + 0.02 * 64 * 8e-6, tolerance = 1e-6)
  few <- read_campaign(synthetic_campaign(payload_bytes = 64, blocks = 2))
  fitted <- fit_power_model(few)
  expect_identical(unique(fitted$fit$reason), "few_cells")
  expect_true(all(is.na(fitted$fit$p0_w)))
  expect_identical(names(fitted$residuals), columns_of("model_residuals"))
  expect_null(plot_model_fit(fitted$fit, fitted$residuals, few, "client-wt210"))
  constant <- data.table(packets_pps = rep(5, 5), ip_mbps = 1:5)
  expect_identical(form_of(constant)$reason, "constant_traffic")
  three_and_a_size <- data.table(packets_pps = c(1, 5, 9), ip_mbps = c(1, 9, 2))
  expect_identical(form_of(three_and_a_size), list(form = "packets", reason = "few_cells"))
})

test_that("runs that no model can be made of are left out", {
  campaign <- read_campaign(synthetic_campaign(blocks = 2))
  hwsim <- campaign
  hwsim$results <- copy(campaign$results)[, ea_reason := "radio_without_air_time"]
  expect_identical(nrow(fit_power_model(hwsim)$fit), 0L)
  several <- campaign
  several$results <- copy(campaign$results)[, flows := 2]
  expect_identical(nrow(fit_power_model(several)$fit), 0L)
  campaign$results[transport == "tcp", frames_per_message := NA_real_]
  fit <- fit_power_model(campaign)$fit
  expect_false("tcp" %in% fit$transport)
  campaign$results[transport == "udp" & block == 1, frames_per_message := NA_real_]
  expect_equal(fit_power_model(campaign)$fit[transport == "udp", unknown_n], 4)
})

# Runs of 2 sizes by 4 loads in a number of blocks, with a known plane.
plane_runs <- function(blocks, noise_w, block_w = 0, bend_w = 0, noise_ratio = 0) {
  runs <- data.table::CJ(payload_bytes = c(64, 1440), offered_rate_mbps = c(1, 3, 10, 30), block = seq_len(blocks))
  runs[, packets_pps := offered_rate_mbps * 1e6 / 8 / payload_bytes]
  runs[, ip_mbps := packets_pps * 8e-6 * (payload_bytes + 28)]
  runs[, p_w := 0.3 + 5e-5 * packets_pps + 0.02 * ip_mbps]
  runs[, p_w := p_w + bend_w * (offered_rate_mbps == 10) + rnorm(blocks, sd = block_w)[block] +
    rnorm(.N, sd = noise_w + noise_ratio * p_w)]
  runs[]
}

plane_truth <- c(0.3, 5e-5, 0.02)

test_that("both intervals have their closed forms", {
  runs <- with_seed(3, plane_runs(5, 0.05, 0.05))
  cells <- model_cells(runs)
  solved <- least_squares(cells, 3L)
  line <- stats::lm(p_w ~ packets_pps + ip_mbps, cells)
  expect_equal(solved$estimate, unname(stats::coef(line)))
  expect_equal(cell_half_width(solved), unname(stats::confint(line)[, 2] - stats::coef(line)))
  own <- vapply(1:5, function(b) {
    unname(stats::coef(stats::lm(p_w ~ packets_pps + ip_mbps, runs[block == b])))
  }, numeric(3))
  expect_equal(
    block_half_width(runs, solved$estimate, 3L), stats::qt(0.975, 4) * apply(own, 1, stats::sd) / sqrt(5)
  )
  # A block that lacks a cell is no obstacle; one block alone tells nothing of blocks.
  expect_true(all(is.finite(block_half_width(runs[-1], solved$estimate, 3L))))
  expect_true(all(is.na(block_half_width(runs[block == 1], solved$estimate, 3L))))
})

test_that("intervals hold the true coefficients, also where whole blocks err together", {
  held <- function(seed, noise_w, block_w) {
    with_seed(seed, rowMeans(replicate(250, {
      runs <- plane_runs(6, noise_w, block_w)
      plane <- fit_plane(runs, form_of(cell_means(runs)))
      plane$low <= plane_truth & plane_truth <= plane$high
    })))
  }
  independent <- held(4, noise_w = 0.05, block_w = 0)
  expect_true(all(independent > 0.93))
  together <- held(5, noise_w = 0.02, block_w = 0.1)
  expect_true(all(together > 0.91))
  # Cells alone would not have seen it.
  blind <- with_seed(5, mean(replicate(250, {
    solved <- least_squares(cell_means(plane_runs(6, 0.02, 0.1)), 3L)
    abs(solved$estimate[1] - 0.3) <= cell_half_width(solved)[1]
  })))
  expect_lt(blind, 0.6)
})

noise_told <- function(runs) residual_noise(runs, form_of(cell_means(runs)))

test_that("a model that bends is told from noise, whatever noise grows with and whatever blocks share", {
  judged <- function(seed, ..., unflown = FALSE) {
    with_seed(seed, vapply(seq_len(200), function(i) {
      runs <- plane_runs(6, ...)
      if (unflown) runs <- runs[!(block == 6 & payload_bytes == 1440) & !(block == 5 & offered_rate_mbps == 30)]
      noise_told(runs)$residuals_are_noise
    }, NA))
  }
  bounds <- binomial_bounds(200, 0.95)
  cases <- list(
    list(seed = 6, noise_w = 0.05), list(seed = 9, noise_w = 0.02, block_w = 0.1),
    list(seed = 10, noise_w = 0, noise_ratio = 0.05), list(seed = 11, noise_w = 0, noise_ratio = 0.05, block_w = 0.1),
    # What a block shares must not lie in some cells alone.
    list(seed = 14, noise_w = 0.02, block_w = 0.1, unflown = TRUE)
  )
  for (case in cases) {
    quiet <- sum(do.call(judged, case))
    expect_gte(quiet, bounds[1])
    expect_lte(quiet, bounds[2])
  }
  expect_lt(mean(judged(7, 0.05, bend_w = 0.3)), 0.05)
  # What blocks share would hide it, were it counted as noise of the cells.
  expect_lt(mean(judged(8, 0.02, block_w = 0.3, bend_w = 0.1)), 0.2)
})

test_that("where noise is not known it is said why nothing is told of the residuals", {
  runs <- with_seed(8, plane_runs(3, 0.05))
  told <- function(runs) unlist(noise_told(runs)[c("residuals_are_noise", "reason")], use.names = FALSE)
  expect_identical(told(runs[block == 1]), c(NA, "single_block"))
  expect_identical(told(runs[block == 1 | payload_bytes == 64]), c(NA, "few_whole_blocks"))
  # A block that was begun with one cell spoils nothing of the others.
  begun <- runs[block < 3 | (payload_bytes == 64 & offered_rate_mbps == 1)]
  expect_identical(noise_told(begun), noise_told(runs[block < 3]))
  expect_identical(told(plane_runs(3, 0)), c(NA, "no_noise"))
})

test_that("with equal noise and no block effect the ratio is the classic F", {
  runs <- with_seed(12, plane_runs(4, 0.05))
  runs[, p_w := p_w - mean(p_w), by = block]
  cells <- model_cells(runs)
  residuals <- stats::residuals(stats::lm(p_w ~ packets_pps + ip_mbps, cells))
  maker <- diag(least_squares(cells, 3L)$residual_maker)
  # Of block means removed, an eighth of each cell's variance is gone.
  within <- runs[, list(variance = stats::var(p_w)), by = list(payload_bytes, offered_rate_mbps)]$variance
  expect_equal(noise_of_means(runs)$variance, within / (7 / 8) / 4)
  expect_equal(noise_told(runs)$lack_of_fit_ratio, sum(residuals^2) / sum(maker * within / (7 / 8) / 4))
  expect_equal(sum(maker), 5)
  expect_equal(noise_quantile(diag(5), rep(0.1, 5), rep(1e6, 5)), stats::qf(0.95, 5, 4e6), tolerance = 1e-4)
})

test_that("intervals of cells alone say so", {
  # Without block 2 there is one size of packets.
  runs <- with_seed(13, plane_runs(2, 0.05))
  runs <- runs[block == 2 | payload_bytes == 64]
  plane <- fit_plane(runs, form_of(cell_means(runs)))
  expect_identical(plane$reason, "no_block_interval")
  solved <- least_squares(cell_means(runs), 3L)
  expect_equal(plane$high - plane$estimate, cell_half_width(solved))
})

test_that("the figures carry the model, its residuals and what was left out", {
  campaign <- read_campaign(synthetic_campaign(
    offered_rate_mbps = c(1, 3, 10, 30), blocks = 3, noise_w = 0.01,
    meters = list(synthetic_meter(hollow = function(rate) rate == 30))
  ))
  fitted <- fit_power_model(campaign)
  plot <- plot_model_fit(fitted$fit, fitted$residuals, campaign, "client-wt210")
  expect_match(gsub("\n", " ", plot$labels$subtitle), "24 extrapolated runs left out", fixed = TRUE)
  expect_match(
    model_labels(fitted$fit)[["udp"]],
    "^UDP\n[0-9.e-]+ \u00b1 [0-9.e-]+ W\n[+-] [0-9.]+ \u00b1 [0-9.e-]+ uJ/packet\n[+-] .* \u00b1 .* mJ/Mb$"
  )
  expect_match(plot$labels$title, "95 %, metering not in it", fixed = TRUE)
  expect_match(figure_alt(plot), "UDP: .* uJ/packet .* In this model")
  left <- plot_model_residuals(fitted$fit, fitted$residuals, campaign, "client-wt210")
  expect_match(figure_alt(left), "less the fitted model")
  expect_match(gsub("[\u00a0\n]", " ", left$labels$caption), "in this model", fixed = TRUE)
  # Drawn side by side, every cell once.
  built <- ggplot2::ggplot_build(left)$data
  points <- rbindlist(Filter(function(data) "shape" %in% names(data), built), fill = TRUE)
  expect_identical(nrow(points), nrow(fitted$residuals))
})

test_that("energies are written with their sign and a prefix", {
  expect_identical(signed_energy(c(1.234e-5, -2e-3, 3, 0, NA))[1:4], c("+ 12.3 uJ", "- 2 mJ", "+ 3 J", "+ 0 uJ"))
  expect_identical(signed_energy(c(1.234e-5, 2), c(1e-6, NA)), c("+ 12.3 \u00b1 1.0 uJ", "+ 2 J"))
})

test_that("a value and its half-width have the same decimals and one prefix", {
  expect_identical(with_half(c(0.2932, -0.0536, 11.3, 1234, -0.004), c(0.14, 0.0029, 16, 280, 0.12)), c(
    "0.29 \u00b1 0.14", "-0.0536 \u00b1 0.0029", "11 \u00b1 16", "1230 \u00b1 280", "0.00 \u00b1 0.12"
  ))
  expect_identical(signed_energy(3.28e-6, 1.6e-3), "+ 0.0 \u00b1 1.6 mJ")
  # Where rounding alone makes the half-width, each stands by itself.
  expect_identical(with_half(c(0.05, 3, 0), c(1.2e-17, 0, 2e-9)), c(
    "0.05 \u00b1 1.2e-17", "3 \u00b1 0", "0 \u00b1 2e-09"
  ))
})

test_that("a model that does not fit says so, shows no half-width and names where it is farthest off", {
  campaign <- read_campaign(synthetic_campaign(
    transports = c("udp", "null"), offered_rate_mbps = c(1, 3, 10, 30), blocks = 3, noise_w = 0.001,
    meters = list(synthetic_meter(power = function(transport, size, rate) {
      if (transport == "null") 0.05 else linear_power()(transport, size, rate) + (size == 64 & rate == 10)
    }))
  ))
  fitted <- fit_power_model(campaign)
  expect_false(fitted$fit[transport == "udp", residuals_are_noise])
  expect_match(
    model_labels(fitted$fit)[["udp"]], "^UDP\ndoes not fit: [^\n\u00b1]+ W\n[^\u00b1]+/packet\n[^\u00b1]+/Mb$"
  )
  plot <- plot_model_fit(fitted$fit, fitted$residuals, campaign, "client-wt210")
  expect_match(
    gsub("\n", " ", plot$labels$subtitle), "[12] of 2 do not fit, farthest off UDP: 0\\.[0-9]+ W at 64 B, 10 Mb/s\\."
  )
})

test_that("the line of a model ends where it leaves its panel", {
  drawn <- data.table(
    transport = transport_factor(rep(c("udp", "null"), each = 3)), size = factor(64), value = c(1, 3, 12, 1, 2, 3),
    low = c(0.9, 2.9, 11, NA, NA, NA), fitted_w = c(0.5, 4, 11, 2, 0.0001, 3)
  )
  expect_identical(model_lines(drawn, TRUE)$fitted_w, c(4, 11, 2, 3))
  expect_identical(model_lines(drawn, FALSE)$fitted_w, drawn$fitted_w)
})
