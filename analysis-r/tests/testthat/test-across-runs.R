# SPDX-License-Identifier: Apache-2.0

# Envelope, differences, PHY shares: by hand on small campaigns.

test_that("the envelope is the least and greatest cell mean over payload sizes", {
  power <- function(transport, size, rate) rate * c("64" = 0.3, "512" = 0.1, "1440" = 0.2)[[as.character(size)]]
  dir <- synthetic_campaign(
    payload_bytes = c(64, 512, 1440), offered_rate_mbps = c(1, 10), transports = "udp", blocks = 2,
    meters = list(synthetic_meter(power = power))
  )
  band <- ea_envelope(read_campaign(dir))
  expect_equal(band$ea_least_j_per_mbit, c(0.1, 0.1))
  expect_equal(band$ea_greatest_j_per_mbit, c(0.3, 0.3))
  expect_equal(band$payload_bytes_least, c(512, 512))
  expect_equal(band$payload_bytes_greatest, c(64, 64))
  expect_equal(band$complete, c(TRUE, TRUE))
  expect_equal(band$n_runs, c(6, 6))
})

test_that("hollow runs and runs below resolution are left out of the envelope", {
  power <- function(transport, size, rate) if (size == 64) 0.3 * rate else 0.002 * rate
  meter <- synthetic_meter(power = power, u_delta_p_w = 0.001, hollow = function(rate) rate == 30)
  dir <- synthetic_campaign(
    offered_rate_mbps = c(1, 10, 30), transports = c("udp", "null"), blocks = 2, meters = list(meter)
  )
  band <- ea_envelope(read_campaign(dir))
  expect_equal(band$offered_rate_mbps, c(1, 10))
  expect_equal(band$complete, c(FALSE, TRUE))
  expect_equal(band$runs_left_out, c(2, 0))
  expect_equal(band$ea_least_j_per_mbit, c(0.3, 0.002))
})

test_that("with some runs below resolution the envelope has the mean of all, with most of them none", {
  campaign <- read_campaign(synthetic_campaign(payload_bytes = 64, transports = c("udp", "null"), blocks = 3))
  at_1 <- campaign$results$transport == "udp" & campaign$results$offered_rate_mbps == 1
  campaign$results[at_1, ea_j_per_mbit := c(1, 2, 6)]
  campaign$results[which(at_1)[1], below_resolution := TRUE]
  band <- ea_envelope(campaign)
  expect_equal(band$ea_least_j_per_mbit, summarise_ea(campaign)[transport == "udp", ea_j_per_mbit_mean])
  expect_equal(band$ea_least_j_per_mbit[1], 3)
  expect_identical(band$below_resolution_n, c(1L, 0L))
  expect_equal(band$runs_left_out, c(0, 0))
  plot <- plot_envelope(band, summarise_ea(campaign), campaign, "client-wt210")
  expect_match(gsub("\n", " ", plot$labels$subtitle), "1 run below resolution in the means.", fixed = TRUE)
  campaign$results[which(at_1)[2], below_resolution := TRUE]
  expect_equal(ea_envelope(campaign)$offered_rate_mbps, 10)
})

test_that("dE_A is the mean of the pairs' percent, positive when less than UDP", {
  power <- function(transport, size, rate) c(udp = 1, tcp = 0.74, quic = 1.5, null = 0.1)[[transport]]
  dir <- synthetic_campaign(meters = list(synthetic_meter(power = power)))
  delta <- delta_ea(read_campaign(dir))
  expect_equal(delta[transport == "tcp", dea_percent], rep(26, 4))
  expect_equal(delta[transport == "quic", dea_percent], rep(-50, 4))
  expect_equal(delta[transport == "tcp", dp_a_w], rep(0.26, 4))
  expect_true(all(delta$n_pairs == 3))
  expect_true(all(delta$reference == "udp"))
  expect_false("null" %in% delta$transport)
})

test_that("pairs are formed only inside a mini-block", {
  dir <- synthetic_campaign(payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "tcp"), blocks = 3)
  campaign <- read_campaign(dir)
  campaign$results[transport == "udp" & mini_block == 1, usable := FALSE]
  expect_equal(delta_ea(campaign)$n_pairs, 2)
  drift <- read_campaign(dir)
  drift$results[, ea_j_per_mbit := mini_block * c(udp = 1, tcp = 0.9)[transport]]
  got <- delta_ea(drift)
  expect_equal(got$dea_percent, 10)
  expect_equal(got$dea_ci95_low, 10)
})

test_that("the throughput difference is positive when more than UDP arrives", {
  dir <- synthetic_campaign(loss = function(rate) 0.2, transports = c("udp", "tcp"))
  expect_equal(delta_goodput(read_campaign(dir))$dgoodput_percent, rep(25, 4))
})

test_that("a cell with a run below resolution is compared by difference of P_A", {
  dir <- synthetic_campaign(payload_bytes = 64, transports = c("udp", "tcp"))
  campaign <- read_campaign(dir)
  campaign$results[transport == "udp" & offered_rate_mbps == 1 & block == 2, below_resolution := TRUE]
  delta <- delta_ea(campaign)
  expect_identical(delta$method, c("p_a_difference", "ratio"))
  expect_true(is.na(delta$dea_percent[1]))
  expect_false(is.na(delta$dp_a_w[1]))
  expect_equal(delta$below_resolution_n, c(1, 0))
})

test_that("without UDP or without a valid run there is no difference, with the columns kept", {
  dir <- synthetic_campaign(transports = c("tcp", "quic"), blocks = 1)
  expect_identical(names(delta_ea(read_campaign(dir))), delta_columns)
  campaign <- read_campaign(dir)
  campaign$results[, usable := FALSE]
  expect_identical(nrow(summarise_ea(campaign)), 0L)
  expect_identical(names(summarise_ea(campaign)), summary_columns)
  expect_identical(names(ea_envelope(campaign)), envelope_columns)
})

test_that("PHY shares sum to one per cell and count only measure windows", {
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = c(1, 10), transports = "udp", blocks = 1,
    phy_rate_mbps = function(n) rep(c(216, 162), length.out = n)
  )
  shares <- phy_rate_shares(read_campaign(dir))
  expect_equal(shares[, list(total = sum(share)), by = list(offered_rate_mbps)]$total, c(1, 1))
  expect_equal(sum(shares$samples), 4)
  expect_setequal(shares$phy_rate_mbps, c(162, 216))
})

test_that("a campaign without radio files has an empty PHY table", {
  dir <- synthetic_campaign(blocks = 1)
  unlink(file.path(dir, "radio"), recursive = TRUE)
  expect_identical(names(phy_rate_shares(read_campaign(dir))), phy_columns)
  expect_null(plot_phy_rates(phy_rate_shares(read_campaign(dir)), read_campaign(dir)))
})
