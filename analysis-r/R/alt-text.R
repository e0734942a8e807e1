# SPDX-License-Identifier: Apache-2.0

# Alt text: what a figure shows, in a sentence or two, with its range of values.

# "0.5 to 30"; "30" where both ends are printed alike.
span_words <- function(values, digits = 3L) {
  paste(unique(number_text(signif(range(values), digits))), collapse = " to ")
}

#' @noRd
alt_ea <- function(points, campaign, meter_id, what, unit = "J/Mb", value = "value") {
  values <- points[[value]][is.finite(points[[value]])]
  transports <- transport_label(levels(droplevels(transport_factor(as.character(points$transport)))))
  sizes <- sort(unique(points$payload_bytes))
  paste0(
    "Line plot of ", what, " against offered load, ", span_words(points$offered_rate_mbps), " Mb/s, for ",
    paste(transports, collapse = ", "), "; one panel per message size (", paste(sizes, collapse = ", "), " bytes). ",
    "Values: ", span_words(values), " ", unit, ". ",
    if (is_modelled(campaign, meter_id)) "In this model. ",
    if (!is.null(meter_id)) paste0("Meter ", plain_text(meter_id), ".")
  )
}
