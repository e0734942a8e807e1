# SPDX-License-Identifier: Apache-2.0

#' Write the report of a campaign: one self-contained HTML file
#'
#' No network, no script: style and figures are inside. All names are escaped.
#'
#' @param campaign from [read_campaign()].
#' @param tables,figures of the campaign; the figures are already written.
#' @param path of the report.
#' @return path.
#' @export
report <- function(campaign, tables, figures, path = file.path(campaign$dir, "report.html")) {
  page <- tag$html(
    lang = "en",
    tag$head(
      tag$meta(charset = "utf-8"), tag$meta(name = "viewport", content = "width=device-width, initial-scale=1"),
      tag$title(paste("netjoule:", plain_text(campaign$name))), tag$style(htmltools::HTML(report_css()))
    ),
    tag$body(report_header(campaign, tables), tag$main(
      section_summary(campaign, tables), section_pacer(campaign, tables), section_fairness(campaign, tables),
      section_figures(campaign, figures), section_tables(campaign, tables),
      section_method(campaign), section_invalid(campaign, tables), section_environment(campaign),
      section_glossary(campaign), report_footer(campaign)
    ))
  )
  connection <- file(path, "wb")
  on.exit(close(connection))
  # Rendered where it stands: as.character() would take the head out of the page.
  html <- htmltools::doRenderTags(page, indent = FALSE)
  writeLines(enc2utf8(paste0("<!DOCTYPE html>\n", html)), connection, useBytes = TRUE)
  path
}

report_header <- function(campaign, tables = NULL) {
  meters <- campaign$meters
  sections <- c(
    summary = "Summary", if (!is.null(tables$pacer_verdict)) c(pacer = "Pacer"),
    if (!is.null(tables$fairness)) c(fairness = "Fairness"), figures = "Figures", tables = "Tables",
    method = "Method", invalid = "Invalid runs", environment = "Environment", glossary = "Glossary"
  )
  tag$header(
    class = "top", tag$h1("What a megabit cost: ", plain_text(campaign$name)),
    tag$ul(
      class = "labels",
      tag$li(paste("power_source:", paste(unique(plain_text(meters$power_source)), collapse = ", "))),
      tag$li(paste("radio_source:", radio_source(campaign))),
      lapply(stats::na.omit(unique(meters$device_model)), function(name) {
        tag$li(paste("device model:", plain_text(name)))
      }),
      if (any(meters$quantity %in% "apparent_power")) {
        tag$li(class = "model", "apparent power: current times a nominal voltage, grade C at most")
      },
      if (is_modelled(campaign)) tag$li(class = "model", "in this model, not measured on hardware"),
      if (is_imported(campaign)) {
        tag$li(class = "model", paste(c(generator_words(campaign), "no power was logged"), collapse = "; "))
      }
    ),
    tag$nav(`aria-label` = "Sections", tag$ul(lapply(names(sections), function(id) {
      tag$li(tag$a(href = paste0("#", id), sections[[id]]))
    })))
  )
}

section_summary <- function(campaign, tables) {
  several <- nrow(campaign$meters) > 1L
  planned <- nrow(campaign$plan[status != "superseded"])
  usable <- sum(campaign$runs$usable)
  counts <- sprintf(
    "%d of %d planned runs count, %d are invalid or unfinished; blocks: %d.", usable, planned, planned - usable,
    blocks_of(campaign)
  )
  tag$section(
    id = "summary", tag$h2("Summary"), tag$p(counts),
    lapply(campaign$meters$meter_id, function(id) {
      list(
        if (several) tag$h3(paste0(meter_title(campaign, id), " (meter ", id, ")")),
        tag$ul(lapply(summary_sentences(campaign, tables, id), tag$li))
      )
    }),
    tag$h3("How sure"), tag$ul(lapply(certainty_sentences(campaign, tables), tag$li))
  )
}

section_figures <- function(campaign, figures) {
  dir <- file.path(campaign$dir, "figures")
  shown <- lapply(seq_along(figures), function(i) {
    one <- figures[[i]]
    file <- paste0(one$name, ".svg")
    tag$figure(
      id = paste0("figure-", one$name),
      tag$div(class = "scroll", tabindex = "0", inline_svg(file.path(dir, file), figure_alt(one$plot), i)),
      tag$figcaption(tag$strong(paste0("Figure ", i, ". ", one$title, ". ")), figure_alt(one$plot), " ", tag$code(file))
    )
  })
  tag$section(
    id = "figures", tag$h2("Figures"), shown,
    if (!any(vapply(figures, function(one) grepl("^floor", one$name), NA))) {
      tag$p("There is no figure of the generator floor: no mini-block of this campaign has a usable null run.")
    }
  )
}

#' What the arms spin and absolute say about power that stays constant over load
#' @noRd
section_pacer <- function(campaign, tables) {
  verdict <- tables$pacer_verdict
  if (is.null(verdict)) {
    return(NULL)
  }
  tag$section(
    id = "pacer", tag$h2("Constant power: from the sender or not?"),
    tag$p(
      "Power above idle that stays the same at every load makes E_A fall as 1 over load. A sender that waits in a ",
      "busy loop looks like that, and so does an idle power that was read too low. The same schedules were sent by a ",
      "pacer that spins and by one that sleeps: only what the sender draws differs between the two."
    ),
    tag$ul(lapply(unique(verdict$words), tag$li)),
    html_table(verdict, c(
      node = "node", meter = "meter_id", transport = "transport", "payload B" = "payload_bytes",
      "load Mb/s" = "offered_rate_mbps", "spin W" = "delta_p_spin_w", "absolute W" = "delta_p_absolute_w",
      "difference W" = "difference_w", "95 % low" = "difference_ci95_low", "95 % high" = "difference_ci95_high",
      "exponent, spin" = "exponent_spin", "exponent, absolute" = "exponent_absolute", verdict = "verdict",
      reason = "reason"
    ), paste("P_A - P_I, which is E_A times T_A, by pacing.", source_line(campaign, NULL, 10000L)))
  )
}

section_tables <- function(campaign, tables) {
  tag$section(
    id = "tables", tag$h2("Tables"),
    tag$p("The same numbers with more digits are in tables/*.csv."),
    lapply(campaign$meters$meter_id, function(id) meter_tables(campaign, tables, id)),
    if (nrow(tables$phy_rates) > 0L) {
      tag$details(tag$summary("PHY rates by load"), html_table(tables$phy_rates, c(
        node = "node", transport = "transport", "payload B" = "payload_bytes", "load Mb/s" = "offered_rate_mbps",
        "PHY rate Mb/s" = "phy_rate_mbps", MCS = "mcs", streams = "streams", "width MHz" = "width_mhz",
        "guard interval ns" = "guard_interval_ns", samples = "samples", share = "share"
      ), paste("Share of measured time.", source_line(campaign, NULL, 10000L))))
    }
  )
}

meter_tables <- function(campaign, tables, id) {
  sources <- source_line(campaign, id, 10000L)
  list(
    tag$h3(paste0(meter_title(campaign, id), " (meter ", id, ")")),
    html_table(tables$ea_summary[meter_id == id], c(
      pacing_column(tables$ea_summary), flows_column(tables$ea_summary),
      transport = "transport", "payload B" = "payload_bytes", "load Mb/s" = "offered_rate_mbps", blocks = "n",
      "E_A J/Mb" = "ea_j_per_mbit_mean", "95 % low" = "ea_ci95_low", "95 % high" = "ea_ci95_high",
      "u95 meter" = "u95_meter", "upper limit J/Mb" = "ea_upper_limit_j_per_mbit", "goodput Mb/s" = "goodput_mbps",
      "sent / asked" = "achieved_ratio", "loss" = "loss_ratio", "jitter ms" = "jitter_ms",
      "frames per message" = "frames_per_message", "wake-ups per message" = "wake_ups_per_message",
      "P_A W" = "p_a_w",
      "P_A - P_I W" = "delta_p_w",
      "floor W" = "floor_w", "u95 floor" = "u95_floor_w", "E_A above floor J/Mb" = "ea_above_floor_j_per_mbit",
      "u95 above floor" = "u95_ea_above_floor_j_per_mbit", "floor empty for" = "floor_reason",
      "runs below resolution" = "below_resolution_n", hollow = "hollow"
    ), paste("E_A per cell.", sources)),
    tag$details(tag$summary("Envelope"), html_table(tables$envelope[meter_id == id], c(
      pacing_column(tables$envelope), flows_column(tables$envelope),
      transport = "transport", "load Mb/s" = "offered_rate_mbps", "sizes" = "payload_sizes", complete = "complete",
      "least J/Mb" = "ea_least_j_per_mbit", "at B" = "payload_bytes_least", "greatest J/Mb" = "ea_greatest_j_per_mbit",
      "at B" = "payload_bytes_greatest", runs = "n_runs", "runs left out" = "runs_left_out"
    ), paste("Energy envelope.", sources))),
    if (nrow(tables$delta_ea[meter_id == id]) > 0L) {
      tag$details(tag$summary("Differences against UDP"), html_table(tables$delta_ea[meter_id == id], c(
        pacing_column(tables$delta_ea), flows_column(tables$delta_ea),
        transport = "transport", "payload B" = "payload_bytes", "load Mb/s" = "offered_rate_mbps", pairs = "n_pairs",
        method = "method", "dE_A %" = "dea_percent", "95 % low" = "dea_ci95_low", "95 % high" = "dea_ci95_high",
        "goodput %" = "dgoodput_percent", "P_A difference W" = "dp_a_w", "95 % low" = "dp_a_ci95_low",
        "95 % high" = "dp_a_ci95_high"
      ), paste("Positive dE_A: less than UDP. Per cell, uncorrected: exploratory.", sources)))
    }
  )
}

# Which pacing a row is of, where a campaign has several.
pacing_column <- function(rows) {
  variants <- pacing_variants(rows)
  if (nrow(variants) > 1L) {
    c(
      pacing = "pacing", if (any(variants$window_us > 0)) c("window us" = "window_us"),
      if (any(variants$gso)) c(offload = "gso")
    )
  }
}

# Which flows the runs of a row had at once, where these are several.
flows_column <- function(rows) if ("flows_at_once" %in% names(rows)) c("flows at once" = "flows_at_once")

section_method <- function(campaign) {
  tag$section(
    id = "method", tag$h2("Method"),
    tag$ul(
      tag$li(
        "E_A = (P_A - P_I) / T_A, in joules per megabit (1 Mb = 10^6 bit of payload). P_A and T_A belong to one ",
        "window on one clock: the whole receiver intervals inside the measure window. T_A counts first copies only."
      ),
      tag$li(
        "P_I is the line through the idle windows before and after the run, at the middle of that window; idle has ",
        "the same processes and sockets, only no packets."
      ),
      tag$li(
        "A mini-block holds every transport and null at one payload and load, back to back in random order; a block ",
        "holds every cell once. The block is the unit of replication; pairs are formed only inside a mini-block."
      ),
      tag$li(
        "The generator floor is the same schedule with transport null: messages are built, timed and dropped. E_A ",
        "above floor takes it off: (P_A - P_null) / T_A, each power above the idle power of its own run. It is empty ",
        "where either run sent under 99 % of its schedule, where the pacer spun, where the senders on one host ",
        "were over 90 % of a core busy, and without a valid null run."
      ),
      tag$li(
        "Energy envelope: the band between least and greatest E_A over message sizes. Runs outside the device model's ",
        "validity (hollow) and runs below the meter's resolution are left out of it and of ratios."
      ),
      tag$li(
        "Payload size is the application's message size. Streams (TCP, QUIC) pack messages into frames; datagram ",
        "transports send one message each: compare them only with frames per message in view."
      ),
      tag$li(
        "Scheduled messages are sent or not_sent: a transport with congestion control may let fewer leave than the ",
        "load asks for. Sent messages arrive or are lost. E_A and goodput count what arrived, loads are what was asked."
      ),
      tag$li(
        "u95 meter is the metering uncertainty of one run; most of it is common to all runs, so it is kept apart."
      )
    ),
    if (is_modelled(campaign)) tag$p("All of this holds in this model; it is no measurement of a device.")
  )
}

# Rows of a table in the report; longer ones stand whole in their CSV file.
most_rows <- 200L

section_invalid <- function(campaign, tables) {
  invalid <- tables$invalid_runs
  content <- if (nrow(invalid) == 0L) {
    tag$p("No finished run is invalid.")
  } else {
    list(count_by_code(invalid, "reason"), long_table("Every invalid run", "tables/invalid_runs.csv", invalid, c(
      run = "run_id", transport = "transport", "payload B" = "payload_bytes", "load Mb/s" = "offered_rate_mbps",
      reason = "code", detail = "detail"
    )))
  }
  superseded <- nrow(campaign$plan[status == "superseded"])
  waiting <- nrow(campaign$plan[status %in% c("planned", "running")])
  tag$section(
    id = "invalid", tag$h2("Invalid runs"), content,
    if (superseded > 0L) tag$p(sprintf("%d runs of repeated mini-blocks do not count.", superseded)),
    if (waiting > 0L) tag$p(sprintf("%d runs have not been finished: netjoule resume goes on with them.", waiting)),
    if (nrow(tables$run_notes) > 0L) {
      list(
        tag$h3("Notes on runs that count"), count_by_code(tables$run_notes, "note"),
        long_table("Every note", "tables/run_notes.csv", tables$run_notes, c(
          run = "run_id", note = "code", detail = "detail"
        ))
      )
    }
  )
}

count_by_code <- function(rows, heading) {
  counted <- rows[, list(
    runs = length(unique(run_id)), meaning = meaning[1], next_step = next_step[1]
  ), by = list(code)]
  columns <- c("code", runs = "runs", meaning = "meaning", "next step" = "next_step")
  names(columns)[1] <- heading
  html_table(counted, columns, long = c("meaning", "next_step"))
}

long_table <- function(summary, csv, rows, columns) {
  shown <- utils::head(rows, most_rows)
  more <- nrow(rows) - nrow(shown)
  tag$details(
    tag$summary(summary), html_table(shown, columns, long = "detail"),
    if (more > 0L) tag$p(sprintf("%d more rows are in %s.", more, csv))
  )
}

section_environment <- function(campaign) {
  parts <- c(
    meters = "Meters", host = "Host", lab_hosts = "Hosts of the lab", versions = "Versions", topology = "Testbed",
    workload = "Workload", sessions = "Sessions"
  )
  rest <- campaign$meta[setdiff(names(campaign$meta), names(parts))]
  tag$section(id = "environment", tag$h2("Environment"), definitions_of(rest), lapply(names(parts), function(part) {
    value <- campaign$meta[[part]]
    if (part == "meters") names(value) <- campaign$meters$meter_id
    if (length(value) == 0L) {
      return(NULL)
    }
    if (part == "lab_hosts") names(value) <- vapply(value, pick_text, "", "host")
    tag$details(open = if (part %in% c("meters", "host")) NA, tag$summary(parts[[part]]), definitions_of(value))
  }))
}

definitions_of <- function(x) {
  flat <- flatten(x)
  definition_list(names(flat), unname(flat))
}

section_glossary <- function(campaign) {
  glossary <- glossary_table(campaign$contracts)
  if (nrow(glossary) == 0L) {
    return(NULL)
  }
  term <- ifelse(glossary$unit == "", glossary$term, paste0(glossary$term, " (", glossary$unit, ")"))
  meaning <- ifelse(glossary$column == "", glossary$meaning, paste0(glossary$meaning, " Column ", glossary$column, "."))
  tag$section(id = "glossary", tag$h2("Glossary"), definition_list(term, meaning))
}

report_footer <- function(campaign) {
  tag$footer(
    source_line(campaign, NULL, 10000L), ". Written by the R package netjoule ",
    as.character(utils::packageVersion("netjoule")), "; rebuilt at any time from the campaign's files."
  )
}
