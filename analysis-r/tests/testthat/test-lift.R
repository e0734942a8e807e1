# SPDX-License-Identifier: Apache-2.0

newest <- function() {
  jsonlite::fromJSON(
    '{"schema_version": 2, "run_id": "r", "load": "flow", "kind": "work", "arm": "udp", "factors": {},
      "window": {"kind": "fixed", "t_start_s": 1, "t_end_s": 3},
      "work": {"quantity": 40, "unit": "Mb", "work_per_s": 20, "u95_work_per_s": 0.2},
      "measures": {"loss_ratio": 0.1, "achieved_ratio": 1, "wake_ups_per_message": null},
      "parts": [{"part": "1", "node": "a", "work_per_s": 5, "met_ratio": 0.5, "measures": {"loss_ratio": 0.2}},
                {"part": "2", "node": "b", "work_per_s": 15, "met_ratio": null, "measures": {}}],
      "fairness": {"jain_work": 0.8, "jain_met": null},
      "nodes": [{"meter_id": "m", "work_per_s": null, "energy_per_work_j": 0.5, "ea_j_per_mbit": 0.5,
                 "floor": {"energy_per_work_above_floor_j": 0.25}}]}',
    simplifyVector = FALSE
  )
}

test_that("a result of the newest version has the fields of the first", {
  run <- list(flows = list(list(flow = 1, transport = "udp"), list(flow = 2, transport = "tcp")))
  found <- lift_result(newest(), run)
  expect_equal(found$t_a_mbps, 20)
  expect_equal(found$u95_t_a_mbps, 0.2)
  expect_equal(found$loss_ratio, 0.1)
  expect_true("wake_ups_per_message" %in% names(found))
  expect_null(found$wake_ups_per_message)
  expect_equal(found$fairness, list(jain_goodput = 0.8, jain_demand_met = NULL))
  node <- found$nodes[[1]]
  expect_true("t_a_mbps" %in% names(node))
  expect_equal(node$ea_j_per_mbit, 0.5)
  expect_equal(node$floor$ea_above_floor_j_per_mbit, 0.25)
})

test_that("what was asked of a flow comes from run.json, what it got from the result", {
  run <- list(flows = list(list(flow = 1, transport = "udp"), list(flow = 2, transport = "tcp")))
  flows <- lift_result(newest(), run)$flows
  expect_equal(vapply(flows, function(flow) flow$transport, ""), c("udp", "tcp"))
  expect_equal(vapply(flows, function(flow) flow$flow, 0), c(1, 2))
  expect_equal(vapply(flows, function(flow) flow$goodput_mbps, 0), c(5, 15))
  expect_equal(flows[[1]]$loss_ratio, 0.2)
  expect_true("demand_met_ratio" %in% names(flows[[2]]))
})

test_that("a broken document is lifted as far as it goes, and one of the first version is left as it is", {
  for (nodes in list(NULL, "x", list("x"), list(list(floor = "x")))) {
    broken <- newest()
    broken["nodes"] <- list(nodes)
    broken["work"] <- list("x")
    broken["parts"] <- list(list("x"))
    expect_no_error(lift_result(broken, NULL))
  }
  first <- list(schema_version = 1, t_a_mbps = 3)
  expect_identical(lift_result(first, NULL), first)
})

test_that("intervals of both versions are bytes of flows", {
  contracts <- contracts_dir()
  skip_if(is.na(contracts))
  path <- tempfile(fileext = ".csv")
  writeLines(c("part,node,t_start_s,t_end_s,work", "2,client,0.000000,0.100000,0.01"), path)
  found <- lift_intervals(path, contracts, list(schema_version = 2))$rows
  expect_equal(found$flow, 2)
  expect_equal(found$bytes, 1250)
  columns <- names(schema_columns("intervals_1", contracts))
  cells <- c(end = "receiver", t_start_s = "0", t_end_s = "0.1", messages = "1", bytes = "1250", flow = "2")
  row <- ifelse(columns %in% names(cells), cells[columns], "")
  writeLines(c(paste(columns, collapse = ","), paste(row, collapse = ",")), path)
  found <- lift_intervals(path, contracts, list(schema_version = 1))$rows
  expect_equal(found$flow, 2)
  expect_equal(found$bytes, 1250)
})

# A campaign whose plan.csv held the status, written anew as campaigns are now; `status` as rows of status.csv.
renewed <- function(dir) {
  old <- fread(file.path(dir, "plan.csv"), colClasses = "character", na.strings = NULL)
  factors <- intersect(setdiff(unlist(load_entry("flow", contracts_dir())$factors), "transport"), names(old))
  plan <- old[, c("run_id", "block", "mini_block", "order", "attempt"), with = FALSE]
  plan[, `:=`(load = "flow", kind = ifelse(old$transport == "null", "control", "work"), arm = old$transport)]
  plan <- cbind(plan, old[, c("seed", factors), with = FALSE])
  fwrite(plan[order(attempt)], file.path(dir, "plan.csv"))
  rows <- old[!status %in% "planned", list(
    t_utc = "2026-11-21T00:00:00.000Z", run_id, attempt, session = 1, rig = "rig1", owner_token = 1,
    status = ifelse(status %in% c("done", "superseded"), "valid", status), reason
  )]
  under_way <- copy(rows)[, `:=`(status = "running", reason = "")]
  fwrite(rbind(under_way, rows), file.path(dir, "status.csv"), quote = FALSE)
  dir
}

repeated <- function() {
  dir <- synthetic_campaign(blocks = 2, payload_bytes = 64, offered_rate_mbps = c(1, 10))
  edit_csv(file.path(dir, "plan.csv"), function(rows) {
    again <- rows[rows$mini_block == 1, ]
    again$attempt <- 2
    again$run_id <- sub("-a1$", "-a2", again$run_id)
    again$status <- "planned"
    rows$status[rows$mini_block == 1] <- c("invalid", rep("superseded", sum(rows$mini_block == 1) - 1))
    rows$reason[rows$mini_block == 1][1] <- "idle_drift"
    rbind(rows[rows$block == 1, ], again, rows[rows$block == 2, ])
  })
  dir
}

test_that("a campaign reads the same whether its plan holds the status or status.csv does", {
  dir <- repeated()
  before <- read_campaign(dir)
  after <- read_campaign(renewed(dir))
  expect_true(all(c("invalid", "superseded", "planned", "done") %in% before$plan$status))
  shared <- intersect(names(before$plan), names(after$plan))
  expect_true(all(needed_columns$plan_1 %in% shared))
  plain <- function(plan) as.data.frame(plan[, shared, with = FALSE])
  expect_equal(plain(after$plan), plain(before$plan))
  expect_equal(as.data.frame(summarise_ea(after)), as.data.frame(summarise_ea(before)))
})

test_that("a run that was stopped is planned", {
  dir <- renewed(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1))
  run <- read_campaign(dir)$plan$run_id[1]
  row <- paste0("2026-11-21T00:00:01.000Z,", run, ",1,1,rig1,1,invalid,interrupted\n")
  cat(row, file = file.path(dir, "status.csv"), append = TRUE)
  plan <- read_campaign(dir)$plan
  expect_identical(plan$status[1], "planned")
  expect_true(is.na(plan$reason[1]))
  expect_true(all(plan$status[-1] == "done"))
})

test_that("a row of an older owner is ignored, and one cut off by a killed writer is dropped", {
  dir <- renewed(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1))
  path <- file.path(dir, "status.csv")
  run <- read_campaign(dir)$plan$run_id[1]
  cat("2026-11-21T00:00:01.000Z,", run, ",1,0,rig1,0,invalid,idle_drift\n", sep = "", file = path, append = TRUE)
  expect_identical(read_campaign(dir)$plan$status[1], "done")
  cat("2026-11-21T00:00:02.000Z,", run, ",1,2,rig1,2,inva", sep = "", file = path, append = TRUE)
  campaign <- read_campaign(dir)
  expect_identical(campaign$plan$status[1], "done")
  expect_identical(campaign$problems$code, "half_written_row")
})

test_that("a campaign without any status has runs that are planned", {
  dir <- renewed(synthetic_campaign(blocks = 1, payload_bytes = 64, offered_rate_mbps = 1))
  unlink(file.path(dir, "status.csv"))
  expect_setequal(read_campaign(dir)$plan$status, "planned")
})
