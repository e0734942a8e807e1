# SPDX-License-Identifier: Apache-2.0

# The statistics in plain words, for the report and the command line.

#' What the statistics of a campaign say, in sentences
#'
#' @param campaign from [read_campaign()].
#' @param statistics from [campaign_statistics()].
#' @return character vector, plain text: the family and its rule, one sentence per contrast of it, what cannot be
#'   tested, what is exploratory, flagged runs, invalid runs by reason, drawn and held parameters.
#' @export
statistics_sentences <- function(campaign, statistics) {
  contrasts <- statistics$contrasts
  c(
    if (!is.null(contrasts)) family_sentences(campaign, contrasts), outlier_sentence(statistics$outliers),
    invalid_sentence(campaign), parameter_sentences(campaign, statistics)
  )
}

family_sentences <- function(campaign, contrasts) {
  family <- contrasts[in_family == TRUE]
  design <- contrast_design(campaign)
  others <- nrow(contrasts) - nrow(family)
  tested <- sum(family$inference == "tested")
  untested <- sum(family$inference == "intervals_only")
  c(
    sprintf(
      "The primary family has %d %s, fixed before any run: %s. %d of them can be tested.", design$tests,
      plural("contrast", design$tests), rule_words(design), tested
    ),
    unique(family$words),
    if (untested > 0L) {
      sprintf(
        "%d of them %s intervals only: with fewer than %d blocks no sign-flip test can reach 0.05.", untested,
        if (untested == 1L) "has" else "have", least_blocks_attainable
      )
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
#' @return character vector, NA outside of the family.
#' @noRd
contrast_words <- function(found, campaign) {
  vapply(seq_len(nrow(found)), function(i) {
    one <- found[i]
    if (!one$in_family) {
      return(NA_character_)
    }
    model <- if (is_modelled(campaign, one$meter_id)) "in this model, " else ""
    sentence <- start_sentence("", paste0(model, contrast_claim(one), "."))
    paste(c(sentence, test_words(one), equivalence_words(one), resolution_words(one)), collapse = " ")
  }, "")
}

contrast_claim <- function(one) {
  subject <- sprintf("%s at %g bytes", transport_label(one$transport), one$payload_bytes)
  if (one$blocks_n == 0L) {
    reference <- transport_label(one$reference)
    return(sprintf("%s cannot be compared with %s by ratio: no load has a pair", subject, reference))
  }
  amount <- amount_words(one$dea_percent, one$dea_ci95_low, one$dea_ci95_high)
  over <- sprintf(
    "(mean over %d %s and %d %s)", one$loads_n, plural("load", one$loads_n), one$blocks_n, plural("block", one$blocks_n)
  )
  than <- sprintf("energy per megabit than %s", transport_label(one$reference))
  if (one$verdict %in% "not_told_apart") {
    paste(subject, "is not told apart from", paste0(transport_label(one$reference), ":"), amount, than, over)
  } else if (is.na(one$verdict)) {
    paste0(subject, ": ", amount, " ", than, " ", over)
  } else {
    paste(subject, "took", amount, than, over)
  }
}

# "26 % less [24 to 28 % less]"; the side is said of each end, because an interval may hold both.
amount_words <- function(percent, low, high) {
  side <- function(value) paste(number_text(signif(abs(value), 2)), "%", if (value >= 0) "less" else "more")
  if (is.na(low)) side(percent) else sprintf("%s [95 %%: %s to %s]", side(percent), side(low), side(high))
}

plural <- function(word, count) if (count == 1L) word else paste0(word, "s")

test_words <- function(one) {
  switch(one$inference,
    tested = sprintf(
      "Sign-flip p = %s, %s after Holm over %d %s.", p_text(one$p_value), p_text(one$p_holm), one$family_tests_n,
      plural("test", one$family_tests_n)
    ),
    attainable_only = sprintf(
      paste(
        "No test is made with %d blocks: the least p that one can give is %s, %s after Holm over %d %s; tests are made",
        "from %d blocks on."
      ),
      one$blocks_n, p_text(one$least_p), p_text(one$least_p_holm), one$family_tests_n,
      plural("test", one$family_tests_n), least_blocks_tested
    ),
    NULL
  )
}

p_text <- function(p) if (p < 1e-4) formatC(p, digits = 1, format = "e") else number_text(signif(p, 2))

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
  interval <- if (is.na(one$dp_a_ci95_low)) {
    ""
  } else {
    sprintf(" [%s to %s]", short(one$dp_a_ci95_low), short(one$dp_a_ci95_high))
  }
  sprintf(
    "At %d %s with runs below the meter's resolution there is no ratio: P_A of %s minus that of %s was %s W%s.",
    one$loads_by_p_a_n, plural("load", one$loads_by_p_a_n), transport_label(one$reference),
    transport_label(one$transport), short(one$dp_a_w), interval
  )
}

outlier_sentence <- function(outliers) {
  if (is.null(outliers)) {
    return(NULL)
  }
  rule <- sprintf(
    "more than %g robust standard deviations (1.4826 MAD) from the median of their cell", outlier_limit
  )
  count <- length(unique(outliers$run_id))
  if (count == 0L) {
    return(sprintf("No run is flagged as an outlier (%s).", rule))
  }
  sprintf(
    "%d %s (%s; tables/outliers.csv). %s in every number: none is dropped.", count,
    if (count == 1L) "run is flagged as an outlier" else "runs are flagged as outliers", rule,
    if (count == 1L) "It stays" else "They stay"
  )
}

#' Runs that do not count, by reason
#' @noRd
invalid_sentence <- function(campaign) {
  invalid <- invalid_runs(campaign)
  if (nrow(invalid) == 0L) {
    return("No finished run is invalid.")
  }
  counts <- sort(table(unique(invalid[, c("run_id", "code"), with = FALSE])$code), decreasing = TRUE)
  runs <- length(unique(invalid$run_id))
  sprintf(
    "%d finished %s not count, by reason: %s (tables/invalid_runs.csv).", runs,
    if (runs == 1L) "run does" else "runs do", paste(counts, plain_text(names(counts)), collapse = ", ")
  )
}

# Of all intervals of a campaign, in one clause.
parameter_words <- function(tables) {
  drawn <- tables$ea_uncertainty$u95_model_j_per_mbit
  if (any(!is.na(drawn))) {
    "in those of E_A the parameters that have a stated uncertainty are drawn, elsewhere they are held at their values."
  } else {
    "the parameters are held at their stated values."
  }
}

#' Which parameters of the device models the intervals hold, and which they do not
#' @noRd
parameter_sentences <- function(campaign, statistics) {
  parameters <- statistics$model_parameters
  if (is.null(parameters)) {
    return(NULL)
  }
  total <- statistics$ea_uncertainty
  vapply(unique(parameters$meter_id), function(id) {
    rows <- parameters[meter_id == id]
    known <- !is.null(total) && any(!is.na(total[meter_id == id, u95_model_j_per_mbit]))
    drawn <- if (known) rows[drawn == TRUE, parameter] else character()
    held <- setdiff(rows$parameter, drawn)
    paste0(
      "Device model ", plain_text(rows$device_model[1], 40L), " (meter ", plain_text(id, 40L), "): ",
      if (length(drawn) > 0L) {
        paste0(
          "intervals with model parameters draw ", paste(plain_text(drawn), collapse = ", "),
          " by their stated standard uncertainty; "
        )
      },
      if (length(held) > 0L) {
        paste0("held at their values, so in no interval: ", paste(plain_text(held), collapse = ", "), ".")
      } else {
        "none is held."
      }
    )
  }, "", USE.NAMES = FALSE)
}
