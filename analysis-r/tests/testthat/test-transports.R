# SPDX-License-Identifier: Apache-2.0

test_that("every transport of the contract has a look, with the contract's label and kind", {
  listed <- contract("transports.json")$transports
  looks <- transport_looks()
  found <- looks[match(vapply(listed, function(entry) entry$name, ""), looks$transport), ]
  expect_identical(found$label, vapply(listed, function(entry) entry$label, ""))
  expect_identical(found$controlled, vapply(listed, function(entry) entry$congestion_controlled, NA))
  kinds <- vapply(listed, function(entry) entry$kind, "")
  expect_identical(found$kind[found$transport != "null"], kinds[found$transport != "null"])
  expect_identical(anyDuplicated(looks$colour), 0L)
})

test_that("a transport that only the contract knows is drawn with the label and kind that it tells", {
  frisbee <- list(name = "frisbee", label = "Frisbee", kind = "stream", congestion_controlled = TRUE)
  looks <- looks_with(list(list(name = "udp", label = "x"), frisbee))
  expect_identical(nrow(looks), nrow(transport_styles) + 1L)
  added <- looks[looks$transport == "frisbee", ]
  expect_identical(c(added$label, added$kind), c("Frisbee", "stream"))
  expect_true(added$controlled)
  expect_false(added$colour %in% transport_styles$colour)
})

test_that("without contracts the transports known here remain", {
  expect_identical(transport_looks(contracts = NA_character_), transport_styles)
  expect_identical(looks_with(NULL), transport_styles)
})

test_that("chosen options are told in words", {
  campaign <- list(meta = list(workload = list(transport_options = list(
    tcp = list(congestion_control = "reno", nodelay = FALSE), quic = list(early_data = TRUE)
  ))))
  expect_identical(option_words(campaign), c("TCP: congestion_control reno no nodelay", "QUIC: early_data"))
})

test_that("congestion control is told as the senders reported it", {
  report <- function(name) list(sender = list(transport_stats = list(congestion_control = name)))
  expect_identical(congestion_control_of(list(report("bbr"))), "bbr")
  expect_identical(congestion_control_of(list(report("cubic"), list(), report("bbr"), report("cubic"))), "bbr+cubic")
  expect_identical(congestion_control_of(list(list(), NULL)), NA_character_)
  runs <- data.table(
    transport = c("quic", "tcp", "tcp", "udp", "tcp"), usable = c(TRUE, TRUE, TRUE, TRUE, FALSE),
    congestion_control = c("cubic", "cubic", "bbr", NA, "reno")
  )
  expect_identical(congestion_words(list(runs = runs)), "congestion control: TCP bbr or cubic, QUIC cubic")
  expect_null(congestion_words(list(runs = runs[transport == "udp"])))
})
