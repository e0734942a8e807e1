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

test_that("the difference of E_A is the mean of the pairs' percent, positive when more than UDP", {
  power <- function(transport, size, rate) c(udp = 1, tcp = 0.74, quic = 1.5, null = 0.1)[[transport]]
  dir <- synthetic_campaign(meters = list(synthetic_meter(power = power)))
  delta <- delta_ea(read_campaign(dir))
  expect_equal(delta[transport == "tcp", difference_percent], rep(-26, 4))
  expect_equal(delta[transport == "quic", difference_percent], rep(50, 4))
  expect_equal(delta[transport == "tcp", difference_p_a_w], rep(-0.26, 4))
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
  expect_equal(got$difference_percent, -10)
  expect_equal(got$difference_ci95_low, -10)
})

test_that("an arm that costs more and brings less is above 0 in sentence, table and figure alike", {
  power <- function(transport, size, rate) rate * c(udp = 1, dccp = 1.6, null = 0.1)[[transport]]
  dir <- synthetic_campaign(
    blocks = 8, payload_bytes = 64, transports = c("udp", "dccp", "null"), held_back = function(rate) 0.2,
    meters = list(synthetic_meter(power = power, u_delta_p_w = 1e-5))
  )
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  write_tables(tables, file.path(dir, "tables"))
  written <- function(name) fread(file.path(dir, "tables", paste0(name, ".csv")))[transport == "dccp"]
  # 1.6 times the power for 0.8 of the goodput.
  contrast <- written("contrasts")[in_family == TRUE]
  expect_equal(c(contrast$difference_percent, contrast$difference_ci95_low), rep(100, 2))
  expect_equal(contrast$log_ratio_mean, log(2))
  expect_identical(contrast$verdict, "more")
  expect_match(contrast$words, "DCCP at 64 bytes took 100 % more [95 %: 100 to 100 %] energy per megabit", fixed = TRUE)
  delta <- written("delta_ea")
  expect_equal(delta$difference_percent, rep(100, nrow(delta)))
  expect_equal(delta$difference_j_per_mbit, rep(1, nrow(delta)))
  expect_equal(delta$difference_p_a_w, 0.6 * delta$offered_rate_mbps)
  expect_equal(written("delta_goodput")$shortfall_percent, rep(20, nrow(delta)))
  expect_gt(min(written("side_by_side")$contrast_percent, na.rm = TRUE), 0)
  html <- as.character(section_summary(campaign, tables))
  expect_match(html, prose("UDP took the least energy per megabit over all loads: DCCP 100 % more."), fixed = TRUE)
  expect_match(html, prose("against UDP at 64 bytes: DCCP 100 % more"), fixed = TRUE)
  drawn <- plot_delta_ea(tables$delta_ea, tables$ea_summary, campaign, tables$delta_ea$meter_id[1])
  expect_equal(drawn$data$value, delta$difference_percent)
  drawn <- plot_delta_goodput(tables$delta_goodput, tables$ea_summary, campaign)
  expect_equal(drawn$data$value, rep(20, nrow(delta)))
})

test_that("the shortfall of goodput is positive when less than UDP's arrives", {
  dir <- synthetic_campaign(loss = function(rate) 0.2, transports = c("udp", "tcp"))
  expect_equal(delta_goodput(read_campaign(dir))$shortfall_percent, rep(-25, 4))
})

test_that("a cell with a run below resolution is compared by difference of P_A", {
  dir <- synthetic_campaign(payload_bytes = 64, transports = c("udp", "tcp"))
  campaign <- read_campaign(dir)
  campaign$results[transport == "udp" & offered_rate_mbps == 1 & block == 2, below_resolution := TRUE]
  delta <- delta_ea(campaign)
  expect_identical(delta$method, c("p_a_difference", "ratio"))
  expect_true(is.na(delta$difference_percent[1]))
  expect_false(is.na(delta$difference_p_a_w[1]))
  expect_equal(delta$below_resolution_n, c(1, 0))
})

test_that("without UDP or without a valid run there is no difference, with the columns kept", {
  dir <- synthetic_campaign(transports = c("tcp", "quic"), blocks = 1)
  expect_identical(names(delta_ea(read_campaign(dir))), columns_of("delta_ea"))
  campaign <- read_campaign(dir)
  campaign$results[, usable := FALSE]
  expect_identical(nrow(summarise_ea(campaign)), 0L)
  expect_identical(names(summarise_ea(campaign)), columns_of("ea_summary"))
  expect_identical(names(ea_envelope(campaign)), columns_of("envelope"))
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
  expect_identical(names(phy_rate_shares(read_campaign(dir))), columns_of("phy_rates"))
  expect_null(plot_phy_rates(phy_rate_shares(read_campaign(dir)), read_campaign(dir)))
})
