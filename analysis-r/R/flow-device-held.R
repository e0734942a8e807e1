# SPDX-License-Identifier: Apache-2.0

# What contrasts owe to the parameters of a device model that no source states an uncertainty of. They cannot be drawn,
# so each is set to other values and the main comparisons are computed anew.

held_factors <- c(0.5, 2)
# A term that makes less than this of the power over idle moves nothing, as that of a constant base does.
least_term_ratio <- 1e-3

#' The main comparisons with each held parameter at half and at twice its value
#'
#' The power over idle of each run becomes delta_p + (factor - 1) x term, its E_A that over T_A.
#'
#' @param campaign from [read_campaign()].
#' @param contrasts from [transport_contrasts()]; NULL without E_A.
#' @param model from model_sensitivity().
#' @return data.table by the contract held_parameters.table.json; NULL where no held parameter has a term over idle, or
#'   the family no ratio.
#' @noRd
held_parameters <- function(campaign, contrasts, model, factors = held_factors) {
  if (is.null(contrasts) || is.null(model)) {
    return(NULL)
  }
  family <- contrasts[in_family == TRUE & blocks_n > 0L]
  id <- campaign$meters$meter_id[1]
  held <- model[[id]]$held
  names <- telling_terms(held, campaign$results[meter_id == id])
  if (nrow(family) == 0L || length(names) == 0L) {
    return(NULL)
  }
  recorded <- recorded_parameters(campaign)[meter_id == id]
  cases <- CJ(name = names, factor = factors, sorted = FALSE)
  rbindlist(Map(function(name, factor) {
    one <- recorded[match(name, recorded$parameter)]
    cbind(
      one[, c("meter_id", "device_model", "parameter", "parameter_value"), with = FALSE], factor = factor,
      family_with(scaled_campaign(campaign, id, held, name, factor), family)
    )
  }, cases$name, cases$factor))
}

telling_terms <- function(held, results) {
  if (is.null(held)) {
    return(character())
  }
  delta_p_w <- results$delta_p_w[match(held$runs, results$run_id)]
  share <- colSums(abs(held$watts)) / sum(abs(delta_p_w), na.rm = TRUE)
  colnames(held$watts)[which(share > least_term_ratio)]
}

# The campaign at one meter, as if a term of its device had been another; runs that the stream does not cover have no
# power in it.
scaled_campaign <- function(campaign, id, held, name, factor) {
  results <- copy(campaign$results[campaign$results$meter_id == id])
  term_w <- held$watts[match(results$run_id, held$runs), name]
  # E_A is then made of power and goodput.
  results[, `:=`(delta_p_w = delta_p_w + (factor - 1) * term_w, ea_j_per_mbit = NA_real_)]
  campaign$results <- results
  # So strict a level that no number of blocks is tested: it is the estimates that are wanted.
  campaign$meta$workload$statistics$alpha <- 1e-300
  campaign
}

#' Difference of E_A of the family's contrasts in another campaign; empty where it comes from other loads or blocks
#' @noRd
family_with <- function(campaign, family) {
  key <- function(rows) paste(rows$reference, rows$transport, rows$payload_bytes)
  found <- transport_contrasts(campaign, outliers = NULL)
  found <- if (is.null(found)) family[0L] else found[in_family == TRUE]
  found <- found[match(key(family), key(found))]
  alike <- (found$blocks_n == family$blocks_n & found$loads_n == family$loads_n) %in% TRUE
  data.table(
    reference = family$reference, transport = family$transport, payload_bytes = family$payload_bytes,
    difference_percent = fifelse(alike, found$difference_percent, NA_real_),
    reason = fifelse(alike, NA_character_, "runs_left_out")
  )
}

#' What becomes of the main comparisons when a held parameter is another: of each, the contrast that changes most
#' @noRd
held_sentences <- function(statistics) {
  rows <- statistics$held_parameters
  if (is.null(rows)) {
    return(NULL)
  }
  family <- statistics$contrasts[in_family == TRUE & blocks_n > 0L]
  id <- function(rows) paste(rows$reference, rows$transport, rows$payload_bytes)
  rows <- copy(rows)[, contrast := id(rows)]
  rows[, own := family$difference_percent[match(contrast, id(family))]]
  rows <- rows[!is.na(difference_percent)]
  if (nrow(rows) > 0L) {
    vapply(split(rows, by = "parameter"), held_sentence, "", contrasts_n = nrow(family), USE.NAMES = FALSE)
  }
}

held_sentence <- function(rows, contrasts_n) {
  worst <- rows[which.max(abs(difference_percent - own)), contrast]
  shown <- rows[contrast == worst]
  side <- function(percent) vapply(percent, amount_words, "", low = NA_real_)
  turned <- length(unique(rows[difference_percent * own < 0, contrast]))
  sprintf(
    paste(
      "In this model, with %s at %s times its value %s at %g bytes took %s energy per megabit than %s (%s at its",
      "value); %s."
    ),
    plain_text(shown$parameter[1], 40L), enumerated(number_text(shown$factor)), transport_label(shown$transport[1]),
    shown$payload_bytes[1], enumerated(side(shown$difference_percent)), transport_label(shown$reference[1]),
    side(shown$own[1]), if (turned == 0L) {
      "this is the largest change of a main comparison, and none changes its sign"
    } else {
      sprintf(
        "this is the largest change of a main comparison, and %d of %d %s sign", turned, contrasts_n,
        if (turned == 1L) "changes its" else "change their"
      )
    }
  )
}
