# SPDX-License-Identifier: Apache-2.0

# What a campaign's files may be wrong in: each is named in one sentence, and the rest of the campaign is analysed where
# there is a rest.

small <- function(...) synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = c(1, 10), ...)

refused <- function(code, pattern) {
  error <- tryCatch(code, netjoule_error = function(e) e)
  expect_s3_class(error, "netjoule_error")
  expect_identical(error$exit_code, exit_codes$invalid_data)
  expect_match(conditionMessage(error), pattern)
  expect_no_match(conditionMessage(error), "\n")
}

run_like <- function(dir, transport) grep(transport, list.files(file.path(dir, "runs")), value = TRUE)[1]

edit_text <- function(path, from, to) {
  text <- paste(readLines(path), collapse = "\n")
  expect_match(text, from)
  writeLines(sub(from, to, text), path)
}

meter_file <- function(dir) list.files(file.path(dir, "meters"), full.names = TRUE)

# A run that its own files spoil: it alone is out, under this code and with these words.
expect_only_out <- function(dir, id, code, pattern) {
  campaign <- read_campaign(dir)
  expect_identical(campaign$runs[usable == FALSE, run_id], intersect(id, campaign$runs$run_id))
  listed <- invalid_runs(campaign)
  expect_identical(unique(listed$run_id), id)
  expect_true(code %in% listed$code)
  expect_match(listed[listed$code == code, detail], pattern, all = FALSE)
  expect_true(all(nzchar(listed$meaning) & nzchar(listed$next_step)))
  check <- compare_ea(campaign)
  expect_false(id %in% check$run_id)
  expect_true(all(check$agrees))
}

test_that("NaN and infinite numbers as text in a meter's log are refused by column and file", {
  for (value in c("NaN", "Inf", "-inf", "1e999")) {
    dir <- small()
    lines <- readLines(meter_file(dir))
    lines[10] <- sub("^([^,]*,[^,]*),[^,]*", paste0("\\1,", value), lines[10])
    writeLines(lines, meter_file(dir))
    refused(
      compute_campaign_ea(read_campaign(dir)),
      "power_w of .*client-wt210.csv holds (NaN|an infinite number|text where a number belongs)"
    )
  }
})

test_that("text in a meter's log is refused, an empty cell is a missing reading", {
  dir <- small()
  lines <- readLines(meter_file(dir))
  lines[3] <- sub("^([^,]*,[^,]*),[^,]*", "\\1,", lines[3])
  writeLines(lines, meter_file(dir))
  expect_gt(nrow(compute_campaign_ea(read_campaign(dir))), 0L)
  lines[3] <- sub("^([^,]*,[^,]*),", "\\1,none", lines[3])
  writeLines(lines, meter_file(dir))
  refused(compute_campaign_ea(read_campaign(dir)), "power_w of .*client-wt210.csv holds text")
})

test_that("an empty log, a log of a header alone and a reading without time are named", {
  dir <- small()
  header <- readLines(meter_file(dir), n = 1L)
  file.create(meter_file(dir))
  refused(compute_campaign_ea(read_campaign(dir)), "client-wt210.csv is empty")
  writeLines(header, meter_file(dir))
  refused(compute_campaign_ea(read_campaign(dir)), "client-wt210.csv holds no reading, but 8 run\\(s\\) count")
  writeLines(c(header, ",1,8.0,12,0.5,,"), meter_file(dir))
  refused(compute_campaign_ea(read_campaign(dir)), "client-wt210.csv has a reading without t_s")
  cat(header, file = meter_file(dir))
  refused(compute_campaign_ea(read_campaign(dir)), "client-wt210.csv holds no reading")
})

test_that("a log that was cut off in the middle of a row is read to its last whole row, however long", {
  path <- tempfile()
  for (lines in list("a,b", c("a,b", "1,2"), c("a,b", "1,2", "3,4"))) {
    cat(paste(lines, collapse = "\n"), "\n5", file = path, sep = "")
    copy <- whole_lines(path)
    expect_identical(readLines(copy), lines)
    expect_true(ends_with_newline(copy))
  }
  cat("a,b", file = path)
  expect_identical(readLines(whole_lines(path), warn = FALSE), "a,b")
})

test_that("an energy counter without counts is named", {
  dir <- small()
  edit_csv(meter_file(dir), function(rows) rows[names(rows) != "energy_j"])
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$meters[[1]]$semantics <- "energy_counter"
    doc
  })
  refused(compute_campaign_ea(read_campaign(dir)), "lacks the column energy_j, but its meter counts energy")
})

test_that("empty cells of the plan are named by column and run", {
  for (column in c("transport", "block", "offered_rate_mbps", "status")) {
    dir <- small()
    edit_csv(file.path(dir, "plan.csv"), function(rows) {
      rows[[column]][3] <- NA
      rows
    })
    refused(read_campaign(dir), paste0("plan.csv has an empty cell in column ", column, ", run b01"))
  }
})

test_that("a run whose result holds text, NaN or an infinite number is left out and named", {
  for (value in c("\"NaN\"", "\"8.1\"", "1e999", "[1, 2]", "true")) {
    dir <- small()
    id <- run_like(dir, "udp")
    edit_text(file.path(dir, "runs", id, "result.json"), "\"p_a_w\": [0-9.]+", paste0("\"p_a_w\": ", value))
    expect_only_out(dir, id, "not_a_number", "result.json holds .* where the number nodes\\[1\\].p_a_w belongs")
  }
  dir <- small()
  id <- run_like(dir, "udp")
  edit_text(file.path(dir, "runs", id, "result.json"), "\"p_a_w\": [0-9.]+", "\"p_a_w\": NaN")
  expect_only_out(dir, id, "half_written_run", "result.json is not a whole JSON document")
})

test_that("a run whose result lacks what E_A is made of is left out, one that lacks something else is noted", {
  change <- function(dir, id, change) edit_json(file.path(dir, "runs", id, "result.json"), change)
  dir <- small()
  id <- run_like(dir, "tcp")
  change(dir, id, function(doc) {
    doc$nodes[[1]]$delta_p_w <- NULL
    doc
  })
  expect_only_out(dir, id, "half_written_run", "result.json lacks delta_p_w in nodes\\[1\\]")
  dir <- small()
  change(dir, id, function(doc) doc[names(doc) != "nodes"])
  expect_only_out(dir, id, "half_written_run", "result.json lacks nodes")
  dir <- small()
  change(dir, id, function(doc) {
    doc$nodes[[1]]$tail_energy_j <- NULL
    doc
  })
  campaign <- read_campaign(dir)
  expect_true(all(campaign$runs$usable))
  expect_identical(campaign$problems[, list(run_id, code, detail)], data.table(
    run_id = id, code = "column_missing", detail = "result.json lacks tail_energy_j in nodes[1]"
  ))
})

test_that("a run whose windows are no numbers is left out and named", {
  dir <- small()
  id <- run_like(dir, "quic")
  edit_json(file.path(dir, "runs", id, "run.json"), function(doc) {
    doc$windows$measure$t_end_s <- "later"
    doc
  })
  campaign <- read_campaign(dir)
  expect_false(id %in% campaign$results$run_id)
  expect_identical(invalid_runs(campaign)[, list(run_id, code)], data.table(run_id = id, code = "not_a_number"))
})

test_that("documents that are no objects are half-written", {
  for (text in c("[]", "[1]", "3", "null", "\"run\"", "")) {
    dir <- small()
    id <- run_like(dir, "udp")
    writeLines(text, file.path(dir, "runs", id, "result.json"))
    expect_only_out(dir, id, "half_written_run", "result.json is not a whole JSON document")
  }
})

test_that("a run whose intervals cannot be read is left out and named, without the folder's place", {
  spoil <- list(
    "lacks the column bytes" = function(lines) sub("bytes", "octets", lines),
    "holds text where a number belongs" = function(lines) sub("^(receiver,[^,]*,[^,]*,[^,]*),[^,]*", "\\1,many", lines),
    "holds NaN" = function(lines) sub("^(receiver,[^,]*,[^,]*,[^,]*),[^,]*", "\\1,NaN", lines),
    "without flow, t_start_s, t_end_s or bytes" = function(lines) sub("^receiver,[^,]*", "receiver,", lines),
    "is empty" = function(lines) character()
  )
  for (pattern in names(spoil)) {
    dir <- small()
    id <- run_like(dir, "udp")
    path <- file.path(dir, "runs", id, "intervals.csv")
    writeLines(spoil[[pattern]](readLines(path)), path)
    expect_only_out(dir, id, "table_unreadable", pattern)
    expect_no_match(invalid_runs(read_campaign(dir))$detail, dir, fixed = TRUE)
  }
  dir <- small()
  id <- run_like(dir, "udp")
  path <- file.path(dir, "runs", id, "intervals.csv")
  unlink(path)
  dir.create(path)
  expect_only_out(dir, id, "table_unreadable", "is a folder")
})

test_that("intervals that were cut off in their last row are used and the cut is noted", {
  dir <- small()
  id <- run_like(dir, "udp")
  cat("receiver,1.0", file = file.path(dir, "runs", id, "intervals.csv"), append = TRUE)
  campaign <- read_campaign(dir)
  expect_true(all(campaign$runs$usable))
  expect_true(all(compare_ea(campaign)$agrees))
  expect_identical(run_notes(campaign)[, list(run_id, code)], data.table(run_id = id, code = "half_written_row"))
})

test_that("a run whose flow report is gone, cut off, of another version or without a sender is left out and named", {
  spoil <- list(
    "flow.json is missing" = unlink,
    "flow.json is not a whole JSON document" = function(path) writeBin(readBin(path, "raw", 90L), path),
    "flow.json has schema_version 0, this netjoule reads 1" = function(path) {
      edit_json(path, function(doc) replace(doc, "schema_version", 0L))
    },
    "flow.json lacks sender" = function(path) edit_json(path, function(doc) doc[names(doc) != "sender"]),
    "flow.json holds \"all\" where the number sender.messages_sent belongs" = function(path) {
      edit_json(path, function(doc) {
        doc$sender$messages_sent <- "all"
        doc
      })
    }
  )
  codes <- c(rep("half_written_run", 2L), "schema_version_unsupported", "half_written_run", "not_a_number")
  for (transport in c("udp", "null")) {
    for (i in seq_along(spoil)) {
      dir <- with_wake_ups(small(), 2, 2)
      id <- run_like(dir, transport)
      spoil[[i]](file.path(dir, "runs", id, "flow.json"))
      expect_only_out(dir, id, codes[i], names(spoil)[i])
    }
  }
})

test_that("a run whose intervals lack bytes that its receiver counted is left out, cut in a row or between two", {
  for (newline in c("", "\n")) {
    dir <- small()
    id <- run_like(dir, "udp")
    path <- file.path(dir, "runs", id, "intervals.csv")
    bytes <- sum(fread(path)$bytes)
    edit_json(file.path(dir, "runs", id, "flow.json"), function(doc) {
      doc$receiver <- list(bytes_received_unique = bytes)
      doc
    })
    expect_true(all(read_campaign(dir)$runs$usable))
    lines <- readLines(path)
    cat(lines[seq_len(length(lines) %/% 2L)], sep = "\n", file = path)
    cat(newline, file = path, append = TRUE)
    expect_only_out(dir, id, "half_written_run", "intervals.csv has [0-9]+ of the [0-9]+ bytes that flow 1 received")
  }
})

test_that("runs of several schema versions: those of this version are analysed, the others named one by one", {
  dir <- small()
  others <- c(run_like(dir, "udp"), run_like(dir, "tcp"))
  edit_json(file.path(dir, "runs", others[1], "run.json"), function(doc) replace(doc, "schema_version", 3L))
  edit_json(file.path(dir, "runs", others[2], "result.json"), function(doc) replace(doc, "schema_version", 0L))
  listed <- invalid_runs(read_campaign(dir))
  expect_setequal(listed$run_id, others)
  expect_identical(unique(listed$code), "schema_version_unsupported")
  expect_setequal(listed$detail, c(
    "run.json has schema_version 3, this netjoule reads 1, 2",
    "result.json has schema_version 0, this netjoule reads 1, 2"
  ))
})

test_that("a whole campaign of one transport, without anything to compare with, is analysed", {
  for (transport in c("udp", "quic", "null")) {
    dir <- small(transports = transport)
    expect_no_error(analyse(dir, with_report = TRUE))
    expect_true(file.exists(file.path(dir, "report.html")))
    expect_identical(nrow(fread(file.path(dir, "tables", "delta_ea.csv"))), 0L)
  }
})

test_that("power below idle everywhere: no E_A, the reason in each row, and a note", {
  meter <- synthetic_meter(power = function(transport, size, rate) -0.5, u_delta_p_w = 0.001)
  dir <- small(meters = list(meter))
  expect_no_error(analyse(dir, with_report = TRUE))
  runs <- fread(file.path(dir, "tables", "runs.csv"))
  expect_true(all(is.na(runs$ea_j_per_mbit)))
  expect_setequal(runs$ea_reason, c("below_resolution", "null_has_no_throughput"))
  expect_true("p_a_below_p_i" %in% fread(file.path(dir, "tables", "run_notes.csv"))$code)
})

test_that("zero goodput everywhere: no E_A, counted in each cell", {
  dir <- small(transports = c("udp", "null"), loss = function(rate) 1)
  expect_no_error(analyse(dir, with_report = TRUE))
  cells <- fread(file.path(dir, "tables", "ea_summary.csv"))[transport == "udp"]
  expect_true(all(is.na(cells$ea_j_per_mbit_mean)))
  expect_true(all(cells$no_goodput_n == 1))
})
