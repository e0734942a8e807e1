# SPDX-License-Identifier: Apache-2.0

# Campaigns of a gate: arms base, head and a reference workload, whose log ratios are chosen block by block.

gate_section <- function(looks, ...) {
  utils::modifyList(list(
    head = "head", base = "base", objective = "energy", margin_percent = 3, tolerance_percent = 1,
    looks = as.list(looks)
  ), list(...))
}

#' A campaign of a gate over a command
#'
#' @param d log ratio of head over base in each block, the same in every cell.
#' @param rig logarithm of what the reference workload took in each block, above its mean of 2 W.
#' @param looks blocks of the looks.
#' @param anchor log ratio of head over the anchor; NULL without one.
gate_campaign <- function(d, rig = 0 * d, looks = length(d), anchor = NULL, factors = list(LEVEL = c("1", "9")), ...) {
  arms <- c(base = 1, head = 1, reference = 2, if (!is.null(anchor)) c(anchor = 1))
  section <- gate_section(looks, reference = "reference", ...)
  if (!is.null(anchor)) section$anchor <- "anchor"
  done_campaign("command", "build", arms,
    factors = factors, blocks = length(d), gate = section, measures = function(cell, watts) {
      list(duration_s = 3, cpu_s = watts / 10, sent_bytes = 1000, received_bytes = NULL)
    }, power = function(row) {
      level <- 1 + 0.1 * row$block
      switch(row$arm,
        base = level, head = level * exp(d[row$block]), reference = 2 * exp(rig[row$block]),
        anchor = level * exp(d[row$block] - anchor[row$block])
      )
    }
  )
}

#' The same as far as so many runs of it have come
gate_until <- function(dir, runs) {
  edit_csv(file.path(dir, "status.csv"), function(rows) rows[seq_len(runs), ])
  gone <- utils::tail(list.files(file.path(dir, "runs"), full.names = TRUE), -runs)
  unlink(gone, recursive = TRUE)
  dir
}
