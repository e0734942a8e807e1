# SPDX-License-Identifier: Apache-2.0
# How often a gate is right, on simulated rigs whose truth is known: Rscript --vanilla analysis-r/tests/bench-gate.R
# With a number after it so many trials a row (100,000 by default). Each trial takes a standard deviation from a pilot
# of 12 blocks of its own, and with it the greatest number of blocks; the gate's own function decides, in a second
# session too where the first FAILs. Prints a table in Markdown; exit code 1 where a target is missed.

script <- sub("^--file=", "", grep("^--file=", commandArgs(), value = TRUE))
root <- dirname(dirname(dirname(normalizePath(script))))
.libPaths(c(Sys.getenv("NETJOULE_R_LIBRARY", file.path(root, ".r-library")), .libPaths()))
gate_decision <- netjoule:::gate_decision
gate_blocks_max <- netjoule:::gate_blocks_max
gate_looks <- netjoule:::gate_looks

trials <- as.integer(c(commandArgs(trailingOnly = TRUE), "100000")[1])
pilot_blocks <- 12L
margin_percent <- 3
tolerance_percent <- 1

white <- function(count, blocks, sd) matrix(stats::rnorm(count * blocks, 0, sd), count)

# What a rig's level does between the two runs of a block, base and head in random order; one series in each row.
from_levels <- function(levels) {
  first <- seq(1L, ncol(levels), 2L)
  step <- levels[, first + 1L, drop = FALSE] - levels[, first, drop = FALSE]
  step * matrix(sample(c(-1, 1), length(step), replace = TRUE), nrow(step))
}

noises <- list(
  white = white,
  # The rig's level walks by 0.5 % from run to run.
  `random walk` = function(count, blocks, sd) {
    steps <- white(count, 2L * blocks, 0.005)
    white(count, blocks, sd) + from_levels(t(apply(steps, 1L, cumsum)))
  },
  # And by 3 % over a session.
  `linear drift` = function(count, blocks, sd) {
    levels <- matrix(seq(0, 0.03, length.out = 2L * blocks), count, 2L * blocks, byrow = TRUE)
    white(count, blocks, sd) + from_levels(levels)
  },
  `t3 tails` = function(count, blocks, sd) matrix(sd / sqrt(3) * stats::rt(count * blocks, 3), count),
  # Three in a hundred blocks are off by 5 sd, to either side.
  `3 % outliers` = function(count, blocks, sd) {
    off <- sample(c(-5, 5), count * blocks, replace = TRUE) * (stats::runif(count * blocks) < 0.03)
    white(count, blocks, sd) + sd * matrix(off, count)
  },
  `AR 0.3` = function(count, blocks, sd) {
    d <- white(count, blocks, sd)
    for (block in seq_len(blocks)[-1]) d[, block] <- 0.3 * d[, block - 1L] + sqrt(1 - 0.3^2) * d[, block]
    d
  },
  # The mean of all blocks of a session is off.
  `session bias` = function(count, blocks, sd) white(count, blocks, sd) + stats::rnorm(count, 0, 0.005)
)

row_sd <- function(d) sqrt(rowSums((d - rowMeans(d))^2) / (ncol(d) - 1))

# Greatest numbers of blocks of many pilots; a standard deviation is rounded up by at most 0.2 %.
planned_blocks <- function(sds) {
  rounded <- exp(ceiling(log(sds) / 0.002) * 0.002)
  distinct <- unique(rounded)
  blocks <- vapply(distinct, gate_blocks_max, 0L, pilot_blocks, margin_percent, tolerance_percent)
  blocks[match(rounded, distinct)]
}

# Verdict and number of blocks of a session of each trial; a pilot that asks for over 1000 blocks has none.
session <- function(noise, sd, change_percent, blocks_max) {
  found <- data.frame(verdict = rep("refused", length(blocks_max)), blocks = rep(NA_real_, length(blocks_max)))
  for (blocks in unique(blocks_max[!is.na(blocks_max)])) {
    which <- blocks_max %in% blocks
    design <- list(
      looks = gate_looks(blocks), blocks_max = blocks, margin_percent = margin_percent,
      tolerance_percent = tolerance_percent
    )
    decided <- gate_decision(noise(sum(which), blocks, sd) + log1p(change_percent / 100), design)
    found$verdict[which] <- decided$verdict
    found$blocks[which] <- design$looks[decided$look]
  }
  found
}

# Shares of FAIL, confirmed FAIL and PASS, and the mean number of blocks of the first session.
simulated <- function(noise, sd, change_percent) {
  blocks_max <- planned_blocks(row_sd(noise(trials, pilot_blocks, sd)))
  first <- session(noise, sd, change_percent, blocks_max)
  failed <- first$verdict == "fail"
  confirmed <- sum(session(noise, sd, change_percent, blocks_max[failed])$verdict == "fail")
  c(
    fail = mean(failed), confirmed = confirmed / trials, pass = mean(first$verdict == "pass"),
    blocks = mean(first$blocks, na.rm = TRUE), blocks_max = mean(blocks_max, na.rm = TRUE)
  )
}

# What each row is held to.
targets_of <- function(name, sd) {
  odd <- name %in% c("AR 0.3", "session bias")
  outliers <- name == "3 % outliers"
  found <- if (odd) 0.70 else if (outliers || sd == 0.01) 0.75 else 0.80
  blocks <- if (outliers) c(6, 14, 25) else c(5, 10, 18)
  list(
    false_fail = if (name == "AR 0.3") 0.015 else 0.01, false_confirmed = 0.001, found = found,
    passed = if (outliers) 0.93 else 0.95, missed = if (odd) 0.13 else 0.06, blocks = blocks[round(100 * sd)]
  )
}

# Shares beyond their target; of few trials only where chance would seldom have it (binomial, 0.1 %).
misses <- function(shares, targets) {
  over <- function(share, target) {
    by_chance <- stats::pbinom(round(share * trials) - 1, trials, target, lower.tail = FALSE)
    share > target && (trials >= 20000L || by_chance < 0.001)
  }
  c(
    false_fail = over(shares$false_fail, targets$false_fail),
    false_confirmed = over(shares$false_confirmed, targets$false_confirmed),
    found = over(1 - shares$found, 1 - targets$found), passed = over(1 - shares$passed, 1 - targets$passed),
    missed = over(shares$missed, targets$missed),
    blocks = shares$blocks > targets$blocks * if (trials < 20000L) 1.05 else 1
  )
}

percent <- function(share) formatC(100 * share, format = "f", digits = if (share < 0.02) 2 else 1)

table_row <- function(name, sd, shares, targets, missed) {
  cell <- function(column, text, sign, format) {
    paste0(text, " (", sign, " ", format(targets[[column]]), ")", if (missed[[column]]) " **missed**")
  }
  share <- function(column, sign) cell(column, percent(shares[[column]]), sign, function(x) as.character(100 * x))
  paste0("| ", paste(c(
    name, paste(100 * sd, "%"), share("false_fail", "<="), share("false_confirmed", "<="), share("found", ">="),
    share("passed", ">="), share("missed", "<="),
    cell("blocks", formatC(shares$blocks, format = "f", digits = 1), "<=", as.character),
    formatC(shares$blocks_found, format = "f", digits = 1), formatC(shares$blocks_max, format = "f", digits = 1)
  ), collapse = " | "), " |")
}

set.seed(28)
cat(sprintf(
  "Of %s trials a row, in %% (target in brackets); margin %g %%, tolerance %g %%, pilot of %d blocks.\n\n",
  format(trials, big.mark = ","), margin_percent, tolerance_percent, pilot_blocks
))
columns <- c(
  "noise", "block sd", "FAIL of no change, one session", "confirmed", "confirmed FAIL of +3 %", "PASS of no change",
  "PASS of +3 %", "mean blocks of no change", "of +3 %", "mean n_max"
)
cat("| ", paste(columns, collapse = " | "), " |\n|---|---|", strrep("--:|", 8L), "\n", sep = "")
count <- 0L
for (name in names(noises)) {
  for (sd in c(0.01, 0.02, 0.03)) {
    still <- simulated(noises[[name]], sd, 0)
    risen <- simulated(noises[[name]], sd, margin_percent)
    shares <- list(
      false_fail = still[["fail"]], false_confirmed = still[["confirmed"]], found = risen[["confirmed"]],
      passed = still[["pass"]], missed = risen[["pass"]], blocks = still[["blocks"]],
      blocks_found = risen[["blocks"]], blocks_max = still[["blocks_max"]]
    )
    targets <- targets_of(name, sd)
    missed <- misses(shares, targets)
    count <- count + sum(missed)
    cat(table_row(name, sd, shares, targets, missed), "\n", sep = "")
  }
}
cat("\n", if (count == 0L) "All targets are met.\n" else sprintf("%d targets are missed.\n", count), sep = "")
quit(status = if (count == 0L) 0L else 1L)
