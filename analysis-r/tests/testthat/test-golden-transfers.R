# SPDX-License-Identifier: Apache-2.0

# What the shipped campaigns of transfers hold: the mechanisms that the studies of Guner and Kosar (2018) tell of, and
# the numbers that docs/findings-transfers.md quotes.

# Cells of a campaign as metered by one meter, and published values beside it.
of_transfers <- function(name, meter = "s5-seed") {
  campaign <- read_campaign(shipped(paste0("transfer-", name)))
  rows <- transfer_rows(campaign)
  cells <- transfer_summary(campaign, rows)
  published <- transfer_published(campaign, rows)
  list(cells = cells[meter_id == meter], published = if (nrow(published) > 0L) published[meter_id == meter])
}

# One measure of the only cell that has these factors.
measure_at <- function(cells, ..., measure = "throughput_mbps") {
  for (name in ...names()) cells <- cells[as.character(cells[[name]]) == as.character(...elt(match(name, ...names())))]
  stopifnot(nrow(cells) == 1L)
  cells[[measure]]
}

test_that("two files back to back or at once pay one tail", {
  cells <- of_transfers("tail")$cells
  for (network in c("wifi", "lte")) {
    tail_j <- function(set, at_once) {
      measure_at(cells, dataset = set, access = network, concurrency = at_once, measure = "radio_tail_e_j")
    }
    one <- tail_j("one-16mb", 1)
    expect_gt(one, 0)
    expect_equal(tail_j("two-16mb", 1), one, tolerance = 0.05)
    expect_equal(tail_j("two-16mb", 2), one, tolerance = 0.05)
  }
})

# CPU seconds of the client per 100 MB at a size of writes.
cpu_at <- function(cells, bytes, ...) measure_at(cells, request_bytes = bytes, ..., measure = "cpu_s_per_100_mb")

test_that("writes of 1 KB cost twice the CPU of 16 KB where storage is all there is to do, and little over 290 ms", {
  storage <- of_transfers("storage", "client-cpu")$cells
  expect_gte(cpu_at(storage, 1024) / cpu_at(storage, 16384), 2)
  expect_lte(cpu_at(storage, 65536), cpu_at(storage, 16384))
  over_sydney <- of_transfers("request-size")$cells
  for (at_once in c(1, 4, 16)) {
    expect_equal(
      cpu_at(over_sydney, 65536, concurrency = at_once), cpu_at(over_sydney, 16384, concurrency = at_once),
      tolerance = 0.15
    )
  }
})

test_that("real connections take as long for several GB as simulated time says", {
  live <- of_transfers("large")$cells
  simulated <- of_transfers("large-simulated", "client")$cells
  for (i in seq_len(nrow(live))) {
    modelled <- measure_at(simulated, dataset = live$dataset[i], concurrency = 1, parallelism = live$parallelism[i])
    expect_equal(live$throughput_mbps[i], modelled, tolerance = 0.15)
  }
})

test_that("in simulated time EHT and auto come near the best of 22 fixed levels, auto never below EHT", {
  efficiency <- function(name) of_transfers(name, "client")$cells[, list(path, dataset, client, throughput_efficiency)]
  best <- efficiency("levels-simulated")[, list(best = max(throughput_efficiency)), by = list(path, dataset)]
  both <- merge(efficiency("algorithms-simulated"), best, by = c("path", "dataset"))
  share <- function(name) both[client == name][order(path, dataset), throughput_efficiency / best]
  expect_length(share("eht"), 6L)
  expect_gte(min(share("eht")), 0.9)
  expect_gte(min(share("auto")), 0.95)
  expect_true(all(share("auto") >= share("eht")))
})

test_that("LowE, HAT and EHT are faster than wget, curl, HTTP/1.1 and HTTP/2; HAT and auto as fast as any", {
  cells <- of_transfers("algorithms")$cells
  expect_gte(min(cells$n), 5L)
  of <- function(clients, name) cells[client %in% clients][[name]]
  slower <- max(of(c("wget", "curl", "h1", "h2"), "throughput_mbps_ci95_high"))
  expect_gt(min(of(c("lowe", "hat", "eht"), "throughput_mbps_ci95_low")), slower)
  peers <- setdiff(cells$client, c("fixed", "lowe", "lowe-sequential", "hat", "eht", "auto"))
  expect_gte(min(of(c("hat", "auto"), "throughput_mbps")), 0.97 * max(of(peers, "throughput_mbps")))
})

# Numbers as the findings have them.
three_digits <- function(value) sub("\\.$", "", formatC(signif(value, 3), format = "fg", digits = 3, flag = "#"))

with_interval <- function(row, name) {
  if (row$n == 1L) {
    return(three_digits(row[[name]]))
  }
  sprintf(
    "%s (%s to %s)", three_digits(row[[name]]), three_digits(row[[paste0(name, "_ci95_low")]]),
    three_digits(row[[paste0(name, "_ci95_high")]])
  )
}

# A published value and ours.
published_line <- function(row) {
  apart <- c(path = "sydney", access = "wifi", device = "galaxy-s5")
  elsewhere <- unlist(lapply(intersect(names(apart), names(row)), function(name) {
    setdiff(sub("^wifi-.*", "wifi", row[[name]]), apart[[name]])
  }))
  unit <- if (row$unit == "1") "" else paste0(" ", row$unit)
  where <- paste(c(sub(":.*", "", row$dataset), elsewhere), collapse = ", ")
  compared <- paste(c(row$compared, if (!is.na(row$against)) c("against", row$against)), collapse = " ")
  sprintf(
    "| %d | %s | %s, %s | %s%s | %s |", row$statement, where, plain_quantity(row$quantity), compared,
    row$printed, if (is.na(row$published_low)) "" else unit,
    sub("( \\(|$)", paste0(unit, "\\1"), with_interval(row, "ours"))
  )
}

# A cell: what it is by, then its throughput, E_d per 100 MB, and efficiency or CPU.
cell_line <- function(row, by, also) {
  sprintf(
    "| %s | %s | %s | %s |", paste(unlist(row[, ..by]), collapse = " | "), with_interval(row, "throughput_mbps"),
    with_interval(row, "e_d_per_100_mb_j"), three_digits(row[[also]])
  )
}

expect_quoted <- function(rows, line, ...) {
  lines <- vapply(split(rows, seq_len(nrow(rows))), line, "", ...)
  quoted <- vapply(lines, grepl, NA, x = page("findings-transfers.md"), fixed = TRUE)
  expect_identical(unname(lines[!quoted]), character())
}

for (name in c("algorithms", "large", "large-simulated")) {
  test_that(paste("the findings quote every published value beside ours:", name), {
    expect_quoted(of_transfers(name, if (name == "large-simulated") "client" else "s5-seed")$published, published_line)
  })
}

test_that("the findings quote all clients", {
  expect_quoted(of_transfers("algorithms")$cells, cell_line, "client", "throughput_efficiency")
})

test_that("the published savings are met where 3 of 10,000 packets are lost", {
  cells <- of_transfers("loss")$cells[grepl("loss_ratio 0.0003", path, fixed = TRUE)]
  saving <- function(set) {
    energy <- function(at_once) {
      measure_at(cells, dataset = set, concurrency = at_once, measure = "e_d_per_100_mb_j")
    }
    100 * (1 - energy(16) / energy(1))
  }
  savings <- vapply(c("html-1:300", "image-1:100", "video-1:16"), saving, 0)
  expect_lte(max(abs(savings - c(70, 68, 38))), 12)
})
