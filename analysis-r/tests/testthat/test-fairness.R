# SPDX-License-Identifier: Apache-2.0

# A second flow beside that of each run, at another client: with a share of the first one's goodput, its intervals
# beginning half an interval later.
with_second_flow <- function(dir, share = 0.5, client = "tablet", lag_s = 0.05) {
  for (run_dir in list.dirs(file.path(dir, "runs"), recursive = FALSE)) {
    run <- jsonlite::fromJSON(file.path(run_dir, "run.json"), simplifyVector = FALSE)
    edit_json(file.path(run_dir, "run.json"), function(doc) {
      doc$flows <- lapply(1:2, function(number) second_asked(run, number, client))
      doc
    })
    dir.create(file.path(run_dir, "flows"))
    file.copy(file.path(run_dir, "flow.json"), file.path(run_dir, "flows", "2.json"))
    is_null <- run$transport == "null"
    if (!is_null) add_second_intervals(file.path(run_dir, "intervals.csv"), share, lag_s)
    edit_json(file.path(run_dir, "result.json"), function(doc) second_result(doc, run, share, client, is_null))
  }
  dir
}

second_asked <- function(run, number, client) {
  list(
    flow = number, client = c("client", client)[number], transport = run$transport, direction = run$direction,
    payload_bytes = run$payload_bytes, offered_rate_mbps = run$offered_rate_mbps,
    t_first_packet_s = run$t_first_packet_s
  )
}

add_second_intervals <- function(path, share, lag_s) {
  first <- data.table::fread(path)
  second <- data.table::copy(first)
  second[, `:=`(t_start_s = t_start_s + lag_s, t_end_s = t_end_s + lag_s, bytes = bytes * share, flow = 2)]
  # One interval earlier too, so that both flows fill the window.
  early <- second[1][, `:=`(t_start_s = t_start_s - tick_s, t_end_s = t_end_s - tick_s)]
  data.table::fwrite(rbind(first, early, second), path)
}

second_result <- function(doc, run, share, client, is_null) {
  own <- doc$t_a_mbps
  goodput <- if (!is_null) own * c(1, share)
  doc$flows <- lapply(1:2, function(number) {
    flow <- second_asked(run, number, client)
    flow$t_first_packet_s <- NULL
    met <- if (!is_null) goodput[number] / run$offered_rate_mbps
    c(flow, list(goodput_mbps = goodput[number], demand_met_ratio = met, loss_ratio = 0, achieved_ratio = 1))
  })
  index <- if (!is_null) jain_index(goodput)
  doc["fairness"] <- list(list(jain_goodput = index, jain_demand_met = index))
  if (!is_null) {
    doc$t_a_mbps <- sum(goodput)
    doc$nodes <- lapply(doc$nodes, function(node) c(node, list(t_a_mbps = own)))
  }
  doc
}

test_that("Jain's index agrees with the shared vectors", {
  cases <- contract("vectors", "fairness.json")$cases
  expect_gt(length(cases), 5)
  for (case in cases) {
    expected <- if (is.null(case$jain_index)) NA_real_ else case$jain_index
    expect_equal(jain_index(as.numeric(unlist(case$shares))), expected, tolerance = 1e-12)
  }
  expect_identical(jain_index(c(1, NA)), NA_real_)
})

test_that("intervals of several flows are cut at every edge, and nothing is lost or made", {
  intervals <- data.table(
    flow = c(1, 1, 2, 2), t_start_s = c(0, 0.1, 0.05, 0.15), t_end_s = c(0.1, 0.2, 0.15, 0.25),
    bytes = c(10, 10, 20, 40)
  )
  joined <- joined_intervals(intervals)
  expect_equal(joined$t_start_s, c(0.05, 0.1, 0.15))
  expect_equal(joined$t_end_s, c(0.1, 0.15, 0.2))
  expect_equal(joined$bytes, c(15, 15, 25))
  expect_equal(bytes_within(intervals, c(0.05, 0.2)), sum(joined$bytes))
})

test_that("one flow, or none, is left as it is", {
  one <- data.table(flow = 1, t_start_s = c(0, 0.1), t_end_s = c(0.1, 0.2), bytes = c(1, 2))
  expect_identical(joined_intervals(one), one[, c("t_start_s", "t_end_s", "bytes"), with = FALSE])
  expect_identical(nrow(joined_intervals(one[0])), 0L)
})

test_that("rounded times make no gap", {
  intervals <- data.table(
    flow = c(1, 1, 2, 2), t_start_s = c(0, 0.100001, 0, 0.1), t_end_s = c(0.1, 0.2, 0.1, 0.2), bytes = 10
  )
  found <- effective_window(joined_intervals(intervals), c(0, 0.2))
  expect_equal(found$span, c(0, 0.2))
  expect_equal(found$bytes, 40)
})

test_that("a campaign whose runs have one flow has no table of flows", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, payload_bytes = 64))
  expect_identical(nrow(campaign$flows), 0L)
  expect_null(fairness(campaign))
  expect_false(any(c("flows", "fairness") %in% names(campaign_tables(campaign))))
  expect_true(all(campaign$runs$flows == 1))
})

test_that("both tables are written for runs with several flows, and the recomputation agrees", {
  dir <- with_second_flow(synthetic_campaign(blocks = 3, payload_bytes = 1440))
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  expect_identical(nrow(tables$flows), 2L * sum(campaign$runs$usable))
  cells <- tables$fairness
  expect_identical(nrow(cells), 6L) # udp, tcp, quic at two loads; null shares nothing
  expect_equal(cells$jain_goodput, rep(jain_index(c(1, 0.5)), 6L))
  expect_true(all(cells$n == 3 & cells$flows == 2))
  expect_identical(sum(!tables$ea_check$agrees), 0L)
  # E_A of the client is of its own flow: as if there were no other.
  alone <- read_campaign(synthetic_campaign(blocks = 3, payload_bytes = 1440))
  expect_equal(summarise_ea(campaign)$goodput_mbps, summarise_ea(alone)$goodput_mbps)
})

test_that("the report has a section on fairness only where flows shared a path", {
  dir <- with_second_flow(synthetic_campaign(blocks = 2, payload_bytes = 1440))
  campaign <- read_campaign(dir)
  page <- as.character(section_fairness(campaign, campaign_tables(campaign)))
  expect_match(page, "2 flows at once", fixed = TRUE)
  expect_null(section_fairness(campaign, list()))
})

test_that("every field that is read of a flow is in the schema of result.json", {
  fields <- contract("schemas", "result.schema.json")$properties$flows$items$properties
  expect_true(all(c(flow_text, flow_numbers) %in% names(fields)))
})

test_that("the worst of several senders decides whether there is a floor", {
  run <- list(flows = list(list(offered_rate_mbps = 1), list(offered_rate_mbps = 1)))
  flow <- function(sent, cpu_s) {
    list(sender = list(messages_sent = sent, messages_scheduled = 100, cpu_s = cpu_s, start_ns = 0, end_ns = 1e9))
  }
  facts <- sender_facts_of_all(run, list(flow(100, 0.95), flow(90, 0.1)))
  expect_identical(facts$sent_ratio, 0.9)
  expect_identical(facts$busy_cores, 0.95)
})
