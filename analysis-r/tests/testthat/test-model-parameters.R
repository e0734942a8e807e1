# SPDX-License-Identifier: Apache-2.0

test_that("E_A moves with its terms: the half-width has the closed form of a linear model", {
  campaign <- read_campaign(modelled_campaign(blocks = 3))
  cells <- campaign_statistics(campaign)$ea_uncertainty
  expected <- 1.959964 * cells$ea_j_per_mbit_mean * sqrt((0.7 * 0.04)^2 + (0.3 * 0.03)^2)
  expect_equal(cells$u95_model_j_per_mbit, expected, tolerance = 0.04)
  # No scatter of runs here: the total is metering and model alone.
  total <- (cells$ea_total_ci95_high - cells$ea_total_ci95_low) / 2
  expect_equal(total, sqrt(expected^2 + cells$u95_meter_j_per_mbit^2), tolerance = 0.04)
  expect_equal(cells$u95_runs_j_per_mbit, rep(0, nrow(cells)), tolerance = 1e-6)
})

test_that("an idle term cancels, and the draws are those of a brute recomputation", {
  model <- linear_model(u_p0 = 0.5)
  campaign <- read_campaign(modelled_campaign(blocks = 2, model = model, offered_rate_mbps = 1, payload_bytes = 64))
  sensitivity <- model_sensitivity(campaign, draws = 500L)[["client-wt210"]]
  expect_equal(unname(sensitivity$relative[, "p0_w"]), rep(0, nrow(sensitivity$relative)), tolerance = 1e-6)
  rows <- usable_results(campaign$results)[transport == "udp"]
  shifts <- cell_shifts(rows, sensitivity)
  ea <- rows$ea[1]
  by_hand <- apply(sensitivity$draws, 2, function(moved) {
    0.7 * ea * (1 + moved[2]) + 0.3 * ea * (1 + moved[3]) - ea
  })
  expect_equal(shifts, by_hand, tolerance = 1e-5)
})

test_that("what the parameters do to both transports alike cancels in a contrast", {
  alike <- campaign_statistics(read_campaign(modelled_campaign(blocks = 3, transports = c("udp", "tcp"))))$contrasts
  width <- function(one) one$dea_model_ci95_high - one$dea_model_ci95_low
  expect_equal(width(alike), c(0, 0), tolerance = 1e-4)
  share <- function(transport) c(udp = 0.2, tcp = 0.9, null = 0)[[transport]]
  apart <- campaign_statistics(read_campaign(modelled_campaign(share, blocks = 3, transports = c("udp", "tcp"))))
  # ln of the ratio moves by 0.7 times each parameter, against each other; tcp takes 0.8 of UDP.
  half <- 1.959964 * 0.7 * sqrt(0.04^2 + 0.03^2)
  expect_equal(width(apart$contrasts), rep(100 * 0.8 * (exp(half) - exp(-half)), 2), tolerance = 0.04)
  expect_equal(apart$contrasts$dea_percent, c(20, 20), tolerance = 1e-6)
})

test_that("the interval holds the truth in about 95 of 100 worlds whose parameters are off by their uncertainty", {
  # The model in the files is what was believed; the world's parameters differ, and E_A of the world with them.
  campaign <- read_campaign(modelled_campaign(blocks = 2, offered_rate_mbps = 1, payload_bytes = 64))
  cell <- campaign_statistics(campaign)$ea_uncertainty[transport == "udp"]
  hits <- with_seed(31, {
    world <- cell$ea_j_per_mbit_mean *
      (0.7 * (1 + stats::rnorm(4000, sd = 0.04)) + 0.3 * (1 + stats::rnorm(4000, sd = 0.03)))
    sum(abs(world - cell$ea_j_per_mbit_mean) <= cell$u95_model_j_per_mbit)
  })
  bounds <- binomial_bounds(4000, 0.95)
  expect_gte(hits, bounds[1] - 40) # 4000 draws of the interval's own: its ends are 1 % sure
  expect_lte(hits, bounds[2] + 40)
})

test_that("parameters without a stated uncertainty are held and named", {
  campaign <- read_campaign(modelled_campaign(blocks = 2, model = linear_model(u_air = NULL)))
  statistics <- campaign_statistics(campaign)
  expect_identical(statistics$model_parameters[drawn == TRUE, parameter], "frame_j")
  cells <- statistics$ea_uncertainty
  expect_equal(cells$u95_model_j_per_mbit, 1.959964 * 0.7 * 0.04 * cells$ea_j_per_mbit_mean, tolerance = 0.01)
  words <- parameter_sentences(campaign, statistics)
  expect_match(words, "draw frame_j by their stated standard uncertainty; held at their values, so in no interval: p0")
})

test_that("without a recorded model or its stream everything else is as before", {
  dir <- modelled_campaign(blocks = 2)
  unlink(file.path(dir, "devices"), recursive = TRUE)
  campaign <- read_campaign(dir)
  statistics <- campaign_statistics(campaign)
  expect_true(all(is.na(statistics$ea_uncertainty$u95_model_j_per_mbit)))
  expect_true(all(is.na(statistics$contrasts$dea_model_ci95_low)))
  expect_match(parameter_sentences(campaign, statistics), ": held at their values, so in no interval: p0_w, frame_j")
  campaign$meta$device_models <- NULL
  expect_null(campaign_statistics(campaign)$model_parameters)
  expect_null(parameter_sentences(campaign, campaign_statistics(campaign)))
})

test_that("figures of E_A show the interval with the parameters, and say so", {
  campaign <- read_campaign(modelled_campaign(blocks = 3))
  tables <- campaign_tables(campaign)
  summary <- tables$ea_summary
  expect_true(all(summary[transport != "null", ea_total_ci95_high - ea_total_ci95_low] > 0))
  expect_identical(nrow(summary), nrow(summarise_ea(campaign)))
  plot <- plot_ea(summary, campaign, "client-wt210")
  expect_match(plot$labels$subtitle, "metering + model", fixed = TRUE)
  expect_match(plot$labels$subtitle, "Monte Carlo", fixed = TRUE)
  points <- ea_points(summary)
  expect_identical(points$low, summary[transport != "null", ea_total_ci95_low])
})

test_that("the stream of a killed device is read up to its last whole line, a strange one is not", {
  dir <- modelled_campaign(blocks = 1)
  path <- file.path(dir, "devices", "client-wt210.ndjson")
  lines <- readLines(path)
  writeLines(c(lines, substr(lines[1], 1, 40)), path)
  campaign <- read_campaign(dir)
  expect_identical(nrow(read_device_stream(campaign, "client-wt210")), length(lines))
  writeLines(c(lines, '{"t_start_s":1,"t_end_s":2,"power_w":3,"extrapolated":false,"terms":{"other":3}}'), path)
  expect_null(read_device_stream(campaign, "client-wt210"))
  writeLines("no JSON}}", path)
  expect_null(read_device_stream(campaign, "client-wt210"))
  expect_null(read_device_stream(campaign, "client-other"))
})

test_that("means of terms are prorated at the edges and know gaps between sessions", {
  stream <- data.table(t_start_s = c(0, 1, 10), t_end_s = c(1, 2, 11), frames = c(2, 4, 8))
  expect_equal(term_means_w(stream, c(0, 0.5, 10.2), c(2, 1.25, 10.8))[, "frames"], c(3, (1 + 1) / 0.75, 8))
  expect_true(is.na(term_means_w(stream, 10.5, 12)[, "frames"]))
})

test_that("points of a table share rho as the model interpolates it", {
  points <- data.table(rate = c(6, 12, 24, 48), rho = c(0.6, 0.7, 0.8, 1.2))
  shares <- rho_shares(points, c(6, 18, 48, 60, NA))
  expect_equal(shares[1, ], c(1, 0, 0, 0))
  expect_equal(shares[2, ], c(0, 0.35, 0.4, 0) / 0.75)
  expect_equal(shares[3, ], c(0, 0, 0, 1))
  # Beyond the table the last segment goes on: 1.4 W, of which the last point carries more than all.
  expect_equal(shares[4, ], c(0, 0, -0.4, 1.8) / 1.4)
  expect_equal(shares[5, ], c(0, 0, 0, 1))
  expect_equal(rowSums(shares), rep(1, 5))
})

test_that("each form's parameters find their terms", {
  terms <- matrix(1:5, 1, dimnames = list(NULL, c("base", "radio_idle", "radio_tx", "radio_rx", "cpu")))
  cpu <- list(form = "cpu")
  expect_identical(unname(parameter_share("core_w", cpu, terms, NA)), 5L)
  expect_identical(unname(parameter_share("rho_idle_w", cpu, terms, NA)), 2L)
  expect_identical(parameter_share("nonsense", cpu, terms, NA), 0)
  terms <- matrix(c(2, 3), 1, dimnames = list(NULL, c("tx", "generated_frames")))
  point <- function(rate, rho) list(phy_rate_mbps = rate, rho_w = rho)
  cross <- list(form = "cross_factor", rho_tx = list(point(6, 0.5), point(48, 1)))
  expect_equal(unname(parameter_share("rho_tx_w at 48 Mb/s", cross, terms, 48)), 2)
  expect_equal(unname(parameter_share("rho_tx_w at 6 Mb/s", cross, terms, 27)), 2 * 0.25 / 0.75)
  expect_equal(unname(parameter_share("gamma_xg_j", cross, terms, 27)), 3)
  expect_equal(parameter_share("rho_rx_w at 6 Mb/s", cross, terms, 27), 0)
})
