# SPDX-License-Identifier: Apache-2.0

or_na <- function(x) if (is.null(x)) NA_real_ else as.numeric(x)

vector_readings <- function(rows) {
  rbindlist(lapply(rows, function(row) {
    energy_j <- if (length(row) > 3L) or_na(row[[4]]) else NA_real_
    list(t_s = row[[1]], power_w = or_na(row[[2]]), flag = row[[3]], energy_j = energy_j)
  }))
}

vector_intervals <- function(rows) {
  empty <- data.table(t_start_s = numeric(), t_end_s = numeric(), bytes = numeric())
  rbind(empty, rbindlist(lapply(rows, function(row) {
    list(t_start_s = row[[1]], t_end_s = row[[2]], bytes = row[[3]])
  })))
}

vector_ea <- function(input, windows, intervals) {
  compute_ea(
    vector_readings(input$readings), vector_intervals(intervals),
    lapply(windows, function(window) c(window$t_start_s, window$t_end_s)), input$update_interval_s, input$lag_s,
    if (is.null(input$semantics)) "interval_mean" else input$semantics, or_na(input$counter_modulus_j)
  )
}

# The floor of a vector: the reason that the readings of null or both senders give, and the numbers without one.
vector_floor <- function(input, ours) {
  null <- input$null
  if (is.null(null)) {
    return(floor_quantities(ours, ours[NA_integer_], "no_null_run"))
  }
  theirs <- vector_ea(input, null$windows, list())
  facts <- function(end, windows) sender_facts(c(end$run, list(windows = windows)), end$flow)
  refusal <- floor_refusal(facts(input, input$windows), facts(null, null$windows))
  floor_quantities(ours, theirs, if (nzchar(theirs$reasons)) "null_run_invalid" else refusal)
}

test_that("compute_ea finds every number of the shared vectors, and the floor's", {
  contract("vectors", "ea", "step.json")
  contract("vectors", "ea", "floor-given.json")
  paths <- list.files(file.path(contracts_dir(), "vectors", "ea"), pattern = "\\.json$", full.names = TRUE)
  expect_gt(length(paths), 10)
  for (path in paths) {
    vector <- jsonlite::fromJSON(path, simplifyVector = FALSE)
    input <- vector$input
    ours <- vector_ea(input, input$windows, input$intervals)
    if ("null" %in% names(input)) ours <- cbind(ours, vector_floor(input, ours))
    if ("floor_reason" %in% names(vector$expected)) {
      expected <- vector$expected$floor_reason
      expect_identical(ours$floor_reason, if (is.null(expected)) NA_character_ else expected, label = vector$name)
    }
    for (name in setdiff(names(vector$expected), c("reasons", "floor_reason"))) {
      expect_equal(ours[[name]], or_na(vector$expected[[name]]), tolerance = 1e-9, label = paste(vector$name, name))
    }
    reasons <- strsplit(ours$reasons, ";", fixed = TRUE)[[1]]
    expect_setequal(reasons, as.character(unlist(vector$expected$reasons)))
  }
})

test_that("constant power: E_A is delta P over goodput at every load", {
  dir <- synthetic_campaign(meters = list(synthetic_meter(power = function(transport, size, rate) 0.5)))
  rows <- compute_campaign_ea(read_campaign(dir))
  flows <- rows[transport != "null"]
  expect_equal(flows$ea_j_per_mbit, 0.5 / flows$t_a_mbps, tolerance = 1e-9)
  expect_equal(flows$ea_above_floor_j_per_mbit, rep(0, nrow(flows)), tolerance = 1e-9)
})

test_that("linear power: E_A has its closed form, with loss in the goodput", {
  dir <- synthetic_campaign(
    meters = list(synthetic_meter(power = linear_power(0.02, 0.05, 0.01))), loss = function(rate) 0.5,
    transports = c("udp", "null")
  )
  rows <- compute_campaign_ea(read_campaign(dir))
  for (size in c(64, 1440)) {
    sent_mbit_cost <- 0.02 + 0.05e-3 * 1e6 / (8 * size)
    ids <- read_campaign(dir)$plan[payload_bytes == size & transport == "udp", run_id]
    expect_equal(rows[run_id %in% ids, ea_j_per_mbit], rep(sent_mbit_cost / 0.5, 6), tolerance = 1e-9)
  }
})

test_that("the recomputation agrees with results and names what does not", {
  dir <- synthetic_campaign(noise_w = 0.003)
  campaign <- read_campaign(dir)
  expect_true(all(compare_ea(campaign)$agrees))
  run_id <- campaign$plan[transport == "udp", run_id][1]
  edit_json(file.path(dir, "runs", run_id, "result.json"), function(doc) {
    doc$nodes[[1]]$p_a_w <- doc$nodes[[1]]$p_a_w + 0.001
    doc
  })
  wrong <- compare_ea(read_campaign(dir))[agrees == FALSE]
  expect_identical(unique(wrong$run_id), run_id)
  expect_identical(wrong$quantity, "p_a_w")
})

test_that("a figure may be off by rounding and by no more, a small difference of large powers too", {
  dir <- synthetic_campaign(blocks = 1, noise_w = 0.003)
  campaign <- read_campaign(dir)
  recomputed <- compute_campaign_ea(campaign)
  for (name in c("p_a_w", "delta_p_w", "ea_j_per_mbit", "floor_w", "t_a_mbps")) {
    off <- function(ratio) {
      moved <- copy(campaign$results)[, (name) := get(name) * (1 + ratio)]
      unique(compare_ea(utils::modifyList(campaign, list(results = moved)), recomputed)[agrees == FALSE, quantity])
    }
    expect_identical(off(1e-12), character())
    expect_identical(off(1e-7), name)
  }
  all_of_power <- copy(campaign$results)[, `:=`(p_a_w = p_a_w * (1 + 1e-12), delta_p_w = delta_p_w + 1e-12 * p_a_w)]
  expect_true(all(compare_ea(utils::modifyList(campaign, list(results = all_of_power)), recomputed)$agrees))
})

test_that("no power above idle but for rounding is no disagreement, whatever the sign of the rounding", {
  dir <- synthetic_campaign(blocks = 1, meters = list(synthetic_meter(power = function(transport, size, rate) 0)))
  campaign <- read_campaign(dir)
  recomputed <- compute_campaign_ea(campaign)
  recomputed[, `:=`(delta_p_w = -1e-16, ea_j_per_mbit = NA_real_)]
  check <- compare_ea(campaign, recomputed)
  expect_true("ea_j_per_mbit" %in% check$quantity)
  expect_true(all(check$agrees))
  recomputed[, delta_p_w := -0.1]
  expect_false(all(compare_ea(campaign, recomputed)[quantity == "ea_j_per_mbit", agrees]))
})

test_that("a lag that a load pulse told surely takes the place of the passport's", {
  dir <- synthetic_campaign(blocks = 1)
  align <- function(confidence, lag_s) {
    edit_json(file.path(dir, "campaign.json"), function(doc) {
      doc$meters[[1]]$lag_s <- 1.1
      doc$alignment <- list(list(
        meter_id = doc$meters[[1]]$meter_id, lag_s = lag_s, u_lag_s = 0.001, confidence = confidence,
        method = "normalised_correlation", pulses = list()
      ))
      doc
    })
    read_campaign(dir)
  }
  expect_identical(align(0.89, 0.1)$meters$lag_s, 1.1)
  expect_false(all(compare_ea(align(0.89, 0.1))$agrees))
  expect_identical(align(0.9, 0.1)$meters$lag_s, 0.1)
  expect_true(all(compare_ea(align(0.9, 0.1))$agrees))
})

test_that("a campaign of an energy counter is recomputed from its counts", {
  dir <- synthetic_campaign(blocks = 1)
  path <- list.files(file.path(dir, "meters"), full.names = TRUE)
  rows <- data.table::fread(path, colClasses = c(flag = "character"))
  rows[, energy_j := (cumsum(power_w) * 0.1) %% 500]
  rows[, power_w := NA_real_]
  data.table::fwrite(rows, path, na = "")
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$meters[[1]]$semantics <- "energy_counter"
    doc$meters[[1]]$counter_modulus_j <- 500
    doc
  })
  expect_gt(sum(diff(rows$energy_j) < 0), 0)
  expect_true(all(compare_ea(read_campaign(dir))$agrees))
})

test_that("a refused floor is not compared", {
  dir <- synthetic_campaign(blocks = 1)
  for (id in list.files(file.path(dir, "runs"))) {
    edit_json(file.path(dir, "runs", id, "result.json"), function(doc) {
      doc$nodes[[1]]$floor <- no_floor()
      doc
    })
  }
  check <- compare_ea(read_campaign(dir))
  expect_false("floor_w" %in% check$quantity)
  expect_true(all(check$agrees))
})

test_that("a floor that the raw files refuse is a disagreement", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null"))
  expect_true(all(c("p_null_w", "floor_w", "ea_above_floor_j_per_mbit") %in% compare_ea(read_campaign(dir))$quantity))
  null <- grep("null", list.files(file.path(dir, "runs")), value = TRUE)
  change <- function(edit) edit_json(file.path(dir, "runs", null, "flow.json"), edit)
  reason <- function() {
    campaign <- read_campaign(dir)
    recomputed <- compute_campaign_ea(campaign)
    wrong <- compare_ea(campaign, recomputed)[agrees == FALSE, quantity]
    expect_setequal(wrong, c("p_null_w", "floor_w", "ea_above_floor_j_per_mbit"))
    recomputed[transport == "udp", floor_reason]
  }
  change(function(doc) {
    doc$sender$messages_sent <- 980
    doc
  })
  expect_identical(reason(), "floor_achieved_low")
  change(function(doc) {
    doc$sender$messages_sent <- 1000
    doc$pacing$mode <- "spin"
    doc
  })
  expect_identical(reason(), "floor_spinning")
  change(function(doc) {
    doc$pacing$mode <- "absolute"
    doc$sender$cpu_s <- 2.3
    doc
  })
  expect_identical(reason(), "floor_core_busy")
})

# Two runs, udp and null, whose senders tell of their wake-ups.
woken_pair <- function(own, null) {
  with_wake_ups(synthetic_campaign(
    blocks = 1, payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null")
  ), own, null)
}

test_that("a null run that woke up far more or less often is found, and its floor stands", {
  differs <- function(own, null) {
    campaign <- read_campaign(woken_pair(own, null))
    recomputed <- compute_campaign_ea(campaign)
    check <- compare_ea(campaign, recomputed)
    expect_identical(sum(check$quantity == "wake_ups_per_message"), 2L)
    expect_true(all(check$agrees))
    expect_identical(recomputed[transport == "null", wake_ups_differ], NA)
    expect_false(anyNA(recomputed[transport == "udp", list(floor_w, ea_above_floor_j_per_mbit)]))
    recomputed[transport == "udp", wake_ups_differ]
  }
  expect_identical(differs(1, 1), FALSE)
  expect_identical(differs(1, 1.5), FALSE)
  expect_identical(differs(1, 1.51), TRUE)
  expect_identical(differs(3, 1), TRUE)
  silent <- compute_campaign_ea(read_campaign(synthetic_campaign(blocks = 1, payload_bytes = 64)))
  expect_true(all(is.na(silent$wake_ups_differ)))
})

test_that("wake-ups that the reports do not bear out are a disagreement, and ones that no result tells are none", {
  dir <- woken_pair(1, 1)
  udp <- grep("udp", list.files(file.path(dir, "runs")), value = TRUE)
  change <- function(count) {
    edit_json(file.path(dir, "runs", udp, "result.json"), function(doc) {
      doc$wake_ups_per_message <- count
      doc
    })
    compare_ea(read_campaign(dir))
  }
  expect_identical(change(2)[agrees == FALSE, paste(run_id, quantity)], paste(udp, "wake_ups_per_message"))
  older <- change(NULL)
  expect_true(all(older$agrees))
  expect_false(any(older$run_id == udp & older$quantity == "wake_ups_per_message"))
})

test_that("a null run that does not count is no floor to hold against result.json", {
  dir <- synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1, transports = c("udp", "null"))
  null <- grep("null", list.files(file.path(dir, "runs")), value = TRUE)
  edit_json(file.path(dir, "runs", null, "result.json"), function(doc) {
    doc$valid <- FALSE
    doc
  })
  campaign <- read_campaign(dir)
  recomputed <- compute_campaign_ea(campaign)
  expect_identical(recomputed$floor_reason, "null_run_invalid")
  check <- compare_ea(campaign, recomputed)
  expect_false("floor_w" %in% check$quantity)
  expect_true(all(check$agrees))
})

test_that("the tail of work until done ends when the radio is idle", {
  dir <- done_campaign("command", "build", c(slow = 2, fast = 1), blocks = 1)
  whole <- compute_campaign_ea(read_campaign(dir))
  starts_s <- sort(read_campaign(dir)$runs$tail_start_s)
  # Of the first run it sleeps after half of its tail, of the second one it sleeps already.
  states <- data.frame(t_s = starts_s[1] + c(-0.1, 0.5), state = c("cr", "idle"))
  columns <- names(schema_columns("radio", contracts_dir()))
  rows <- stats::setNames(data.frame(matrix(NA, nrow(states), length(columns))), columns)
  rows[names(states)] <- states
  dir.create(file.path(dir, "radio"), showWarnings = FALSE)
  data.table::fwrite(rows, file.path(dir, "radio", "client.csv"))
  ended <- compute_campaign_ea(read_campaign(dir))
  watts <- c(slow = 2, fast = 1)[whole$build]
  expect_equal(whole$tail_energy_j, unname(0.1 * watts), tolerance = 1e-6)
  first <- read_campaign(dir)$runs$tail_start_s == starts_s[1]
  expect_equal(ended$tail_energy_j, unname(0.1 * watts * ifelse(first, 0.5, 0)), tolerance = 1e-6)
})
