# SPDX-License-Identifier: Apache-2.0

# Expected numbers are counts and times of made-up reports over their messages.

flow_of <- function(transport, ..., sent = 100, scheduled = 100, user_s = 0.001, system_s = 0.002, naps = 50) {
  list(
    transport = transport, pacing = list(naps = naps),
    sender = list(
      messages_sent = sent, messages_scheduled = scheduled, cpu_user_s = user_s, cpu_system_s = system_s,
      transport_stats = list(...)
    )
  )
}

test_that("a message takes CPU time, acknowledgements and naps of its sender", {
  one <- message_costs_of(list(flow_of("quic", packets_received = 100, scheduled = 200)))
  expect_identical(names(one), message_costs)
  expect_equal(unlist(one, use.names = FALSE), c(10, 20, 1, 0.25))
})

test_that("each transport's own counter says what came back, and nobody answers UDP and null", {
  acks <- function(...) message_costs_of(list(flow_of(...)))$acks_per_message
  expect_equal(acks("tcp", segments_in = 51, data_segments_in = 1), 0.5)
  expect_equal(acks("dccp", acks_received = 49, data_packets_received = 1), 0.49)
  expect_equal(acks("quic-datagram", packets_received = 30), 0.3)
  expect_equal(acks("sctp", sacks_received = 50, packets_received = 60), 0.5)
  expect_identical(c(acks("udp"), acks("null")), c(0, 0))
  expect_identical(c(acks("tcp", retransmits = 1), acks("dccp-kernel"), acks("mptcp")), rep(NA_real_, 3))
})

test_that("several flows count together, and what one of them does not tell is not told", {
  both <- message_costs_of(list(flow_of("udp", sent = 300), flow_of("tcp", segments_in = 80, data_segments_in = 0)))
  expect_equal(both$cpu_user_us_per_message, 1e6 * 0.002 / 400)
  expect_equal(both$acks_per_message, 80 / 400)
  expect_equal(both$naps_per_message, 100 / 200)
  silent <- message_costs_of(list(flow_of("udp"), flow_of("tcp", naps = NULL)))
  expect_identical(is.na(unlist(silent, use.names = FALSE)), c(FALSE, FALSE, TRUE, TRUE))
  expect_true(all(is.na(message_costs_of(list(NULL)))))
  expect_true(all(is.na(message_costs_of(list(flow_of("udp", sent = 0, scheduled = 0))))))
})

# Reports that tell: 1000 messages, of UDP 4 us in user mode in block 1 and 6 us in block 2.
told_campaign <- function() {
  dir <- synthetic_campaign(transports = c("udp", "tcp", "null"), payload_bytes = 64, blocks = 2)
  for (run_dir in list.dirs(file.path(dir, "runs"), recursive = FALSE)) {
    block <- as.numeric(substr(basename(run_dir), 2, 3))
    edit_json(file.path(run_dir, "flow.json"), function(doc) {
      doc$sender$cpu_user_s <- 0.002 + 0.002 * block
      doc$sender$cpu_system_s <- 0.02
      doc$sender$transport_stats <- list(segments_in = 501, data_segments_in = 1)
      doc$pacing$naps <- 100
      doc
    })
  }
  with_wake_ups(dir, 2, 1)
}

test_that("runs and cells tell what a message took", {
  campaign <- read_campaign(told_campaign())
  runs <- run_table(campaign)
  expect_equal(sort(unique(runs$cpu_user_us_per_message)), c(4, 6))
  summary <- summarise_ea(campaign)
  expect_equal(summary$cpu_user_us_per_message, rep(5, 6))
  expect_equal(summary$cpu_system_us_per_message, rep(20, 6))
  expect_equal(summary[transport == "tcp", acks_per_message], c(0.5, 0.5))
  expect_equal(summary[transport != "tcp", acks_per_message], rep(0, 4))
  expect_equal(summary$naps_per_message, rep(0.1, 6))
})

test_that("a figure and a table of the report show it, and are left out where nobody tells", {
  campaign <- read_campaign(told_campaign())
  tables <- campaign_tables(campaign)
  figures <- campaign_figures(campaign, tables)
  names(figures) <- vapply(figures, function(one) one$name, "")
  one <- figures$`message-cost`
  expect_identical(one$tables, "ea_summary")
  alt <- figure_alt(one$plot)
  expect_match(alt, "UDP, TCP, generator floor .null.. .* user 5 us, system 20 us; wake-ups per message 1 to 2;")
  expect_match(alt, "acknowledgements per message 0 to 0.5. In this model.", fixed = TRUE)
  labels <- vapply(1:4, function(i) one$plot[[i]]$scales$get_scales("y")$name, "")
  expect_identical(labels, unname(message_panels))
  html <- as.character(htmltools::tagList(table_html("message_cost", tables$ea_summary)))
  expect_match(html, "acknowledgements", fixed = TRUE)
  silent <- read_campaign(synthetic_campaign(blocks = 1))
  expect_null(plot_message_cost(summarise_ea(silent), silent))
  expect_null(table_html("message_cost", summarise_ea(silent)))
})
