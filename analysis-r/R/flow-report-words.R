# SPDX-License-Identifier: Apache-2.0

# The summary in plain words. Every sentence about a modelled campaign says so;
# every sentence that ranks transports gives its interval's verdict, not the mean's.

#' What a megabit cost, and what transports differ by, load by load
#' @noRd
load_sentences <- function(campaign, tables, id) {
  if (all(is.na(tables$ea_summary[meter_id == id & transport != "null", ea_j_per_mbit_mean]))) {
    return(no_energy_sentence(campaign, id))
  }
  of_each_variant(campaign, tables, id, function(part, summary, model) {
    c(range_sentences(summary, model), delta_sentences(part$tables$delta_ea[meter_id == id], model, summary))
  })
}

#' What limits these numbers: the floor, the meter, the model, congestion control
#' @noRd
limit_sentences <- function(campaign, tables, id) {
  of_each_variant(campaign, tables, id, function(part, summary, model) {
    held <- c(held_back_sentence(summary), resolution_sentence(summary))
    c(
      floor_sentences(summary, model), floor_warning(summary, model), wake_ups_warning(summary, model),
      floor_empty_sentence(summary, model), constant_power_sentences(summary, model),
      under_pacing(held, part$campaign$variant), hollow_sentence(summary, model)
    )
  })
}

# Sentences of one meter, pacing by pacing; `sentences` gets the campaign and tables of a pacing, the meter's cells and
# the words that a sentence on them begins with.
of_each_variant <- function(campaign, tables, id, sentences) {
  parts <- lapply(by_variant(campaign, tables), function(part) {
    pacing <- part$campaign$variant
    words <- c(if (is_modelled(campaign, id)) "in this model, ", if (!is.null(pacing)) paste0("with ", pacing, ", "))
    model <- if (is.null(words)) "" else start_sentence("", paste(words, collapse = ""))
    sentences(part, part$tables$ea_summary[meter_id == id], model)
  })
  unlist(parts, use.names = FALSE)
}

#' Why a meter has no energy per megabit at all
#' @noRd
no_energy_sentence <- function(campaign, id) {
  chosen <- id
  rows <- campaign$results
  codes <- unique(rows[usable == TRUE & meter_id == chosen & transport != "null" & !is.na(ea_reason), ea_reason])
  reasons <- reason_table(campaign$contracts)
  meaning <- reasons$meaning[match(codes, reasons$code)]
  why <- ifelse(is.na(meaning), plain_text(codes), sub("\\.$", "", meaning))
  # A sentence that goes on with a word, not with a symbol such as P_A.
  why <- ifelse(grepl("^[A-Z][a-z ]", why), tolower_first(why), why)
  paste0(
    "No energy per megabit could be computed for this meter",
    if (length(codes) > 0L) paste0(": ", paste(why, collapse = "; ")), "."
  )
}

under_pacing <- function(sentences, pacing) {
  if (is.null(pacing) || is.null(sentences)) sentences else paste0("With ", pacing, ": ", tolower_first(sentences))
}

range_sentences <- function(summary, model) {
  cells <- with_drawn_intervals(summary)
  cells <- cells[transport != "null" & !is.na(ea_j_per_mbit_mean) & below_resolution_n == 0 & !hollow]
  vapply(sort(unique(cells$payload_bytes)), function(size) {
    rows <- cells[payload_bytes == size]
    low <- rows[which.min(ea_j_per_mbit_mean)]
    high <- rows[which.max(ea_j_per_mbit_mean)]
    ends <- unique(c(estimate_of_cell(low), estimate_of_cell(high)))
    start_sentence(model, sprintf(
      "a megabit in %g-byte messages cost %s%s above idle.", size, if (length(ends) > 1L) "from " else "",
      paste(ends, collapse = " to ")
    ))
  }, "")
}

estimate_of_cell <- function(row) {
  sprintf(
    "%s J (%s, %s Mb/s offered)", range_words(row$ea_j_per_mbit_mean, row$ea_drawn_low, row$ea_drawn_high),
    transport_label(row$transport), number_text(row$offered_rate_mbps)
  )
}

#' One sentence per size: at which loads each transport took less, more or shows no clear difference from UDP
#' @noRd
delta_sentences <- function(delta, model, summary = NULL) {
  rows <- delta[method == "ratio" & !is.na(difference_percent)]
  rows[, verdict := fifelse(is.na(difference_ci95_low), "single", fifelse(
    difference_ci95_low > 0, "more", fifelse(difference_ci95_high < 0, "less", "unclear")
  ))]
  sizes <- split(rows, by = "payload_bytes", sorted = TRUE)
  vapply(sizes, function(size) {
    transports <- split(size, by = "transport", sorted = TRUE)
    parts <- vapply(transports, function(one) {
      paste0(transport_label(one$transport[1]), " ", delta_parts(one), core_busy_note(one, summary))
    }, "")
    start_sentence(model, sprintf(
      "energy per megabit against UDP at %g bytes: %s.", size$payload_bytes[1], paste(parts, collapse = "; ")
    ))
  }, "", USE.NAMES = FALSE)
}

delta_parts <- function(rows) {
  parts <- vapply(intersect(c("less", "more", "unclear", "single"), rows$verdict), function(what) {
    part <- rows[verdict == what]
    loads <- load_words(part$offered_rate_mbps)
    switch(what,
      unclear = paste("no clear difference", loads),
      single = paste0("a single pair ", loads, ", so no verdict"),
      paste(span_words(abs(part$difference_percent), 2L), "%", what, loads)
    )
  }, "")
  paste(parts, collapse = ", ")
}

load_words <- function(rates_mbps) {
  most_listed <- 6L
  text <- number_text(sort(rates_mbps))
  if (length(text) > most_listed) {
    return(sprintf("at %d loads from %s to %s Mb/s", length(text), text[1], text[length(text)]))
  }
  paste("at", enumerated(text), "Mb/s")
}

floor_sentences <- function(summary, model) {
  rows <- summary[transport == "udp" & !is.na(floor_ratio) & !hollow]
  if (nrow(rows) > 0L) {
    start_sentence(model, sprintf(
      "the generator alone (same schedule, transport null) takes %s %% of the power that UDP adds over idle.",
      span_words(100 * rows$floor_ratio, 2L)
    ))
  }
}

# "3 of 8 cells".
part_of_cells <- function(cells, summary) sprintf("%d of %d cells", nrow(cells), nrow(summary[transport != "null"]))

place_words <- function(cell) {
  rate <- number_text(cell$offered_rate_mbps)
  sprintf("%s at %g bytes and %s Mb/s", transport_label(cell$transport), cell$payload_bytes, rate)
}

#' Warn where much of E_A is the generator's own
#' @noRd
floor_warning <- function(summary, model) {
  large <- floor_large_cells(summary)
  if (nrow(large) > 0L) {
    most <- large[which.max(floor_ratio)]
    start_sentence(model, sprintf(
      paste(
        "the generator floor takes over %g %% of P_A - P_I in %s (floor_large), most for %s: %s %%. There much of E_A",
        "is the sender's own work; compare E_A above the floor."
      ),
      100 * greatest_floor_ratio, part_of_cells(large, summary), place_words(most),
      number_text(signif(100 * most$floor_ratio, 2))
    ))
  }
}

#' Warn where null's senders had far more or fewer wake-ups than those of the runs that it is the floor of
#' @noRd
wake_ups_warning <- function(summary, model) {
  differ <- summary[transport != "null" & !is.na(wake_ups_differ_n) & wake_ups_differ_n > 0]
  if (nrow(differ) > 0L) {
    start_sentence(model, sprintf(
      paste(
        "wake-ups per message of runs and of their null run differ by more than a factor of %g in %s",
        "(floor_wake_ups_differ), in most runs for %s: the floor is kept, but E_A above the floor includes what the",
        "difference in wake-ups costs."
      ),
      greatest_wake_ups_factor, part_of_cells(differ, summary), place_words(differ[which.max(wake_ups_differ_n)])
    ))
  }
}

floor_empty_sentence <- function(summary, model) {
  words <- floor_empty_words(summary)
  if (length(words) > 0L) start_sentence(model, paste(words, collapse = " "))
}

#' Warn where E_A times rate stays constant over load
#'
#' P_A - P_I that does not grow with load means that E_A falls as 1 / load: that
#' is what a sender waiting in a busy loop or a wrong idle baseline looks like.
#' @noRd
constant_power_sentences <- function(summary, model) {
  least_decades <- 1
  greatest_spread <- 1.3
  rows <- summary[transport != "null" & below_resolution_n == 0 & !hollow & delta_p_w > 0]
  groups <- split(rows, by = c("payload_bytes", "transport"), sorted = TRUE)
  unlist(lapply(groups, function(group) {
    loads <- range(group$offered_rate_mbps)
    power <- range(group$delta_p_w)
    if (nrow(group) < 3L || log10(loads[2] / loads[1]) < least_decades || power[2] / power[1] > greatest_spread) {
      return(NULL)
    }
    start_sentence(model, sprintf(
      paste(
        "%s at %g bytes adds nearly the same power at every load (%s to %s W), so E_A falls as 1 over load:",
        "consistent with a busy-waiting sender or a wrong idle baseline. Run the workload pacer to find out which."
      ),
      transport_label(group$transport[1]), group$payload_bytes[1], short(power[1]), short(power[2])
    ))
  }), use.names = FALSE)
}

held_back_sentence <- function(summary) {
  rows <- held_back(summary)
  if (nrow(rows) > 0L) {
    least <- rows[which.min(achieved_ratio)]
    sprintf(
      paste(
        "In %s congestion control let less leave than was offered, least for %s: %s %% of the messages. The rest is",
        "not_sent, not lost; E_A counts what arrived."
      ),
      part_of_cells(rows, summary), place_words(least), number_text(signif(100 * least$achieved_ratio, 2))
    )
  }
}

resolution_sentence <- function(summary) {
  below <- summary[transport != "null" & below_resolution_n > 0]
  if (nrow(below) > 0L) {
    paste(
      part_of_cells(below, summary), "have runs below the meter's resolution: a cell with more than half of its runs",
      "below is an upper limit; all are compared by difference of P_A, not by ratio of E_A."
    )
  }
}

hollow_sentence <- function(summary, model) {
  outside <- summary[transport != "null" & hollow == TRUE]
  if (nrow(outside) > 0L) {
    start_sentence(model, paste(
      part_of_cells(outside, summary), "lie outside the device model's stated validity: drawn hollow, left out of",
      "envelope and differences."
    ))
  }
}

#' How sure: blocks, what the intervals are, what they are not
#' @noRd
certainty_sentences <- function(campaign, tables) {
  blocks <- blocks_of(campaign)
  check <- tables$ea_check
  least <- contrast_design(campaign)$least_blocks
  c(
    if (blocks < 2L) {
      "There is a single block: no interval can be given and no difference can be distinguished from chance."
    } else {
      sprintf(
        paste(
          "Intervals are 95 %% intervals over %d blocks (Student's t where no more is said), per cell and uncorrected",
          "for the number of cells: they are exploratory%s."
        ),
        blocks, if (blocks < least) sprintf(", and with fewer than %d blocks no test is made", least) else ""
      )
    },
    if (is_modelled(campaign)) {
      paste(
        "Power or radio is modelled.", parameter_words(tables),
        "A model can show frames, air time, cost of acknowledgements, loss and CPU ratios on this host; it",
        "cannot show absolute joules per megabit of a real device, rate adaptation or power states of a network card."
      )
    },
    if (nrow(check) > 0L) {
      sprintf(
        "An independent recomputation from the raw files agrees with %d of %d numbers of the results.",
        sum(check$agrees), nrow(check)
      )
    }
  )
}
