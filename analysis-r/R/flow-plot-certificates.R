# SPDX-License-Identifier: Apache-2.0

#' Plot how well senders kept their schedules, and what that cost them
#'
#' Three rows of panels against offered load: median and 99th percentile of the
#' departure error, and the sender's share of a core; one column per message size.
#'
#' @param overview from [pacing_overview()].
#' @param summary from [summarise_ea()], for frames per message.
#' @param campaign from [read_campaign()], for the labels.
#' @return a patchwork with alt text, or NULL when no flow has a certificate.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' overview <- pacing_overview(pacing_certificates(campaign))
#' plot_pacing(overview, summary, campaign)
#' @export
plot_pacing <- function(overview, summary, campaign) {
  rows <- list(
    certificate_panel(overview, summary, "error_p50", "_us", "Median error (us)"),
    certificate_panel(overview, summary, "error_p99", "_us", "99th percentile (us)"),
    certificate_panel(overview, summary, "cpu", "_ratio", "CPU (cores)")
  )
  rows <- rows[lengths(rows) > 0L]
  if (length(rows) == 0L) {
    return(NULL)
  }
  # Of the pacing that is drawn, where the campaign has several.
  drawn <- unique(overview[, pacing_keys, with = FALSE])
  late <- late_runs(pacing_certificates(campaign)[drawn, on = pacing_keys, nomatch = NULL])
  stacked_figure(
    named_once(rows), campaign, NULL, certificate_words(overview, late), "Departure errors and CPU of the senders",
    alt_certificates(overview, late, campaign)
  )
}

# Errors have long tails and CPU grows with load: their axes are logarithmic, and begin here.
least_drawn <- list("_us" = 0.1, "_ratio" = 1e-4)

on_log_axis <- function(points, least) {
  for (column in c("value", "low", "high")) set(points, j = column, value = pmax(points[[column]], least))
  points[]
}

certificate_panel <- function(overview, summary, measure, unit, label) {
  column <- function(part) overview[[paste0(measure, part, unit)]]
  points <- flow_points(overview, paste0(measure, unit), n = "certificates_n", known = FALSE)
  points[, `:=`(low = column("_least"), high = column("_greatest"), failed = overview$failed_n > 0)]
  points <- points[!is.na(value)]
  if (nrow(points) == 0L) {
    return(NULL)
  }
  points <- spread_loads(on_log_axis(points, least_drawn[[unit]]))
  limits <- overview[[paste0("limit_", measure, unit)]]
  limit <- if (length(limits) > 0L) only_value(limits) else NA_real_
  size_panels(
    points, summary, scale_y_log10(name = label, breaks = scales::breaks_log(n = 5), labels = number_text),
    over = failed_marks(points),
    behind = if (!is.na(limit)) geom_hline(yintercept = limit, colour = "grey40", linetype = "44", linewidth = 0.4)
  )
}

# A column of panels per size.
size_panels <- function(points, summary, y, ...) {
  facets <- facet_wrap(
    ggplot2::vars(payload_bytes),
    labeller = as_labeller(certificate_labels(points, summary)), nrow = 1L
  )
  sweep_plot(points, facets, load_axis(points$at), y, ...)
}

# Crossed out: hollow means extrapolated in every other figure.
failed_marks <- function(points) {
  geom_point(data = points[failed == TRUE], shape = 4, size = 3.2, stroke = 0.7, colour = "black", show.legend = FALSE)
}

# A size of which no run counts has certificates all the same.
certificate_labels <- function(points, summary) {
  sizes <- sort(unique(points$payload_bytes))
  known <- payload_labels(summary[payload_bytes %in% sizes], columns = length(sizes))
  labels <- stats::setNames(paste0(sizes, "-byte messages"), sizes)
  labels[names(known)] <- known
  labels
}

certificate_words <- function(overview, late = NULL) {
  count <- function(column) sum(overview[[column]])
  judged <- count("passed_n") + count("failed_n")
  verdict <- if (judged == 0L) {
    sprintf("%d certificates, held to no limits.", count("certificates_n"))
  } else {
    sprintf("%d of %d certificates kept their limits%s.", count("passed_n"), judged, limited_words(overview))
  }
  limited <- any(!is.na(c(overview$limit_error_p50_us, overview$limit_error_p99_us)))
  c(
    verdict, "Median over runs; bars: least to greatest.", late_words(late),
    if (count("failed_n") > 0L) "Crossed out: a run failed.",
    if (limited) "Grey dashes: the limit.",
    if (any(overview$error_p50_us < least_drawn[["_us"]], na.rm = TRUE)) "Less than 0.1 us is drawn as 0.1 us."
  )
}

# Which percentile of the departure error is limited; nothing where none is.
limited_words <- function(overview) {
  median <- any(!is.na(overview$limit_error_p50_us))
  tail <- any(!is.na(overview$limit_error_p99_us))
  fcase(
    median && tail, " (median and 99th percentile)", median, " (of errors the median alone)",
    tail, " (of errors the 99th percentile alone)",
    default = ""
  )
}

# "Over 10 times the median 99th percentile of all runs (450 us): b03m055-tcp-a1 (21500 us) and 1 more."
late_words <- function(late) {
  count <- NROW(late$runs)
  if (count > 0L) {
    most_named <- 2L
    named <- utils::head(late$runs, most_named)
    words <- sprintf("%s (%s us)", plain_text(named$run_id, 40L), short(named$error_p99_us))
    if (count > most_named) words <- c(words, paste(count - most_named, "more"))
    sprintf(
      "Over %g times the median 99th percentile of all runs (%s us): %s.", late_ratio, short(late$typical_us),
      enumerated(words)
    )
  }
}

alt_certificates <- function(overview, late, campaign) {
  span <- function(column, unit) short_span(overview[[column]], unit)
  paste0(
    "Rows of panels against offered load, one column per message size, for ",
    paste(transport_label(levels(droplevels(transport_factor(overview$transport)))), collapse = ", "),
    ". Median departure error ", span("error_p50_us", " us"), "; 99th percentile ", span("error_p99_us", " us"),
    "; CPU of the sender ", span("cpu_ratio", " cores"), ". ",
    paste(c(certificate_words(overview)[1], late_words(late)), collapse = " "),
    if (is_modelled(campaign)) " In this model."
  )
}
