# SPDX-License-Identifier: Apache-2.0

overlaid <- function(...) {
  path <- tempfile(fileext = ".html")
  overlay_report(c(...), path)
  page_text(path)
}

dearer <- function(factor, ...) {
  power <- function(transport, size, rate) factor * linear_power()(transport, size, rate)
  synthetic_campaign(..., meters = list(synthetic_meter(power = power)))
}

test_that("cells of both stand side by side with the ratio of their E_A, and those of one alone are counted", {
  a <- dearer(1, name = "before", blocks = 2, transports = c("udp", "null"), payload_bytes = 64)
  b <- dearer(1.5, name = "after", blocks = 2, transports = c("udp", "tcp", "null"), payload_bytes = 64)
  pairs <- overlay_pairs(lapply(c(a, b), read_campaign))
  expect_length(pairs, 1L)
  table <- overlay_table(pairs[[1]]$cells)
  expect_identical(table$offered_rate_mbps, c(1, 10))
  expect_identical(unique(table$transport), "udp")
  expect_equal(table$ea_b_over_a, c(1.5, 1.5))
  expect_equal(table$goodput_b_over_a, c(1, 1))
  html <- overlaid(a, b)
  expect_on_page(html, "E_A of B is 1.5 to 1.5 times that of A (median 1.5, 2 cells)", fixed = TRUE)
  expect_on_page(html, "2 cells of B (after) alone", fixed = TRUE)
  expect_on_page(html, "<td>1.5</td>", fixed = TRUE)
  expect_on_page(html, "download=\"overlay-client-wt210.csv\"", fixed = TRUE)
  # E_A and goodput, wide and narrow; nothing was lost.
  expect_length(gregexpr("<svg ", html, fixed = TRUE)[[1]], 4L)
  expect_on_page(html, "<title>A (before), UDP, 64 B, 10 Mb/s: ", fixed = TRUE)
  expect_false(grepl("regression|worse|better than", html, ignore.case = TRUE))
})

test_that("no ratio is told where one of them is an upper limit or outside its model", {
  dir <- synthetic_campaign(blocks = 2, transports = "udp", payload_bytes = 64)
  summary <- summarise_ea(read_campaign(dir))
  other <- copy(summary)
  other[offered_rate_mbps == 1, `:=`(below_resolution_n = n, ea_upper_limit_j_per_mbit = 2)]
  other[offered_rate_mbps == 10, hollow := TRUE]
  table <- overlay_table(overlay_cells(list(summary, other), rep("client-wt210", 2L)))
  expect_true(all(is.na(table$ea_b_over_a)))
  expect_identical(table$b_ea[1], "under 2")
  expect_match(table$b_ea[2], "(extrapolated)", fixed = TRUE)
})

test_that("what the two differ in is said: kernel, processor, meter, workload", {
  a <- synthetic_campaign(name = "one", blocks = 1, payload_bytes = 64)
  b <- synthetic_campaign(name = "two", blocks = 1, payload_bytes = 64)
  edit_json(file.path(a, "campaign.json"), function(doc) {
    doc$host <- list(kernel = "6.1.0", cpu_model = "old", memory_bytes = 25276514304)
    doc$topology$hosts$client$address <- "10.0.0.1"
    doc
  })
  edit_json(file.path(b, "campaign.json"), function(doc) {
    doc$host <- list(kernel = "6.18.0", cpu_model = "new <b>", memory_bytes = 25276502016)
    doc$topology$hosts$client$address <- "198.18.0.1"
    doc$workload$blocks <- 7L
    doc$meters[[1]]$model <- "WT310"
    doc
  })
  html <- overlaid(a, b)
  expect_on_page(html, "They differ in kernel, processor and memory, meters and workload", fixed = TRUE)
  expect_on_page(html, "kernel A 6.1.0, B 6.18.0", fixed = TRUE)
  expect_on_page(html, "cpu model A old, B new &lt;b&gt;", fixed = TRUE)
  expect_on_page(html, "model A [^;]*, B WT310")
  expect_false(grepl("memory gib|198.18.0.1", html))
})

test_that("long names of campaigns stand below each other in the legend, and one value is said once", {
  a <- dearer(1, name = "quick-20261125T211830-before", blocks = 1, transports = "udp", payload_bytes = 64)
  b <- dearer(1, name = "quick-20261125T211830-after", blocks = 1, transports = "udp", payload_bytes = 64)
  campaigns <- lapply(c(a, b), read_campaign)
  names(campaigns) <- overlay_labels(campaigns, c(a, b))
  cells <- overlay_pairs(campaigns)[[1]]$cells[offered_rate_mbps == 10]
  points <- overlay_flow(cells, "goodput_mbps", "goodput")
  plot <- overlay_plot(points, "Goodput", "Goodput, Mb/s", 1L, campaigns, NULL)
  expect_identical(plot$guides$colour$nrow, 2L)
  expect_match(figure_alt(plot), "Values: 10.", fixed = TRUE)
})

test_that("one campaign twice, three, and two without a common cell are refused as usage", {
  a <- synthetic_campaign(blocks = 1, payload_bytes = 64)
  b <- synthetic_campaign(blocks = 1, payload_bytes = 1440)
  out <- tempfile(fileext = ".html")
  for (dirs in list(a, c(a, a), c(a, file.path(a, ".")), c(a, b), c(a, b, a))) {
    expect_identical(run_main(c(dirs, "--overlay", out))$code, exit_codes$usage)
  }
  expect_false(file.exists(out))
  expect_identical(run_main(c(a, b))$code, exit_codes$usage)
})

test_that("into neither campaign anything is written", {
  a <- synthetic_campaign(name = "one", blocks = 1, payload_bytes = 64)
  b <- synthetic_campaign(name = "two", blocks = 1, payload_bytes = 64)
  files <- function() list.files(c(a, b), recursive = TRUE, all.files = TRUE)
  before <- files()
  out <- file.path(tempfile("folder"), "gr\u00f6\u00dfe.html")
  expect_identical(run_main(c(a, b, "--overlay", out))$code, exit_codes$fine)
  expect_true(file.exists(out))
  expect_on_page(page_text(out), "workload, link and program versions are the same in both", fixed = TRUE)
  expect_identical(files(), before)
})
