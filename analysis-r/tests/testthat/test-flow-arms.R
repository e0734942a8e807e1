# SPDX-License-Identifier: Apache-2.0

# Campaigns of flows whose arm is not the transport: any factor may be compared.

test_that("message sizes are compared: tables, figures and the report are those of every load, by hand", {
  dir <- rearmed("payload_bytes", transports = c("udp", "tcp"))
  campaign <- read_campaign(dir)
  expect_identical(campaign$arm, "payload_bytes")
  expect_identical(cell_keys(campaign), c(meter_keys, "payload_bytes", "transport", "offered_rate_mbps", "pacing"))
  tables <- analyse(dir, with_report = TRUE)
  cells <- tables$energy_summary
  expect_identical(nrow(cells), 8L)
  one <- cells[payload_bytes == 64 & transport == "udp" & offered_rate_mbps == 10]
  expect_equal(one$energy_per_work_j, linear_power()("udp", 64, 10) / 10)
  expect_equal(one$t_a_mbps, 10)
  expect_true(all(tables$ea_check$agrees))
  # Small messages take more of the packet's cost: of each transport the ratio of both sizes is the same.
  found <- tables$arm_contrasts
  expect_identical(nrow(found), 1L)
  per_bit <- function(size) 0.02 + 0.05e-3 * 1e6 / (8 * size)
  ratio <- if (found$arm == "64") per_bit(64) / per_bit(1440) else per_bit(1440) / per_bit(64)
  expect_equal(found$difference_percent, 100 * (ratio - 1))
  expect_identical(found$cells_n, 4L)
  expect_match(found$words, "1440 byte.*energy per megabit than 64 byte, over 4 cells and 3 blocks")
  expect_true(all(c(
    "arms-energy-per-work-j.svg", "sweep-energy-per-work-j-offered-rate-mbps.svg",
    "sweep-t-a-mbps-offered-rate-mbps.svg", "power.svg", "ea-order.svg"
  ) %in% list.files(file.path(dir, "figures"))))
  page <- paste(readLines(file.path(dir, "report.html"), encoding = "UTF-8"), collapse = "\n")
  for (words in c("Energy by arm and cell", "64 byte", "Transport UDP", "Offered load 10 Mb/s")) {
    expect_true(grepl(words, page, fixed = TRUE), label = words)
  }
})

test_that("a control run has no value of an arm of numbers, and its power is the floor", {
  expect_warning(campaign <- read_campaign(rearmed("payload_bytes", transports = c("udp", "null"))), NA)
  expect_identical(campaign$control, "null")
  tables <- campaign_tables(campaign)
  cells <- tables$energy_summary
  expect_identical(cells[kind == "control", unique(payload_bytes)], NA_real_)
  expect_identical(nrow(without_control(cells, campaign)), 4L)
  expect_true(all(tables$ea_check$agrees))
  expect_identical(unique(tables$arm_contrasts$arm), "1440")
})

test_that("pacings are compared in the order of the workload", {
  spinning <- function(transport, payload_bytes, rate_mbps, pacing) if (pacing == "spin") 3 else 1
  dir <- rearmed("pacing",
    transports = "udp", payload_bytes = 64, pacings = c("absolute", "spin"),
    meters = list(synthetic_meter(power = spinning))
  )
  tables <- campaign_tables(read_campaign(dir))
  expect_identical(tables$arm_contrasts[, c("reference", "arm")], data.table(reference = "absolute", arm = "spin"))
  expect_equal(tables$arm_contrasts$difference_percent, 200)
  expect_true(all(tables$ea_check$agrees))
})

test_that("a sweep that loads.json lists of flows is drawn, and what it does not list is not", {
  with_contracts_of(list(name = "other"), {
    edit_json(file.path(contracts_dir(), "loads.json"), function(doc) {
      doc$loads[[1]]$figures <- list(list(
        kind = "sweep", x = "offered_rate_mbps", y = "jitter_ms", panel = "payload_bytes", colour = "transport",
        title = "Jitter against offered load"
      ))
      doc
    })
    campaign <- read_campaign(synthetic_campaign(transports = c("udp", "tcp"), blocks = 2))
    tables <- campaign_tables(campaign)
    tables$ea_summary[, jitter_ms := 0.5 * offered_rate_mbps]
    figures <- campaign_figures(campaign, tables)
    names <- vapply(figures, function(one) one$name, "")
    expect_true("jitter-ms" %in% names)
    expect_false(any(c("ea", "goodput", "loss") %in% names))
    plot <- figures[[which(names == "jitter-ms")]]$plot
    expect_match(figure_alt(plot), "Jitter \\(ms\\) against offered load.* for UDP, TCP")
    expect_setequal(plot$data$value, c(0.5, 5))
  })
})

test_that("what compares transports alone is refused in a sentence", {
  dirs <- replicate(2, rearmed("payload_bytes", transports = "udp", blocks = 1))
  expect_error(overlay_report(dirs, tempfile()), "compare transports alone", class = "netjoule_error")
})
