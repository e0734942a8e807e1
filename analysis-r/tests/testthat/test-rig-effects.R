# SPDX-License-Identifier: Apache-2.0

#' A campaign of one cell and two arms whose blocks rigs ran in turn, its power level by block
rigs_campaign <- function(level, rig, on_blocks = FALSE) {
  dir <- done_campaign("command", "build", c(old = 1, new = 1.2),
    blocks = length(level), measures = function(cell, watts) list(duration_s = 3, cpu_s = 1),
    power = function(row) c(old = 1, new = 1.2)[[row$arm]] * exp(level[row$block])
  )
  blocks <- data.table::fread(file.path(dir, "plan.csv"))$block
  edit_csv(file.path(dir, "status.csv"), function(rows) {
    rows$rig <- rig[blocks]
    rows
  })
  if (on_blocks) in_blocks(dir)
  dir
}

#' The same files as a campaign on rigs has them: each block in a folder of its own
in_blocks <- function(dir) {
  plan <- data.table::fread(file.path(dir, "plan.csv"))
  for (number in unique(plan$block)) {
    home <- file.path(dir, "blocks", number)
    dir.create(file.path(home, "runs"), recursive = TRUE)
    logs <- file.path(dir, c("meters", "radio", "devices", "campaign.json"))
    file.copy(logs[file.exists(logs)], home, recursive = TRUE)
    ids <- plan$run_id[plan$block == number]
    file.rename(file.path(dir, "runs", ids), file.path(home, "runs", ids))
  }
  unlink(file.path(dir, c("meters", "radio", "devices", "runs")), recursive = TRUE)
}

test_that("a campaign on one rig has no rig effects", {
  campaign <- read_campaign(rigs_campaign(rep(0, 4), rep("rig1", 4)))
  expect_identical(nrow(rig_effects(campaign)), 0L)
  expect_null(campaign_tables(campaign)$rig_effects)
})

test_that("the effect of a rig is the difference of its blocks' means, with the t interval of a two-sample test", {
  level <- c(0.10, -0.02, 0.13, 0.01, 0.08, 0.02)
  rig <- rep(c("left", "right"), 3)
  rows <- rig_effects(read_campaign(rigs_campaign(level, rig)))
  test <- stats::t.test(level[rig == "left"], level[rig == "right"], var.equal = TRUE)
  left <- rows[rig == "left"]
  expect_equal(left$effect_percent, 100 * expm1(unname(test$estimate[1] - test$estimate[2])))
  expect_equal(c(left$effect_ci95_low, left$effect_ci95_high), 100 * expm1(as.numeric(test$conf.int)))
  expect_equal(unique(rows$model), "fixed")
  expect_equal(rows$blocks_n, c(3L, 3L))
  expect_equal(rows$runs_n, c(6L, 6L))
  expect_equal(unique(rows$verdict), "differs")
})

test_that("rigs that measure alike are not named, and one that does not is", {
  noise <- c(0.01, -0.012, 0.004, 0.007, -0.003, -0.006, 0.002, 0.009, -0.011)
  rig <- rep(c("a", "b", "c"), 3)
  alike <- read_campaign(rigs_campaign(noise, rig))
  rows <- rig_effects(alike)
  expect_true(all(rows$verdict == "no_difference_seen"))
  expect_match(rig_sentences(alike, rows), "None differs from the others")
  apart <- read_campaign(rigs_campaign(noise + 0.1 * (rig == "b"), rig))
  rows <- rig_effects(apart)
  expect_identical(rows[verdict == "differs" & effect_percent > 0, rig], "b")
  expect_match(rig_sentences(apart, rows), "b measures .* % more than the others")
})

test_that("of blocks that are one per rig nothing can be told", {
  campaign <- read_campaign(rigs_campaign(c(0, 0.5), c("a", "b")))
  rows <- rig_effects(campaign)
  expect_identical(unique(rows$verdict), "cannot_tell")
  expect_match(rig_sentences(campaign, rows), "cannot be told")
})

test_that("five rigs are a sample: their scatter is that of the one-way analysis of variance", {
  rig <- rep(letters[1:6], each = 4)
  level <- with_seed(3, rep(rnorm(6, sd = 0.05), each = 4) + rnorm(24, sd = 0.01))
  rows <- rig_effects(read_campaign(rigs_campaign(level, rig)))
  table <- stats::anova(stats::lm(level ~ rig))
  between <- (table["rig", "Mean Sq"] - table["Residuals", "Mean Sq"]) / 4
  expect_equal(unique(rows$model), "random")
  expect_equal(unique(rows$sd_between_percent), 100 * sqrt(between))
  kept <- between / (between + table["Residuals", "Mean Sq"] / 4)
  expect_equal(
    rows$effect_percent, 100 * expm1(kept * (as.numeric(tapply(level, rig, mean)) - mean(level)))
  )
})

test_that("a rig is named by chance in one campaign of twenty, for two rigs and for four", {
  named <- function(rigs, seed) {
    with_seed(seed, mean(replicate(400L, {
      blocks <- data.table(rig = rep(letters[seq_len(rigs)], each = 5), value = rnorm(5 * rigs), runs = 2L)
      any(rig_table(blocks)$verdict == "differs")
    })))
  }
  expect_lt(named(2L, 1), 0.08)
  expect_gt(named(2L, 1), 0.02)
  expect_lt(named(4L, 2), 0.08)
})

test_that("what is read of blocks is what is read of one folder", {
  level <- c(0.1, 0, 0.05, 0.02)
  rig <- c("a", "b", "a", "b")
  flat <- read_campaign(rigs_campaign(level, rig))
  blocks <- read_campaign(rigs_campaign(level, rig, on_blocks = TRUE))
  tables <- campaign_tables(blocks)
  expect_true(nrow(tables$ea_check) > 0L && all(tables$ea_check$agrees))
  for (name in setdiff(names(tables), "power_trace")) expect_equal(tables[[name]], campaign_tables(flat)[[name]])
  expect_equal(tables$power_trace, campaign_tables(flat)$power_trace)
})

test_that("a trend is looked for beside the means of rigs", {
  level <- c(0, 0.2, 0.001, 0.201, 0.002, 0.199, 0.001, 0.2)
  campaign <- read_campaign(rigs_campaign(level, rep(c("a", "b"), 4)))
  drift <- ea_drift(ea_order(campaign), campaign)[quantity == "E_A"]
  expect_lt(abs(drift$change_percent), 1)
})
