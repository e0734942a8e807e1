# SPDX-License-Identifier: Apache-2.0

# Two runs, measure windows of 2 s each, one reading a second: the campaign's own radio file is replaced.
radio_campaign <- function(change) {
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = 10, transports = c("udp", "null"), blocks = 1
  )
  path <- file.path(dir, "radio", "client.csv")
  rows <- change(data.table::fread(path))
  data.table::fwrite(rows, path, na = "")
  mcs_histogram(read_campaign(dir))
}

with_rx <- function(rows, index = 10, rate = 81) {
  rows[, grep("^rx_", names(rows), value = TRUE) := NULL] # empty columns are read as logical ones
  rows[, `:=`(
    rx_phy_rate_mbps = rate, rx_mcs = index, rx_streams = 2, rx_width_mhz = 40, rx_guard_interval_ns = 800
  )]
}

test_that("the histogram counts the readings of each run's measure window in both directions", {
  histogram <- radio_campaign(with_rx)
  expect_identical(names(histogram), columns_of("mcs_histogram"))
  expect_identical(nrow(histogram), 4L)
  expect_setequal(histogram$direction, c("tx", "rx"))
  expect_identical(length(unique(histogram$run_id)), 2L)
  expect_equal(histogram$readings, rep(2, 4))
  expect_equal(histogram$share, rep(1, 4))
  expect_equal(unique(histogram[direction == "rx", list(phy_rate_mbps, mcs)]), data.table(phy_rate_mbps = 81, mcs = 10))
  expect_equal(unique(histogram[direction == "tx", mcs]), 13)
})

test_that("equal rates of different modes are told apart and shares sum to one", {
  histogram <- radio_campaign(function(rows) with_rx(rows, index = rep(c(10, 4), length.out = nrow(rows))))
  received <- histogram[direction == "rx"]
  expect_equal(received$share, rep(0.5, 4))
  expect_setequal(received$mcs, c(4, 10))
  totals <- histogram[, list(total = sum(share)), by = list(run_id, node, direction)]$total
  expect_equal(totals, rep(1, 4))
})

test_that("readings without a rate count, a direction never read does not appear", {
  some <- radio_campaign(function(rows) {
    rows <- with_rx(rows, rate = NA, index = NA)
    rows[seq(1, .N, by = 2), c("phy_rate_mbps", "mcs") := NA]
  })
  expect_identical(unique(some$direction), "tx")
  expect_equal(some[is.na(phy_rate_mbps), share], rep(0.5, 2))
})

test_that("a file of a version without received rates has the sent ones", {
  histogram <- radio_campaign(function(rows) rows[, !grepl("^rx_", names(rows)), with = FALSE])
  expect_identical(unique(histogram$direction), "tx")
  expect_identical(nrow(histogram), 2L)
})

test_that("a campaign without radio files has an empty histogram", {
  dir <- synthetic_campaign(blocks = 1)
  unlink(file.path(dir, "radio"), recursive = TRUE)
  histogram <- mcs_histogram(read_campaign(dir))
  expect_identical(names(histogram), columns_of("mcs_histogram"))
  expect_identical(nrow(histogram), 0L)
})

test_that("the table is written with the others", {
  dir <- synthetic_campaign(payload_bytes = 64, offered_rate_mbps = 10, transports = c("udp", "null"), blocks = 1)
  tables <- campaign_tables(read_campaign(dir))
  paths <- write_tables(tables, tempfile("tables"))
  written <- data.table::fread(paths[["mcs_histogram"]])
  expect_identical(names(written), columns_of("mcs_histogram"))
  expect_equal(written$readings, c(2, 2))
})
