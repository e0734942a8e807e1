# SPDX-License-Identifier: Apache-2.0

# The report's summary: what was tested first, then what is exploratory, then what stands beside it, a sentence each.

section_summary <- function(campaign, tables) {
  family <- family_rows(tables)
  tag$section(
    id = "summary", tag$h2("Summary"), tag$p(class = "lead", design_sentence(campaign)),
    tag$p(counts_sentence(campaign)),
    if (nrow(family) > 0L) {
      list(tag$h3("What is compared over all loads"), tag$ul(class = "verdicts", lapply(
        seq_len(nrow(family)), function(i) verdict_item(family[i])
      )))
    },
    by_meter(campaign, "Load by load: exploratory", function(id) load_sentences(campaign, tables, id)),
    by_meter(campaign, "What limits these numbers", function(id) limit_sentences(campaign, tables, id)),
    tag$h3("What else to know"), tag$ul(lapply(beside_sentences(campaign, tables), tag$li)),
    tag$h3("How sure"), tag$ul(lapply(sure_sentences(campaign, tables), tag$li))
  )
}

# The primary family, each sentence once.
family_rows <- function(tables) {
  rows <- tables$contrasts
  if (is.null(rows)) data.table() else unique(rows[in_family == TRUE & !is.na(words)], by = "words")
}

verdict_item <- function(one) {
  told <- verdict_label(one)
  tag$li(tag$span(class = paste("verdict", told[["kind"]]), told[["words"]]), " ", one$words)
}

#' What a reader may take from one contrast, before its sentence
#' @noRd
verdict_label <- function(one) {
  if (one$blocks_n == 0L) {
    c(kind = "untested", words = "no ratio")
  } else if (one$inference != "tested") {
    c(kind = "untested", words = "not tested")
  } else if (one$verdict %in% c("less", "more")) {
    c(kind = one$verdict, words = one$verdict)
  } else {
    c(kind = "untold", words = "not told apart")
  }
}

# Sentences of each meter as a list, under its name where there are several; nothing where none has any.
by_meter <- function(campaign, heading, sentences) {
  ids <- campaign$meters$meter_id
  several <- length(ids) > 1L
  parts <- lapply(ids, function(id) {
    told <- sentences(id)
    if (length(told) > 0L) {
      list(
        if (several) tag$h4(paste0(meter_title(campaign, id), " (meter ", id, ")")),
        tag$ul(lapply(told, tag$li))
      )
    }
  })
  if (any(lengths(parts) > 0L)) list(tag$h3(heading), parts)
}

#' Who sent what at which loads
#' @noRd
design_sentence <- function(campaign) {
  plan <- campaign$plan[status != "superseded"]
  sent <- plan[transport != "null"]
  if (nrow(sent) == 0L) {
    return("The generator alone ran (transport null): there is a floor, and nothing above it.")
  }
  profile <- application_of(campaign)
  transports <- transport_label(levels(droplevels(transport_factor(sent$transport))))
  paste0(
    enumerated(transports), " sent messages of ", enumerated(number_text(sort(unique(sent$payload_bytes)))), " bytes ",
    if (!is.na(profile)) paste0("(profile ", plain_text(profile), ") "), load_words(unique(sent$offered_rate_mbps)),
    if (any(plan$transport == "null")) "; null ran the same schedules without a network", "."
  )
}

enumerated <- function(words) {
  last <- length(words)
  if (last < 2L) words else paste(paste(words[-last], collapse = ", "), "and", words[last])
}

counts_sentence <- function(campaign) {
  planned <- nrow(campaign$plan[status != "superseded"])
  usable <- sum(campaign$runs$usable)
  sprintf(
    "%d of %d planned runs count, %d are invalid or unfinished; blocks: %d.", usable, planned, planned - usable,
    blocks_of(campaign)
  )
}

#' Publication, drift, flagged and invalid runs: a sentence each, with a link to more
#' @noRd
beside_sentences <- function(campaign, tables) {
  link <- function(id, words) tag$a(href = paste0("#", id), words)
  published <- published_sentence(tables$side_by_side)
  outliers <- outlier_sentence(tables$outliers)
  found <- list(
    if (!is.null(published)) list(published, " ", link("published", "Side by side")),
    lapply(drift_sentences(campaign, tables$ea_drift), function(text) list(text)),
    if (!is.null(outliers)) list(outliers),
    list(invalid_sentence(campaign), if (nrow(tables$invalid_runs) > 0L) list(" ", link("invalid", "Every reason")))
  )
  # Of several meters there are several sentences on drift.
  found <- c(found[1], found[[2]], found[3:4])
  found[lengths(found) > 0L]
}

published_sentence <- function(rows) {
  if (is.null(rows)) {
    return(NULL)
  }
  met <- rows[!is.na(ours_low)]
  ratios <- met[quantity == "dea_percent" & relation == "is"]
  ratio_words <- if (nrow(ratios) > 0L) {
    paste0(
      " Energy per megabit less than ", transport_label(ratios$reference), "'s: ", transport_label(ratios$transport),
      ifelse(is.na(ratios$application), "", paste0(", ", ratios$application)), ", published ", published_text(ratios),
      ", here ", ifelse(ratios$in_this_model %in% TRUE, "in this model ", ""), ours_text(ratios), "."
    )
  }
  paste(c(sprintf(
    paste(
      "%d of %d published values have a counterpart here (same transport, nearest size and load); none is scaled, and",
      "what differs in the setup is named beside each."
    ),
    length(unique(met$value_id)), length(unique(rows$value_id))
  ), unique(ratio_words)), collapse = "")
}

#' Did anything but transports, sizes and loads change E_A or P_I while the campaign ran?
#' @noRd
drift_sentences <- function(campaign, drift) {
  if (NROW(drift) == 0L) {
    return(character())
  }
  several <- nrow(campaign$meters) > 1L
  vapply(unique(drift$meter_id), function(id) {
    rows <- drift[meter_id == id]
    parts <- vapply(seq_len(nrow(rows)), function(i) drift_part(rows[i]), "")
    clock <- time_unit(max(rows$span_s))
    model <- if (is_modelled(campaign, id)) "in this model, " else ""
    paste0(
      start_sentence("", paste0(model, "from the first to the last run (")),
      number_text(signif(max(rows$span_s) / clock$seconds, 3)), " ", clock$name, if (several) paste0(", meter ", id),
      ") ", paste(parts, collapse = "; "), "."
    )
  }, "", USE.NAMES = FALSE)
}

drift_part <- function(one) {
  if (one$verdict == "cannot_tell") {
    return(paste("a trend of", one$quantity, "cannot be told, there are too few mini-blocks"))
  }
  # A hundredth of a percent is less than any meter tells.
  percent <- function(x) short(round(x, 2L))
  change <- sprintf(
    "%s %% [%s to %s]", percent(one$change_percent), percent(one$change_ci95_low), percent(one$change_ci95_high)
  )
  if (one$verdict == "drift") {
    paste0(one$quantity, " drifted by ", change, ", which pairs inside mini-blocks do not see")
  } else {
    paste0("no drift of ", one$quantity, " is seen (", change, ")")
  }
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
