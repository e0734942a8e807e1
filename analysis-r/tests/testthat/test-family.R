# SPDX-License-Identifier: Apache-2.0

workload_of <- function(transports, payload_bytes = c(64, 1440), ...) {
  list(transports = as.list(transports), payload_bytes = as.list(payload_bytes), ...)
}

test_that("the study's family is UDP against each other transport at both sizes", {
  family <- family_of(workload_of(c("udp", "dccp", "tcp", "quic", "null")))
  expect_identical(family$contrasts, data.table(
    reference = "udp", transport = rep(c("dccp", "tcp", "quic"), each = 2), payload_bytes = rep(c(64, 1440), 3)
  ))
  expect_identical(family$others, 6L)
  expect_false(family$named)
})

test_that("the family never has more than six contrasts, and takes other pairs where there is room", {
  five <- family_of(workload_of(c("udp", "dccp", "tcp", "quic", "sctp")))
  expect_identical(nrow(five$contrasts), 6L)
  expect_identical(five$contrasts$transport, rep(c("dccp", "tcp", "quic"), each = 2))
  one_size <- family_of(workload_of(c("udp", "dccp", "tcp", "quic"), 64))
  expect_identical(one_size$contrasts$reference, c("udp", "udp", "udp", "dccp", "dccp", "tcp"))
  expect_identical(one_size$contrasts$transport, c("dccp", "tcp", "quic", "tcp", "quic", "quic"))
  expect_identical(nrow(family_of(workload_of(c("udp", "null")))$contrasts), 0L)
})

test_that("UDP is the reference wherever it stands, else the first transport is", {
  expect_identical(family_of(workload_of(c("tcp", "udp"), 64))$contrasts$reference, "udp")
  expect_identical(family_of(workload_of(c("tcp", "quic"), 64))$contrasts$reference, "tcp")
})

test_that("a workload may name the contrasts", {
  named <- list(list(transport = "quic", reference = "tcp", payload_bytes = 1440))
  family <- family_of(workload_of(c("udp", "tcp", "quic"), statistics = list(contrasts = named)))
  expect_identical(family$contrasts, data.table(reference = "tcp", transport = "quic", payload_bytes = 1440))
  expect_true(family$named)
  expect_identical(family$others, 5L)
})

test_that("a campaign whose workload does not say takes the plan's transports and sizes", {
  plan <- data.table(transport = c("tcp", "udp", "null"), payload_bytes = c(64, 64, 64))
  expect_identical(
    family_of(list(), plan)$contrasts, data.table(reference = "udp", transport = "tcp", payload_bytes = 64)
  )
})

test_that("results do not move the family", {
  campaign <- memory_campaign(c(udp = 0, dccp = -0.3, tcp = 0.1, quic = 0.4))
  before <- contrast_design(campaign)$contrasts
  campaign$results[, ea_j_per_mbit := rev(ea_j_per_mbit)]
  campaign$results[transport == "dccp", usable := FALSE]
  expect_identical(contrast_design(campaign)$contrasts, before)
})

test_that("eight blocks are the least with which six tests can reach 0.05 after Holm", {
  for (tests in 1:6) {
    blocks <- least_blocks_for(tests, 0.05)
    expect_lte(tests * least_p(blocks), 0.05)
  }
  expect_equal(least_blocks_for(6, 0.05), 8)
  expect_gt(6 * least_p(7), 0.05)
  expect_equal(least_blocks_for(6, 0.01), 11)
  expect_gt(6 * least_p(10), 0.01)
  expect_gt(least_p(least_blocks_attainable - 1), 0.05)
  expect_lte(least_p(least_blocks_attainable), 0.05)
})
