# SPDX-License-Identifier: Apache-2.0

for (table in names(needed_columns)) {
  test_that(paste("every column that is read of", table, "is in its Table Schema"), {
    contract("tables", paste0(table, ".table.json"))
    expect_identical(setdiff(needed_columns[[table]], names(schema_columns(table))), character())
  })
}

test_that("every field that is read of result.json and of a passport is in its schema", {
  result <- contract("schemas", "result_1.schema.json")
  expect_true(all(c("window", "t_a_mbps", "wake_ups_per_message", "fairness") %in% names(result$properties)))
  node <- result$properties$nodes$items$properties
  expect_true(all(c(node_text, node_numbers, "below_resolution", "hollow", "floor") %in% names(node)))
  expect_true(all(c(floor_numbers, "run_id", "reason") %in% names(node$floor$properties)))
  passport <- contract("schemas", "meter_passport.schema.json")$properties
  expect_true(all(c(passport_text, passport_numbers, "emulated") %in% names(passport)))
})

test_that("synthetic campaigns have the fields of the schemas, no more and no fewer", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  meta <- jsonlite::fromJSON(file.path(dir, "campaign.json"), simplifyVector = FALSE)
  campaign_schema <- contract("schemas", "campaign.schema.json")
  campaign_schema$properties$meters$items <- contract("schemas", "meter_passport.schema.json")
  expect_identical(schema_defects(meta, campaign_schema), character())
  for (run_dir in list.files(file.path(dir, "runs"), full.names = TRUE)) {
    for (name in c("run", "result")) {
      doc <- jsonlite::fromJSON(file.path(run_dir, paste0(name, ".json")), simplifyVector = FALSE)
      schema <- contract("schemas", paste0(name, "_1.schema.json"))
      expect_identical(schema_defects(doc, schema), character(), label = paste(name, basename(run_dir)))
    }
  }
})

test_that("the headers of synthetic tables are those of the Table Schemas", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  files <- c(
    plan_1 = "plan.csv", meters = "meters/client-wt210.csv", radio = "radio/client.csv",
    intervals_1 = file.path("runs", grep("udp", list.files(file.path(dir, "runs")), value = TRUE)[1], "intervals.csv")
  )
  for (table in names(files)) {
    header <- csv_header(file.path(dir, files[[table]]))
    columns <- names(schema_columns(table))
    expect_identical(header, columns[columns %in% c(header, setdiff(columns, younger_columns(table)))], label = table)
  }
})

test_that("reason codes are read from the contract, those that only the analysis finds among them", {
  codes <- vapply(contract("reasons.json")$reasons, function(reason) reason$code, "")
  reasons <- reason_table()
  expect_true(all(codes %in% reasons$code))
  own <- c(
    "half_written_run", "not_a_number", "table_unreadable", "schema_version_unsupported", "column_missing",
    "half_written_row", "p_a_below_p_i"
  )
  expect_true(all(own %in% reasons$code))
  expect_false(anyDuplicated(reasons$code) > 0)
  expect_true(all(nzchar(reasons$meaning)))
})

test_that("the glossary is read", {
  expect_true(all(c("E_A", "P_I") %in% glossary_table()$term))
})

test_that("a wrong NETJOULE_CONTRACTS is a usage error", {
  expect_error(contracts_dir(env = "/nonexistent"), "NETJOULE_CONTRACTS", class = "netjoule_error")
})

test_that("every number that R writes says its unit by the end of its name, or has none", {
  vectors <- contract("vectors", "unit_suffixes.json")
  suffixes <- names(vectors$suffixes)
  # Counts, shares in percent, and bounds of an interval whose unit is that of the quantity they bound.
  plain <- c("_n$", "^n$", "_percent$", "_low$", "_high$", "_mean$", "_message$", "^u95_meter$")
  ids <- c("block", "mini_block", "order", "attempt", "mcs", "streams")
  dir <- synthetic_campaign()
  write_tables(campaign_tables(read_campaign(dir)), file.path(dir, "tables"))
  table <- data.table::fread(file.path(dir, "tables", "ea_summary.csv"))
  numbers <- names(table)[vapply(table, is.numeric, logical(1))]
  known <- vapply(numbers, function(name) {
    any(endsWith(name, suffixes)) || name %in% ids || any(vapply(plain, grepl, logical(1), x = name))
  }, logical(1))
  expect_gt(sum(known), 10)
  expect_identical(numbers[!known], character())
})
