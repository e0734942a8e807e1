# SPDX-License-Identifier: Apache-2.0

# The report's first screen: the answer in a sentence, what it rests on, what would change it. Then Figure 1, what was
# compared, and load by load. How sure each of it is stands in the appendix.

#' @param figure the part of the page that shows Figure 1; it stands behind the answer.
#' @noRd
section_summary <- function(campaign, tables, figure = NULL) {
  family <- family_rows(tables)
  lead <- lead_sentences(campaign, tables, family)
  rests <- c(design_sentence(campaign), counts_sentence(campaign), lead[-1])
  if (is.null(lead)) lead <- "Nothing here is compared over all loads."
  change <- change_sentences(campaign, tables, family)
  tag$section(
    id = "summary", tag$h2("Answer"), tag$p(class = "lead", prose(lead[1])),
    tag$h3("What it rests on"), tag$p(prose(paste(rests, collapse = " "))),
    if (length(change) > 0L) list(tag$h3("What would change it"), tag$ul(lapply(prose(change), tag$li))),
    figure, if (nrow(family) > 0L) family_part(family),
    by_meter(campaign, tables, "Load by load: exploratory", function(id) load_sentences(campaign, tables, id))
  )
}

#' What could turn the answer, a line each: too few blocks, the sender's own share, resolution, a model
#' @noRd
change_sentences <- function(campaign, tables, family) {
  id <- campaign$meters$meter_id[1]
  cells <- tables$ea_summary[meter_id == id & transport != "null"]
  large <- nrow(floor_large_cells(cells))
  below <- sum(cells$below_resolution_n > 0L)
  least <- contrast_design(campaign)$least_blocks
  of_cells <- function(count) sprintf("%d of %s", count, cell_words(nrow(cells)))
  c(
    if (nrow(family) > 0L && !any(family$inference == "tested")) {
      sprintf("More blocks: there are %d; significance tests need %d or more.", blocks_of(campaign), least)
    },
    if (large > 0L) {
      sprintf(
        paste(
          "A cheaper sender: its own work (the floor) is over %g %% of P_A - P_I in %s; Figure 1 also shows E_A above",
          "the floor."
        ),
        100 * greatest_floor_ratio, of_cells(large)
      )
    },
    if (below > 0L) sprintf("A finer meter: %s have runs below its resolution.", of_cells(below)),
    if (any(cells$hollow)) {
      sprintf("A device model valid here: %s lie outside its stated range.", of_cells(sum(cells$hollow)))
    },
    if (is_modelled(campaign)) "A real device, radio and meter: read shapes and ratios here, not absolute joules."
  )
}

#' What limits the numbers, what else to know and how sure: the statistics, for the appendix
#' @noRd
section_appendix <- function(campaign, tables, figures, drawn) {
  later <- is_diagnostic(figure_ids(figures))
  tag$section(
    id = "appendix", tag$h2("Appendix: statistics"),
    by_meter(campaign, tables, "What limits these numbers", function(id) limit_sentences(campaign, tables, id)),
    tag$h3("What else to know"), tag$ul(lapply(beside_sentences(campaign, tables), tag$li)),
    tag$h3("How sure"), sentence_list(sure_sentences(campaign, tables)),
    diagnostics_part(drawn[later], "Pacing, power over time, drift, power model, PHY rates")
  )
}

# The main comparisons, each sentence once.
family_rows <- function(tables) {
  rows <- tables$contrasts
  if (is.null(rows)) data.table() else unique(rows[in_family == TRUE & !is.na(words)], by = "words")
}

family_part <- function(family) {
  list(
    tag$h3(paste0(
      "What is compared over all loads",
      if (any(!is.na(family$difference_ci95_low))) ": 95 % intervals over blocks"
    )),
    tag$ul(class = "verdicts", lapply(seq_len(nrow(family)), function(i) verdict_item(family[i]))),
    folded("Tests, p-values and what was left out", tag$ul(lapply(prose(family$words), tag$li)), printed = FALSE)
  )
}

verdict_item <- function(one) {
  told <- verdict_label(one)
  tag$li(
    tag$span(class = paste("verdict", told[["kind"]]), told[["words"]]), " ",
    tag$strong(sprintf("%s, %g bytes", transport_label(one$transport), one$payload_bytes), .noWS = "after"),
    paste0(": ", prose(contrast_side_words(one)), ".")
  )
}

contrast_side_words <- function(one) {
  reference <- transport_label(one$reference)
  if (one$blocks_n == 0L) {
    paste0("no load has a ratio to ", reference, power_side_words(one))
  } else {
    side_words(one$difference_percent, one$difference_ci95_low, one$difference_ci95_high, paste(" than", reference))
  }
}

# Where power is compared instead: "; P_A 0.0138 W more [0.00998 to 0.0175]".
power_side_words <- function(one) {
  if (is.na(one$difference_p_a_w)) {
    return("")
  }
  ends <- c(one$difference_p_a_ci95_low, one$difference_p_a_ci95_high)
  if (anyNA(ends) || prod(ends) > 0) {
    interval <- if (anyNA(ends)) "" else sprintf(" [%s]", paste(short(sort(abs(ends))), collapse = " to "))
    sprintf("; P_A %s W %s%s", short(abs(one$difference_p_a_w)), more_or_less(one$difference_p_a_w), interval)
  } else {
    sprintf("; P_A between %s W less and %s W more", short(-ends[1]), short(ends[2]))
  }
}

#' The answer in plain words: who took least, by how much the others differ, how sure, where little is known
#'
#' @param family the main comparisons.
#' @return sentences, who took least first; NULL where nothing is compared.
#' @noRd
lead_sentences <- function(campaign, tables, family) {
  rows <- if (nrow(family) > 0L) family[blocks_n > 0L]
  if (NROW(rows) == 0L) {
    return(NULL)
  }
  # An interval's verdict, never the mean's.
  rows[, side := fcase(
    verdict %in% "less", "less", verdict %in% "more", "more", verdict %in% "no_clear_difference", "open",
    difference_ci95_low %in% NA, "open", difference_ci95_low > 0, "more", difference_ci95_high < 0, "less",
    default = "open"
  )]
  least_blocks <- contrast_design(campaign)$least_blocks
  certain <- c(lead_claim(campaign, rows), lead_certainty(rows, least_blocks))
  # Numbers of which none is tested never stand without that.
  if (!any(rows$inference == "tested")) certain <- paste(certain, collapse = " ")
  c(certain, lead_doubt(campaign, tables, rows$meter_id[1]))
}

lead_claim <- function(campaign, rows) {
  references <- unique(rows$reference)
  pairs <- split(rows, by = c("transport", "reference"))
  first <- if (length(references) == 1L && all(rows$inference == "tested") && compares_all(campaign, rows)) {
    c(more = "least", less = "most")[unique(rows$side)]
  }
  opening <- if (length(references) > 1L) {
    "energy per megabit over all loads"
  } else if (length(first) == 1L && !is.na(first)) {
    sprintf("%s took the %s energy per megabit over all loads%s", transport_label(references), first, size_words(rows))
  } else {
    first <- NULL
    paste("energy per megabit over all loads, against", transport_label(references))
  }
  sized <- is.null(first) && uniqueN(rows$payload_bytes) > 1L
  mixed <- any(rows$inference == "tested")
  parts <- vapply(pairs, lead_part, "", several = length(references) > 1L, sized = sized, mixed = mixed)
  model_sentence(campaign, rows$meter_id[1], opening, ": ", paste(parts, collapse = "; "), ".")
}

size_words <- function(rows) {
  sizes <- unique(rows$payload_bytes)
  if (length(sizes) > 1L) paste0(", at ", enumerated(number_text(sizes)), " bytes") else ""
}

# Whether every other transport is set against the reference, at every size.
compares_all <- function(campaign, rows) {
  sent <- unique(campaign$plan[
    status != "superseded" & !transport %in% c("null", rows$reference[1]), c("transport", "payload_bytes"),
    with = FALSE
  ])
  all(paste(sent$transport, sent$payload_bytes) %in% paste(rows$transport, rows$payload_bytes))
}

# "QUIC 38 and 44 % more", a mean for each size; what is not tested has its interval and no verdict.
#
# `sized`: sizes are to be named, as nothing before does; `mixed`: some of the family are tested.
lead_part <- function(rows, several, sized, mixed) {
  tested <- rows[inference == "tested"]
  told <- vapply(intersect(c("less", "more", "open"), tested$side), function(what) {
    part <- tested[side == what]
    sizes <- if (sized || nrow(part) < nrow(rows)) byte_words(part) else ""
    means <- unique(number_text(signif(abs(part$difference_percent), 2)))
    span <- if (length(means) > 2L) paste(range(as.numeric(means)), collapse = " to ") else enumerated(means)
    if (what == "open") paste0("no clear difference", sizes) else paste0(span, " % ", what, sizes)
  }, "", USE.NAMES = FALSE)
  against <- if (several) paste(" against", transport_label(rows$reference[1])) else ""
  told <- c(told, untested_words(rows[inference != "tested"], mixed))
  paste0(transport_label(rows$transport[1]), against, " ", enumerated(told))
}

byte_words <- function(rows) paste(" at", enumerated(number_text(rows$payload_bytes)), "bytes")

# "8.9 to 14.1 % more (mean 11.5 %) at 64 bytes" for each size.
untested_words <- function(rows, mixed) {
  vapply(seq_len(nrow(rows)), function(i) {
    one <- rows[i]
    single <- is.na(one$difference_ci95_low)
    amount <- if (single) {
      paste0(short(abs(one$difference_percent)), " % ", more_or_less(one$difference_percent))
    } else {
      side_words(one$difference_percent, one$difference_ci95_low, one$difference_ci95_high)
    }
    paste0(amount, byte_words(one), if (single) " (one block: no verdict)" else if (mixed) " (not tested)")
  }, "")
}

lead_certainty <- function(rows, least_blocks) {
  tested <- sum(rows$inference == "tested")
  blocks <- range(rows$blocks_n)
  count <- if (blocks[1] == blocks[2]) blocks[1] else paste(blocks[1], "to", blocks[2])
  if (tested == 0L) {
    few <- if (blocks[2] == 1L) "repetition (block) is" else "repetitions (blocks) are"
    sprintf("%s %s too few for a significance test; %d are needed.", count, few, least_blocks)
  } else if (tested < nrow(rows)) {
    sprintf("%d of %d comparisons are tested, the others have too few repetitions (blocks).", tested, nrow(rows))
  } else {
    sprintf(
      "%s tested over %s blocks, corrected for their number.",
      if (tested == 1L) "This comparison is" else paste("All", tested, "comparisons are"), count
    )
  }
}

# The loads at which most intervals of single cells hold no difference.
lead_doubt <- function(campaign, tables, id) {
  chosen <- id
  delta <- by_variant(campaign, tables)[[1]]$tables$delta_ea
  rows <- delta[meter_id == chosen & method == "ratio" & !is.na(difference_ci95_low)]
  loads <- rows[, list(open = mean(difference_ci95_low <= 0 & difference_ci95_high >= 0)), by = list(offered_rate_mbps)]
  doubtful <- loads$offered_rate_mbps[loads$open > 0.5]
  if (nrow(loads) < 2L || length(doubtful) == 0L) {
    NULL
  } else if (length(doubtful) == nrow(loads)) {
    "At single loads most pairs show no clear difference."
  } else {
    sprintf("%s most pairs show no clear difference.", start_sentence("", load_words(doubtful)))
  }
}

#' What a reader may take from one contrast, before its sentence
#' @noRd
verdict_label <- function(one) {
  words <- fcase(
    one$blocks_n == 0L, "no ratio", one$inference != "tested", "not tested", one$verdict %in% c("less", "more"),
    one$verdict,
    default = "no clear difference"
  )
  kind <- switch(words, "no ratio" = , "not tested" = "untested", "no clear difference" = "untold", words)
  c(kind = kind, words = words)
}

#' Who sent what at which loads
#' @noRd
design_sentence <- function(campaign) {
  plan <- campaign$plan[status != "superseded"]
  sent <- plan[transport != "null"]
  if (nrow(sent) == 0L) {
    return("Only the null transport ran, so there is a floor and no E_A.")
  }
  profile <- application_of(campaign)
  transports <- transport_label(levels(droplevels(transport_factor(sent$transport))))
  paste0(
    enumerated(transports), " sent messages of ", enumerated(number_text(sort(unique(sent$payload_bytes)))), " bytes ",
    if (!is.na(profile)) paste0("(profile ", plain_text(profile), ") "), load_words(unique(sent$offered_rate_mbps)),
    if (any(plan$transport == "null")) "; null ran the same schedules and sent no packets", "."
  )
}

#' Publication, drift, flagged and invalid runs: a sentence each, with a link to more
#' @noRd
beside_sentences <- function(campaign, tables) {
  link <- function(id, words) tag$a(href = paste0("#", id), words)
  published <- published_sentence(tables$side_by_side)
  outliers <- outlier_sentence(tables$outliers)
  c(
    if (!is.null(published)) list(list(prose(published), " ", link("published", "Side by side"))),
    lapply(prose(c(
      rig_sentences(campaign, tables$rig_effects),
      drift_sentences(campaign, tables$ea_drift, tables$ea_drift_sessions), outliers
    )), list),
    list(list(
      invalid_sentence(campaign), if (nrow(tables$invalid_runs) > 0L) list(" ", link("invalid", "Every reason"))
    ))
  )
}

published_sentence <- function(rows) {
  if (is.null(rows)) {
    return(NULL)
  }
  met <- rows[!is.na(ours_low)]
  ratios <- met[quantity == "difference_percent" & relation == "is"]
  ratio_words <- if (nrow(ratios) > 0L) {
    paste0(
      " Energy per megabit against ", transport_label(ratios$reference), "'s (+: more): ",
      transport_label(ratios$transport), ifelse(is.na(ratios$application), "", paste0(", ", ratios$application)),
      ", published ", published_text(ratios), ", here ", ifelse(ratios$in_this_model %in% TRUE, "in this model ", ""),
      ours_text(ratios), "."
    )
  }
  sweeps <- met[!is.na(contrast_percent)]
  sweep_words <- vapply(seq_len(nrow(sweeps)), function(i) sweep_sentence(sweeps[i]), "")
  paste(c(sprintf(
    paste(
      "%d of %d published values have a counterpart here (same transport, nearest size and load); none is scaled, and",
      "what differs in the setup is named beside each."
    ),
    length(unique(met$value_id)), length(unique(rows$value_id))
  ), fitted_words(met), unique(ratio_words), unique(sweep_words)), collapse = "")
}

fitted_words <- function(met) {
  count <- length(unique(met$value_id[met$fitted %in% TRUE]))
  if (count > 0L) {
    sprintf(" Agreement in %d of them is by construction: this link was fitted to the publication.", count)
  }
}

# What was published of a whole sweep beside the contrast over all loads.
sweep_sentence <- function(one) {
  sprintf(
    " %s against %s at %g bytes over all loads: published %s less, here %s%s.", transport_label(one$transport),
    transport_label(one$reference), one$payload_bytes, printed_text(one),
    if (one$in_this_model %in% TRUE) "in this model " else "",
    side_words(one$contrast_percent, one$contrast_ci95_low, one$contrast_ci95_high)
  )
}

#' Blocks, intervals, the family's rule, parameters of the model
#' @noRd
sure_sentences <- function(campaign, tables) {
  c(
    certainty_sentences(campaign, tables),
    if (!is.null(tables$contrasts)) family_sentences(campaign, tables$contrasts),
    parameter_sentences(campaign, tables)
  )
}

#' The sections that a report of flows has of its own
#' @noRd
flow_sections <- function(campaign, tables, figures, drawn, first) {
  floors <- any(startsWith(figure_ids(figures), "floor"))
  list(
    answer = section_summary(campaign, tables, first),
    before = list(
      section_table_iv(campaign, tables),
      if (!is.null(tables$pacer_verdict)) section_pacer(campaign, tables$pacer_verdict),
      section_fairness(campaign, tables)
    ),
    after = section_published(campaign, tables), appendix = section_appendix(campaign, tables, figures, drawn),
    figures_note = if (!floors) {
      "There is no figure of the generator floor: no mini-block of this campaign has a usable null run."
    }
  )
}
