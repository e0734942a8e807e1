# SPDX-License-Identifier: Apache-2.0

# Table IV of "Energy Usage of UDP and DCCP over 802.11n": E_A of application profiles and
# what a transport takes more than UDP.

#' E_A of application profiles by transport, with the difference against UDP
#'
#' One campaign sends one profile (workloads skype, youtube, talk, video), so a table of
#' several applications takes several campaigns. Differences are E_A of UDP - E_A, in
#' J/Mb and in percent of UDP's, from pairs inside mini-blocks; where a run is below
#' the meter's resolution there is only that of P_A.
#'
#' @param campaigns one campaign from [read_campaign()], or a list of them.
#' @param reference transport that the others are set against.
#' @return data.table, one row per campaign, meter and transport, with 95 % t intervals
#'   over blocks; NULL when none of the campaigns sent a profile.
#' @examples
#' # NULL: the example has no application profile.
#' table_iv(example_campaign())
#' @export
table_iv <- function(campaigns, reference = "udp") {
  if (inherits(campaigns, "nj_campaign")) campaigns <- list(campaigns)
  rows <- lapply(campaigns, function(campaign) {
    application_rows(campaign, summarise_ea(campaign), delta_ea(campaign, reference))
  })
  rows <- rows[lengths(rows) > 0L]
  if (length(rows) > 0L) rbindlist(rows)
}

#' Tell the rows of Table IV of several campaigns, each with what was published of its application
#'
#' @param dirs folders of campaigns, each of which must have sent a profile.
#' @param tell called with an event "table_iv" per row; nothing is told unless all campaigns have rows.
#' @noRd
tell_table_iv <- function(dirs, tell) {
  rows <- rbindlist(lapply(dirs, function(dir) {
    campaign <- read_campaign(dir)
    assert_transports(campaign)
    rows <- table_iv(campaign)
    if (NROW(rows) == 0L) {
      abort_invalid_data(
        "The campaign ", dir, " has no run that counts of an application profile: Table IV is of workloads with a ",
        "profile, such as skype and youtube."
      )
    }
    modelled <- vapply(rows$meter_id, function(id) is_modelled(campaign, id), NA)
    cbind(with_published(rows, campaign), in_this_model = modelled, dir = plain_text(dir))
  }))
  rows[, campaign_label := campaign_labels(campaign, dir, application)]
  rows[, dir := NULL]
  for (i in seq_len(nrow(rows))) {
    row <- as.list(rows[i])
    cell <- application_cell(row)
    tell(c(list(event = "table_iv", words = application_words(row, cell)), row, ea_cell = cell$text))
  }
}

# Which campaign a row is of: NA unless its application is in several; then its name, or its folder where two campaigns
# have one name.
campaign_labels <- function(names, dirs, applications) {
  labels <- data.table(name = names, dir = dirs, application = applications)
  labels[, several := uniqueN(dir) > 1L, by = application]
  labels[, alike := uniqueN(dir) > 1L, by = name]
  labels[, fifelse(several, fifelse(alike, dir, name), NA_character_)]
}

#' E_A of a row as Table IV prints it: the mean, or its upper limit where most runs are below resolution
#'
#' @param row with ea_j_per_mbit_mean, ea_upper_limit_j_per_mbit, below_resolution_n, n and hollow.
#' @return list of text (the cell with its marks: * some runs below resolution, \u00b0 extrapolated model) and words
#'   (the same in a sentence).
#' @noRd
application_cell <- function(row) {
  below <- row$below_resolution_n
  limit <- mostly_below(below, row$n) && !is.na(row$ea_upper_limit_j_per_mbit)
  number <- if (limit) row$ea_upper_limit_j_per_mbit else row$ea_j_per_mbit_mean
  ea <- if (is.na(number)) "none" else paste0(if (limit) "< ", cell_text(number))
  notes <- c(
    if (below > 0L) paste(below, "of", row$n, "runs below resolution"), if (row$hollow) "device model extrapolated"
  )
  list(
    text = paste(c(ea, if (below > 0L && !limit) "*", if (row$hollow) "\u00b0"), collapse = " "),
    words = paste0(
      "E_A ", ea, if (!is.na(number)) " J/Mb", if (length(notes) > 0L) paste0(" (", paste(notes, collapse = "; "), ")")
    )
  )
}

application_words <- function(row, cell) {
  sprintf(
    "%s%s, %s (meter %s): %s%s, published %s", row$application,
    if (is.na(row$campaign_label)) "" else paste(" of campaign", row$campaign_label), transport_label(row$transport),
    row$meter_id, if (row$in_this_model) "in this model " else "", cell$words, cell_text(row$published_ea_j_per_mbit)
  )
}

#' Rows of Table IV with what was published of the same application and transport; nothing is scaled
#'
#' @param rows from [table_iv()] of one campaign.
#' @return rows with published_ea_j_per_mbit, published_difference_j_per_mbit, published_difference_percent (its dE_A
#'   with our sign), reference_id and differs (codes of what differs in the setup); NA where nothing was published.
#' @noRd
with_published <- function(rows, campaign, references = read_references(reference_dir(campaign$contracts))) {
  beside <- rbindlist(lapply(seq_len(nrow(rows)), function(i) published_beside(as.list(rows[i]), campaign, references)))
  cbind(rows, beside)
}

published_beside <- function(row, campaign, references) {
  found <- Filter(function(one) nrow(one$values) > 0L, lapply(references, function(reference) {
    values <- published_values(reference)
    list(reference = reference, values = values[is_of_application(values, row)])
  }))
  first <- if (length(found) > 0L) found[[1]]
  values <- first$values
  number <- function(name) c(values$low[values$quantity == name], NA_real_)[1]
  list(
    published_ea_j_per_mbit = number("ea_j_per_mbit"),
    published_difference_j_per_mbit = number("difference_j_per_mbit"),
    published_difference_percent = number("difference_percent"),
    reference_id = pick_text(first$reference, "reference_id"), differs = if (is.null(first)) {
      NA_character_
    } else {
      differences_of(beside_application(row, values), campaign, first$reference$setup)
    }
  )
}

# Which published values are of a row's application, and of a profile of about the same size and rate.
is_of_application <- function(values, row) {
  theirs <- vapply(published_names, function(ours) row$transport %in% ours, NA)
  same <- function(published, ours, ratio) abs(log(published / ours)) <= log(ratio)
  values$application %in% row$application & values$transport %in% names(published_names)[theirs] &
    same(values$payload_bytes, row$payload_bytes, same_size_ratio) %in% TRUE &
    same(values$offered_rate_mbps, row$offered_rate_mbps, same_load_ratio) %in% TRUE
}

# A row as differences_of() asks for it.
beside_application <- function(row, values) {
  c(row, list(
    ours_low = 0, load_least_mbps = row$offered_rate_mbps, blocks_n = row$n, floor_known = NA,
    published_payload_bytes = values$payload_bytes[1], published_load_mbps = values$offered_rate_mbps[1],
    published_run_s = values$run_s[1], published_repetitions = values$repetitions[1]
  ))
}

#' Name of the profile that a campaign sent, NA for messages of one size at a constant rate
#' @noRd
application_of <- function(campaign) {
  profile <- pick(campaign$meta, "workload", "profile", default = list())
  if (is.character(profile)) profile[1] else pick_text(profile, "name")
}

#' Rows of one campaign, NULL when it sent no profile
#'
#' @param summary,delta its ea_summary and delta_ea.
#' @noRd
application_rows <- function(campaign, summary, delta) {
  application <- application_of(campaign)
  cells <- summary[transport != "null"]
  if (is.na(application) || nrow(cells) == 0L) {
    return(NULL)
  }
  keys <- cell_keys(campaign)
  columns <- names(schema_columns("table_iv"))
  wanted <- setdiff(intersect(columns, names(delta)), names(cells))
  rows <- merge(cells, delta[, c(keys, wanted), with = FALSE], by = keys, all.x = TRUE, sort = FALSE)
  rows[, `:=`(campaign = rep(plain_text(campaign$name), .N), application = rep(plain_text(application), .N))]
  in_cell_order(rows)[, intersect(columns, names(rows)), with = FALSE]
}

#' Table IV in the report
#' @noRd
section_table_iv <- function(campaign, tables) {
  if (is.null(tables$table_iv)) {
    return(NULL)
  }
  rows <- with_drawn_intervals(tables$table_iv)
  tag$section(
    id = "applications", tag$h2("Application profile"),
    tag$p(
      "E_A of the profile ", tag$strong(rows$application[1]), " by transport, and what it differs from UDP's by ",
      "(+: more than UDP), from pairs inside mini-blocks."
    ),
    table_html("table_iv", rows, paste(c(
      if (any(rows$total)) "Those of E_A: metering + model parameters beside the scatter of runs.",
      source_line(campaign, NULL, 10000L)
    ), collapse = " "))
  )
}
