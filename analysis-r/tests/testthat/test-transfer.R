# SPDX-License-Identifier: Apache-2.0

# Campaigns of transfers: energies per 100 MB and per file, the break point, published ratios, figures and report.

# 400 Mb in 20 files; more at once takes more power and is faster.
transfers <- function(arm, arms, factors = list(dataset = "mixed-2"), mbps = function(watts) 100 * watts, ...) {
  done_campaign("transfer", arm, arms, factors, work = function(cell) 400, unit = "Mb",
    measures = function(cell, watts) {
      list(
        throughput_mbps = mbps(watts), duration_s = 3, cpu_s = 1, connections_opened = 4, files_verified = 20,
        retries = 0
      )
    }, ...
  )
}

named <- function(figures) stats::setNames(figures, vapply(figures, function(one) one$name, ""))

test_that("energies are per 100 MB and per file, by hand, in a table that keeps its contract", {
  tables <- campaign_tables(read_campaign(transfers("client", c(wget = 2, lowe = 1))))
  wget <- tables$transfer_summary[client == "wget"]
  # 2 W above 8 W for 3 s, 50 MB, 20 files; a tail of 0.2 J.
  expect_equal(
    unlist(wget[, c(
      "throughput_mbps", "throughput_efficiency", "e_b_per_100_mb_j", "e_d_per_100_mb_j", "e_t_per_100_mb_j",
      "tail_e_per_100_mb_j", "e_b_per_file_j", "e_d_per_file_j", "e_t_per_file_j", "tail_e_per_file_j"
    )], use.names = FALSE),
    c(200, 200 / 12, 48, 12, 60, 0.4, 1.2, 0.3, 1.5, 0.01)
  )
  expect_equal(wget$u95_e_d_per_100_mb_j, 2 * normal_97_5 * 0.001 * 3)
  expect_identical(wget$n, 2L)
  for (name in c("transfer_summary", "transfer_published")) {
    expect_identical(intersect(names(tables[[name]]), names(schema_columns(name))), names(schema_columns(name)))
  }
})

test_that("a set that was fetched several times in a run has the same energy per 100 MB and per file", {
  dir <- transfers("client", c(wget = 2), blocks = 1L)
  edit_json(Sys.glob(file.path(dir, "runs", "*", "run.json")), function(doc) {
    doc$work$`repeat` <- 4L
    doc
  })
  cell <- campaign_tables(read_campaign(dir))$transfer_summary
  expect_equal(c(cell$e_d_per_100_mb_j, cell$e_d_per_file_j), c(12, 0.3 / 4))
})

test_that("a published ratio stands beside ours where clients and set are the same, and nowhere else", {
  skip_if(is.na(reference_dir()), "no results/reference beside the contracts")
  tables <- campaign_tables(read_campaign(transfers("client", c(wget = 2, lowe = 1))))
  expect_identical(tables$transfer_published$value_id, "wget-energy")
  expect_equal(unlist(tables$transfer_published[, c("published_low", "ours", "n")], use.names = FALSE), c(2.7, 2, 2))
  other <- read_campaign(transfers("client", c(wget = 2, lowe = 1), list(dataset = "html-1")))
  expect_null(campaign_tables(other)$transfer_published)
})

test_that("published values of a level stand beside ours, of the same set, path, network and phone", {
  skip_if(is.na(reference_dir()), "no results/reference beside the contracts")
  published <- function(...) {
    mbps <- function(watts) c(47, NA, 3)[watts - 1]
    campaign <- read_campaign(transfers("concurrency", c(`1` = 4, `16` = 2), list(...), mbps = mbps))
    found <- campaign_tables(campaign)$transfer_published
    found[order(value_id), c("value_id", "compared", "against", "unit", "ours", "published_low")]
  }
  found <- published(dataset = "html-1:300", path = "sydney", access = "wifi")
  expect_equal(found[value_id == "s5-html-cc-16", ours], 47)
  expect_equal(found[value_id == "s5-html-gain", c(ours, published_low)], c(47 / 3, 16.7))
  # 4 W over the same time and work against 2.
  expect_equal(found[value_id == "s5-html-saving", c(ours, published_low)], c(50, 70))
  expect_identical(found[value_id == "s5-html-cc-1", c(compared, against, unit)], c("concurrency 1", NA, "Mb/s"))
  expect_false(any(grepl("nexus|l700|s4-|image|chameleon|lte|-p-", found$value_id)))
  # Level 32 is not there.
  expect_false("s5-html-energy-past-16" %in% found$value_id)
  nexus <- published(dataset = "html-1", path = "sydney", access = "wifi-nexus-s", device = "nexus-s")
  expect_equal(nexus[value_id == "nexus-s-html-best", c(ours, published_low)], c(47, 19))
  expect_true(all(grepl("nexus-s", nexus$value_id)))
  expect_null(campaign_tables(read_campaign(transfers("concurrency", c(`1` = 4, `16` = 2), list(
    dataset = "html-1", path = "elsewhere"
  ))))$transfer_published)
})

test_that("where two levels vary, what is compared over one stands beside the other's", {
  skip_if(is.na(reference_dir()), "no results/reference beside the contracts")
  campaign <- read_campaign(transfers("client", c(fixed = 2), list(
    dataset = "html-1", path = "sydney", access = "wifi", concurrency = c(1, 16), parallelism = c(1, 8)
  )))
  found <- campaign_tables(campaign)$transfer_published
  expect_identical(unique(found[value_id == "s5-html-cc-16", paste(concurrency, parallelism)]), "NA 1")
  expect_identical(unique(found[value_id == "s5-html-p-to-8", paste(concurrency, parallelism)]), "1 NA")
})

test_that("published numbers have a figure of ours over them", {
  skip_if(is.na(reference_dir()), "no results/reference beside the contracts")
  campaign <- read_campaign(transfers("concurrency", c(`1` = 4, `16` = 2), list(
    dataset = "html-1", path = "sydney", access = "wifi"
  ), mbps = function(watts) c(42, NA, 3)[watts - 1]))
  plot <- named(campaign_figures(campaign, campaign_tables(campaign)))[["transfer-published"]]$plot
  expect_match(
    figure_alt(plot), "html-1: throughput, concurrency 16 (42 Mb/s) 42; ",
    fixed = TRUE
  )
  expect_equal(plot$data[value_id == "s5-html-cc-16", ours / published_low], 1)
  expect_false("s5-html-cc-64" %in% plot$data$value_id)
})

test_that("the break point is the lowest level with the minimum in its interval while throughput still rises", {
  at <- function(mbps, energy_j, half = 1) {
    levels <- 2^(seq_along(mbps) - 1L)
    levels[break_point(levels, mbps, energy_j, energy_j - half, energy_j + half)]
  }
  expect_identical(at(c(10, 20, 30, 40), c(50, 30.5, 30, 31)), 2)
  expect_identical(at(c(10, 20, 30, 40), c(50, 32, 30, 31)), 4)
  # Throughput rises no more, or the last level takes least.
  expect_identical(at(c(10, 20, 30, 29), c(50, 32, 30, 33)), numeric())
  expect_identical(at(c(10, 20, 30, 40), c(50, 40, 30, 20)), numeric())
  expect_identical(at(c(10, 20), c(50, 30), NA_real_), numeric())
  # Whatever the order of rows.
  expect_identical(break_point(c(4, 1, 2), c(30, 10, 20), c(5, 9, 3), c(4, 8, 2), c(6, 10, 4)), c(FALSE, FALSE, TRUE))
})

test_that("a swept level has throughput and energy for each cell, its break point marked and told", {
  campaign <- read_campaign(transfers("concurrency", c(`1` = 4, `2` = 2, `4` = 3), list(
    dataset = c("html-1", "video-1"), parallelism = c(1, 8)
  ), mbps = function(watts) c(40, 90, 10)[watts - 1]))
  expect_identical(swept_factors(campaign), c("concurrency", "parallelism"))
  tables <- campaign_tables(campaign)
  expect_identical(unique(tables$transfer_summary[break_point == TRUE, as.integer(concurrency)]), 2L)
  figures <- named(campaign_figures(campaign, tables))
  expect_identical(uniqueN(figures[["transfer-concurrency"]]$plot$data$panel), 8L)
  expect_match(figure_alt(figures[["transfer-concurrency"]]$plot), "Break point at concurrency 2")
})

test_that("connections are a level like files at once", {
  campaign <- read_campaign(transfers("connections", c(`1` = 4, `2` = 2, `4` = 3), mbps = function(watts) {
    c(40, 90, 10)[watts - 1]
  }))
  expect_identical(swept_factors(campaign), "connections")
  tables <- campaign_tables(campaign)
  expect_identical(tables$transfer_summary[break_point == TRUE, as.integer(connections)], 2L)
  expect_true("transfer-connections" %in% names(named(campaign_figures(campaign, tables))))
})

test_that("the power of a transfer is shaded with its tail, and both areas have their joules", {
  campaign <- read_campaign(transfers("client", c(wget = 2, lowe = 1)))
  figures <- named(campaign_figures(campaign, campaign_tables(campaign)))
  plot <- figures[["transfer-power"]]$plot
  expect_match(figure_alt(plot), "wget: Transfer 6 J, Tail 0.2 J; lowe: Transfer 3 J, Tail 0.1 J", fixed = TRUE)
  expect_setequal(as.character(plot$data$part), c("Transfer", "Tail"))
  # No gap between the two.
  ends <- plot$data[, list(from = min(since_s), to = max(since_s)), by = list(panel, part)]
  expect_equal(ends[part == "Tail", from], ends[part == "Transfer", to])
})

test_that("analyse writes tables, figures and report of transfers", {
  dir <- transfers("client", c(wget = 2, lowe = 1))
  analyse(dir, with_report = TRUE)
  expect_true(all(c("transfer-clients.svg", "transfer-power.svg") %in% list.files(file.path(dir, "figures"))))
  expect_true("transfer_summary.csv" %in% list.files(file.path(dir, "tables")))
  page <- paste(readLines(file.path(dir, "report.html"), encoding = "UTF-8"), collapse = "\n")
  for (words in c("Transfers by arm and cell", "E_d J/100 MB", "Throughput, energy and efficiency by client")) {
    expect_true(grepl(words, page, fixed = TRUE), label = words)
  }
})
