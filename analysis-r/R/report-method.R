# SPDX-License-Identifier: Apache-2.0

# How the numbers of a report came about, and what its words mean.

design_method <- paste(
  "A mini-block holds every arm at one cell (one combination of all factors but the arm), back to back in random",
  "order; a block holds every cell once. The block is the unit of replication; pairs are formed only inside a",
  "mini-block."
)

energy_method <- c(
  paste(
    "P_A is the mean power over the window of a run, P_I the line through the idle windows before and after it, at the",
    "middle of that window; idle is the state in which only the start of the work is missing."
  ),
  paste(
    "Work until it is done: E_d is the integral of P - P_I over the window, E_t that of P; the tail after it has an",
    "energy of its own. Energy per work is E_d over the work."
  ),
  design_method,
  paste(
    "Arms are compared over all cells in at most six main comparisons: sign-flip test over blocks and Holm's",
    "correction, from 8 blocks on. Everything by cell has an interval and no test: it is exploratory."
  ),
  "u95 is the metering uncertainty of one run; most of it is common to all runs, so it is a column of its own."
)

# Of a simulation that tells no power.
unpowered_method <- c(
  paste(
    "A program simulates both ends and what lies between them, each run in a time of its own. Nothing tells the power",
    "of a host: nothing is metered, nothing is idle, and there is no energy per work. Work and measures are those of",
    "the window of a run."
  ),
  design_method,
  paste(
    "Chance is the same for all arms of a mini-block; blocks differ in it, and in nothing else. Every difference is",
    "one of pairs, by cell, with a 95 % t interval over blocks and no test: it is exploratory."
  )
)

flagged_method <- paste(
  "Flagged runs (outliers) stay in every number. A run is left out only for a broken rule of measurement, with a",
  "coded reason, and its mini-block is repeated."
)

section_method <- function(campaign) {
  tag$section(
    id = "method", tag$h2("Method"),
    tag$ul(lapply(c(method_of(campaign), flagged_method), tag$li)),
    tag$p(
      "In full: measurement-protocol.md, generator-floor.md, uncertainty.md and statistics.md in docs/method of ",
      "netjoule's sources."
    )
  )
}

method_of <- function(campaign) {
  if (is_unpowered(campaign)) unpowered_method else of_load(campaign, "method", function() energy_method)()
}

section_glossary <- function(campaign) {
  glossary <- glossary_table(campaign$contracts)
  if (nrow(glossary) == 0L) {
    return(NULL)
  }
  term <- ifelse(glossary$unit == "", glossary$term, paste0(glossary$term, " (", glossary$unit, ")"))
  meaning <- ifelse(glossary$column == "", glossary$meaning, paste0(glossary$meaning, " Column ", glossary$column, "."))
  tag$section(
    id = "glossary", tag$h2("Glossary"),
    folded(sprintf("All %d terms and columns", length(term)), definition_list(term, meaning), printed = FALSE)
  )
}
