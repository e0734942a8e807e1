# SPDX-License-Identifier: Apache-2.0

# The statistics in plain words, for the report and the command line.

#' The family, its rule, what of it cannot be tested and why, what is exploratory
#' @noRd
family_sentences <- function(campaign, contrasts) {
  family <- contrasts[in_family == TRUE]
  design <- contrast_design(campaign)
  without <- is.na(contrasts$difference_ci95_low) & is.na(contrasts$difference_p_a_ci95_low)
  others <- sum(!contrasts$in_family & !without)
  tested <- sum(family$inference == "tested")
  few <- sum(family$inference == "intervals_only" & family$blocks_n > 0L)
  none <- sum(family$blocks_n == 0L)
  c(
    sprintf(
      "%d main %s fixed before any run: %s. %d of them can be tested.", design$tests,
      if (design$tests == 1L) "comparison was" else "comparisons were", rule_words(design), tested
    ),
    if (few > 0L) {
      sprintf(
        "%d of them %s not tested: fewer than %d repetitions (blocks) have a pair at every load that counts.", few,
        if (few == 1L) "is" else "are", least_blocks_attainable
      )
    },
    if (none > 0L) {
      sprintf("%d of them %s a ratio at no load, so no interval either.", none, if (none == 1L) "has" else "have")
    },
    sprintf(
      paste(
        "Everything else is exploratory: %sper-cell results and envelopes have intervals, each for itself and",
        "uncorrected, and no test."
      ),
      if (others > 0L) sprintf("%d further %s, ", others, plural("contrast", others)) else ""
    )
  )
}

rule_words <- function(design) {
  if (design$named) {
    return("the workload names them")
  }
  paste0(
    "pairs of transports, those with ", transport_label(design$contrasts$reference[1]), " first, each at every size, ",
    "in the workload's order",
    if (design$others > 0L) sprintf("; the first %d of %d", design$tests, design$tests + design$others) else ""
  )
}

#' One sentence per contrast of the family
#'
#' @param found data.table of contrasts with tests.
#' @param least_blocks from so many blocks on there are tests.
#' @return character vector, NA outside of the family.
#' @noRd
contrast_words <- function(found, campaign, least_blocks) {
  vapply(seq_len(nrow(found)), function(i) {
    one <- found[i]
    if (!one$in_family) {
      return(NA_character_)
    }
    paste(c(
      model_sentence(campaign, one$meter_id, contrast_claim(one), "."), test_words(one, least_blocks),
      open_sign_words(one), equivalence_words(one), core_busy_words(one), resolution_words(one),
      missing_load_words(one), above_floor_words(one)
    ), collapse = " ")
  }, "")
}

contrast_claim <- function(one) {
  subject <- sprintf("%s at %g bytes", transport_label(one$transport), one$payload_bytes)
  if (one$blocks_n == 0L) {
    reference <- transport_label(one$reference)
    return(sprintf("%s cannot be compared with %s by ratio: no load has one", subject, reference))
  }
  amount <- if (drawn_wider(one)) {
    amount_words(
      one$difference_percent, one$difference_model_ci95_low, one$difference_model_ci95_high, ", model parameters drawn"
    )
  } else {
    amount_words(one$difference_percent, one$difference_ci95_low, one$difference_ci95_high)
  }
  planned <- sum(unlist(one[, load_counts, with = FALSE]))
  over <- sprintf(
    "(mean over %s%d %s and %d %s)", if (one$loads_n < planned) sprintf("%d of ", one$loads_n) else "", planned,
    plural("load", planned), one$blocks_n, plural("block", one$blocks_n)
  )
  than <- sprintf("energy per megabit than %s", transport_label(one$reference))
  if (one$verdict %in% "no_clear_difference") {
    paste(subject, "shows no clear difference from", paste0(transport_label(one$reference), ":"), amount, than, over)
  } else if (is.na(one$verdict)) {
    paste0(subject, ": ", amount, " ", than, " ", over)
  } else {
    paste(subject, "took", amount, than, over)
  }
}

# An interval with drawn parameters is shown beside or instead of the blocks' where it is this much wider.
least_told_widening <- 1.05

drawn_wider <- function(rows) {
  width <- function(name) rows[[paste0(name, "_high")]] - rows[[paste0(name, "_low")]]
  (width("difference_model_ci95") > least_told_widening * width("difference_ci95")) %in% TRUE
}

# "26 % less [95 %: 24 to 28 %]"; an interval that holds both sides names them: "[95 %: 1 % less to 3 % more]".
amount_words <- function(percent, low, high, holds = "") {
  size <- function(value) paste(number_text(signif(abs(value), 2)), "%")
  side <- function(value) paste(size(value), more_or_less(value))
  if (is.na(low)) {
    return(side(percent))
  }
  ends <- if (low * high > 0) {
    paste(sub(" %", "", size(if (low > 0) low else high)), "to", size(if (low > 0) high else low))
  } else {
    paste(side(low), "to", side(high))
  }
  sprintf("%s [95 %%%s: %s]", side(percent), holds, ends)
}

# Where the planned loads of a contrast are: they add up.
load_counts <- c("loads_n", "loads_by_p_a_n", "loads_hollow_n", "loads_no_ea_n", "loads_incomplete_n")

missing_load_words <- function(one) {
  why <- c(
    loads_hollow_n = "outside the device model's validity", loads_no_ea_n = "with a run without an E_A above 0",
    loads_incomplete_n = "without a pair in every block that counts"
  )
  count <- unlist(one[, names(why), with = FALSE])
  missing <- count[count > 0L]
  if (length(missing) > 0L) {
    parts <- paste(missing, ifelse(missing == 1L, "load", "loads"), why[names(missing)])
    paste0("Left out: ", enumerated(parts), ".")
  }
}

# A test that finds a difference while the model's own uncertainty does not.
open_sign_words <- function(one) {
  open <- isTRUE(one$difference_model_ci95_low * one$difference_model_ci95_high < 0)
  if (one$verdict %in% c("less", "more") && open) {
    paste(
      "The test does not include the uncertainty of the device model's parameters; with it, either transport may take",
      "less."
    )
  }
}

core_busy_words <- function(one) {
  count <- one$loads_core_busy_n
  if (count == 0L) {
    return(NULL)
  }
  without <- one$difference_without_core_busy_percent
  sprintf(
    "At %d %s a sender, or that of a null run, was over 90 %% of a core busy (floor_core_busy); without %s: %s.",
    count, plural("load", count),
    if (count == 1L) "it" else "them", if (is.na(without)) "no load is left" else amount_words(without, NA, NA)
  )
}

# Of one size against UDP: which of the loads have a full core, by the codes of the cells' floors.
core_busy_note <- function(delta, summary) {
  if (is.null(summary)) {
    return(NULL)
  }
  busy <- summary[payload_bytes == delta$payload_bytes[1] & grepl("floor_core_busy", floor_reason, fixed = TRUE)]
  arms <- c(delta$transport, delta$reference)
  loads <- intersect(delta$offered_rate_mbps, busy[transport %in% arms, offered_rate_mbps])
  if (length(loads) > 0L) paste0(" (a sender over 90 % of a core busy ", load_words(loads), ")")
}

above_floor_words <- function(one) {
  if (one$loads_above_floor_n == 0L) {
    return(NULL)
  }
  amount <- amount_words(
    one$difference_above_floor_percent, one$difference_above_floor_ci95_low, one$difference_above_floor_ci95_high
  )
  count <- one$loads_above_floor_n
  ends <- unique(number_text(c(one$above_floor_from_mbps, one$above_floor_to_mbps)))
  sprintf(
    "Above the generator floor, exploratory: %s, over the %d %s (%s Mb/s) at which every run resolves it; %s %s.",
    amount, count, plural("load", count), paste(ends, collapse = " to "), "E_A there:",
    amount_words(one$difference_at_these_loads_percent, NA, NA)
  )
}

test_words <- function(one, least_blocks) {
  switch(one$inference,
    tested = sprintf(
      "Sign-flip p = %s, %s after Holm over %d %s.", p_text(one$p_value), p_text(one$p_holm), one$family_tests_n,
      plural("test", one$family_tests_n)
    ),
    attainable_only = sprintf(
      paste(
        "%d repetitions (blocks) are too few for a significance test: the least p that they can give is %s, %s after",
        "Holm over %d %s; %d are needed."
      ),
      one$blocks_n, p_text(one$least_p), p_text(one$least_p_holm), one$family_tests_n,
      plural("test", one$family_tests_n), least_blocks
    ),
    NULL
  )
}

equivalence_words <- function(one) {
  if (is.na(one$equivalence)) {
    return(NULL)
  }
  verdict <- if (one$equivalence == "equivalent") "Equivalent" else "Not shown to be equivalent"
  sprintf(
    "%s within a margin of %s %% (two one-sided t tests, p = %s after Holm).", verdict,
    number_text(one$margin_percent), p_text(one$p_equivalence_holm)
  )
}

resolution_words <- function(one) {
  if (one$loads_by_p_a_n == 0L) {
    return(NULL)
  }
  sprintf(
    "At %d %s with runs below the meter's resolution there is no ratio: P_A of %s minus that of %s was %s.",
    one$loads_by_p_a_n, plural("load", one$loads_by_p_a_n), transport_label(one$transport),
    transport_label(one$reference),
    interval_text(one$difference_p_a_w, one$difference_p_a_ci95_low, one$difference_p_a_ci95_high)
  )
}

# Which intervals of a modelled campaign include more than the scatter of runs.
parameter_words <- function(tables) {
  cells <- tables$ea_uncertainty
  meters <- unique(cells$meter_id[!is.na(cells$ea_total_ci95_low)])
  drawn <- any(!is.na(tables$contrasts$difference_model_ci95_low))
  if (length(meters) == 0L && !drawn) {
    return("No interval includes the uncertainty of the meter or of the model's parameters.")
  }
  whose <- if (length(setdiff(cells$meter_id, meters)) > 0L) {
    paste0(" at meter ", paste(plain_text(meters, 40L), collapse = ", "))
  }
  paste(c(
    if (length(meters) > 0L) {
      paste0(
        "Intervals of E_A by cell", whose, " include the uncertainty of the meter and of the model's parameters ",
        "beside run-to-run scatter."
      )
    },
    if (drawn) {
      paste(
        "Intervals of contrasts leave out the meter's uncertainty, whose common part cancels in a ratio, and include",
        "that of model parameters only where this is said: there it widens them by more than 5 %."
      )
    },
    "All other intervals of means show only run-to-run scatter."
  ), collapse = " ")
}

held_reasons <- c(
  no_stated_uncertainty = "no stated uncertainty", nothing_to_draw = "value or uncertainty is 0",
  unknown_term = "no known term of the device stream", no_stream = "no device stream",
  stream_unreadable = "the device stream cannot be read",
  no_covered_run = "the device stream covers no run", several_models = "one of several device models"
)

#' Which parameters of the device models the intervals include, and which they do not
#' @noRd
parameter_sentences <- function(campaign, statistics) {
  parameters <- statistics$model_parameters
  if (is.null(parameters)) {
    return(NULL)
  }
  of_meters <- vapply(split(parameters, by = c("meter_id", "device_model")), function(rows) {
    drawn <- rows[drawn == TRUE]
    held <- rows[drawn == FALSE, list(names = paste(plain_text(parameter), collapse = ", ")), by = reason]
    paste0(
      "Device model ", plain_text(rows$device_model[1], 40L), " (meter ", plain_text(rows$meter_id[1], 40L), "): ",
      if (nrow(drawn) > 0L) {
        paste0(
          "intervals with model parameters draw ", paste(plain_text(drawn$parameter), collapse = ", "),
          " by their stated standard uncertainty; "
        )
      },
      if (nrow(held) > 0L) {
        words <- paste0(held$names, " (", held_reasons[held$reason], ")")
        paste0("held at their values, so in no interval: ", paste(words, collapse = "; "), ".")
      } else {
        "none is held."
      },
      uncovered_words(drawn)
    )
  }, "", USE.NAMES = FALSE)
  c(of_meters, held_sentences(statistics))
}

uncovered_words <- function(drawn) {
  if (any(drawn$runs_uncovered_n > 0L)) {
    sprintf(
      " %d of its runs are not covered by its device stream: intervals of their cells do not include its parameters.",
      drawn$runs_uncovered_n[1]
    )
  }
}

# Names of a meter's parameters that its intervals hold at their values; NULL where none is, or no model is recorded.
held_names <- function(parameters, id) {
  if (is.null(parameters)) {
    return(NULL)
  }
  held <- parameters$parameter[parameters$meter_id == id & !parameters$drawn]
  most_named <- 4L
  more <- length(held) - most_named + 1L
  if (more > 1L) held <- c(held[seq_len(most_named - 1L)], paste(more, "more"))
  if (length(held) > 0L) plain_text(held, 40L)
}

# What stands over a table whose intervals draw parameters of a meter's model.
held_words <- function(rows, parameters, id) {
  intervals <- intersect(c("ea_total_ci95_low", "difference_model_ci95_low"), names(rows))
  if (length(intervals) == 0L) {
    return(NULL)
  }
  of_meter <- rows[rows$meter_id == id]
  drawn <- any(!is.na(of_meter$ea_total_ci95_low)) || any(drawn_wider(of_meter))
  held <- held_names(parameters, id)
  if (drawn && length(held) > 0L) {
    paste0("Model parameters of meter ", plain_text(id, 40L), " are drawn, but ", paste(held, collapse = ", "), ". ")
  }
}
