# SPDX-License-Identifier: Apache-2.0

hostile <- "<script>alert('x')</script>\"&\n<img src=x onerror=alert(1)>"

# To draw a report takes longest: those of which many tests look at a part are drawn once.
usual_dir <- synthetic_campaign(blocks = 2)
usual <- run_main(usual_dir, "--report", "--json")
usual_page <- page_text(file.path(usual_dir, "report.html"))

test_that("analyse writes tables, figures and the report and tells of each", {
  dir <- usual_dir
  expect_identical(usual$code, 0L)
  kinds <- vapply(usual$events, function(event) event$event, "")
  expect_setequal(kinds, c("table", "figure", "report"))
  paths <- vapply(usual$events, function(event) event$path, "")
  expect_true(all(file.exists(paths)))
  expect_true(all(file.path(dir, c(
    "tables/ea_summary.csv", "tables/envelope.csv", "tables/delta_ea.csv", "tables/invalid_runs.csv", "figures/ea.svg",
    "figures/ea.png", "report.html"
  )) %in% paths))
  header <- names(fread(file.path(dir, "tables", "ea_summary.csv"), nrows = 0))
  expect_identical(utils::head(header, 21), c(
    "node", "meter_id", "device_model", "power_source", "radio_source", "transport", "payload_bytes",
    "offered_rate_mbps", "n", "ea_j_per_mbit_mean", "ea_ci95_low", "ea_ci95_high", "u95_meter", "goodput_mbps",
    "loss_ratio", "frames_per_message", "p_a_w", "floor_w", "ea_above_floor_j_per_mbit", "below_resolution_n", "hollow"
  ))
})

test_that("analysing twice gives the same bytes", {
  files <- c("tables/ea_summary.csv", "figures/ea.svg", "figures/ea.png", "report.html")
  digests <- function() unname(tools::md5sum(file.path(usual_dir, files)))
  before <- digests()
  expect_identical(run_main(usual_dir, "--report")$code, 0L)
  expect_identical(digests(), before)
})

# The page without what is ours alone: the one script, the policy that names its digest, the empty icon.
without_own_parts <- function(html) {
  script <- paste0("<script>", report_script(), "</script>")
  expect_length(gregexpr(script, html, fixed = TRUE)[[1]], 1)
  html <- sub(script, "", html, fixed = TRUE)
  html <- sub("<meta http-equiv=\"Content-Security-Policy\"[^>]*>", "", html, perl = TRUE)
  sub("<link rel=\"icon\" href=\"data:,\"/>", "", html, fixed = TRUE)
}

test_that("the report is one file that fetches nothing and runs its own script alone", {
  expect_on_page(usual_page, "^<!DOCTYPE html>")
  expect_on_page(usual_page, "<style>", fixed = TRUE)
  expect_on_page(usual_page, "name=\"viewport\"", fixed = TRUE)
  # Names of XML namespaces are no addresses to fetch, nor are the letters of a picture that is inside.
  names <- "xmlns(:xlink)?='[^']*'|data:image/png;base64,[A-Za-z0-9+/=]*"
  rest <- gsub(names, "", without_own_parts(usual_page), perl = TRUE)
  expect_false(grepl("https?://|//[a-z]|@import|<script|<link|src=|url\\((?!#)", rest, perl = TRUE))
  for (id in c("summary", "figures", "tables", "method", "invalid", "environment", "glossary")) {
    expect_on_page(usual_page, paste0("<section id=\"", id, "\""), fixed = TRUE)
  }
})

test_that("every figure is inlined with an alt text and its own identifiers", {
  svgs <- gregexpr("<svg role='img' aria-label='[^']{80,}'", usual_page, perl = TRUE)[[1]]
  expect_length(svgs, 2 * 12) # wide and narrow
  ids <- regmatches(usual_page, gregexpr("(?<=\\sid=['\"])[^'\"]+", usual_page, perl = TRUE))[[1]]
  per_figure <- grep("^f[0-9]+-", ids, value = TRUE)
  expect_gt(length(per_figure), 0)
  expect_identical(ids[duplicated(ids)], character())
  targets <- unique(regmatches(usual_page, gregexpr("(?<=url\\(#)[^)]+", usual_page, perl = TRUE))[[1]])
  expect_true(all(targets %in% ids))
  links <- unique(regmatches(usual_page, gregexpr("(?<=href=\"#)[^\"]+", usual_page, perl = TRUE))[[1]])
  expect_gt(length(links), 20)
  expect_identical(setdiff(links, ids), character())
})

test_that("the policy lets the one script run and nothing else", {
  # Digest of "abc": FIPS 180-2, appendix B.1.
  policy <- content_policy("abc")
  expect_match(policy, "script-src 'sha256-ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=';", fixed = TRUE)
  expect_match(policy, "^default-src 'none';")
  expect_false(grepl("https?:|[*]|unsafe-eval", policy))
  in_page <- gsub("&#39;", "'", usual_page, fixed = TRUE)
  expect_on_page(in_page, content_policy(report_script()), fixed = TRUE)
  # It stands before anything that it has to hold for.
  expect_lt(regexpr("Content-Security-Policy", usual_page)[1], regexpr("<style", usual_page, fixed = TRUE)[1])
  expect_false(grepl("[^ -~\n]|</", report_script()))
})

# Names that mean harm, a run that is invalid for such a reason, and a transport that no contract knows.
odd_dir <- synthetic_campaign(
  name = hostile, blocks = 2, transports = c("udp", "carrier-pigeon", "null"),
  meters = list(synthetic_meter(
    node = hostile, device_model = hostile, device_form = hostile,
    power = function(transport, size, rate) if (transport == "null") 0.05 else rate
  ))
)
edit_json(file.path(odd_dir, "campaign.json"), function(doc) {
  doc$workload[[hostile]] <- hostile
  doc$versions$commit <- hostile
  doc
})
odd_run <- grep("pigeon", list.files(file.path(odd_dir, "runs")), value = TRUE)[1]
edit_json(file.path(odd_dir, "runs", odd_run, "result.json"), function(doc) {
  doc$valid <- FALSE
  doc$reasons <- list(list(code = "idle_drift", detail = hostile))
  doc
})
analyse(odd_dir, with_report = TRUE)
odd_page <- page_text(file.path(odd_dir, "report.html"))

test_that("hostile names and reasons are escaped in report and figures, and do not break them", {
  html <- without_own_parts(odd_page)
  expect_false(grepl("<script", html, fixed = TRUE))
  expect_false(grepl("<img", html, fixed = TRUE))
  expect_on_page(html, "&lt;script&gt;", fixed = TRUE)
  expect_on_page(html, "idle_drift", fixed = TRUE)
  expect_on_page(html, odd_run, fixed = TRUE)
  svg <- page_text(file.path(odd_dir, "figures", "ea.svg"))
  expect_false(grepl("<script|<img", svg))
})

test_that("a modelled report never ranks transports without saying that it is a model", {
  campaign <- read_campaign(synthetic_campaign(blocks = 3, noise_w = 0.001))
  sentences <- summary_sentences(campaign, campaign_tables(campaign), "client-wt210")
  ranking <- grep("less|more|cost|takes|adds", sentences, value = TRUE)
  expect_gt(length(ranking), 3)
  expect_true(all(startsWith(ranking, "In this model, ")))
})

test_that("a meter whose every cell is extrapolated says so", {
  campaign <- read_campaign(synthetic_campaign(meters = list(synthetic_meter(hollow = function(rate) TRUE))))
  sentences <- summary_sentences(campaign, campaign_tables(campaign), "client-wt210")
  expect_match(sentences, "12 of 12 cells lie outside the device model's stated validity", all = TRUE)
})

test_that("the words give each load the verdict of its interval", {
  delta <- data.table(
    method = "ratio", transport = "tcp", payload_bytes = 64, offered_rate_mbps = c(1, 3, 10, 30),
    difference_percent = c(-20, 10, 1, -22), difference_ci95_low = c(-25, 6, -3, -24),
    difference_ci95_high = c(-15, 14, 5, -20)
  )
  expect_identical(
    delta_sentences(delta, "In this model, "),
    paste(
      "In this model, energy per megabit against UDP at 64 bytes: TCP 20 to 22 % less at 1 and 30 Mb/s,",
      "10 % more at 3 Mb/s, no clear difference at 10 Mb/s."
    )
  )
  delta[, `:=`(difference_ci95_low = NA_real_, difference_ci95_high = NA_real_)]
  single <- delta_sentences(delta, "")
  expect_match(single, "^Energy per megabit .* a single pair at 1, 3, 10 and 30 Mb/s, so no verdict")
})

test_that("loads at which a sender's core was full are marked", {
  delta <- data.table(
    method = "ratio", transport = "tcp", reference = "udp", payload_bytes = 64, offered_rate_mbps = c(1, 10),
    difference_percent = c(-20, 10), difference_ci95_low = c(-25, 6), difference_ci95_high = c(-15, 14)
  )
  summary <- data.table(
    payload_bytes = 64, transport = c("udp", "tcp", "dccp"), offered_rate_mbps = c(10, 1, 1),
    floor_reason = c("floor_core_busy;null_run_invalid", NA, "floor_core_busy")
  )
  expect_identical(delta_sentences(delta, "", summary), paste(
    "Energy per megabit against UDP at 64 bytes: TCP 20 % less at 1 Mb/s, 10 % more at 10 Mb/s (a sender over",
    "90 % of a core busy at 10 Mb/s)."
  ))
})

test_that("power that does not grow with load is called by its name", {
  meter <- synthetic_meter(power = function(transport, size, rate) if (transport == "udp") 29 else 2.9 * rate)
  campaign <- read_campaign(synthetic_campaign(
    offered_rate_mbps = c(1, 3, 10), transports = c("udp", "tcp"), blocks = 2, meters = list(meter)
  ))
  sentences <- summary_sentences(campaign, campaign_tables(campaign), "client-wt210")
  named <- grep("busy-waiting", sentences, value = TRUE)
  expect_length(named, 2)
  expect_true(all(grepl("UDP at", named)))
})

test_that("a large floor is warned of with its code, and an empty one is said to be empty", {
  meter <- synthetic_meter(power = function(transport, size, rate) if (transport == "null") 0.4 else rate)
  dir <- synthetic_campaign(
    payload_bytes = 64, transports = c("udp", "dccp", "null"), blocks = 2, meters = list(meter),
    held_back = function(rate) if (rate == 10) 0.2 else 0
  )
  campaign <- read_campaign(dir)
  sentences <- summary_sentences(campaign, campaign_tables(campaign), "client-wt210")
  warning <- grep("floor_large", sentences, value = TRUE)
  expect_length(warning, 1)
  expect_match(warning, "^In this model, the generator floor takes over 20 % of P_A - P_I in 2 of 4 cells")
  expect_match(warning, "most for UDP at 64 bytes and 1 Mb/s: 40 %.", fixed = TRUE)
  expect_match(sentences, "E_A above floor is empty in 1 cell: floor_achieved_low.", fixed = TRUE, all = FALSE)
  small <- read_campaign(synthetic_campaign(blocks = 2, offered_rate_mbps = 10, payload_bytes = 64))
  expect_false(any(grepl("floor_large", summary_sentences(small, campaign_tables(small), "client-wt210"))))
})

test_that("the first figure shows E_A above a large floor beside E_A, and nothing of a small one", {
  drawn <- function(floor_w) {
    meter <- synthetic_meter(power = function(transport, size, rate) if (transport == "null") floor_w else rate)
    campaign <- read_campaign(synthetic_campaign(
      payload_bytes = 64, transports = c("udp", "null"), blocks = 2, meters = list(meter)
    ))
    campaign_figures(campaign, campaign_tables(campaign))[[1]]
  }
  large <- drawn(0.4)
  expect_identical(large$name, "ea")
  axis_of <- function(one) as.character(one$plot$scales$get_scales("y")$name)
  expect_match(axis_of(large), "above a floor of over 20 %", fixed = TRUE)
  crosses <- Filter(function(layer) identical(layer$aes_params$shape, 4), large$plot$layers)
  expect_equal(crosses[[2]]$data$above, 0.6)
  expect_equal(crosses[[2]]$data$offered_rate_mbps, 1)
  small <- drawn(0.1)
  expect_no_match(axis_of(small), "above", fixed = TRUE)
  expect_length(Filter(function(layer) identical(layer$aes_params$shape, 4), small$plot$layers), 0L)
})

test_that("a second device outside its model's validity is a line on the page, and in no figure", {
  meters <- list(synthetic_meter(), synthetic_meter("ap", "access_point", hollow = function(rate) TRUE))
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64, meters = meters)
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  expect_identical(outside_meters(campaign, tables$ea_summary), "ap")
  expect_identical(outside_meters(campaign, tables$ea_summary[meter_id == "client-wt210"]), character())
  expect_false(any(figure_ids(campaign_figures(campaign, tables)) %in% c("ea-ap", "power-ap")))
  html <- as.character(tag$div(table_parts(campaign, tables)$ea_summary$content))
  expect_match(html, "(meter ap): all 6 cells lie outside the device model", fixed = TRUE)
  expect_length(gregexpr("E_A per cell", html, fixed = TRUE)[[1]], 2L) # over its table, and its name
})

test_that("null runs that woke up otherwise are warned of with the code", {
  sentences_on <- function(null) {
    campaign <- read_campaign(with_wake_ups(synthetic_campaign(
      payload_bytes = 64, transports = c("udp", "null"), blocks = 2
    ), 1, null))
    sentences <- summary_sentences(campaign, campaign_tables(campaign), "client-wt210")
    grep("floor_wake_ups_differ", sentences, value = TRUE)
  }
  warned <- sentences_on(3)
  expect_length(warned, 1)
  expect_match(
    warned, "^In this model, wake-ups per message of runs and of their null run differ by more than a factor of 1.5 in"
  )
  expect_match(warned, "in 2 of 2 cells (floor_wake_ups_differ), in most runs for UDP at 64 bytes", fixed = TRUE)
  expect_identical(sentences_on(1.5), character())
})

test_that("few blocks are said to be few", {
  single <- read_campaign(synthetic_campaign(blocks = 1))
  expect_match(certainty_sentences(single, campaign_tables(single))[1], "single block")
  three <- read_campaign(synthetic_campaign(blocks = 3))
  expect_match(certainty_sentences(three, campaign_tables(three))[1], "exploratory, and with fewer than 8 blocks")
})

test_that("what merely describes a run is not counted as its reason to be invalid", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1)
  id <- grep("null", list.files(file.path(dir, "runs")), value = TRUE)
  edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
    doc$valid <- FALSE
    doc$reasons <- list(
      list(code = "null_has_no_throughput", detail = ""), list(code = "meter_gap", detail = "coverage 0.7")
    )
    doc
  })
  expect_identical(invalid_runs(read_campaign(dir))$code, "meter_gap")
})

test_that("a transport that no contract knows is drawn, named and told of", {
  expect_on_page(odd_page, "UDP and carrier-pigeon sent messages", fixed = TRUE)
  expect_on_page(odd_page, "<th scope=\"row\" class=\"text\">carrier-pigeon, 64 B, 10 Mb/s</th>", fixed = TRUE)
})
