# SPDX-License-Identifier: Apache-2.0

# Alt text: what a figure shows, in a sentence or two, with its range of values.

#' @noRd
alt_ea <- function(points, campaign, meter_id, what, unit = "J/Mb", value = "value") {
  values <- points[[value]][is.finite(points[[value]])]
  transports <- transport_label(levels(droplevels(transport_factor(as.character(points$transport)))))
  sizes <- sort(unique(points$payload_bytes))
  rates <- range(points$offered_rate_mbps)
  paste0(
    "Line plot of ", what, " against offered load from ", number_text(rates[1]), " to ", number_text(rates[2]),
    " Mb/s for ", paste(transports, collapse = ", "), "; one panel per message size (",
    paste(sizes, collapse = ", "), " bytes). Values range from ", number_text(signif(min(values), 3)), " to ",
    number_text(signif(max(values), 3)), " ", unit, ". ",
    if (is_modelled(campaign, meter_id)) "In this model. ",
    if (!is.null(meter_id)) paste0("Meter ", plain_text(meter_id), ".")
  )
}
