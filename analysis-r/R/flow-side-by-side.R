# SPDX-License-Identifier: Apache-2.0

# Published values beside those of a campaign. Nothing is scaled to meet the other: a value of ours stands beside
# a published one where transport, size and load are the same, and what else differs is named.

# Our transports that are the publication's DCCP.
published_names <- list(udp = "udp", dccp = c("dccp", "dccp-kernel"))
# Sizes and loads that count as the same; a difference within them is named. E_A changes with both.
same_size_ratio <- 1.25
same_load_ratio <- 1.1

# Columns of our tables by quantity. What a meter tells is compared meter by meter, what a flow tells once.
of_cells <- function(table, value, interval, n, u95 = NULL, metered = !is.null(u95)) {
  list(
    table = table, value = value, low = paste0(interval, "_low"), high = paste0(interval, "_high"), n = n, u95 = u95,
    metered = metered
  )
}
our_columns <- list(
  ea_j_per_mbit = of_cells("ea_summary", "ea_j_per_mbit_mean", "ea_drawn", "n", "u95_meter"),
  goodput_mbps = of_cells("ea_summary", "goodput_mbps", "goodput_ci95", "n"),
  loss_ratio = of_cells("ea_summary", "loss_ratio", "loss_ci95", "n"),
  difference_j_per_mbit = of_cells(
    "delta_ea", "difference_j_per_mbit", "difference_j_ci95", "n_pairs", "u95_meter_difference_j_per_mbit"
  ),
  difference_percent = of_cells("delta_ea", "difference_percent", "difference_ci95", "n_pairs", metered = TRUE),
  shortfall_percent = of_cells("delta_goodput", "shortfall_percent", "shortfall_percent_ci95", "n_pairs")
)

#' Published values beside those of a campaign
#'
#' A published value meets the cells of its transport (DCCP both `dccp` and `dccp-kernel`) whose payload size is the
#' nearest within a quarter and whose load is the nearest within a tenth; a statement about many loads meets all
#' cells in its range, and ours is then the least and the greatest of them; beside what was published of dE_A over a
#' whole sweep stands the contrast of that pair and size (contrasts). Cells below the meter's resolution or
#' outside the device model's validity are counted and left out. Of several pacings the first counts (absolute).
#'
#' @param campaign from [read_campaign()].
#' @param tables ea_summary, delta_ea, delta_goodput, phy_rates and contrasts of the campaign.
#' @param references documents of results/reference.
#' @return data.table by side_by_side.table.json, one row per value, meter and transport (PHY rates: per node);
#'   NULL where no published value but PHY rates has a counterpart in the campaign.
#' @examples
#' # NULL where nothing published has a counterpart, or the published values are not installed.
#' campaign <- example_campaign()
#' side_by_side(campaign, campaign_tables(campaign))
#' @export
side_by_side <- function(campaign, tables, references = read_references(reference_dir(campaign$contracts))) {
  tables <- by_variant(campaign, tables)[[1]]$tables
  if (!is.null(tables$contrasts)) {
    tables$contrasts <- of_variant(tables$contrasts, pacing_variants(tables$ea_summary)[1])
  }
  tables$ea_summary <- with_drawn_intervals(tables$ea_summary)
  rows <- rbindlist(lapply(references, function(reference) {
    values <- published_values(reference)
    rbindlist(lapply(seq_len(nrow(values)), function(i) {
      value_beside_ours(values[i], campaign, tables, reference$setup)
    }))
  }))
  # PHY rates alone, which any radio has, are no reason for the comparison.
  if (nrow(rows) == 0L || all(is.na(rows$ours_low) | rows$quantity == "phy_rate_mbps")) {
    return(NULL)
  }
  table_of("side_by_side", rows)
}

# All rows of one published value.
value_beside_ours <- function(published, campaign, tables, setup) {
  ours <- if (published$quantity == "phy_rate_mbps") {
    radio_beside(published, tables$phy_rates)
  } else if (our_columns[[published$quantity]]$metered) {
    rbindlist(lapply(campaign$meters$meter_id, function(id) {
      with_contrast(cells_beside(published, tables, id), published, tables$contrasts)
    }))
  } else {
    # Goodput and loss stand in the rows of each meter; the first meter's will do.
    first <- intersect(campaign$meters$meter_id, tables$ea_summary$meter_id)[1]
    cells_beside(published, tables, first)[, meter_id := NA_character_]
  }
  rows <- cbind(published_columns(published)[rep(1L, nrow(ours))], with_labels(ours, campaign))
  differs <- vapply(seq_len(nrow(rows)), function(i) differences_of(rows[i], campaign, setup), "")
  fitted <- link_preset(campaign) %in% strsplit(published$fitted_presets, ";", fixed = TRUE)[[1]]
  set(rows, j = "differs", value = differs)[, fitted := ifelse(is.na(ours_low), NA, fitted)][]
}

published_columns <- function(published) {
  published[, list(
    reference_id, value_id, source, precision, quantity, unit, relation,
    published = printed, published_low = low, published_high = high, published_transport = transport,
    reference = reference_transport, application, published_payload_bytes = payload_bytes,
    published_load_mbps = offered_rate_mbps, published_from_mbps = offered_from_mbps,
    published_below_mbps = offered_below_mbps, published_run_s = run_s, published_repetitions = repetitions, conditions,
    note = fifelse(note == "", NA_character_, note)
  )]
}

#' Our cells beside one published value, one row per transport that it may be
#' @noRd
cells_beside <- function(published, tables, id) {
  summary <- tables$ea_summary[meter_id %in% id]
  candidates <- intersect(published_names[[published$transport]], summary$transport)
  partner <- published$reference_transport
  if (length(candidates) == 0L || (!is.na(partner) && !partner %in% summary$transport)) {
    return(ours_row(id, reason = "no_transport"))
  }
  where <- our_columns[[published$quantity]]
  cells <- tables[[where$table]]
  # What a flow tells has no meter.
  if ("meter_id" %in% names(cells)) cells <- cells[meter_id %in% id]
  cells <- comparable_cells(cells, where)
  rbindlist(lapply(candidates, function(name) {
    of_transport <- summary[summary$transport == name]
    matched <- at_same_place(cells[cells$transport == name], published)
    loads <- unique(at_same_place(of_transport, published)$offered_rate_mbps)
    if (is_of_sweep(published) && length(loads) == 1L) {
      return(ours_row(id, name, reason = "no_sweep"))
    }
    known <- if (where$metered) floor_known_at(summary, matched, c(name, stats::na.omit(partner)))
    if (nrow(matched) > 0L) {
      return(ours_of_cells(matched, id, name, known))
    }
    ours_row(id, name, reason = no_match_reason(at_same_place(of_transport, published), where$metered))
  }))
}

# Whether something was published of a whole sweep.
is_of_sweep <- function(published) {
  published$quantity == "difference_percent" && published$relation == "from_to" && is.na(published$application) &&
    is.na(published$offered_rate_mbps) && is.na(published$offered_from_mbps) && is.na(published$offered_below_mbps)
}

#' The contrast over all loads beside what was published of a whole sweep
#'
#' @param ours from cells_beside(): rows of one meter.
#' @param contrasts of the same pacing, NULL without.
#' @noRd
with_contrast <- function(ours, published, contrasts) {
  if (!is_of_sweep(published) || is.null(contrasts)) {
    return(ours)
  }
  found <- contrasts[reference %in% published$reference_transport & blocks_n > 0L]
  # Of several directions none is the campaign's.
  keys <- c("meter_id", "transport", "payload_bytes")
  found <- found[!duplicated(found, by = keys) & !duplicated(found, by = keys, fromLast = TRUE)]
  at <- found[ours, on = keys]
  ours[, `:=`(
    contrast_percent = at$difference_percent, contrast_ci95_low = at$difference_ci95_low,
    contrast_ci95_high = at$difference_ci95_high, contrast_loads_n = as.numeric(at$loads_n)
  )]
  columns <- grep("^contrast_", names(ours), value = TRUE)
  ours[is.na(ours_low), (columns) := NA_real_][]
}

#' Cells of a table in one form: identity, value with interval, and why a cell has none
#' @noRd
comparable_cells <- function(rows, where) {
  take <- function(column) if (is.null(column)) rep(NA_real_, nrow(rows)) else as.numeric(rows[[column]])
  flag <- function(column) if (column %in% names(rows)) rows[[column]] %in% TRUE else rep(FALSE, nrow(rows))
  below <- if ("below_resolution_n" %in% names(rows)) rows$below_resolution_n > 0 else rep(FALSE, nrow(rows))
  ours <- take(where$value)
  cells <- rows[, c("transport", "payload_bytes", "offered_rate_mbps"), with = FALSE]
  cells[, `:=`(
    ours = ours, low = take(where$low), high = take(where$high), n = take(where$n), u95 = take(where$u95),
    why = fcase(
      where$metered & rows$radio_source %in% "hwsim", "radio_without_air_time",
      where$metered & below, "below_resolution",
      where$metered & flag("hollow"), "hollow",
      is.na(ours), "no_value",
      default = NA_character_
    )
  )]
  cells[]
}

#' Cells at the size and load of a published value
#' @noRd
at_same_place <- function(cells, published) {
  rate <- cells$offered_rate_mbps
  if (is.na(published$offered_rate_mbps)) {
    from <- published$offered_from_mbps
    below <- published$offered_below_mbps
    cells <- cells[(is.na(from) | rate >= from) & (is.na(below) | rate < below)]
  } else {
    cells <- cells[is_nearest(rate, published$offered_rate_mbps, same_load_ratio)]
  }
  if (is.na(published$payload_bytes)) {
    return(cells)
  }
  cells[is_nearest(cells$payload_bytes, published$payload_bytes, same_size_ratio)]
}

# Which of x are the nearest to `to`, on a logarithmic scale and within a factor of `ratio`.
is_nearest <- function(x, to, ratio) {
  distance <- abs(log(x / to))
  distance <= min(distance, Inf) + 1e-9 & distance <= log(ratio) + 1e-9
}

# There is a run of that transport at the place, but no pair of it that counts.
no_match_reason <- function(of_transport, metered) {
  fcase(
    nrow(of_transport) == 0L, "no_cell", metered && any(of_transport$hollow %in% TRUE), "hollow",
    default = "no_pair"
  )
}

floor_known_at <- function(summary, cells, transports) {
  rows <- summary[
    summary$transport %in% transports & summary$payload_bytes %in% cells$payload_bytes &
      summary$offered_rate_mbps %in% cells$offered_rate_mbps
  ]
  nrow(rows) > 0L && !anyNA(rows$floor_w)
}

ours_of_cells <- function(cells, id, transport, floor_known) {
  counted <- cells[is.na(cells$why)]
  if (nrow(counted) == 0L) {
    return(ours_row(id, transport, cells, reason = cells$why[1], left_out = nrow(cells)))
  }
  row <- ours_row(id, transport, counted, left_out = nrow(cells) - nrow(counted))
  row[, `:=`(ours_low = min(counted$ours), ours_high = max(counted$ours), blocks_n = min(counted$n))]
  if (!is.null(floor_known)) set(row, j = "floor_known", value = floor_known)
  if (nrow(counted) == 1L) {
    row[, `:=`(ours_ci95_low = counted$low, ours_ci95_high = counted$high, u95_meter = counted$u95)]
  }
  row[]
}

#' One row of ours, without a value yet
#' @noRd
ours_row <- function(id, transport = NA_character_, cells = NULL, reason = NA_character_, left_out = 0L) {
  sizes <- unique(cells$payload_bytes)
  loads <- if (length(cells$offered_rate_mbps) > 0L) range(cells$offered_rate_mbps) else c(NA_real_, NA_real_)
  data.table(
    meter_id = as.character(id), node = NA_character_, transport = transport,
    payload_bytes = if (length(sizes) == 1L) as.numeric(sizes) else NA_real_, load_least_mbps = loads[1],
    load_greatest_mbps = loads[2], ours_low = NA_real_, ours_high = NA_real_, ours_ci95_low = NA_real_,
    ours_ci95_high = NA_real_, contrast_percent = NA_real_, contrast_ci95_low = NA_real_,
    contrast_ci95_high = NA_real_, contrast_loads_n = NA_real_, u95_meter = NA_real_, blocks_n = NA_real_,
    cells_n = if (is.na(reason)) NROW(cells) else 0L, cells_left_out_n = as.integer(left_out), floor_known = NA,
    reason = reason
  )
}

#' PHY rates beside a published statement, one row per node whose radio was read
#' @noRd
radio_beside <- function(published, shares) {
  if (nrow(shares) == 0L) {
    return(ours_row(NA_character_, reason = "no_value"))
  }
  rbindlist(lapply(split(shares, by = "node"), function(rows) {
    seen <- rows[, list(samples = sum(samples)), by = list(phy_rate_mbps)][order(-samples, -phy_rate_mbps)]
    rates <- if (published$relation == "mostly") utils::head(seen$phy_rate_mbps, 2L) else min(seen$phy_rate_mbps)
    cells <- unique(rows[, c("transport", "payload_bytes", "offered_rate_mbps"), with = FALSE])
    row <- ours_row(NA_character_, cells = cells)
    row[, `:=`(node = rows$node[1], ours_low = min(rates), ours_high = max(rates))][]
  }))
}

# Whose power it is and where the numbers come from.
with_labels <- function(ours, campaign) {
  meters <- campaign$meters[match(ours$meter_id, campaign$meters$meter_id)]
  radio <- radio_source(campaign)
  ours[, `:=`(
    node = fcoalesce(node, as.character(meters$node)), device_model = as.character(meters$device_model),
    power_source = as.character(meters$power_source), radio_source = radio
  )]
  modelled <- vapply(ours$meter_id, function(id) {
    if (is.na(id)) !radio %in% c("real", "wired", "unknown") else is_modelled(campaign, id)
  }, NA)
  ours[, in_this_model := unname(modelled)][]
}

#' What differs in the setup, as codes of the contract; NA where there is no value of ours
#' @noRd
differences_of <- function(row, campaign, setup) {
  if (is.na(row$ours_low)) {
    return(NA_character_)
  }
  metered <- !is.na(row$meter_id)
  apart <- function(ours, theirs) !is.na(theirs) && !isTRUE(all.equal(ours, theirs))
  model <- campaign$meters$model[match(row$meter_id, campaign$meters$meter_id)]
  ccid <- pick_number(campaign$meta, "workload", "transport_options", row$transport, "ccid")
  codes <- c(
    power_source = metered && !row$power_source %in% pick_text(setup, "power_source"),
    radio_source = !row$radio_source %in% pick_text(setup, "radio_source"),
    client = TRUE, # another machine, always
    year = !campaign_year(campaign) %in% pick_number(setup, "year"),
    meter = metered && !model %in% pick_text(setup, "meter"),
    floor = metered && row$floor_known %in% TRUE && !isTRUE(pick_flag(setup, "floor_known")),
    payload = apart(row$payload_bytes, row$published_payload_bytes),
    load = apart(row$load_least_mbps, row$published_load_mbps),
    ccid = !is.na(ccid) && apart(ccid, pick_number(setup, "dccp_ccid")),
    implementation = row$transport %in% "dccp", # our own, which no publication had
    run_length = apart(measured_s(campaign), row$published_run_s),
    repetitions = apart(row$blocks_n, row$published_repetitions),
    flows = nrow(campaign$flows) > 0L
  )
  paste(names(codes)[codes], collapse = ";")
}

# Length of the measure windows, as a rule the same in all runs.
measured_s <- function(campaign) {
  runs <- campaign$runs
  signif(stats::median(runs$measure_end_s - runs$measure_start_s, na.rm = TRUE), 3)
}

link_preset <- function(campaign) pick_text(campaign$meta, "topology", "link", "preset")

campaign_year <- function(campaign) {
  suppressWarnings(as.numeric(substr(pick_text(campaign$meta, "created_utc"), 1L, 4L)))
}
