# SPDX-License-Identifier: Apache-2.0

# A load without an R file goes through analysis and report: by its entry in loads.json alone.

command <- function(...) {
  done_campaign("command", "build", c(slow = 2, fast = 1), measures = function(cell, watts) {
    list(duration_s = 3, cpu_s = watts, sent_bytes = 1000, received_bytes = NULL)
  }, ...)
}

test_that("a command has energy per work with u95, E_d, E_t and tail in tables, by hand", {
  campaign <- read_campaign(command(factors = list(LEVEL = c("1", "9"))))
  expect_identical(campaign$load, "command")
  expect_identical(cell_keys(campaign), c(meter_keys, "build", "LEVEL"))
  tables <- campaign_tables(campaign)
  cells <- tables$energy_summary
  expect_identical(nrow(cells), 4L)
  slow <- cells[build == "slow" & LEVEL == "9"]
  expect_equal(
    unlist(slow[, c(
      "energy_per_work_j", "e_d_j", "e_t_j", "tail_energy_j", "u95_energy_per_work_j", "window_s", "cpu_s"
    )]),
    c(
      energy_per_work_j = 6, e_d_j = 6, e_t_j = 30, tail_energy_j = 0.2, u95_energy_per_work_j = 0.012, window_s = 3,
      cpu_s = 2
    )
  )
  expect_identical(slow$n, 2L)
  expect_equal(slow$energy_per_work_j_ci95_low, 6)
  expect_identical(nrow(tables$energy_runs), 8L)
  runs <- tables$energy_runs
  expect_equal(runs$energy_per_work_j, 3 * c(slow = 2, fast = 1)[runs$build], ignore_attr = TRUE)
  # Recomputed from the meter's log, tail and all.
  expect_true(all(tables$ea_check$agrees))
  expect_true("tail_energy_j" %in% tables$ea_check$quantity)
  expect_identical(tables$arm_contrasts[, c("reference", "arm", "cells_n", "blocks_n")], data.table(
    reference = "slow", arm = "fast", cells_n = 2L, blocks_n = 2L
  ))
  expect_equal(tables$arm_contrasts$difference_percent, -50)
  for (name in c("energy_summary", "energy_runs", "arm_contrasts")) {
    wanted <- schema_columns(name)
    expect_identical(intersect(names(tables[[name]]), names(wanted)), names(wanted), label = name)
    columns <- tables[[name]][, names(wanted), with = FALSE]
    types <- vapply(columns, function(x) if (all(is.na(x))) NA_character_ else mode(x), "")
    expect_identical(types[!is.na(types)], wanted[!is.na(types)], label = name)
  }
  # A design with two blocks has no test.
  expect_identical(tables$arm_contrasts$inference, "intervals_only")
  expect_true(is.na(tables$arm_contrasts$p_value))
  expect_identical(unique(stats::na.omit(tables$power_trace$build)), c("slow", "fast"))
})

test_that("energies of work that was repeated are of one repetition", {
  dir <- command(blocks = 1L)
  for (path in Sys.glob(file.path(dir, "runs", "*", "run.json"))) {
    edit_json(path, function(doc) {
      if (doc$arm == "slow") doc$work$`repeat` <- 4L
      doc
    })
  }
  cells <- energy_summary(read_campaign(dir))
  expect_equal(
    unlist(cells[build == "slow", c("energy_per_work_j", "e_d_j", "e_t_j", "tail_energy_j", "window_s", "work")]),
    c(energy_per_work_j = 6, e_d_j = 1.5, e_t_j = 7.5, tail_energy_j = 0.2, window_s = 0.75, work = 0.25)
  )
  expect_equal(cells[build == "fast", e_d_j], 3)
})

test_that("the campaigns of these tests fit the contracts", {
  dir <- command()
  run <- list.dirs(file.path(dir, "runs"), recursive = FALSE)[1]
  for (name in c("run", "result")) {
    doc <- jsonlite::fromJSON(file.path(run, paste0(name, ".json")), simplifyVector = FALSE)
    expect_identical(schema_defects(doc, contract("schemas", paste0(name, ".schema.json"))), character(), label = name)
  }
})

test_that("enough blocks are tested, and the words say how it came out", {
  campaign <- read_campaign(command(blocks = 8))
  found <- arm_contrasts(campaign)
  expect_identical(found$inference, "tested")
  expect_equal(found$p_value, 2 / 2^8)
  expect_identical(found$verdict, "less")
})

test_that("analyse writes a command's tables, the figures of its entry and its report", {
  dir <- command(factors = list(LEVEL = c("1", "9")))
  analyse(dir, with_report = TRUE)
  written <- list.files(file.path(dir, "figures"), "\\.svg$")
  expect_true(all(
    c("arms-energy-per-work-j.svg", "arms-duration-s.svg", "power.svg") %in% written
  ))
  written <- list.files(file.path(dir, "tables"))
  expect_true(all(c("energy_summary.csv", "energy_runs.csv", "arm_contrasts.csv") %in% written))
  page <- paste(readLines(file.path(dir, "report.html"), encoding = "UTF-8"), collapse = "\n")
  told <- sub("<section id=\"glossary\".*", "", sub(".*<body>", "", page))
  of_flows <- gregexpr("(?i)megabit|transport|goodput|Mb/s|loads", told, perl = TRUE)
  expect_identical(regmatches(told, of_flows)[[1]], character())
  for (words in c("Energy by arm and cell", "u95 J", "E_d J", "E_t J", "tail J", "fast", "LEVEL")) {
    expect_true(grepl(words, told, fixed = TRUE), label = words)
  }
})

test_that("a campaign without a meter has the power of its model, labelled so, and nothing is recomputed", {
  dir <- command()
  unlink(file.path(dir, "meters"), recursive = TRUE)
  edit_json(file.path(dir, "campaign.json"), function(doc) replace(doc, "meters", list(list())))
  for (path in list.files(file.path(dir, "runs"), "^result.json$", recursive = TRUE, full.names = TRUE)) {
    edit_json(path, function(doc) {
      doc$nodes[[1]][c("meter_id", "power_source")] <- list("model", "modelled")
      doc
    })
  }
  tables <- analyse(dir, with_report = TRUE)
  expect_equal(tables$energy_summary[build == "slow", energy_per_work_j], 6)
  expect_identical(unique(tables$energy_summary$power_source), "modelled")
  expect_identical(nrow(tables$ea_check), 0L)
  expect_identical(nrow(tables$power_trace), 0L)
  page <- paste(readLines(file.path(dir, "report.html"), encoding = "UTF-8"), collapse = "\n")
  for (words in c("in this model, not measured on hardware", "power_source: modelled")) {
    expect_true(grepl(words, page, fixed = TRUE), label = words)
  }
})

toy <- list(
  name = "toy", label = "Waiting", description = "Waits so many milliseconds.", kinds = list("emulated"),
  work = list(unit = "ms", label = "milliseconds waited"), measures = list(list(
    name = "late_ms", label = "Lateness", unit = "ms", better = "lower"
  )), factors = list("build", "wait_ms"), required = list("wait_ms"), arm = "build", reference = NULL, control = NULL,
  window = "until_done", document = NULL, figures = list(
    list(
      kind = "sweep", x = "wait_ms", y = "late_ms", panel = NULL, colour = "build", title = "Lateness against the wait"
    ),
    list(kind = "facets", x = "build", y = "e_d_j", panel = "wait_ms", colour = "build", title = "Energy by wait"),
    list(kind = "trace", x = "t_s", y = "power_w", panel = NULL, colour = "build", title = "Power")
  )
)

test_that("a load that only its own entry knows is analysed, with sweeps over its factors of numbers", {
  with_contracts_of(toy, {
    edit_json(file.path(contracts_dir(), "factors.json"), function(doc) {
      doc$factors <- c(doc$factors, list(list(
        name = "wait_ms", label = "Wait", description = "How long.", owner = "load", unit = "ms",
        value = list(type = "number")
      )))
      doc
    })
    dir <- done_campaign("toy", "build", c(a = 1, b = 3), list(wait_ms = c(10, 100, 1000)),
      work = function(cell) cell$wait_ms, unit = "ms",
      measures = function(cell, watts) list(late_ms = 1e-3 * cell$wait_ms)
    )
    tables <- analyse(dir, with_report = TRUE)
    expect_equal(tables$energy_summary[build == "b" & wait_ms == 100, energy_per_work_j], 0.09)
    expect_identical(unique(tables$energy_summary$work_unit), "ms")
    expect_true(all(c(
      "arms-energy-per-work-j.svg", "sweep-late-ms-wait-ms.svg", "sweep-energy-per-work-j-wait-ms.svg",
      "facets-e-d-j-build.svg", "power.svg", "ea-order.svg"
    ) %in% list.files(file.path(dir, "figures"))))
    figures <- jsonlite::fromJSON(file.path(dir, "figures", "index.json"))
    expect_match(figures$alt[figures$svg == "sweep-late-ms-wait-ms.svg"], "Lateness \\(ms\\) by Wait \\(ms\\) for a, b")
    expect_true(file.exists(file.path(dir, "report.html")))
  })
})

test_that("a load that no contract knows is refused in a sentence", {
  dir <- done_campaign("unknown", "build", c(a = 1))
  expect_error(read_campaign(dir), "not in loads.json", class = "netjoule_error")
})

test_that("what only flows have stands in flow-*.R and lift.R: no other file names a transport or a factor of flows", {
  files <- list.files(test_path("..", "..", "R"), "\\.R$", full.names = TRUE)
  skip_if(length(files) == 0L, "the package's sources are not here")
  generic <- files[!grepl("^(flow-.*|lift)\\.R$", basename(files))]
  expect_gt(length(generic), 20)
  # "null" is JSON's and grid's word, too.
  transports <- setdiff(transport_looks()$transport, "null")
  words <- c("transport", "payload_bytes", "offered_rate_mbps", transports)
  for (file in generic) {
    tokens <- utils::getParseData(parse(file, keep.source = TRUE))
    tokens <- tokens[tokens$token %in% c("SYMBOL", "SYMBOL_SUB", "SYMBOL_FORMALS", "STR_CONST"), ]
    text <- gsub("^[\"']|[\"']$", "", tokens$text)
    found <- tokens$text[text %in% words | grepl("payload_bytes|offered_rate", text)]
    expect_identical(found, character(), label = basename(file))
  }
})
