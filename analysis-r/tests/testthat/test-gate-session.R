# SPDX-License-Identifier: Apache-2.0

# The numbers of a gate's session, a pilot and a comparison from a campaign's files.

session_of <- function(dir) {
  told <- run_main(c(dir, "--gate"))
  testthat::expect_identical(told$code, 0L)
  told$events[[1]]
}

# As sessions[] of a verdict: its own fields are those of the contract.
expect_session <- function(dir) {
  found <- gate_session(read_campaign(dir))
  schema <- contract("schemas", "gate_verdict.schema.json")$properties$sessions$items
  fields <- setdiff(names(schema$properties), c("role", "campaign"))
  testthat::expect_true(all(fields %in% names(found)))
  schema$required <- setdiff(schema$required, c("role", "campaign"))
  testthat::expect_identical(schema_defects(found[fields], schema), character())
  found
}

test_that("a session that passes has the numbers of the contract, by hand", {
  d <- c(0.001, -0.002, 0.003, 0.002)
  found <- expect_session(gate_campaign(d, rig = c(0.01, -0.01, 0.02, 0), looks = c(4, 6)))
  expect_identical(c(found$decided, found$verdict), c("pass", "pass"))
  expect_equal(found$ratio, exp(mean(d)))
  look <- found$looks[[1]]
  expect_equal(look$log_ratio_sd, sd(d))
  expect_equal(c(look$blocks_planned, look$blocks, look$information), c(4, 4, 4 / 6))
  expect_equal(c(found$ratio_low, found$ratio_high), c(look$ratio_low, look$ratio_high))
  cell <- found$cells[[1]]
  expect_identical(cell$cell, list(LEVEL = "1"))
  expect_equal(cell$ratio_high, exp(mean(d) + qt(0.975, 3) * sd(d) / 2))
  expect_equal(cell$p_holm, min(1, 2 * stats::t.test(d)$p.value))
  expect_identical(c(cell$method, cell$verdict, cell$reason), c("ratio", "no_clear_difference", ""))
  # Runs of 3 s; the level rises block by block.
  expect_equal(unlist(found$values$base), 3 * (1 + 0.1 * 1:4))
  expect_equal(unlist(found$values$head), 3 * (1 + 0.1 * 1:4) * exp(d))
  expect_equal(found$reference_log_sd, sd(c(0.01, -0.01, 0.02, 0)))
  expect_equal(log(found$head_over_reference), mean(log(1 + 0.1 * 1:4) + d - log(2) - c(0.01, -0.01, 0.02, 0)))
  expect_identical(found$unit, "J")
  expect_true(found$rig$ok)
  expect_match(found$words, "^PASS: head took between .* energy per unit of work than base .*, over 4 blocks; .* out")
})

test_that("a session in JSON keeps lists of one and what is not known", {
  said <- capture.output(main(c(gate_campaign(rep(0, 4), factors = list()), "--gate")))
  for (words in c("\"anchor\":null", "\"reason\":null", "\"cell\":{}", "\"looks\":[{", "\"decided\":\"pass\"")) {
    expect_match(said[1], words, fixed = TRUE)
  }
})

test_that("a session FAILs, goes on, and ends undecided", {
  fail <- session_of(gate_campaign(0.05 + c(1, -1, 1, -1) * 1e-3, looks = c(4, 6)))
  expect_identical(fail$decided, "fail")
  expect_match(fail$words, "^FAIL: head took .* more energy .*; an increase of more than 1 % is shown\\.$")
  expect_identical(fail$cells$verdict, c("more", "more"))
  wide <- rep(c(-0.05, 0.06), 3)
  going <- session_of(gate_campaign(wide[1:4], looks = c(4, 6)))
  expect_identical(c(going$decided, going$verdict), c("continue", "inconclusive"))
  ended <- session_of(gate_campaign(wide, looks = c(4, 6)))
  expect_identical(c(ended$decided, ended$reason$code), c("inconclusive", "blocks_used_up"))
})

test_that("a campaign counts as far as its blocks are finished", {
  dir <- gate_campaign(c(0.05, 0.05, 0.05, 0.0500001, 9, 9), looks = c(4, 6))
  # A block has two cells of three arms.
  early <- session_of(gate_until(dir, 23))
  expect_identical(c(early$blocks_finished, length(early$looks)), c(3L, 0L))
  expect_identical(early$decided, "continue")
  expect_null(early$ratio)
  dir <- gate_campaign(c(0.05, 0.05, 0.05, 0.0500001, 9, 9), looks = c(4, 6))
  found <- session_of(gate_until(dir, 25))
  expect_identical(c(found$blocks_finished, found$looks$blocks), c(4L, 4L))
  expect_identical(found$decided, "fail")
  # What comes later changes nothing of it.
  whole <- session_of(gate_campaign(c(0.05, 0.05, 0.05, 0.0500001, 9, 9), looks = c(4, 6)))
  expect_identical(whole[c("ratio", "looks", "values", "cells")], found[c("ratio", "looks", "values", "cells")])
})

test_that("an invalid run takes its pair, and the cell or block with the greater gap", {
  dir <- gate_campaign(rep(c(-0.05, 0.05), 3), looks = c(4, 6))
  edit_csv(file.path(dir, "status.csv"), function(rows) {
    rows[rows$run_id %in% c("r0001", "r0004"), c("status", "reason")] <- rep(c("invalid", "meter_gap"), each = 2)
    rows
  })
  found <- session_of(dir)
  expect_equal(found$looks$blocks, 5)
  expect_equal(found$looks$information, 5 / 6)
  expect_length(found$values$base, 5L)
})

test_that("an anchor is decided by the same rule, and what passed waits for it", {
  wide <- c(0.02, -0.04, 0.05, -0.03, 0.02, -0.02)
  open <- session_of(gate_campaign(rep(0, 4), anchor = wide[1:4], looks = c(4, 6)))
  expect_identical(c(open$decided, open$verdict, open$anchor$verdict), c("continue", "pass", "inconclusive"))
  shut <- session_of(gate_campaign(rep(0, 6), anchor = wide, looks = c(4, 6)))
  expect_identical(c(shut$decided, shut$anchor$verdict), c("pass", "inconclusive"))
  risen <- session_of(gate_campaign(rep(0, 4), anchor = rep(0.04, 4), looks = c(4, 6)))
  expect_identical(c(risen$decided, risen$anchor$verdict), c("pass", "fail"))
  expect_equal(risen$anchor$ratio, exp(0.04))
  expect_match(risen$anchor$words, "than anchor")
})

test_that("a rig that scatters far more than its pilot ends the session at the next look", {
  rig <- c(0.1, -0.1, 0.1, -0.1)
  sick <- session_of(gate_campaign(rep(0, 4), rig = rig, looks = c(4, 6), reference_log_sd = 0.01, pilot_blocks = 12L))
  expect_identical(c(sick$decided, sick$reason$code), c("inconclusive", "rig_noisy"))
  expect_false(sick$rig$ok)
  expect_equal(sick$rig$p, stats::pf((sd(rig) / 0.01)^2, 3, 11, lower.tail = FALSE))
  well <- session_of(gate_campaign(rep(0, 4), rig / 10, looks = c(4, 6), reference_log_sd = 0.01, pilot_blocks = 12L))
  expect_identical(c(well$decided, well$rig$ok), c("pass", "TRUE"))
})

# A run below the meter's resolution, with standard uncertainties so great.
unresolved <- function(dir, u, only = ".*") {
  for (path in Sys.glob(file.path(dir, "runs", "*", "result.json"))) {
    edit_json(path, function(doc) {
      if (grepl(only, as.character(doc$factors$LEVEL))) {
        doc$nodes[[1]][c("below_resolution", "u_delta_p_w")] <- list(TRUE, u)
      }
      doc
    })
  }
  dir
}

test_that("a cell below resolution is compared in watts, where these are known well enough", {
  d <- c(0.001, -0.001, 0.0005, -0.0005)
  level <- 1 + 0.1 * 1:4
  watts <- level * (exp(d) - 1)
  good <- expect_session(unresolved(gate_campaign(d), 1, "9"))
  expect_identical(vapply(good$cells, `[[`, "", "method"), c("ratio", "p_a_difference"))
  expect_equal(good$cells[[2]]$difference_w, mean(watts))
  expect_equal(good$cells[[2]]$difference_high_w, mean(watts) + qt(0.975, 3) * sd(watts) / 2)
  expect_equal(log(good$ratio), mean((d + watts / 3) / 2))
  alone <- expect_session(unresolved(gate_campaign(d), 1))
  expect_identical(c(alone$decided, alone$cells[[1]]$method), c("pass", "p_a_difference"))
  expect_match(alone$words, "of 3u (the least power that the meter resolves) than", fixed = TRUE)
  expect_identical(alone$ratio, NA_real_)
  wide <- expect_session(unresolved(gate_campaign(d), 0.01, "9"))
  expect_identical(vapply(wide$cells, `[[`, "", "method"), c("ratio", "left_out"))
  expect_match(wide$cells[[2]]$reason, "3 % of 3u")
  expect_equal(log(wide$ratio), mean(d))
  none <- expect_session(unresolved(gate_campaign(d), 0.01))
  expect_identical(c(none$decided, none$reason$code), c("inconclusive", "no_cell_left"))
  expect_match(none$reason$detail, "comes nearest")
})

test_that("other objectives are decided likewise, and one that the load does not measure is refused", {
  d <- 0.05 + c(1, -1, 1, -1) * 1e-3
  cpu <- session_of(gate_campaign(d, objective = "cpu_time"))
  expect_identical(cpu$decided, "fail")
  expect_equal(cpu$ratio, exp(mean(d)))
  expect_equal(cpu$values$base[1], 0.11)
  time <- session_of(gate_campaign(d, objective = "throughput"))
  expect_equal(c(time$ratio, time$values$head[1]), c(1, 3))
  expect_identical(time$unit, "s")
  delay <- run_main(c(gate_campaign(d, objective = "p99_delay"), "--gate"))
  expect_identical(delay$code, 2L)
  expect_match(delay$events[[1]]$message, "measures no p99 delay")
  plain <- run_main(c(done_campaign("command", "build", c(base = 1, head = 1)), "--gate"))
  expect_match(plain$events[[1]]$message, "no section gate")
})

test_that("flows with a factor as arm are decided too", {
  dir <- rearmed("pacing",
    transports = "udp", payload_bytes = 64, pacings = c("absolute", "spin"), blocks = 4,
    meters = list(synthetic_meter(power = function(transport, payload_bytes, rate_mbps, pacing) {
      if (pacing == "spin") 1.05 else 1
    }))
  )
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$workload$gate <- gate_section(4, head = "spin", base = "absolute")
    doc
  })
  found <- expect_session(dir)
  expect_identical(found$decided, "fail")
  expect_equal(found$ratio, 1.05)
  expect_identical(found$unit, "J/Mb")
  expect_length(found$cells, 2L)
  expect_identical(found$cells[[1]]$cell$transport, "udp")
  expect_match(found$words, "^FAIL: in this model, ")
})

test_that("a pilot has its interval, the plan, and cells by what they need", {
  d <- with_seed(3, stats::rnorm(12, 0, 0.01))
  dir <- gate_campaign(d - mean(d), looks = 12)
  for (path in Sys.glob(file.path(dir, "runs", "*", "result.json"))) {
    # One cell scatters more.
    edit_json(path, function(doc) {
      power <- doc$nodes[[1]]$energy_per_work_j
      if (doc$factors$LEVEL == "1") doc$nodes[[1]]$energy_per_work_j <- power^3
      doc
    })
  }
  told <- run_main(c(dir, "--gate-pilot"))
  expect_identical(told$code, 0L)
  found <- told$events[[1]]
  expect_identical(found$event, "gate_pilot")
  expect_true(found$contains_0)
  # The mean over cells of three times and once the log ratio.
  expect_equal(found$log_ratio_sd, 2 * sd(d))
  expect_equal(found$half_width_percent, 100 * expm1(qt(0.975, 11) * 2 * sd(d) / sqrt(12)))
  expect_identical(found$ranking$cell$LEVEL, c("9", "1"))
  expect_true(all(is.na(found$ranking$measure_s)))
  expect_equal(found$ranking$log_ratio_sd, c(1, 3) * sd(d))
  expect_identical(found$ranking$blocks_needed[1], gate_blocks_max(sd(d), 12, 3, 1))
  # Three runs of six seconds, up to the end of the tail.
  expect_equal(found$ranking$seconds_needed, 18 * found$ranking$blocks_needed)
  schema <- contract("schemas", "gate_verdict.schema.json")$properties$pilot
  fields <- names(schema$properties)
  pilot <- gate_pilot(read_campaign(dir))
  expect_identical(schema_defects(pilot[fields], schema), character())
  expect_true(all(c("blocks_max", "looks", "verdict", "ratio", "cells", "values") %in% names(pilot)))
})

# Two pacings of flows, as two builds of one source, whose power above idle in each quarter of the measure window is
# times exp(`noise`) by block, in a log of its own.
flow_pilot <- function(noise, quarters, ...) {
  dir <- rearmed("pacing",
    transports = "udp", payload_bytes = 64, offered_rate_mbps = 10, pacings = c("absolute", "spin"),
    blocks = length(noise), meters = list(synthetic_meter(power = function(transport, payload_bytes, rate_mbps) 1))
  )
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$workload$gate <- gate_section(length(noise), head = "spin", base = "absolute", ...)
    doc
  })
  runs <- merge(data.table::fread(file.path(dir, "plan.csv")), data.table::rbindlist(lapply(
    Sys.glob(file.path(dir, "runs", "*", "run.json")),
    function(path) {
      doc <- jsonlite::fromJSON(path)
      list(run_id = doc$run_id, at = doc$windows$measure$t_start_s, to = doc$windows$measure$t_end_s)
    }
  )), by = "run_id")[arm == "spin"]
  edit_csv(file.path(dir, "meters", "client-wt210.csv"), function(log) {
    # A reading is logged 0.1 s after the 0.1 s that it stands for.
    middle <- as.numeric(log$t_s) - 0.15
    for (i in seq_len(nrow(runs))) {
      inside <- which(middle > runs$at[i] & middle < runs$to[i])
      quarter <- ceiling((middle[inside] - runs$at[i]) / (runs$to[i] - runs$at[i]) * 4)
      log$power_w[inside] <- 8 + exp(noise[runs$block[i]] * quarters[quarter])
    }
    log
  })
  dir
}

test_that("a pilot ranks windows by E_A of their readings alone, and by all the time of a block", {
  noise <- with_seed(4, stats::rnorm(6, 0, 0.01))
  # The result of each run is without scatter; the first half of its readings is not.
  found <- gate_pilot(read_campaign(flow_pilot(noise, c(2, 2, 0, 0))))
  expect_identical(vapply(found$ranking, `[[`, 0, "measure_s"), c(2, 1))
  expect_equal(vapply(found$ranking, `[[`, 0, "log_ratio_sd"), c(0, sd(2 * noise)))
  # Two runs of idle, warm-up, measure window and tail.
  needed <- c(4, gate_blocks_max(sd(2 * noise), 6, 3, 1))
  expect_equal(vapply(found$ranking, `[[`, 0, "blocks_needed"), needed)
  expect_equal(vapply(found$ranking, `[[`, 0, "seconds_needed"), needed * 2 * c(5, 4))
  schema <- contract("schemas", "gate_verdict.schema.json")$properties$pilot
  expect_identical(schema_defects(found[names(schema$properties)], schema), character())
  # A quarter of 2 s is five updates of the meter, and of another objective nothing is known of a part.
  other <- gate_pilot(read_campaign(flow_pilot(noise, c(2, 2, 0, 0), objective = "cpu_time")))
  expect_identical(vapply(other$ranking, `[[`, 0, "measure_s"), 2)
})

test_that("flows are decided by CPU time and by the slowest flow's delay", {
  dir <- flow_pilot(rep(0, 4), rep(0, 4))
  asked <- function(objective) {
    edit_json(file.path(dir, "campaign.json"), function(doc) {
      doc$workload$gate$objective <- objective
      doc
    })
    run_main(c(dir, "--gate"))
  }
  expect_match(asked("p99_delay")$events[[1]]$message, "The load flow .* measures no p99 delay: choose another")
  arms <- data.table::fread(file.path(dir, "plan.csv"))
  for (i in seq_len(nrow(arms))) {
    edit_json(file.path(dir, "runs", arms$run_id[i], "flow.json"), function(doc) {
      doc$receiver$one_way_delay_ms <- list(p50 = 1, p99 = if (arms$arm[i] == "spin") 3 else 2.5)
      doc
    })
  }
  delay <- asked("p99_delay")
  expect_identical(delay$code, 0L)
  expect_equal(delay$events[[1]]$ratio, 3 / 2.5)
  expect_identical(c(delay$events[[1]]$unit, delay$events[[1]]$decided), c("ms", "fail"))
  cpu <- asked("cpu_time")$events[[1]]
  expect_equal(cpu$values$spin, rep(2400, 4))
  expect_equal(cpu$ratio, 24)
  flow <- function(ms) list(receiver = list(one_way_delay_ms = list(p99 = ms)))
  expect_identical(p99_delay_of(list(flow(2), flow(5))), 5)
  expect_identical(p99_delay_of(list(flow(2), list())), NA_real_)
})

test_that("two arms of one campaign are compared by the gate's two numbers", {
  dir <- gate_campaign(0.05 + c(1, -1, 1, -1) * 1e-3)
  found <- run_main(c(dir, "--compare"))$events[[1]]
  expect_identical(c(found$event, found$verdict), c("comparison", "fail"))
  expect_equal(log(found$ratio_low), 0.05 - qt(0.95, 3) * sd(c(1, -1, 1, -1) * 1e-3) / 2)
  expect_identical(found$cells$verdict, c("more", "more"))
  turned <- run_main(c(dir, "--compare", "--arm", "base", "--reference", "head"))$events[[1]]
  expect_identical(turned$verdict, "pass")
  expect_equal(turned$ratio, 1 / found$ratio)
  wider <- run_main(c(dir, "--compare", "--margin", "8", "--tolerance", "0"))$events[[1]]
  expect_identical(wider$verdict, "pass")
  few <- run_main(c(gate_campaign(rep(0.05, 3)), "--compare"))$events[[1]]
  expect_identical(c(few$verdict, few$reason$code), c("inconclusive", "too_few_blocks"))
  unnamed <- run_main(c(done_campaign("command", "build", c(a = 1, b = 1, c = 2)), "--compare"))
  expect_identical(unnamed$code, 2L)
  expect_match(unnamed$events[[1]]$message, "name two with --arm")
})

test_that("transports of an older campaign are compared over its cells", {
  found <- run_main(c(
    synthetic_campaign(transports = c("udp", "tcp", "null"), blocks = 4), "--compare", "--arm", "tcp"
  ))$events[[1]]
  expect_equal(found$ratio, 0.8)
  expect_identical(found$verdict, "pass")
  expect_identical(found$cells$cell$payload_bytes, c(64L, 64L, 1440L, 1440L))
})

test_that("campaigns taken apart in time are compared by Welch's t and are never called a regression", {
  d <- c(0.001, -0.001, 0.002, -0.002)
  made <- function(level) {
    done_campaign("command", "build", c(base = 1, head = 1),
      factors = list(LEVEL = c("1", "9")), blocks = 4, power = function(row) exp(level + d[row$block])
    )
  }
  same <- run_main(c(made(0), made(0), "--compare"))$events[[1]]
  expect_identical(same$verdict, "pass")
  expect_match(same$words, "taken apart in time")
  risen <- run_main(c(made(0), made(0.05), "--compare", "--arm", "head"))$events[[1]]
  expect_identical(c(risen$verdict, risen$reason$code), c("inconclusive", "apart_in_time"))
  expect_equal(risen$ratio, exp(0.05))
  reference <- stats::t.test(0.05 + d, d, conf.level = 0.9)
  expect_equal(log(c(risen$ratio_low, risen$ratio_high)), as.numeric(reference$conf.int))
  expect_identical(risen$cells$verdict, c("more", "more"))
  expect_equal(risen$cells$p_holm, rep(2 * reference$p.value, 2))
  some <- run_main(c(made(0), unresolved(made(0.05), 0.01, "9"), "--compare", "--arm", "head"))$events[[1]]
  expect_identical(some$cells$method, c("ratio", "left_out"))
  expect_equal(some$ratio, exp(0.05))
  none <- run_main(c(made(0), unresolved(made(0.05), 0.01), "--compare"))$events[[1]]
  expect_identical(none$reason$code, "too_few_blocks")
  expect_match(none$words, "cannot be compared")
  one <- lapply(c(a = 0, b = 0.05), function(level) {
    done_campaign("command", "build", c(base = 1, head = 1), blocks = 4, power = function(row) {
      exp(level * (row$arm == "head") + d[row$block])
    })
  })
  apart <- run_main(c(one$a, one$b, "--compare", "--reference", "base", "--arm", "head"))$events[[1]]
  expect_equal(apart$ratio, exp(0.05))
})

test_that("campaigns that ran one reference workload are held to it, and may FAIL", {
  gate <- function(head, rig) {
    place <- tempfile("gate")
    dir.create(place)
    dir <- gate_campaign(rep(head, 4), rig = rep(rig, 4) + c(1, -1, 1, -1) * 1e-4)
    to <- file.path(place, "session-1")
    file.rename(dir, to)
    write_json(file.path(place, "verdict.json"), list(
      workload_version = "0123456789ab", arms = list(list(name = "reference", sha256 = strrep("a", 64)))
    ))
    to
  }
  first <- gate(0, 0)
  # All of the rig rose by 10 %, and the head by 5 % more.
  second <- gate(0.05, 0.1)
  found <- run_main(c(first, second, "--compare", "--arm", "head"))$events[[1]]
  expect_equal(found$ratio, exp(0.05 - 0.1))
  expect_match(found$words, "held to one reference workload")
  expect_true(found$one_reference_workload)
  back <- run_main(c(second, first, "--compare", "--arm", "head"))$events[[1]]
  expect_identical(back$verdict, if (back$ratio_low > 1.01) "fail" else "inconclusive")
})
