# SPDX-License-Identifier: Apache-2.0

# How a gate decides over log ratios, and how many blocks it plans.

gate_design <- function(looks, margin = 3, tolerance = 1) {
  list(looks = looks, blocks_max = max(looks), margin_percent = margin, tolerance_percent = tolerance)
}

# Whether the spending function's level is what is used up: by integration over the path of partial sums, without rpact.
level_spent <- function(critical, information) {
  step <- 0.005
  grid <- seq(-12, 6, by = step)
  density <- stats::dnorm(grid, 0, sqrt(information[1]))
  spent <- numeric()
  for (k in seq_along(information)) {
    if (k > 1L) {
      sd <- sqrt(information[k] - information[k - 1L])
      density <- vapply(grid, function(x) sum(density * stats::dnorm(x, grid, sd)) * step, 0)
    }
    above <- grid >= critical[k] * sqrt(information[k])
    spent[k] <- sum(density[above]) * step
    density[above] <- 0
  }
  cumsum(spent)
}

test_that("boundaries are rpact's, and spend what O'Brien and Fleming's function has", {
  for (blocks in c(4, 6, 11, 22, 100)) {
    information <- gate_looks(blocks) / blocks
    if (length(information) < 2L) next
    theirs <- rpact::getDesignGroupSequential(
      informationRates = information, alpha = 0.05, sided = 1, typeOfDesign = "asOF"
    )
    expect_equal(critical_values(information), theirs$criticalValues, tolerance = 1e-6)
  }
  information <- c(0.25, 0.4, 0.6, 0.8, 1)
  wanted <- 2 * stats::pnorm(stats::qnorm(1 - 0.05 / 2) / sqrt(information), lower.tail = FALSE)
  expect_lt(max(abs(level_spent(critical_values(information), information) - wanted)), 2e-4)
  # Of looks that end early only their share is spent.
  expect_equal(critical_values(information[1:3]), critical_values(information)[1:3], tolerance = 1e-5)
  expect_equal(critical_values(1), stats::qnorm(0.95))
})

test_that("the bounds of a look are Student's at its nominal level", {
  d <- c(0.01, 0.03, 0.02, 0.00)
  found <- gate_decision(d, gate_design(c(4, 8)))
  look <- found$looks[[1]]
  expect_identical(found$verdict, "continue")
  expect_equal(look$information, 0.5)
  level <- stats::pnorm(critical_values(c(0.5, 1))[1], lower.tail = FALSE)
  half <- stats::qt(1 - level, 3) * stats::sd(d) / 2
  expect_equal(c(look$low, look$mean, look$high), mean(d) + c(-half, 0, half))
})

test_that("PASS is asked before FAIL, and what is decided stays so", {
  narrow <- 0.02 + c(-1, 1, -1, 1) * 1e-5
  # Both an increase of 3 % is ruled out and one of 1 % shown.
  found <- gate_decision(narrow, gate_design(c(4, 8)))
  expect_identical(found$verdict, "pass")
  expect_identical(gate_decision(narrow + 0.02, gate_design(c(4, 8)))$verdict, "fail")
  later <- gate_decision(c(narrow, rep(0.5, 4)), gate_design(c(4, 8)))
  expect_identical(c(later$verdict, later$look, length(later$looks)), c("pass", "1", "1"))
})

test_that("without scatter the bounds are the mean", {
  for (case in list(list(0, "pass"), list(0.02, "pass"), list(0.0296, "fail"), list(0.05, "fail"))) {
    expect_identical(gate_decision(rep(case[[1]], 4), gate_design(c(4, 6)))$verdict, case[[2]])
  }
})

test_that("nothing is looked at between planned looks, and the last decides or says that it does not", {
  wide <- rep(c(-0.1, 0.1), 6)
  design <- gate_design(c(4, 8, 12))
  counts <- vapply(1:12, function(n) length(gate_decision(wide[seq_len(n)], design)$looks), 0L)
  expect_identical(counts, rep(0:3, c(3, 4, 4, 1)))
  expect_identical(gate_decision(wide[1:11], design)$verdict, "continue")
  expect_identical(gate_decision(wide, design)$verdict, "inconclusive")
})

test_that("blocks that do not count are less information", {
  d <- rep(c(-0.1, 0.1), 6)
  d[c(2, 5)] <- NA
  looks <- gate_decision(d, gate_design(c(4, 8, 12)))$looks
  # Three blocks are no look and spend nothing.
  expect_equal(vapply(looks, `[[`, 0, "blocks_planned"), c(8, 12))
  expect_equal(vapply(looks, `[[`, 0, "blocks"), c(6, 10))
  expect_equal(vapply(looks, `[[`, 0, "critical_value"), critical_values(c(6, 10) / 12), tolerance = 1e-5)
  expect_identical(gate_decision(c(d[1:8], rep(NA, 4)), gate_design(c(4, 8, 12)))$verdict, "inconclusive")
})

test_that("many series at once are decided as each alone", {
  d <- with_seed(1, matrix(stats::rnorm(200 * 11, 0.015, 0.02), 200))
  design <- gate_design(gate_looks(11))
  together <- gate_decision(d, design)
  alone <- lapply(1:200, function(i) gate_decision(d[i, ], design))
  expect_identical(together$verdict, vapply(alone, `[[`, "", "verdict"))
  expect_identical(together$look, vapply(alone, `[[`, 0L, "look"))
  expect_setequal(together$verdict, c("pass", "fail", "inconclusive"))
})

test_that("blocks at most are the least with the power that is asked for", {
  expect_identical(gate_looks(22), c(5, 8, 13, 17, 22))
  expect_identical(gate_looks(6), c(4, 6))
  expect_identical(gate_looks(4), 4)
  upper <- sd_upper(0.02, 12)
  expect_equal(upper, 0.02 * sqrt(11 / stats::qchisq(0.2, 11)))
  n <- gate_blocks_max(0.02, 12, 3, 1)
  # The decision itself finds an increase of the margin so often, PASS asked first and by all looks.
  power <- function(n, change = log(1.03), sd = upper) {
    drawn <- with_seed(2, matrix(stats::rnorm(4e4 * n, change, sd), 4e4))
    gate_decision(drawn, gate_design(gate_looks(n)))$verdict
  }
  expect_gte(mean(power(n) == "fail"), 0.895 - 0.005)
  expect_lt(mean(power(n - 1L) == "fail"), 0.895 + 0.005)
  most <- most_scatter(n, 3, 1)
  expect_true(upper <= most && upper > most_scatter(n - 1L, 3, 1))
  expect_equal(mean(power(n, sd = most) == "fail"), 0.895, tolerance = 0.005)
  expect_gte(mean(power(n, 0, most) == "pass"), 0.8)
  # The same plan each time, whatever was asked before.
  rm(list = ls(scatter_memory), envir = scatter_memory)
  expect_identical(gate_blocks_max(0.02, 12, 3, 1), n)
  expect_identical(gate_blocks_max(0, 12, 3, 1), 4L)
  expect_identical(gate_blocks_max(0.5, 12, 3, 1), NA_integer_)
})

test_that("the plan is told, and what is no plan refused", {
  told <- run_main(c("--gate-plan", "0.02", "12", "3", "1"))
  expect_identical(told$code, 0L)
  event <- told$events[[1]]
  expect_identical(event$event, "gate_plan")
  expect_identical(event$blocks_max, gate_blocks_max(0.02, 12, 3, 1))
  expect_equal(event$looks, gate_looks(event$blocks_max))
  expect_equal(event$critical_values, critical_values(event$looks / event$blocks_max))
  expect_identical(run_main(c("--gate-plan", "0.5", "12", "3", "1"))$events[[1]]$looks, list())
  for (wrong in list(c("0.02", "12", "3"), c("0.02", "12", "1", "3"), c("x", "12", "3", "1"))) {
    expect_identical(run_main(c("--gate-plan", wrong))$code, 2L)
  }
})

test_that("looks of a plan of one look are a list in JSON too", {
  said <- capture.output(main(c("--gate-plan", "0", "12", "3", "1")))
  expect_match(said[1], "\"looks\":[4]", fixed = TRUE)
})
