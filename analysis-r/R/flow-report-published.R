# SPDX-License-Identifier: Apache-2.0

# The report's section that sets published values beside those of the campaign.

#' Published values beside ours; nothing for a campaign without a counterpart to any
#'
#' @param tables with side_by_side.
#' @param references documents of results/reference.
#' @noRd
section_published <- function(campaign, tables, references = read_references(reference_dir(campaign$contracts))) {
  rows <- tables$side_by_side
  if (is.null(rows)) {
    return(NULL)
  }
  tag$section(
    id = "published", tag$h2("Beside the published values"),
    tag$p(
      "What was published, and what this campaign gives for the same transport, payload size and load. No value is ",
      "scaled to meet the other: what differs in the setup is named beside each. The same with more digits is in ",
      "tables/side_by_side.csv."
    ),
    if (is_modelled(campaign)) {
      tag$p(
        "Power or air time on our side is modelled. Agreement is then no measurement, and ",
        "disagreement refutes nothing; shapes and ratios are what can be compared."
      )
    },
    fitted_part(rows, campaign),
    lapply(references, function(document) {
      id <- pick_text(document, "reference_id")
      published_tables(rows[rows$reference_id == id], document, campaign)
    })
  )
}

# What was put into the link cannot be found in what comes out of it.
fitted_part <- function(rows, campaign) {
  put_in <- unique(published_quantity(rows[rows$fitted %in% TRUE]))
  if (length(put_in) > 0L) {
    tag$p(sprintf(
      "The link preset %s was fitted to this publication, so agreement in %s is by construction and confirms nothing.",
      plain_text(link_preset(campaign), 30L), enumerated(put_in)
    ))
  }
}

published_tables <- function(rows, reference, campaign) {
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  title <- pick_text(reference, "title")
  list(
    tag$h3(title),
    tag$details(class = "many", tag$summary("Setup of both"), table_html(
      "setup", setup_display(campaign, reference$setup)
    )),
    compared_table(rows[!is.na(rows$ours_low)], campaign), empty_at_words(rows, campaign),
    lonely_table(rows[!rows$value_id %in% with_counterpart(rows)]),
    slips_table(published_slips(reference), title)
  )
}

# Values that any meter, transport or node of the campaign has a counterpart to.
with_counterpart <- function(rows) unique(rows$value_id[!is.na(rows$ours_low)])

# What is compared stands in few columns, which paper has room for; what it rests on is folded below.
compared_table <- function(rows, campaign) {
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  shown <- published_display(rows)[, ours := prose(ours)]
  if (nrow(campaign$meters) < 2L) shown[, meter := NA_character_]
  list(
    table_html("compared", shown, source_line(campaign, NULL, 10000L)),
    tag$details(
      class = "many", tag$summary("What each value was published for, and what ours rests on"),
      table_html("conditions", shown)
    )
  )
}

# Of values that another meter has a counterpart to: the meters that have none, and why.
empty_at_words <- function(rows, campaign) {
  empty <- unique(rows[
    is.na(rows$ours_low) & !is.na(rows$meter_id) & rows$value_id %in% with_counterpart(rows),
    c("meter_id", "value_id", "reason"),
    with = FALSE
  ])
  if (nrow(campaign$meters) < 2L || nrow(empty) == 0L) {
    return(NULL)
  }
  counts <- empty[, list(count = .N), by = list(meter_id, reason)]
  tag$p(paste0(
    "Without a counterpart at some meters: ", paste0(
      counts$count, " at meter ", plain_text(counts$meter_id, 40L), " (", reason_labels[counts$reason], ")",
      collapse = "; "
    ), "."
  ))
}

# Published values that nothing here can stand beside; what is the same of all meters stands once.
lonely_table <- function(rows) {
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  shown <- published_display(rows)
  shown[, reason := unname(reason_labels[rows$reason])]
  shown <- unique(shown[, c("what", "published", "reason", "source", "conditions", "note"), with = FALSE])
  tag$details(
    class = "many",
    tag$summary(sprintf("Published values without a counterpart here: %d", length(unique(rows$value_id)))),
    table_html("lonely", shown)
  )
}

slips_table <- function(slips, title) {
  if (nrow(slips) > 0L) {
    tag$details(
      class = "many", tag$summary("Errors in the publication, corrected"),
      table_html("slips", slips, paste("Errors in", title))
    )
  }
}

#' What the numbers of both were made with, item by item
#' @noRd
setup_display <- function(campaign, setup) {
  theirs <- function(name) pick_text(setup, name)
  meters <- campaign$meters
  instruments <- sprintf(
    "%s%s at %s, read every %s s", trimws(paste(known_or_empty(meters$make), known_or_empty(meters$model))),
    ifelse(meters$emulated %in% TRUE, " (emulated)", ""), plain_text(meters$node, 40L),
    number_text(meters$update_interval_s)
  )
  floors <- campaign$results$floor_w
  known <- if (any(!is.na(floors))) "known" else "not known"
  data.table(
    item = c("power_source", "radio_source", "client", "radio", "year", "meter", "generator floor", "DCCP", "runs"),
    published = c(
      theirs("power_source"), theirs("radio_source"), theirs("client"), theirs("radio"), theirs("year"),
      paste0(theirs("meter"), ": ", theirs("meter_words")),
      if (isTRUE(pick_flag(setup, "floor_known"))) "known" else "not known", theirs("dccp_words"),
      "as each value says"
    ),
    here = c(
      paste(unique(plain_text(meters$power_source, 20L)), collapse = ", "), radio_source(campaign),
      client_words(campaign), radio_words(campaign), as.character(campaign_year(campaign)),
      paste(unique(instruments), collapse = "; "), known, dccp_words(campaign),
      sprintf("measured for %s s, blocks: %d", number_text(measured_s(campaign)), blocks_of(campaign))
    )
  )
}

known_or_empty <- function(text) ifelse(is.na(text), "", plain_text(text, 40L))

client_words <- function(campaign) {
  kind <- pick_text(campaign$meta, "topology", "kind")
  cpu <- plain_text(pick_text(campaign$meta, "host", "cpu_model"), 60L)
  switch(if (is.na(kind)) "" else kind,
    emulated = paste("a network namespace on", cpu),
    guest = paste("in a QEMU guest on", cpu),
    lab = paste("a host of the lab:", plain_text(paste(lab_clients(campaign), collapse = ", "), 60L)),
    "unknown"
  )
}

lab_clients <- function(campaign) {
  hosts <- pick(campaign$meta, "topology", "hosts", default = list())
  is_client <- vapply(hosts, function(host) "client" %in% unlist(pick(host, "roles", default = list())), NA)
  if (any(is_client)) names(hosts)[is_client] else "unknown"
}

radio_words <- function(campaign) {
  preset <- link_preset(campaign)
  mode <- pick_text(campaign$meta, "topology", "wifi", "mode")
  width <- pick_number(campaign$meta, "topology", "wifi", "width_mhz")
  words <- c(
    if (!is.na(preset)) paste("link preset", plain_text(preset, 30L)),
    if (!is.na(mode)) paste0("802.", plain_text(mode, 10L)), if (!is.na(width)) paste(number_text(width), "MHz")
  )
  if (length(words) > 0L) paste(words, collapse = ", ") else "unknown"
}

dccp_words <- function(campaign) {
  words <- option_words(campaign)
  words <- words[grepl("^DCCP", words)]
  sent <- unique(campaign$runs$transport)
  fcase(
    !any(published_names$dccp %in% sent), "none", length(words) > 0L, paste(words, collapse = "; "),
    default = "as the sender's defaults are"
  )
}

#' Rows of the section's tables, as text
#' @noRd
published_display <- function(rows) {
  data.table(
    source = rows$source,
    what = paste0(published_quantity(rows), ", ", place_text(rows$published_payload_bytes, published_load_text(rows))),
    published = published_text(rows), meter = rows$meter_id, ours = ours_text(rows),
    at_here = place_text(rows$payload_bytes, span_text(rows$load_least_mbps, rows$load_greatest_mbps, " Mb/s")),
    u95 = ifelse(is.na(rows$u95_meter), "", short(rows$u95_meter)), blocks = rows$blocks_n,
    floor = ifelse(is.na(rows$floor_known), "", ifelse(rows$floor_known, "known", "not known")),
    differs = gsub("_", " ", gsub(";", ", ", fcoalesce(rows$differs, ""), fixed = TRUE), fixed = TRUE),
    conditions = rows$conditions, note = rows$note
  )
}

# "difference of E_A of DCCP against UDP (+: more than UDP)", "PHY rate of client".
published_quantity <- function(rows) {
  whose <- transport_label(fcoalesce(rows$transport, rows$published_transport))
  paste0(
    quantity_labels[rows$quantity], ifelse(is.na(rows$published_transport), "", paste(" of", whose)),
    ifelse(is.na(rows$reference), "", paste(" against", transport_label(rows$reference))),
    ifelse(rows$quantity %in% names(sign_words), paste0(
      " (+: ", sign_words[rows$quantity], " than ", transport_label(rows$reference), ")"
    ), ""),
    ifelse(rows$quantity == "phy_rate_mbps" & !is.na(rows$node), paste(" of", plain_text(rows$node, 40L)), "")
  )
}

sign_words <- c(difference_j_per_mbit = "more", difference_percent = "more", shortfall_percent = "less")

quantity_labels <- c(
  ea_j_per_mbit = "E_A", difference_j_per_mbit = "difference of E_A", difference_percent = "difference of E_A",
  shortfall_percent = "shortfall of goodput", goodput_mbps = "goodput", loss_ratio = "loss", phy_rate_mbps = "PHY rate"
)

reason_labels <- c(
  no_transport = "not in this campaign", no_cell = "no cell of that size and load",
  no_pair = "no pair with UDP that counts", no_sweep = "published of a whole sweep, a single load here",
  radio_without_air_time = "no E_A: the radio carries frames without air time",
  below_resolution = "below the meter's resolution", hollow = "outside the device model's validity",
  no_value = "nothing was read"
)

# "~6 Mb/s", "454 J/Mb", "~70 %", "little difference"; a published dE_A has the other sign and is converted:
# "-26 % (printed as dE_A: 26 %)".
published_text <- function(rows) {
  printed <- printed_text(rows)
  about <- ifelse(rows$precision == "approximate", "~", "")
  value <- paste0(about, span_text(rows$published_low, rows$published_high, display_unit(rows)))
  turned <- rows$quantity %in% converted & !is.na(rows$published_low)
  ifelse(turned, paste0(value, " (printed as dE_A: ", printed, ")"), printed)
}

# As printed, with its unit.
printed_text <- function(rows) {
  about <- ifelse(rows$precision == "approximate" & !grepl("~", rows$published, fixed = TRUE), " (roughly)", "")
  # Words, or printed with its unit.
  complete <- rows$relation == "little" | rows$unit == "1" | grepl("%", rows$published, fixed = TRUE)
  paste0(rows$published, ifelse(complete, "", display_unit(rows)), about)
}

# Ratios are shown in percent, as they were printed.
display_unit <- function(rows) ifelse(rows$unit == "1", " %", paste0(" ", rows$unit))
display_factor <- function(rows) ifelse(rows$unit == "1", 100, 1)

ours_text <- function(rows) {
  scale <- display_factor(rows)
  unit <- display_unit(rows)
  one <- rows$ours_low == rows$ours_high
  value <- range_words(scale * rows$ours_low, scale * rows$ours_ci95_low, scale * rows$ours_ci95_high, unit)
  span <- span_text(signif(scale * rows$ours_low, 3), signif(scale * rows$ours_high, 3), unit)
  cells <- ifelse(rows$cells_n > 1L, paste0(" (", rows$cells_n, " cells)"), "")
  left <- ifelse(rows$cells_left_out_n > 0L, paste0(", ", rows$cells_left_out_n, " left out"), "")
  put_in <- ifelse(rows$fitted %in% TRUE, "; by construction: the link was fitted to it", "")
  paste0(contrast_text(rows), ifelse(one, value, span), cells, left, put_in)
}

# "-11.5 % [-14.1 to -8.9] over 12 loads; cells: ", where transports are compared over the whole sweep.
contrast_text <- function(rows) {
  over_all <- range_words(rows$contrast_percent, rows$contrast_ci95_low, rows$contrast_ci95_high, display_unit(rows))
  loads <- rows$contrast_loads_n
  ifelse(is.na(over_all), "", paste0(over_all, " over ", loads, ifelse(loads == 1L, " load", " loads"), "; cells: "))
}

span_text <- function(low, high, unit) {
  paste0(number_text(low), ifelse(low == high, "", paste(" to", number_text(high))), unit)
}

published_load_text <- function(rows) {
  fcase(
    !is.na(rows$published_load_mbps), paste(number_text(rows$published_load_mbps), "Mb/s"),
    !is.na(rows$published_from_mbps), paste("from", number_text(rows$published_from_mbps), "Mb/s on"),
    !is.na(rows$published_below_mbps), paste("below", number_text(rows$published_below_mbps), "Mb/s"),
    default = "all loads"
  )
}

place_text <- function(payload_bytes, load) {
  paste0(ifelse(is.na(payload_bytes), "all sizes", paste(number_text(payload_bytes), "B")), ", ", load)
}
