# SPDX-License-Identifier: Apache-2.0

# Published values beside those of synthetic campaigns of known E_A.

# E_A in J/Mb by transport; dccp is `saved` below udp.
constant_ea <- function(ea = 0.4, saved = 0.1) {
  function(transport, size, rate) rate * c(udp = ea, dccp = ea - saved, tcp = ea, null = 0.05)[[transport]]
}

skype_campaign <- function(..., power = constant_ea(), payload_bytes = 300, offered_rate_mbps = 0.065,
                           transports = c("udp", "dccp", "null"), u_delta_p_w = 1e-5) {
  read_campaign(synthetic_campaign(
    payload_bytes = payload_bytes, offered_rate_mbps = offered_rate_mbps, transports = transports,
    meters = list(synthetic_meter(power = power, u_delta_p_w = u_delta_p_w)), ...
  ))
}

beside <- function(campaign) side_by_side(campaign, campaign_tables(campaign))

test_that("ours stand beside the published values as they are, not scaled", {
  rows <- beside(skype_campaign())
  expect_identical(rows[value_id == "skype-udp-ea", c(published_low, ours_low, ours_high)], c(454, 0.4, 0.4))
  expect_equal(rows[value_id == "skype-dccp-ea", c(published_low, ours_low)], c(334, 0.3))
  expect_equal(rows[value_id == "skype-dea", c(published_low, ours_low)], c(-120, -0.1))
  expect_equal(rows[value_id == "skype-dea-percent", c(published_low, ours_low)], c(-26, -25))
  expect_identical(rows[value_id == "skype-udp-ea", c(blocks_n, cells_n)], c(3, 1))
  expect_equal(rows[value_id == "skype-udp-ea", u95_meter], 2e-5 / 0.065)
  expect_equal(unique(rows[grepl("skype", value_id), payload_bytes]), 300)
})

test_that("the table has the columns and values of its contract", {
  rows <- beside(skype_campaign())
  fields <- contract("tables", "side_by_side.table.json")$fields
  expect_identical(names(rows), vapply(fields, function(field) field$name, ""))
  dir <- tempfile("tables")
  write_tables(list(side_by_side = rows), dir)
  written <- fread(file.path(dir, "side_by_side.csv"), na.strings = "", colClasses = "character")
  for (field in fields) {
    cells <- written[[field$name]]
    if (isTRUE(field$constraints$required)) expect_false(anyNA(cells), label = field$name)
    allowed <- unlist(field$constraints$enum)
    if (!is.null(allowed)) expect_true(all(is.na(cells) | cells %in% allowed), label = field$name)
    shape <- switch(field$type, boolean = "^(true|false)$", integer = "^[0-9]+$", number = "^-?[0-9.e+-]+$", "")
    expect_true(all(is.na(cells) | grepl(shape, cells)), label = field$name)
  }
})

test_that("what differs in the setup is named", {
  rows <- beside(skype_campaign())
  expect_identical(
    rows[value_id == "skype-udp-ea", differs],
    "power_source;radio_source;client;year;meter;floor;run_length;repetitions"
  )
  expect_identical(rows[value_id == "skype-udp-ea", c(published_run_s, published_repetitions)], c(240, 5))
  expect_true(all(rows[!is.na(ours_low), in_this_model]))
  expect_true(all(is.na(rows[is.na(ours_low), differs])))
  # A rack like the published one, on a real radio.
  dir <- synthetic_campaign(
    payload_bytes = 1440, offered_rate_mbps = 0.65, transports = c("udp", "dccp"), blocks = 2,
    meters = list(
      synthetic_meter(power = constant_ea(), power_source = "measured", device_model = NULL, u_delta_p_w = 1e-5)
    )
  )
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$created_utc <- "2013-05-01T00:00:00Z"
    doc$radio_source <- "real"
    doc$meters[[1]]$model <- "i-Sockets"
    doc$workload$transport_options$dccp$ccid <- 2L
    doc
  })
  for (id in list.files(file.path(dir, "runs"))) {
    edit_json(file.path(dir, "runs", id, "run.json"), function(doc) utils::modifyList(doc, list(radio_source = "real")))
    edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
      doc$nodes[[1]]$radio_source <- "real"
      doc
    })
  }
  real <- beside(read_campaign(dir))
  expect_identical(real[value_id == "youtube-udp-ea", differs], "client;payload;load;run_length;repetitions")
  expect_identical(
    real[value_id == "youtube-dccp-ea", differs],
    "client;payload;load;ccid;implementation;run_length;repetitions"
  )
  expect_identical(real[value_id == "youtube-dea", floor_known], FALSE)
  expect_false(any(real$in_this_model))
})

test_that("only the same size and load stand beside a value, the nearest of several", {
  rows <- beside(skype_campaign(payload_bytes = c(64, 290, 320), offered_rate_mbps = c(0.065, 1)))
  expect_identical(rows[value_id == "skype-udp-ea", payload_bytes], 290)
  expect_identical(rows[value_id == "skype-udp-ea", load_greatest_mbps], 0.065)
  expect_identical(rows[value_id == "youtube-udp-ea", reason], "no_cell")
  expect_identical(is_nearest(c(240, 375, 376, 300.5), 300, 1.25), c(FALSE, FALSE, FALSE, TRUE))
  expect_identical(is_nearest(c(239, 376), 300, 1.25), c(FALSE, FALSE))
  expect_identical(is_nearest(c(240, 400), 300, 1.25), c(TRUE, FALSE))
  expect_identical(is_nearest(numeric(), 300, 1.25), logical())
})

test_that("a statement about many loads has the least and the greatest of ours", {
  power <- function(transport, size, rate) {
    rate * if (transport == "dccp") c("1" = 0.9, "14" = 0.6, "30" = 0.8)[[as.character(rate)]] else 1
  }
  campaign <- skype_campaign(
    power = power, payload_bytes = 64, offered_rate_mbps = c(1, 14, 30), loss = function(rate) 0.5
  )
  rows <- beside(campaign)
  expect_equal(rows[value_id == "sweep-64-dea-percent", c(ours_low, ours_high, cells_n)], c(-40, -10, 3))
  expect_equal(rows[value_id == "sweep-64-udp-goodput", c(ours_low, ours_high, cells_n)], c(7, 15, 2))
  expect_equal(rows[value_id == "sweep-64-udp-loss", c(ours_low, load_least_mbps)], c(0.5, 30))
  expect_equal(rows[value_id == "low-load-dea-percent", c(ours_low, load_greatest_mbps)], c(-10, 1))
  expect_true(all(is.na(rows[cells_n > 1, ours_ci95_low])))
  # Beside what was published of the whole sweep stands the geometric mean over the same loads.
  expect_equal(rows[value_id == "sweep-64-dea-percent", contrast_percent], 100 * ((0.9 * 0.6 * 0.8)^(1 / 3) - 1))
  expect_equal(rows[value_id == "sweep-64-dea-percent", contrast_loads_n], 3)
  expect_equal(rows[value_id == "sweep-64-dea-percent", contrast_ci95_low], -24.4, tolerance = 0.01)
  expect_true(all(is.na(rows[value_id != "sweep-64-dea-percent", contrast_percent])))
  shown <- published_display(rows[!is.na(ours_low)])
  shown[, value_id := rows[!is.na(ours_low), value_id]]
  sweep <- shown[value_id == "sweep-64-dea-percent"]
  expect_identical(sweep$what, "difference of E_A of DCCP against UDP (+: more than UDP), 64 B, all loads")
  expect_match(sweep$ours, "^-24\\.4 % \\[-24\\.4 to -24\\.4\\] over 3 loads; cells: -40 to -10 % \\(3 cells\\)$")
  expect_identical(sweep$published, "~-40 to -10 % (printed as dE_A: ~10-40 %)")
  expect_match(
    published_sentence(rows),
    "DCCP against UDP at 64 bytes over all loads: published ~10-40 % less, here in this model 24.4 % less.",
    fixed = TRUE
  )
  # A ratio is shown in the percent that it was printed in.
  loss <- shown[value_id == "sweep-64-udp-loss"]
  expect_match(loss$published, "^~70 %")
  expect_match(loss$ours, "^50 % \\[50 to 50\\]$")
})

test_that("what the link is fitted to is said to agree by construction", {
  campaign <- skype_campaign(payload_bytes = 64, offered_rate_mbps = c(14, 30), loss = function(rate) 0.5)
  rows <- beside(campaign)
  expect_false(any(rows$fitted, na.rm = TRUE))
  expect_no_match(published_sentence(rows), "put in")
  campaign$meta$topology$link$preset <- "seed-like"
  rows <- beside(campaign)
  expect_setequal(rows[fitted == TRUE, value_id], c("sweep-64-udp-goodput", "sweep-64-udp-loss"))
  expect_identical(is.na(rows$fitted), is.na(rows$ours_low))
  expect_match(published_sentence(rows), "Agreement in 2 of them is by construction", fixed = TRUE)
  page <- as.character(section_published(campaign, list(side_by_side = rows)))
  expect_match(
    page, "agreement in goodput of UDP and loss of UDP is by construction and confirms nothing",
    fixed = TRUE
  )
  expect_match(page, "[50 to 50]; by construction: the link was fitted to it", fixed = TRUE)
})

test_that("a single load is no sweep", {
  rows <- beside(skype_campaign(payload_bytes = 64, offered_rate_mbps = 1))
  expect_identical(rows[value_id == "sweep-64-dea-percent", reason], "no_sweep")
  expect_false(is.na(rows[value_id == "low-load-dea-percent", ours_low]))
})

value_of_reference <- function(id) {
  rbindlist(lapply(read_references(), published_values))[value_id == id]
}

test_that("limits of a range: the lower is included, the upper is not", {
  cells <- data.table(payload_bytes = 64, offered_rate_mbps = c(1, 2, 12, 14))
  of <- function(id) at_same_place(cells, value_of_reference(id))$offered_rate_mbps
  expect_identical(of("low-load-dea-percent"), 1)
  expect_identical(of("sweep-64-udp-goodput"), c(12, 14))
})

test_that("a cell below resolution or outside the model's validity gives no value, and says so", {
  below <- beside(skype_campaign(u_delta_p_w = 0.05))
  expect_identical(below[value_id == "skype-udp-ea", reason], "below_resolution")
  expect_identical(below[value_id == "skype-dea", reason], "below_resolution")
  expect_equal(below[value_id == "skype-udp-ea", c(cells_n, cells_left_out_n)], c(0, 1))
  outside <- synthetic_meter(power = constant_ea(), u_delta_p_w = 1e-5, hollow = function(rate) rate < 1)
  dir <- synthetic_campaign(
    payload_bytes = 64, offered_rate_mbps = c(0.065, 14), transports = c("udp", "dccp"), meters = list(outside)
  )
  rows <- beside(read_campaign(dir))
  expect_identical(rows[value_id == "sweep-64-dea-percent", reason], NA_character_)
  expect_identical(rows[value_id == "low-load-dea-percent", reason], "hollow")
  # Goodput is the flow's: no device model bounds it.
  expect_equal(rows[value_id == "low-load-dgoodput-percent", c(ours_low, ours_high, blocks_n)], c(0, 0, 3))
})

test_that("without DCCP, or without UDP beside it, there is nothing to compare", {
  expect_null(beside(skype_campaign(transports = c("tcp", "null"))))
  expect_null(beside(skype_campaign(payload_bytes = 1440, offered_rate_mbps = 10, transports = c("udp", "tcp"))))
  expect_null(beside(skype_campaign(payload_bytes = 1000, offered_rate_mbps = 10)))
  rows <- beside(skype_campaign(transports = c("dccp", "null")))
  expect_identical(rows[value_id == "skype-dea", reason], "no_transport")
  expect_equal(rows[value_id == "skype-dccp-ea", ours_low], 0.3)
})

test_that("both of our DCCP stand beside the published one, each meter by itself, goodput once", {
  power <- function(transport, size, rate) {
    rate * c(udp = 0.4, dccp = 0.3, "dccp-kernel" = 0.2, null = 0.05)[[transport]]
  }
  meters <- lapply(c("a", "b"), function(id) synthetic_meter(meter_id = id, power = power, u_delta_p_w = 1e-5))
  campaign <- read_campaign(synthetic_campaign(
    payload_bytes = 300, offered_rate_mbps = 0.065, transports = c("udp", "dccp", "dccp-kernel", "null"), blocks = 2,
    meters = meters
  ))
  rows <- beside(campaign)
  expect_equal(rows[value_id == "skype-dccp-ea", ours_low], c(0.3, 0.2, 0.3, 0.2))
  expect_identical(rows[value_id == "skype-dccp-ea", meter_id], c("a", "a", "b", "b"))
  expect_identical(nrow(rows[value_id == "low-load-dgoodput-percent"]), 2L)
  expect_identical(unique(rows[value_id == "low-load-dgoodput-percent", power_source]), NA_character_)
})

test_that("PHY rates stand beside the published ones, the most frequent and the least", {
  campaign <- skype_campaign(phy_rate_mbps = function(n) rep(c(216, 216, 162, 216, 162, 54), length.out = n))
  rows <- beside(campaign)
  expect_equal(rows[value_id == "phy-rates-most", c(ours_low, ours_high)], c(162, 216))
  expect_equal(rows[value_id == "phy-rates-least", c(published_low, ours_low)], c(81, 54))
  expect_identical(rows[value_id == "phy-rates-most", node], "client")
})

test_that("of several pacings the first counts", {
  power <- function(transport, size, rate, pacing) {
    constant_ea()(transport, size, rate) * c(absolute = 1, spin = 9)[[pacing]]
  }
  rows <- beside(skype_campaign(power = power, pacings = c("spin", "absolute")))
  expect_equal(rows[value_id == "skype-udp-ea", ours_low], 0.4)
})

test_that("a table of an earlier analysis does not stay", {
  dir <- tempfile("tables")
  write_tables(list(side_by_side = beside(skype_campaign())), dir)
  expect_true(file.exists(file.path(dir, "side_by_side.csv")))
  write_tables(list(), dir)
  expect_false(file.exists(file.path(dir, "side_by_side.csv")))
})

section_of <- function(campaign) {
  tables <- campaign_tables(campaign)
  as.character(htmltools::renderTags(section_published(campaign, tables))$html)
}

test_that("the report sets ours beside the published with the setups, the slips and no ranking", {
  html <- section_of(skype_campaign())
  expect_match(html, "<section id=\"published\"", fixed = TRUE)
  expect_match(html, "No value is\\s+scaled to meet the other")
  expect_match(html, "Power or air time on our side is modelled", fixed = TRUE)
  expect_match(html, ">here</th>", fixed = TRUE)
  expect_match(html, "454 J/Mb", fixed = TRUE)
  expect_match(html, "0.4 J/Mb [0.4 to 0.4]", fixed = TRUE)
  expect_match(html, "power source, radio source, client, year, meter, floor", fixed = TRUE)
  expect_match(html, "floor, run length, repetitions", fixed = TRUE)
  expect_match(html, "300-byte packets at 65 kb/s, runs of 4 minutes, 5 repetitions", fixed = TRUE)
  expect_match(html, "From the printed E_A it is 26.67", fixed = TRUE)
  expect_match(html, "measured for 2 s, blocks: 3", fixed = TRUE)
  expect_match(html, "i-Sockets: networked sockets", fixed = TRUE)
  expect_match(html, "about 50 %", fixed = TRUE)
  expect_match(html, "no cell of that size and load", fixed = TRUE)
  expect_match(html, "without a counterpart here: 9", fixed = TRUE)
})

test_that("a value without a counterpart at any meter is told once", {
  meters <- lapply(c("a", "b"), function(id) synthetic_meter(meter_id = id, power = constant_ea(), u_delta_p_w = 1e-5))
  campaign <- read_campaign(synthetic_campaign(
    payload_bytes = 300, offered_rate_mbps = 0.065, transports = c("udp", "dccp"), blocks = 1, meters = meters
  ))
  html <- as.character(lonely_table(beside(campaign)[value_id == "youtube-dea"]))
  expect_length(gregexpr("printed as dE_A: 12 J/Mb", html, fixed = TRUE)[[1]], 1)
})

test_that("a value that one of two meters has a counterpart to is not among those without any", {
  meters <- list(
    synthetic_meter(power = constant_ea(), u_delta_p_w = 1e-5),
    synthetic_meter(meter_id = "outside", power = constant_ea(), u_delta_p_w = 1e-5, hollow = function(rate) TRUE)
  )
  campaign <- read_campaign(synthetic_campaign(
    payload_bytes = 300, offered_rate_mbps = 0.065, transports = c("udp", "dccp"), blocks = 2, meters = meters
  ))
  rows <- beside(campaign)
  html <- section_of(campaign)
  met <- length(with_counterpart(rows))
  expect_match(html, sprintf("without a counterpart here: %d<", 17 - met), fixed = TRUE)
  expect_match(published_sentence(rows), sprintf("^%d of 17 published values", met))
  expect_match(html, "at meter outside \\(outside the device model('|&#39;)s validity\\)")
  expect_no_match(as.character(lonely_table(rows[!value_id %in% with_counterpart(rows)])), "454 J/Mb")
})

test_that("a campaign without a counterpart has no section and no entry in the list of sections", {
  campaign <- skype_campaign(transports = c("tcp", "null"))
  tables <- campaign_tables(campaign)
  expect_null(section_published(campaign, tables))
  links <- function(campaign, tables) as.character(report_body(campaign, tables, list()))
  expect_false(grepl("#published", links(campaign, tables), fixed = TRUE))
  with_one <- skype_campaign()
  expect_match(links(with_one, campaign_tables(with_one)), "#published", fixed = TRUE)
})

test_that("hostile names are escaped there", {
  bad <- "<script>alert('x')</script>"
  campaign <- read_campaign(synthetic_campaign(
    payload_bytes = 300, offered_rate_mbps = 0.065, transports = c("udp", "dccp"), blocks = 1,
    meters = list(synthetic_meter(node = bad, device_model = bad, u_delta_p_w = 1e-5))
  ))
  campaign$meta$topology <- list(kind = "lab", hosts = stats::setNames(list(list(roles = list("client"))), bad))
  campaign$meta$topology$link <- list(preset = bad)
  html <- section_of(campaign)
  expect_false(grepl("<script", html, fixed = TRUE))
  expect_match(html, "&lt;script&gt;", fixed = TRUE)
})

test_that("every reason and every quantity of the contract has words", {
  fields <- contract("tables", "side_by_side.table.json")$fields
  names(fields) <- vapply(fields, function(field) field$name, "")
  expect_setequal(names(reason_labels), unlist(fields$reason$constraints$enum))
  expect_setequal(names(quantity_labels), unlist(fields$quantity$constraints$enum))
  expect_setequal(c(names(our_columns), "phy_rate_mbps"), names(quantity_labels))
})
