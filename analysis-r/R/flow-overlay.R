# SPDX-License-Identifier: Apache-2.0

# Two campaigns compared side by side: the cells that both have. Only what stands in both is shown; no
# test is made of it, and so nothing is called a change.

#' Write a report that compares two campaigns side by side: one self-contained HTML file
#'
#' Into neither campaign anything is written.
#'
#' @param campaign_dirs folders of two campaigns.
#' @param path of the report.
#' @param tell called with the event list(event = "report", path = ).
#' @return path, invisibly.
#' @examples
#' one <- example_campaign()$dir
#' other <- tempfile("campaign")
#' dir.create(other)
#' file.copy(list.files(one, full.names = TRUE), other, recursive = TRUE)
#' overlay_report(c(one, other), tempfile(fileext = ".html"))
#' @export
overlay_report <- function(campaign_dirs, path, tell = function(event) NULL) {
  dirs <- normalizePath(campaign_dirs, mustWork = FALSE)
  if (length(unique(dirs)) != 2L) {
    abort_netjoule(
      "A campaign is compared with another one: name two different folders.",
      exit_code = exit_codes$usage
    )
  }
  campaigns <- lapply(dirs, read_campaign)
  lapply(campaigns, assert_transports)
  names(campaigns) <- overlay_labels(campaigns, dirs)
  pairs <- overlay_pairs(campaigns)
  if (length(pairs) == 0L) {
    abort_netjoule(
      "The campaigns ", dirs[1], " and ", dirs[2], " have no cell in common (transport, direction, payload size, ",
      "offered load, pacing) with an E_A or a goodput in both: name two campaigns that ran the same cells.",
      exit_code = exit_codes$usage
    )
  }
  title <- list(name = paste(names(campaigns), collapse = " and "))
  write_page(title, overlay_body(campaigns, pairs), path)
  tell(list(event = "report", path = path))
  invisible(path)
}

# "A (wifi-old)": the letter alone distinguishes them where names are the same.
overlay_labels <- function(campaigns, dirs) {
  names <- vapply(campaigns, function(campaign) plain_text(campaign$name, 30L), "")
  if (names[1] == names[2]) names <- plain_text(basename(dirs), 30L)
  paste0(c("A", "B"), " (", names, ")")
}

#' Meters of both campaigns that tell of the same, with the cells that both have
#'
#' Meters of one name meet each other; where none has, the first of each.
#'
#' @return list of list(ids, cells), the latter from overlay_cells(); without pairs that have no cell.
#' @noRd
overlay_pairs <- function(campaigns) {
  summaries <- lapply(campaigns, summarise_ea)
  inside <- Map(function(campaign, summary) {
    setdiff(campaign$meters$meter_id, outside_meters(campaign, summary))
  }, campaigns, summaries)
  shared <- intersect(inside[[1]], inside[[2]])
  ids <- if (length(shared) > 0L) lapply(shared, rep, 2L) else list(c(inside[[1]][1], inside[[2]][1]))
  pairs <- lapply(ids, function(pair) list(ids = pair, cells = overlay_cells(summaries, pair)))
  Filter(function(pair) nrow(pair$cells) > 0L, pairs)
}

#' Cells that both summaries have, one row per cell and campaign
#'
#' @return data.table: columns of ea_summary, `side` (1, 2), `cell`, `panel`, `limit` (E_A is an upper limit alone).
#' @noRd
overlay_cells <- function(summaries, ids) {
  sides <- Map(function(summary, id, side) {
    rows <- with_drawn_intervals(summary[meter_id == id & transport != "null"])
    rows[!is.na(ea_j_per_mbit_mean) | !is.na(goodput_mbps)][, side := side][]
  }, summaries, ids, 1:2)
  rows <- rbindlist(unname(sides))
  # Whose power it is does not make a cell another one.
  rows <- rows[, if (.N == 2L) .SD, by = eval(flow_cell)]
  if (nrow(rows) == 0L) {
    return(rows)
  }
  rows <- with_cell_names(in_cell_order(rows))
  rows[, limit := mostly_below(below_resolution_n, n)]
  names <- overlay_panel(rows)
  # A row of panels per size.
  rows[, panel := factor(names, levels = unique(names[order(payload_bytes, transport_factor(transport))]))]
  rows[]
}

overlay_panel <- function(rows) {
  paste0(transport_label(as.character(rows$transport)), ", ", number_text(rows$payload_bytes), " B", variant_note(rows))
}

#' A row per cell, what both campaigns say of it and B's part of A's
#'
#' No ratio of E_A where one of them is an upper limit, not positive, or outside its device model's validity.
#'
#' @param cells from overlay_cells().
#' @noRd
overlay_table <- function(cells) {
  told <- copy(cells)[, ea := range_words(ea_j_per_mbit_mean, ea_drawn_low, ea_drawn_high)]
  told[limit & !is.na(ea_upper_limit_j_per_mbit), ea := paste("under", short(ea_upper_limit_j_per_mbit))]
  told[hollow == TRUE, ea := paste(ea, "(extrapolated)")]
  told[, with_ratio := !limit & !hollow & ea_j_per_mbit_mean > 0]
  shown <- c(
    "ea", "with_ratio", "ea_j_per_mbit_mean", "ea_drawn_low", "ea_drawn_high", "ea_upper_limit_j_per_mbit",
    "ea_above_floor_j_per_mbit", "goodput_mbps", "loss_ratio", "n"
  )
  of <- function(number, letter, more = NULL) {
    found <- told[side == number, c(more, flow_cell, shown), with = FALSE]
    setnames(found, shown, paste0(letter, "_", shown))
  }
  table <- of(2L, "b")[of(1L, "a", "cell"), on = flow_cell]
  table[, `:=`(
    ea_b_over_a = fifelse(a_with_ratio & b_with_ratio, b_ea_j_per_mbit_mean / a_ea_j_per_mbit_mean, NA_real_),
    goodput_b_over_a = fifelse(a_goodput_mbps > 0, b_goodput_mbps / a_goodput_mbps, NA_real_)
  )]
  setcolorder(table[, c("a_with_ratio", "b_with_ratio") := NULL], "cell")[]
}

overlay_body <- function(campaigns, pairs) {
  tables <- lapply(pairs, function(pair) overlay_table(pair$cells))
  sources <- vapply(campaigns, source_line, "", NULL, 10000L)
  sections <- list(
    overlay_summary(campaigns, pairs, tables), overlay_figures(campaigns, pairs),
    tag$section(id = "tables", tag$h2("Tables"), Map(overlay_html, list(campaigns), pairs, tables))
  )
  page_body(overlay_header(campaigns), sections, list(
    lapply(names(sources), function(name) tag$p(paste0(name, ": ", sources[[name]], "."))), paste0(made_by(), ".")
  ))
}

overlay_header <- function(campaigns) {
  modelled <- vapply(campaigns, is_modelled, NA)
  tag$header(
    class = "top", tag$h1("Two campaigns: ", paste(names(campaigns), collapse = " and ")),
    tag$ul(class = "labels", if (any(modelled)) {
      which <- if (all(modelled)) "both" else names(campaigns)[modelled]
      tag$li(class = "model", paste0("in this model, not measured on hardware: ", which))
    })
  )
}

overlay_summary <- function(campaigns, pairs, tables) {
  differences <- overlay_differences(campaigns)
  lead <- vapply(tables, overlay_lead, "")
  if (length(pairs) > 1L) lead <- paste0("Meter ", vapply(pairs, function(pair) pair$ids[1], ""), ": ", lead)
  tag$section(
    id = "summary", tag$h2("Answer"), lapply(prose(lead), function(one) tag$p(class = "lead", one)),
    tag$p(
      "There is no significance test, and neither is called better: the campaigns were not interleaved, so anything ",
      "that changed between them is in the ratio."
    ),
    tag$h3("Where the two differ"),
    if (length(differences) == 0L) {
      tag$p("Kernel, processor, meters, workload, link and program versions are the same in both.")
    } else {
      list(
        tag$p(sprintf(
          "They differ in %s, which may cause part of a ratio.", enumerated(tolower(names(differences)))
        )),
        tag$ul(Map(function(name, words) {
          tag$li(tag$strong(name, .noWS = "after"), ": ", words)
        }, names(differences), differences))
      )
    },
    overlay_alone(campaigns, pairs)
  )
}

overlay_lead <- function(table) {
  ratio <- table$ea_b_over_a[!is.na(table$ea_b_over_a)]
  cells <- cell_words(nrow(table))
  if (length(ratio) == 0L) {
    return(sprintf("Both have %s; none has an E_A in both campaigns.", cells))
  }
  sprintf(
    "Both have %s. E_A of B is %s to %s times that of A (median %s, %s).", cells, short(min(ratio)), short(max(ratio)),
    short(stats::median(ratio)), cell_words(length(ratio))
  )
}

# Cells that one campaign has alone are named by their number.
overlay_alone <- function(campaigns, pairs) {
  shared <- nrow(pairs[[1]]$cells) / 2L
  alone <- mapply(function(campaign, id) {
    rows <- summarise_ea(campaign)
    nrow(rows[meter_id == id & transport != "null"]) - shared
  }, campaigns, pairs[[1]]$ids)
  if (any(alone > 0L)) {
    tag$p(paste0("Not shown here: ", enumerated(sprintf("%s of %s alone", vapply(
      as.integer(alone[alone > 0L]), cell_words, ""
    ), names(campaigns)[alone > 0L])), "."))
  }
}

# Entries of one part that are named; more are counted.
most_differences <- 8L

#' What the two were made with and differ in, by part
#'
#' @return named character vector, part -> "kernel A 6.1, B 6.18; ...".
#' @noRd
overlay_differences <- function(campaigns) {
  sides <- lapply(campaigns, overlay_setting)
  words <- vapply(names(sides[[1]]), function(part) {
    a <- sides[[1]][[part]]
    b <- sides[[2]][[part]]
    keys <- union(names(a), names(b))
    told <- data.table(entry = keys, a = unname(a[keys]), b = unname(b[keys]))
    told[is.na(a), a := "none"][is.na(b), b := "none"]
    told <- told[a != b]
    if (nrow(told) == 0L) {
      return("")
    }
    some <- utils::head(told, most_differences)
    text <- paste0(gsub("[._]+", " ", some$entry), " A ", plain_text(some$a), ", B ", plain_text(some$b))
    more <- nrow(told) - nrow(some)
    paste(c(text, if (more > 0L) sprintf("%d more", more)), collapse = "; ")
  }, "")
  words[nzchar(words)]
}

# What says when and under which name a campaign was made is no difference.
overlay_setting <- function(campaign) {
  meta <- campaign$meta
  without <- function(x, names) x[setdiff(names(x), names)]
  only <- function(x, names) x[intersect(names, names(x))]
  entry <- function(x) if (length(x) > 0L) flatten(x)
  host <- pick(meta, "host", default = list())
  # Kernels of one host keep some kB more or less of it for themselves.
  if (!is.null(host$memory_bytes)) host$memory_gib <- round(host$memory_bytes / 2^30, 1)
  lab <- lapply(pick(meta, "lab_hosts", default = list()), without, c("boot_id", "time_utc"))
  if (length(lab) > 0L) names(lab) <- vapply(lab, pick_text, "", "host")
  meters <- campaign$meters[, c("make", "model", "power_source", "device_model", "update_interval_s"), with = FALSE]
  meters <- lapply(stats::setNames(split(meters, seq_len(nrow(meters))), campaign$meters$meter_id), as.list)
  list(
    "Kernel" = entry(c(host["kernel"], lapply(lab, function(one) one["kernel"]))),
    "Processor and memory" = entry(c(
      only(host, c("machine", "cpu_model", "cpu_cores", "memory_gib")),
      lapply(lab, only, c("machine", "cpu_model"))
    )),
    "Meters" = entry(lapply(meters, function(one) lapply(one, function(value) if (is.na(value)) "none" else value))),
    "Workload" = entry(without(pick(meta, "workload", default = list()), c("name", "description", "seed"))),
    "Link and hosts" = without_addresses(entry(
      without(pick(meta, "topology", default = list()), c("name", "description", "meters"))
    )),
    "Radio" = c(radio_source = radio_source(campaign)),
    "Programs" = entry(pick(meta, "versions", default = list()))
  )
}

# Which addresses hosts have costs nothing; in a bundle for others they are masked.
without_addresses <- function(entries) {
  entries[!grepl("(address|addresses[0-9.]*|mac|ssid|user)$", names(entries))]
}

overlay_html <- function(campaigns, pair, table) {
  caption <- sprintf(
    "Cells of both, meter %s: means and 95 %% intervals over blocks; %s.", paste(unique(pair$ids), collapse = " and "),
    paste(names(campaigns), collapse = ", ")
  )
  file <- paste0("overlay-", pair$ids[1])
  numbers <- copy(table)[, c("cell", "a_ea", "b_ea") := NULL]
  list(csv_link(numbers, file), table_html("overlay", table, caption, csv = paste0(file, ".csv")))
}
