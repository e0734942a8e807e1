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
  fields <- contract("schemas", "result_1.schema.json")$properties$flows$items$properties
  expect_true(all(c(flow_text, flow_numbers) %in% names(fields)))
})

test_that("the worst of several senders decides whether there is a floor", {
  run <- list(flows = list(list(offered_rate_mbps = 1), list(offered_rate_mbps = 1)))
  flow <- function(sent, cpu_s) {
    list(sender = list(messages_sent = sent, messages_scheduled = 100, cpu_s = cpu_s, start_ns = 0, end_ns = 1e9))
  }
  facts <- sender_facts_of_all(run, list(flow(100, 0.5), flow(90, 0.25)))
  expect_identical(facts$sent_ratio, 0.9)
  # Senders on one host share its cores.
  expect_identical(facts$busy_cores, 0.75)
  run$flows[[1]]$client <- "client"
  run$flows[[2]]$client <- "tablet"
  expect_identical(sender_facts_of_all(run, list(flow(100, 0.5), flow(90, 0.25)))$busy_cores, 0.5)
  named <- lapply(list(flow(100, 0.5), flow(90, 0.25)), function(one) {
    one$sender$host <- "bench"
    one
  })
  expect_identical(sender_facts_of_all(run, named)$busy_cores, 0.75)
  # Two machines of one name are told apart by their boots, and one machine of two names is known by it.
  told <- function(hosts, boots) {
    flows <- Map(function(one, host, boot) {
      one$sender$host <- host
      one$sender$boot_id <- boot
      one
    }, named, hosts, boots)
    sender_facts_of_all(run, flows)$busy_cores
  }
  expect_identical(told(c("bench", "bench"), c("boot-1", "boot-2")), 0.5)
  expect_identical(told(c("here", "there"), c("boot-1", "boot-1")), 0.75)
})

test_that("wake-ups of a run with several flows are those of all its senders, where all tell", {
  run <- list(flows = list(list(offered_rate_mbps = 1), list(offered_rate_mbps = 1)))
  flow <- function(...) list(sender = list(messages_sent = 100, messages_scheduled = 100), pacing = list(...))
  of <- function(...) sender_facts_of_all(run, list(...))$wake_ups_per_message
  expect_identical(of(flow(wake_ups = 300), flow(wake_ups = 100)), 2)
  expect_identical(of(flow(wake_ups = 300), flow(mode = "absolute")), NA_real_)
  expect_identical(of(flow(wake_ups = 50)), 0.5)
})

# A meter more, at a client that has no flow: whatever it does meanwhile is no price of the others' payload.
with_idle_tablet <- function() {
  tablet <- synthetic_meter(meter_id = "of-tablet", node = "tablet", power = function(transport, size, rate) 0.001)
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 1440, meters = list(tablet, synthetic_meter()))
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    client <- list(roles = list("client"))
    doc$topology$hosts <- list(client = client, tablet = client, server = list(roles = list("server")))
    doc
  })
  for (run_dir in list.dirs(file.path(dir, "runs"), recursive = FALSE)) {
    edit_json(file.path(run_dir, "result.json"), function(doc) {
      priced <- c("ea_j_per_mbit", "u95_ea_j_per_mbit", "ea_upper_limit_j_per_mbit")
      doc$nodes[[1]][priced] <- list(NULL)
      doc$nodes[[1]]$ea_reason <- "took_no_part"
      doc$nodes[[1]]$below_resolution <- FALSE
      doc$nodes[[1]]$floor <- no_floor("took_no_part")
      if (doc$transport != "null") doc$nodes[[1]]$t_a_mbps <- 0
      doc
    })
  }
  dir
}

test_that("a client that takes no part is in the table of runs and in nothing that tells what a megabit costs", {
  dir <- with_idle_tablet()
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  expect_identical(sum(!tables$ea_check$agrees), 0L)
  expect_identical(tables$runs[, .N, by = meter_id]$N, rep(sum(campaign$runs$usable), 2L))
  expect_identical(unique(tables$ea_summary$meter_id), "client-wt210")
  expect_identical(unique(tables$envelope$meter_id), "client-wt210")
  figures <- campaign_figures(campaign, tables)
  expect_false("of-tablet" %in% vapply(figures, function(one) one$meter_id, ""))
  expect_true("goodput" %in% vapply(figures, function(one) one$name, ""))
  page <- readLines(report(campaign, tables, list()), warn = FALSE)
  expect_true(any(grepl("No energy per megabit could be computed for this meter", page, fixed = TRUE)))
})

test_that("the tables of cells say which flows their runs had, where these are several", {
  columns <- c("ea_summary", "envelope", "delta_ea")
  alone <- campaign_tables(read_campaign(synthetic_campaign(blocks = 1, payload_bytes = 64)))
  expect_false(any(vapply(alone[columns], function(one) "flows_at_once" %in% names(one), NA)))
  dir <- with_second_flow(synthetic_campaign(blocks = 2, payload_bytes = 1440))
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  expect_true(all(vapply(tables[columns], function(one) "flows_at_once" %in% names(one), NA)))
  words <- "udp up 10 Mb/s at client + udp up 10 Mb/s at tablet"
  expect_identical(tables$ea_summary[transport == "udp" & offered_rate_mbps == 10, flows_at_once], words)
  expect_identical(tables$envelope[transport == "udp" & offered_rate_mbps == 10, flows_at_once], words)
  expect_false(anyNA(tables$delta_ea$flows_at_once))
  page <- as.character(section_tables(table_parts(campaign, tables)))
  expect_match(page, words, fixed = TRUE)
})

test_that("flows of one kind are counted, and clients are named where there are several", {
  flows <- data.table(
    flow = c(3, 1, 2), client = "client", transport = c("tcp", "udp", "udp"), direction = "up",
    offered_rate_mbps = c(100, 5, 5)
  )
  expect_identical(flow_list(flows), "2 x udp up 5 Mb/s + tcp up 100 Mb/s")
})

# The same campaign, whose workload says which flows it asked for.
shared_campaign <- function(...) {
  dir <- with_second_flow(synthetic_campaign(blocks = 3, ...), share = 0.5)
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$workload$beside <- list(list(transport = "tcp", offered_rate_mbps = 100))
    doc$workload$direction <- "both"
    doc
  })
  read_campaign(dir)
}

test_that("the figure of fairness has an interval per cell, its sources and words for those who do not see it", {
  campaign <- shared_campaign(payload_bytes = c(64, 1440))
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  names <- vapply(figures, function(one) one$name, "")
  plot <- figures[[which(names == "fairness")]]$plot
  expect_identical(nrow(plot$data), nrow(tables$fairness))
  expect_equal(plot$data$value, rep(jain_index(c(1, 0.5)), nrow(plot$data)))
  expect_true(all(plot$data$high <= 1 & plot$data$low >= 0.5))
  words <- "each run: one flow of the transport beside TCP at 100 Mb/s, each up and down"
  expect_match(gsub("[\u00a0\n]", " ", plot$labels$caption), words, fixed = TRUE)
  expect_match(gsub("[\u00a0\n]", " ", plot$labels$caption), "power_source: modelled", fixed = TRUE)
  expect_match(gsub("\n", " ", plot$labels$subtitle), "Each run: one flow", fixed = TRUE)
  expect_lte(length(strsplit(plot$labels$subtitle, "\n", fixed = TRUE)[[1]]), 3L)
  expect_match(figure_alt(plot), "Jain's fairness index of goodput against offered load", fixed = TRUE)
  expect_match(figure_alt(plot), "In this model", fixed = TRUE)
  # One flow's load is not what all of them bring.
  goodput <- figures[[which(names == "goodput")]]$plot
  expect_match(gsub("\n", " ", goodput$labels$subtitle), "load of one flow", fixed = TRUE)
  dashed <- vapply(goodput$layers, function(layer) identical(layer$aes_params$linetype, "44"), NA)
  expect_false(any(dashed))
  expect_no_error(write_figures(figures[names %in% c("fairness", "goodput")], tempfile("figures")))
})

test_that("both indices have panels where they differ, and an index that no run has is not drawn", {
  campaign <- shared_campaign(payload_bytes = 1440)
  summary <- summarise_ea(campaign)
  cells <- fairness(campaign)
  cells[, jain_demand_met := jain_demand_met / 2]
  points <- fairness_points(cells, summary)
  expect_identical(nlevels(points$panel), 2L)
  expect_match(levels(points$panel), "^of (goodput|demand met)\n1440-byte messages", all = TRUE)
  expect_match(figure_alt(plot_fairness(cells, summary, campaign)), "of goodput and of demand met", fixed = TRUE)
  none <- copy(cells)[, `:=`(jain_goodput = NA_real_, jain_demand_met = NA_real_)]
  expect_null(plot_fairness(none, summary, campaign))
})

test_that("what each flow got is a mean over blocks, and each pacing has its own", {
  dir <- with_second_flow(synthetic_campaign(blocks = 3, payload_bytes = 1440, pacings = c("absolute", "spin")))
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  shares <- tables$flow_shares
  expect_identical(nrow(shares), 2L * nrow(tables$fairness))
  expect_true(all(shares$n == 3))
  expect_equal(shares[flow == 2, goodput_mbps] / shares[flow == 1, goodput_mbps], rep(0.5, nrow(shares) / 2))
  names <- vapply(campaign_figures(campaign, tables), function(one) one$name, "")
  expect_true(all(c("fairness", "fairness-spin") %in% names))
  written <- tempfile("tables")
  write_tables(tables, written)
  expect_true(all(c("flows.csv", "flow_shares.csv", "fairness.csv") %in% list.files(written)))
  # Tables of an earlier analysis are not left behind.
  write_tables(campaign_tables(read_campaign(synthetic_campaign(blocks = 1))), written)
  expect_false(any(c("flows.csv", "flow_shares.csv", "fairness.csv") %in% list.files(written)))
})

test_that("a kept per-run pass holds what each flow brought, and sees when a further flow's report changes", {
  dir <- with_second_flow(synthetic_campaign(blocks = 1, payload_bytes = 1440, offered_rate_mbps = 10))
  finished <- read_campaign(dir)$plan[, c("run_id", "block", "load", "kind")]
  read <- function(cache = run_cache_path(dir)) {
    read_runs(dir, finished, contracts_dir(), cache, least = 1L, settle_s = -3600)
  }
  plain <- read(cache = NULL)
  expect_identical(nrow(plain$arrivals), 6L) # udp, tcp and quic with two flows each
  read()
  expect_identical(read(), plain)
  id <- finished$run_id[1]
  edit_json(file.path(dir, "runs", id, "flows", "2.json"), function(doc) {
    doc$sender$messages_sent <- 1
    doc
  })
  expect_equal(read()$runs[run_id == id, sent_ratio], 0.001)
})

test_that("a run without a usable report of each flow is left out and named", {
  spoil <- list(
    "is missing" = unlink, "is not a whole JSON document" = function(path) writeLines("{\"schema_version\": 1,", path)
  )
  for (pattern in names(spoil)) {
    dir <- with_second_flow(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 10))
    expect_true(all(read_campaign(dir)$runs$usable))
    id <- grep("udp", list.files(file.path(dir, "runs")), value = TRUE)[1]
    spoil[[pattern]](file.path(dir, "runs", id, "flows", "2.json"))
    campaign <- read_campaign(dir)
    expect_identical(campaign$runs[usable == FALSE, run_id], id)
    expect_identical(invalid_runs(campaign)[, list(run_id, code, detail)], data.table(
      run_id = id, code = "half_written_run", detail = paste("flows/2.json", pattern)
    ))
    expect_false(id %in% compare_ea(campaign)$run_id)
  }
})
