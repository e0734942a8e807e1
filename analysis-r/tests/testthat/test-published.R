# SPDX-License-Identifier: Apache-2.0

# results/reference: the documents fit their contract, and their numbers fit each other.

references <- read_references()
ids <- vapply(references, function(reference) reference$reference_id, "")
udp_dccp <- references[[match("udp-dccp-80211n", ids)]]
value_of <- function(id) published_values(udp_dccp)[value_id == id]

test_that("every document fits its contract and is named as its file", {
  schema <- contract("schemas", "reference.schema.json")
  expect_gt(length(references), 0)
  expect_identical(paste0(ids, ".json"), list.files(reference_dir(), pattern = "\\.json$"))
  for (reference in references) {
    expect_identical(schema_defects(reference, schema), character(), label = reference$reference_id)
  }
})

test_that("the fields that are read are those of the contract", {
  value <- contract("schemas", "reference.schema.json")$properties$values$items$properties
  expect_setequal(names(value), c("source", value_text, value_numbers, "fitted_presets"))
})

test_that("every value has one identity, a place, a unit, and numbers where its relation wants them", {
  for (reference in references) {
    values <- published_values(reference)
    expect_false(anyDuplicated(values$value_id) > 0)
    expect_true(all(nzchar(values$source)))
    suffixes <- c(ea_j_per_mbit = "J/Mb", difference_j_per_mbit = "J/Mb", goodput_mbps = "Mb/s", loss_ratio = "1")
    suffixes <- c(suffixes, difference_percent = "%", shortfall_percent = "%", phy_rate_mbps = "Mb/s")
    expect_identical(values$unit, unname(suffixes[values$quantity]))
    expect_identical(is.na(values$low), values$relation == "little")
    expect_identical(is.na(values$high), values$relation == "little")
    expect_true(all(values$low <= values$high, na.rm = TRUE))
    expect_true(all((values$low == values$high)[values$relation %in% c("is", "at_least")]))
    expect_identical(!is.na(values$reference_transport), values$quantity %in% converted)
  }
})

test_that("differences of Table IV are those of its E_A", {
  for (application in c("skype", "youtube")) {
    udp <- value_of(paste0(application, "-udp-ea"))$low
    dccp <- value_of(paste0(application, "-dccp-ea"))$low
    expect_identical(value_of(paste0(application, "-dea"))$low, dccp - udp)
    # 26.43 and 26.67: the second is cut off, not rounded, which its note says.
    expect_identical(value_of(paste0(application, "-dea-percent"))$low, -floor(100 * (udp - dccp) / udp))
  }
  expect_match(value_of("youtube-dea-percent")$note, "26.67, which rounds to 27", fixed = TRUE)
})

test_that("power of Table IV stays the same over load, as the published E_A say", {
  power_w <- function(id) value_of(id)$low * value_of(id)$offered_rate_mbps
  expect_equal(round(c(power_w("skype-udp-ea"), power_w("youtube-udp-ea")), 1), c(29.5, 28.8))
  expect_equal(round(c(power_w("skype-dccp-ea"), power_w("youtube-dccp-ea")), 1), c(21.7, 21.1))
})

test_that("the slips are named with the right value", {
  slips <- published_slips(udp_dccp)
  expect_setequal(slips$slip_id, c("rate-table", "combinations", "application-time", "conclusion", "leap-year"))
  for (slip in udp_dccp$slips) {
    expect_match(slip$corrected, format(slip$corrected_value), fixed = TRUE)
    factors <- vapply(slip$factors, function(factor) as.numeric(factor$value), 0)
    if (length(factors) > 0L) expect_equal(round(prod(factors) / slip$divisor, 2), slip$corrected_value)
  }
})

test_that("a place without published values has none, a spoilt file is refused", {
  expect_identical(read_references(NA_character_), list())
  expect_true(is.na(reference_dir(NA_character_)))
  expect_true(is.na(reference_dir(tempdir())))
  dir <- tempfile("reference")
  dir.create(dir)
  writeLines("{\"schema_version\": 2}", file.path(dir, "x.json"))
  error <- expect_error(read_references(dir), "no document of published values", class = "netjoule_error")
  expect_identical(error$exit_code, 4L)
})
