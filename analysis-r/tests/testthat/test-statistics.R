# SPDX-License-Identifier: Apache-2.0

# Whether the values of a column keep the constraints of its field.
fits <- function(values, field) {
  rule <- field$constraints
  known <- values[!is.na(values)]
  all(
    !isTRUE(rule$required) || !anyNA(values), is.null(rule$enum) || all(known %in% unlist(rule$enum)),
    is.null(rule$minimum) || all(known >= rule$minimum), is.null(rule$maximum) || all(known <= rule$maximum),
    is.null(rule$exclusiveMinimum) || all(known > rule$exclusiveMinimum)
  )
}

test_that("the tables are those of their Table Schemas, column by column and type by type", {
  dir <- modelled_campaign(
    blocks = 8, noise_w = 0.002, offered_rate_mbps = c(1, 10), model = linear_model(u_air = NULL)
  )
  write_tables(campaign_tables(read_campaign(dir), margin_percent = 5), file.path(dir, "tables"))
  for (table in statistics_tables) {
    path <- file.path(dir, "tables", paste0(table, ".csv"))
    schema <- contract("tables", paste0(table, ".table.json"))
    columns <- schema_columns(table)
    expect_identical(csv_header(path), names(columns), label = table)
    rows <- read_typed(path, columns, whole = TRUE)
    for (field in schema$fields) expect_true(fits(rows[[field$name]], field), label = paste(table, field$name))
    expect_identical(anyDuplicated(rows[, unlist(schema$primaryKey), with = FALSE]), 0L, label = table)
  }
})

test_that("the same campaign gives the same statistics, and none of the session's random numbers", {
  campaign <- read_campaign(modelled_campaign(blocks = 3, noise_w = 0.002))
  set.seed(1)
  first <- campaign_statistics(campaign)
  expect_identical(stats::runif(1), with_seed(1, stats::runif(1)))
  expect_equal(campaign_statistics(campaign), first)
})

test_that("an analysis leaves no table of an earlier one behind", {
  folder <- tempfile("tables")
  one <- data.table(x = 1)
  write_tables(list(runs = one, contrasts = one, model_parameters = one), folder)
  expect_setequal(list.files(folder), c("runs.csv", "contrasts.csv", "model_parameters.csv"))
  write_tables(list(runs = one), folder)
  expect_identical(list.files(folder), "runs.csv")
})

# What the report's summary says of them, without its marks.
told <- function(campaign, statistics) {
  c(
    family_sentences(campaign, statistics$contrasts), family_rows(statistics)$words,
    outlier_sentence(statistics$outliers), invalid_sentence(campaign), parameter_sentences(campaign, statistics)
  )
}

test_that("the sentences say family, rule, tests, what is exploratory, outliers and invalid runs", {
  campaign <- memory_campaign(c(udp = 0, dccp = -0.3, tcp = 0, quic = 0.4), payload_bytes = c(64, 1440), run_sd = 0.01)
  campaign$problems <- data.table(run_id = "b01m001-udp-a1", code = "idle_drift", detail = "")
  campaign$runs[run_id == "b01m001-udp-a1", usable := FALSE]
  sentences <- told(campaign, campaign_statistics(campaign))
  expect_match(
    sentences[1], "^6 main comparisons were fixed before any run: pairs of transports, those with UDP first"
  )
  expect_match(sentences[1], "the first 6 of 12. 6 of them can be tested.", fixed = TRUE)
  expect_match(
    sentences,
    "^DCCP at 64 bytes took 26 % less \\[95 %: [0-9.]+ to [0-9.]+ %\\] energy per megabit than UDP \\(mean over 2 load",
    all = FALSE
  )
  expect_match(sentences, "Sign-flip p = 0.0078, 0.047 after Holm over 6 tests.", fixed = TRUE, all = FALSE)
  expect_match(sentences, "TCP at 64 bytes shows no clear difference from UDP", all = FALSE)
  expect_match(sentences, "exploratory: 6 further contrasts, per-cell results", all = FALSE)
  expect_match(sentences, "No run is flagged as an outlier", all = FALSE)
  expect_match(sentences, "1 finished run does not count, by reason: 1 idle_drift", all = FALSE)
  expect_false(any(grepl("In this model", sentences)))
})

test_that("only contrasts that have an interval are said to have one", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0.1), meters = c("a", "b"))
  both <- transport_contrasts(campaign)
  expect_match(family_sentences(campaign, both), "exploratory: 1 further contrast, per-cell", all = FALSE)
  campaign$results[meter_id == "b", hollow := TRUE]
  found <- transport_contrasts(campaign)
  expect_equal(found[meter_id == "b", blocks_n], 0)
  expect_false(any(grepl("further", family_sentences(campaign, found))))
})

test_that("in a modelled campaign every claim says that it is a model's", {
  campaign <- read_campaign(synthetic_campaign(blocks = 3))
  statistics <- campaign_statistics(campaign)
  words <- statistics$contrasts[in_family == TRUE, words]
  expect_true(all(startsWith(words, "In this model, ")))
  expect_match(
    told(campaign, statistics),
    "6 of them are not tested: fewer than 6 repetitions (blocks) have a pair at every load that counts.",
    all = FALSE, fixed = TRUE
  )
})

test_that("what has no ratio is not said to lack blocks", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0.1), blocks = 9)
  campaign$results[, below_resolution := TRUE]
  sentences <- told(campaign, campaign_statistics(campaign))
  expect_match(sentences, "1 of them has a ratio at no load, so no interval either.", fixed = TRUE, all = FALSE)
  expect_false(any(grepl("not tested: fewer", sentences)))
})

test_that("a workload's own contrasts are said to be its own", {
  named <- list(list(transport = "tcp", reference = "udp", payload_bytes = 64))
  campaign <- memory_campaign(c(udp = 0, tcp = 0.1, quic = 0.2), run_sd = 0.01, statistics = list(contrasts = named))
  sentences <- told(campaign, campaign_statistics(campaign))
  expect_match(
    sentences[1], "^1 main comparison was fixed before any run: the workload names them. 1 of them can be tested"
  )
  expect_match(sentences, "0.0078 after Holm over 1 test.", fixed = TRUE, all = FALSE)
})

test_that("run-to-run spread and metering stand apart", {
  campaign <- memory_campaign(blocks = 6, offered_rate_mbps = 1, seed = 9)
  campaign$results[, u95_ea_j_per_mbit := 0.25]
  cells <- ea_uncertainty(campaign)
  udp <- campaign$results[transport == "udp", ea_j_per_mbit]
  row <- cells[transport == "udp"]
  expect_equal(row$u95_meter_j_per_mbit, 0.25)
  expect_equal(row$sd_runs_j_per_mbit, sd(udp))
  expect_equal(row$u95_runs_j_per_mbit, diff(as.numeric(t.test(udp)$conf.int)) / 2)
  expect_true(is.na(row$u95_model_j_per_mbit))
  expect_true(is.na(row$ea_total_ci95_low))
  expect_identical(with_total_intervals(data.table(x = 1), cells), data.table(x = 1))
})
