# SPDX-License-Identifier: Apache-2.0

flown_as <- function(application, transports = c("udp", "dccp", "null"), blocks = 3, rate_mbps = 0.5, ...) {
  dir <- synthetic_campaign(
    name = application, transports = transports, payload_bytes = 300, offered_rate_mbps = rate_mbps, blocks = blocks,
    ...
  )
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$workload$profile <- list(schema_version = 1L, name = application)
    doc
  })
  read_campaign(dir)
}

# Known J/Mb by transport, at 0.5 Mb/s.
known_energy <- function(...) {
  ea <- c(...)
  synthetic_meter(power = function(transport, size, rate) if (transport == "null") 0.05 else ea[[transport]] * rate)
}

test_that("Table IV has E_A per transport and the difference in J/Mb and percent", {
  # The published values of the Skype profile, as watts of a synthetic device.
  campaign <- flown_as("skype", meters = list(known_energy(udp = 454, dccp = 334)))
  rows <- table_iv(campaign)
  expect_identical(names(rows), columns_of("table_iv"))
  expect_identical(rows$transport, c("udp", "dccp"))
  expect_equal(rows$ea_j_per_mbit_mean, c(454, 334))
  expect_equal(rows[transport == "dccp", difference_j_per_mbit], -120)
  expect_equal(rows[transport == "dccp", difference_percent], -100 * 120 / 454)
  expect_equal(rows[transport == "dccp", c(difference_j_ci95_low, difference_j_ci95_high)], c(-120, -120))
  expect_true(is.na(rows[transport == "udp", difference_j_per_mbit]))
  expect_identical(unique(rows$application), "skype")
})

test_that("the difference's interval is t over blocks of the pairs' own differences", {
  campaign <- flown_as("skype", blocks = 5, noise_w = 0.02, meters = list(known_energy(udp = 2, dccp = 1.5)))
  row <- table_iv(campaign)[transport == "dccp"]
  results <- usable_results(campaign$results)
  pairs <- merge(results[transport == "udp"], results[transport == "dccp"], by = "mini_block")
  expected <- stats::t.test(pairs$ea.y - pairs$ea.x)
  expect_equal(row$difference_j_per_mbit, unname(expected$estimate))
  expect_equal(c(row$difference_j_ci95_low, row$difference_j_ci95_high), as.numeric(expected$conf.int))
})

test_that("differences of Table IV are those of delta_ea, and the campaign's table has what its cells have more", {
  campaign <- flown_as("skype", noise_w = 0.02, meters = list(known_energy(udp = 2, dccp = 1.5)))
  tables <- campaign_tables(campaign)
  shared <- setdiff(intersect(names(tables$delta_ea), columns_of("table_iv")), names(tables$ea_summary))
  expect_true("u95_difference_j_per_mbit" %in% shared)
  ours <- tables$table_iv[transport == "dccp"]
  expect_equal(as.list(ours)[shared], as.list(tables$delta_ea)[shared])
  cells <- copy(tables$ea_summary)[, `:=`(ea_total_ci95_low = 1, ea_total_ci95_high = 3, flows_at_once = "two")]
  rows <- application_rows(campaign, cells, tables$delta_ea)
  expect_identical(names(rows), names(schema_columns("table_iv")))
  expect_identical(unique(rows$flows_at_once), "two")
})

test_that("applications of several campaigns stand in one table, and others have none", {
  both <- list(flown_as("skype"), flown_as("youtube"))
  rows <- table_iv(both)
  expect_identical(unique(rows$application), c("skype", "youtube"))
  expect_identical(unique(rows$campaign), c("skype", "youtube"))
  plain <- read_campaign(synthetic_campaign(blocks = 1))
  expect_null(table_iv(plain))
  expect_false("table_iv" %in% names(campaign_tables(plain)))
  expect_identical(unique(table_iv(c(both, list(plain)))$application), c("skype", "youtube"))
})

test_that("what the meter does not resolve is compared by P_A alone", {
  campaign <- flown_as("skype", meters = list(known_energy(udp = 2, dccp = 1.5)))
  campaign$results[transport == "dccp" & block == 2, below_resolution := TRUE]
  row <- table_iv(campaign)[transport == "dccp"]
  expect_identical(row$method, "p_a_difference")
  expect_true(is.na(row$difference_j_per_mbit) && is.na(row$difference_percent))
  expect_equal(row$difference_p_a_w, -0.25)
})

test_that("without the reference the energies stand alone, and the report shows the table", {
  rows <- table_iv(flown_as("skype", transports = c("tcp", "quic")))
  expect_identical(names(rows), columns_of("table_iv"))
  expect_true(all(is.na(rows$difference_j_per_mbit)))
  campaign <- flown_as("<b>skype</b>")
  html <- as.character(section_table_iv(campaign, list(table_iv = table_iv(campaign))))
  expect_match(html, "&lt;b&gt;skype", fixed = TRUE)
  expect_match(gsub("\u00a0", " ", html), "in this model", fixed = TRUE)
  expect_null(section_table_iv(campaign, list()))
})

test_that("the goodput's shortfall needs no meter: runs outside a device model's validity count", {
  meter <- synthetic_meter(hollow = function(rate) TRUE, u_delta_p_w = 10)
  campaign <- read_campaign(synthetic_campaign(
    transports = c("udp", "tcp", "null"), loss = function(rate) 0.2, meters = list(meter)
  ))
  expect_identical(nrow(delta_ea(campaign)), 0L)
  delta <- delta_goodput(campaign)
  expect_identical(names(delta), columns_of("delta_goodput"))
  expect_equal(delta$shortfall_percent, rep(-25, 4))
  expect_equal(delta$shortfall_mbps, -0.2 * delta$offered_rate_mbps)
  expect_equal(delta$n_pairs, rep(3, 4))
  plot <- plot_delta_goodput(delta, summarise_ea(campaign), campaign)
  expect_match(figure_alt(plot), "load, 1 to 10 Mb/s, for TCP; .* Values: -25 %\\.")
  without <- read_campaign(synthetic_campaign(transports = c("tcp", "quic"), blocks = 1))
  expect_identical(names(delta_goodput(without)), columns_of("delta_goodput"))
  expect_null(plot_delta_goodput(delta_goodput(without), summarise_ea(without), without))
})

test_that("a row stands beside what was published of its application at that size and rate, unscaled", {
  flown <- flown_as("skype", rate_mbps = 0.065, meters = list(known_energy(udp = 2, dccp = 1.5)))
  rows <- with_published(table_iv(flown), flown)
  expect_equal(rows$ea_j_per_mbit_mean, c(2, 1.5))
  expect_equal(rows$published_ea_j_per_mbit, c(454, 334))
  expect_equal(rows$published_difference_j_per_mbit, c(NA, -120))
  expect_equal(rows$published_difference_percent, c(NA, -26))
  expect_identical(unique(rows$reference_id), "udp-dccp-80211n")
  expect_match(rows$differs, "^power_source;radio_source;client;year;meter", all = TRUE)
  for (other in list(flown_as("skype"), flown_as("telephone", rate_mbps = 0.065))) {
    rows <- with_published(table_iv(other), other)
    expect_true(all(is.na(rows$published_ea_j_per_mbit) & is.na(rows$reference_id) & is.na(rows$differs)))
  }
  expect_true(all(is.na(with_published(table_iv(flown), flown, list())$published_ea_j_per_mbit)))
})

test_that("the rows of several campaigns are told one by one, and a campaign without a profile is refused", {
  events <- list()
  tell <- function(event) events[[length(events) + 1L]] <<- event
  skype <- flown_as("skype", rate_mbps = 0.065, meters = list(known_energy(udp = 2, dccp = 1.5)))
  other <- flown_as("telephone", transports = c("udp", "null"))
  options <- parse_arguments(c(skype$dir, "--json", "--table-iv", other$dir))
  expect_identical(options$campaign_dir, c(skype$dir, other$dir))
  tell_table_iv(options$campaign_dir, tell)
  expect_identical(
    vapply(events, function(event) paste(event$event, event$application, event$transport), ""),
    paste("table_iv", c("skype udp", "skype dccp", "telephone udp"))
  )
  expect_identical(events[[1]]$words, "skype, UDP (meter client-wt210): in this model E_A 2 J/Mb, published 454")
  told <- jsonlite::fromJSON(capture.output(emit(events[[3]], TRUE)))
  expect_null(told$published_ea_j_per_mbit)
  dirs <- c(skype$dir, synthetic_campaign(blocks = 1))
  expect_error(tell_table_iv(dirs, stop), "no run that counts of an application", class = "netjoule_error")
  expect_error(parse_arguments("--table-iv"), "Name campaign folders", class = "netjoule_error")
})

test_that("a row is told in the words of its cell: upper limit, runs below resolution, extrapolation, model", {
  row <- list(
    application = "skype", campaign_label = NA, transport = "udp", meter_id = "m", in_this_model = TRUE, n = 8L,
    below_resolution_n = 8L, hollow = TRUE, ea_j_per_mbit_mean = 0.0833, ea_upper_limit_j_per_mbit = 0.3985,
    published_ea_j_per_mbit = 454
  )
  told <- function(...) {
    changed <- utils::modifyList(row, list(...))
    cell <- application_cell(changed)
    c(cell$text, application_words(changed, cell))
  }
  expect_identical(told(), c("< 0.399 \u00b0", paste(
    "skype, UDP (meter m): in this model E_A < 0.399 J/Mb (8 of 8 runs below resolution; device model extrapolated),",
    "published 454"
  )))
  expect_identical(told(below_resolution_n = 2L, hollow = FALSE, in_this_model = FALSE), c(
    "0.0833 *", "skype, UDP (meter m): E_A 0.0833 J/Mb (2 of 8 runs below resolution), published 454"
  ))
  expect_identical(
    told(below_resolution_n = 0L, hollow = FALSE, ea_j_per_mbit_mean = NA_real_, campaign_label = "s-1"),
    c("none", "skype of campaign s-1, UDP (meter m): in this model E_A none, published 454")
  )
  expect_identical(told(ea_upper_limit_j_per_mbit = NA_real_, hollow = FALSE)[1], "0.0833 *")
})

test_that("rows name their campaign where its application is in several, by its folder where names are the same", {
  expect_identical(campaign_labels(c("a", "b", "c"), c("x/a", "x/b", "x/c"), c("skype", "skype", "video")), c(
    "a", "b", NA
  ))
  expect_identical(campaign_labels(c("a", "a", "b"), c("x/a", "y/a", "x/b"), rep("skype", 3)), c("x/a", "y/a", "b"))
  expect_identical(campaign_labels(c("a", "a"), c("x/a", "x/a"), c("skype", "skype")), c(NA_character_, NA))
  events <- list()
  tell <- function(event) events[[length(events) + 1L]] <<- event
  dirs <- c(flown_as("skype", transports = c("udp", "null"))$dir, flown_as("skype", transports = c("udp", "null"))$dir)
  tell_table_iv(dirs, tell)
  expect_identical(vapply(events, `[[`, "", "campaign_label"), dirs)
  expect_match(events[[2]]$words, paste("skype of campaign", dirs[2]), fixed = TRUE)
})
