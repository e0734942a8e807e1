# SPDX-License-Identifier: Apache-2.0

# What a figure shows stands in a table, and every such table has a contract.

contracted <- function() sub("\\.table\\.json$", "", list.files(file.path(contracts_dir(), "tables"), "table.json$"))

r_type <- function(values) {
  if (is.logical(values)) "logical" else if (is.numeric(values)) "numeric" else "character"
}

# Names and types in which a table differs from its contract.
table_defects <- function(name, table) {
  wanted <- schema_columns(name)
  young <- younger_columns(name)
  expected <- names(wanted)[names(wanted) %in% names(table) | !names(wanted) %in% young]
  types <- vapply(table, r_type, "")
  # A column of rows without any value has no type of its own.
  blank <- vapply(table, function(values) length(values) > 0L && all(is.na(values)), NA)
  shared <- intersect(names(table)[!blank], names(wanted))
  c(
    if (!identical(names(table), expected)) "names or their order",
    shared[types[shared] != wanted[shared]]
  )
}

some_campaigns <- function() {
  rich <- read_campaign(synthetic_campaign(
    transports = c("udp", "tcp", "dccp", "null"), offered_rate_mbps = c(1, 3, 10), noise_w = 0.002,
    held_back = function(rate) 0.1, loss = function(rate) 0.1
  ))
  pacings <- read_campaign(synthetic_campaign(
    transports = c("udp", "null"), blocks = 2, pacings = c("spin", "absolute")
  ))
  pacings$meta$workload$profile <- list(name = "skype")
  wide <- wide_campaign(c("udp", "quic", "null"), c(64, 1440), c(1, 10, 30))
  empty <- read_campaign(synthetic_campaign(transports = c("tcp", "quic"), blocks = 1))
  empty$results[, usable := FALSE]
  without <- empty
  without$results <- empty$results[0]
  without$runs <- copy(empty$runs)[, `:=`(usable = FALSE, measurable = FALSE)]
  list(rich, pacings, wide, empty, without)
}
campaigns <- some_campaigns()
all_tables <- lapply(campaigns, campaign_tables)

test_that("tables that have a contract keep it, empty ones too", {
  for (tables in all_tables) {
    for (name in intersect(names(tables), contracted())) {
      expect_identical(table_defects(name, tables[[name]]), character(), label = name)
    }
  }
  # Without a run there is no result of any, and each column has its type all the same.
  expect_identical(nrow(all_tables[[5]]$runs), 0L)
  expect_type(all_tables[[5]]$runs$p_a_w, "double")
  expect_type(all_tables[[5]]$runs$below_resolution, "logical")
})

test_that("every figure names the tables that hold what it shows, and these have a contract", {
  for (i in seq_along(campaigns)[1:3]) {
    for (one in campaign_figures(campaigns[[i]], all_tables[[i]])) {
      expect_gt(length(one$tables), 0, label = one$name)
      expect_true(all(one$tables %in% names(all_tables[[i]])), label = one$name)
      expect_true(all(one$tables %in% contracted()), label = one$name)
    }
  }
})

test_that("the index of figures names the files of their tables", {
  figures <- campaign_figures(campaigns[[1]], all_tables[[1]])
  out <- tempfile("figures")
  write_figures(Filter(function(one) one$name %in% c("ea", "power"), figures), out)
  index <- jsonlite::fromJSON(file.path(out, "index.json"), simplifyVector = FALSE)
  files <- stats::setNames(lapply(index, function(one) unlist(one$tables)), vapply(index, function(one) one$svg, ""))
  expect_match(index[[1]]$source, "power_source: modelled .* campaign: synthetic .* in this model")
  expect_identical(files, list(ea.svg = "ea_summary.csv", power.svg = c("runs.csv", "power_trace.csv")))
})

test_that("no table holds a number that is none", {
  for (tables in all_tables) {
    for (name in names(tables)) {
      numbers <- unlist(Filter(is.numeric, tables[[name]]))
      expect_false(any(is.nan(numbers) | is.infinite(numbers)), label = name)
    }
  }
})

test_that("no text of a table is a formula to a spreadsheet, and numbers stay numbers", {
  table <- data.table(
    name = c("=HYPERLINK(\"http://host\")", "+1", "-x", "@a", "a=1", NA), part = factor("=f"), watts = -1.5
  )
  paths <- write_tables(list(one = table), tempfile("tables"))
  written <- data.table::fread(paths[["one"]], quote = "\"", na.strings = "")
  expect_identical(written$name, c("'=HYPERLINK(\"\"http://host\"\")", "'+1", "'-x", "'@a", "a=1", NA))
  expect_identical(unique(written$part), "'=f")
  expect_identical(unique(written$watts), -1.5)
  data <- jsonlite::base64_dec(sub("\".*", "", sub(".*base64,", "", as.character(csv_link(table, "one")))))
  expect_identical(strsplit(rawToChar(data), "\n")[[1]], readLines(paths[["one"]]))
})
