# SPDX-License-Identifier: Apache-2.0

# What the two studies of HTTP transfers printed, beside the same quantity of a campaign.

#' Published values beside ours: of two clients, or of levels that the campaign sweeps
#'
#' @return data.table by the contract transfer_published.table.json.
#' @noRd
transfer_published <- function(campaign, rows, dir = file.path(reference_dir(), "transfer")) {
  rows <- copy(rows)[, set := sub(":.*", "", dataset)]
  found <- lapply(list.files(dir, "\\.json$", full.names = TRUE), function(path) {
    document <- jsonlite::fromJSON(path, simplifyVector = FALSE)
    lapply(document$values, value_beside, document$reference_id, campaign, rows)
  })
  # What is compared over one factor has no column of it, but one of the other.
  found <- rbindlist(unlist(found, recursive = FALSE), use.names = TRUE, fill = TRUE)
  if (nrow(found) > 0L) found else data.table()
}

# How a quantity is made: of which measure, and whether the value there and the value before give a ratio or a
# difference in percent. A saving is above zero where less is taken, as it was printed.
published_kinds <- list(
  energy_ratio = list("e_d_per_100_mb_j", "ratio"),
  throughput_efficiency_ratio = list("throughput_efficiency", "ratio"),
  throughput_gain_ratio = list("throughput_mbps", "ratio"), saving_percent = list("e_d_per_100_mb_j", "saving"),
  throughput_mbps = list("throughput_mbps", "change"), e_per_100mb_j = list("e_d_per_100_mb_j", "change")
)

value_beside <- function(value, reference, campaign, rows) {
  how <- published_kinds[[pick_text(value, "quantity")]]
  over <- pick_text(value, "factor")
  if (is.null(how)) {
    return(NULL)
  }
  clients <- c(pick_text(value, "client"), pick_text(value, "against"))
  sides <- if (identical(campaign$arm, "client") && !anyNA(clients) && all(clients %in% rows$client)) {
    list(over = "client", compared = clients[1], against = clients[2])
  } else if (over %in% swept_factors(campaign) && clients[1] %in% "own" && is.na(clients[2])) {
    from <- pick_number(value, "from_level")
    # What rises or falls does so from one at a time.
    if (pick_text(value, "relation") %in% c("rises", "falls")) from <- fcoalesce(from, 1)
    list(over = over, compared = pick_number(value, "to_level"), against = from)
  }
  if (is.null(sides)) {
    return(NULL)
  }
  rows <- rows[same_conditions(rows, value, campaign, sides$over)]
  if (is.numeric(sides$compared)) rows[, level := as.numeric(get(over))] else rows[, level := get(sides$over)]
  keys <- setdiff(cell_keys(campaign), sides$over)
  found <- rows[, beside(.SD, how, sides, value, reference), by = keys, .SDcols = c("block", "level", how[[1]])]
  # Without a cell that has both sides the keys alone are left.
  if ("value_id" %in% names(found)) found
}

# Rows of the set, path, network and phone that a value is of, where it tells them; other levels are one at a time.
same_conditions <- function(rows, value, campaign, over) {
  told <- function(name, column = name) {
    is <- pick_text(value, name)
    if (is.na(is)) rep(TRUE, nrow(rows)) else rows[[column]] %in% is
  }
  same <- told("dataset", "set") & told("path")
  if (over == "client") {
    return(same)
  }
  # Older phones differ from the S5 by their own access network; a campaign without one stands for Wi-Fi.
  access <- fcoalesce(pick_text(value, "access"), "wifi")
  same <- same & (if ("access" %in% names(rows)) sub("-.*", "", rows$access) == access else access == "wifi")
  phone <- fcoalesce(pick_text(value, "phone"), "galaxy-s5")
  same <- same & (if ("device" %in% names(rows)) rows$device == phone else rep(phone == "galaxy-s5", nrow(rows)))
  for (other in setdiff(intersect(swept_factors(campaign), c("concurrency", "parallelism")), over)) {
    same <- same & as.numeric(rows[[other]]) == 1
  }
  same
}

# One value: the measure where it was compared, and against what. Without a level it is the best one.
beside <- function(rows, how, sides, value, reference) {
  measure <- how[[1]]
  ours <- rows[, list(value = mean_or_na(.SD[[1]])), by = list(block, level), .SDcols = measure][!is.na(value)]
  if (nrow(ours) == 0L) {
    return(NULL)
  }
  least <- measure == "e_d_per_100_mb_j"
  at <- function(level) {
    picked <- level
    if (is.na(level)) {
      ours[, list(value = (if (least) min else max)(value)), by = block]
    } else {
      ours[ours$level == picked, list(block, value)]
    }
  }
  one <- at(sides$compared)
  plain <- is.numeric(sides$against) && is.na(sides$against) && how[[2]] == "change"
  wide <- if (plain) one[, list(block, value.x = value)] else merge(one, at(sides$against), by = "block")
  if (nrow(wide) == 0L) {
    return(NULL)
  }
  found <- if (plain) {
    wide$value.x
  } else {
    switch(how[[2]],
      ratio = wide$value.x / wide$value.y, saving = 100 * (1 - wide$value.x / wide$value.y),
      change = 100 * (wide$value.x / wide$value.y - 1)
    )
  }
  side <- function(of) {
    if (is.na(of) && is.numeric(of)) "best" else if (is.numeric(of)) paste(sides$over, of) else of
  }
  c(
    list(
      reference_id = reference, value_id = pick_text(value, "value_id"),
      statement = as.integer(pick_number(value, "statement")),
      quantity = pick_text(value, "quantity"), compared = side(sides$compared),
      against = if (plain) NA_character_ else side(sides$against), relation = pick_text(value, "relation"),
      printed = pick_text(value, "printed"), published_low = pick_number(value, "low"),
      published_high = pick_number(value, "high"),
      unit = if (plain) "Mb/s" else if (how[[2]] == "ratio") "1" else "%", n = nrow(wide)
    ), interval_columns(found, "ours")
  )
}

told_transfer_published <- function(rows) rows[, quantity := gsub("_", " ", quantity)]

#' Our values over the published ones, where these are numbers, a line for each
#' @noRd
transfer_published_figure <- function(found, campaign, id) {
  points <- of_meter(found, id)[!is.na(published_low) & ours > 0]
  if (nrow(points) == 0L) {
    return(NULL)
  }
  title <- "Our values over the published ones"
  figure(
    paste0("transfer-published", meter_suffix(campaign, id)), title, plot_published(points, title, campaign, id),
    2.2 + 0.26 * uniqueN(points, by = c("value_id", "reference_id")), id, "transfer_published"
  )
}

plot_published <- function(points, title, campaign, id) {
  points[, words := paste0(
    if ("dataset" %in% names(points)) paste0(sub(":.*", "", dataset), ": "), tolower_first(plain_quantity(quantity)),
    ", ", compared, fifelse(is.na(against), "", paste(" against", against))
  )]
  points[, words := paste0(words, " (", printed, fifelse(unit == "1", "", paste0(" ", unit)), ")")]
  points[, name := factor(words, rev(unique(words[order(statement, words)])))]
  plot <- ggplot(points, aes(x = ours / published_low, y = name)) +
    geom_vline(xintercept = 1, colour = "grey45", linewidth = 0.45) +
    geom_linerange(aes(
      xmin = pmax(ours_ci95_low, ours / 100) / published_low, xmax = ours_ci95_high / published_low
    ), na.rm = TRUE, colour = "grey35") +
    geom_point(colour = arm_colours[6], size = 2) +
    ggplot2::scale_x_log10(name = "Ours over published (in brackets)", labels = number_text) +
    scale_y_discrete(name = NULL) + netjoule_theme() + labs(
      title = title, subtitle = subtitle_words(
        campaign, id, "Bars: 95 % intervals over blocks. Setups differ: see the publication's in results/reference."
      ), caption = source_line(campaign, id)
    )
  with_alt(plot, paste0(
    title, ": ", paste0(points$words, " ", number_text(signif(points$ours, 3)), collapse = "; "), ". ",
    alt_end(campaign, id)
  ))
}

plain_quantity <- function(quantity) gsub("_", " ", sub("_(mbps|ratio|percent)$", "", quantity))
