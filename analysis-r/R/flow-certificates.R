# SPDX-License-Identifier: Apache-2.0

# How well senders kept their schedules, across runs. Each flow's certificate (flow.json) was judged where it was
# written; here certificates are listed, counted and summarised, nothing is judged anew.

certificate_errors <- c("p50", "p99", "p99_9", "max")
certificate_shares <- c(
  "within_5us_ratio", "within_50us_ratio", "within_500us_ratio", "back_to_back_ratio", "held_back_ratio",
  "held_back_not_sent_ratio", "achieved_ratio", "cpu_ratio"
)

#' What is read of the pacing certificates of one run's flows
#'
#' @param flows reports of the flows, flow 1 first; NULL for one that is missing.
#' @return list with one list per flow that has a certificate.
#' @noRd
certificate_rows <- function(run_id, flows) {
  rows <- lapply(seq_along(flows), function(number) {
    certificate <- pick(flows[[number]], "pacing_certificate", default = list())
    if (length(certificate) > 0L) certificate_row(run_id, number, certificate)
  })
  rows[lengths(rows) > 0L]
}

certificate_row <- function(run_id, number, certificate) {
  errors <- pick_numbers(certificate, certificate_errors, "error_us")
  c(
    list(
      run_id = run_id, flow = as.numeric(number), error_basis = pick_text(certificate, "error_basis"),
      departures = pick_number(certificate, "departures"), messages_early = pick_number(certificate, "messages_early")
    ),
    stats::setNames(errors, paste0("error_", certificate_errors, "_us")), pick_numbers(certificate, certificate_shares),
    list(
      train_mean_messages = pick_number(certificate, "train_messages", "mean"),
      limit_error_p50_us = pick_number(certificate, "limits", "max_error_p50_us"),
      limit_error_p99_us = pick_number(certificate, "limits", "max_error_p99_us"),
      limits = limit_words(pick(certificate, "limits", default = list())), passed = pick_flag(certificate, "passed"),
      failed = failed_words(pick(certificate, "failed", default = list()))
    )
  )
}

# "max_error_p50_us 400; min_achieved_ratio 0.99"
limit_words <- function(limits) {
  if (length(limits) == 0L) {
    return(NA_character_)
  }
  limits <- limits[order(names(limits))]
  values <- vapply(limits, function(value) if (is.numeric(value)) number_text(value) else "unknown", "")
  paste(plain_text(names(limits), 40L), values, collapse = "; ")
}

failed_words <- function(failed) {
  if (length(failed) == 0L) NA_character_ else paste(plain_text(unlist(failed), 160L), collapse = "; ")
}

#' Pacing certificates of every finished run, those that do not count too
#'
#' @param campaign from [read_campaign()].
#' @return data.table, one row per run and flow with a certificate; `passed` is empty
#'   where the flow was held to no limits, `usable` says whether the run counts.
#' @examples
#' pacing_certificates(example_campaign())
#' @export
pacing_certificates <- function(campaign) {
  given <- campaign$certificates
  if (is.null(given) || nrow(given) == 0L) {
    return(table_of("pacing_certificates"))
  }
  of_run <- c("run_id", setdiff(names(schema_columns("pacing_certificates")), names(given)))
  rows <- merge(given, campaign$runs[, of_run, with = FALSE], by = "run_id", sort = FALSE)
  setorderv(table_of("pacing_certificates", rows), c("mini_block", "attempt", "run_id", "flow"))[]
}

# A run is late whose 99th percentile is over this many times the median of all.
late_ratio <- 10

#' Runs whose sender was late far more often than the others
#'
#' @param certificates from [pacing_certificates()].
#' @return list typical_us (median over runs of the 99th percentile of the departure error) and runs (rows of
#'   certificates, the latest first).
#' @noRd
late_runs <- function(certificates) {
  rows <- certificates[flow == 1 & !is.na(error_p99_us)]
  typical_us <- if (nrow(rows) > 0L) stats::median(rows$error_p99_us) else NA_real_
  list(typical_us = typical_us, runs = rows[error_p99_us > late_ratio * typical_us][order(-error_p99_us, run_id)])
}

overview_keys <- c(
  "transport", "direction", "payload_bytes", "offered_rate_mbps", "pacing", "window_us", "gso"
)

# Columns of the overview by measure of a certificate: its median, least and greatest.
overview_measures <- c(
  error_p50_us = "error_p50%s_us", error_p99_us = "error_p99%s_us", cpu_ratio = "cpu%s_ratio",
  within_50us_ratio = "within_50us%s_ratio", held_back_ratio = "held_back%s_ratio"
)

#' Pacing certificates per cell: counts, median over runs, least and greatest
#'
#' Medians and ranges instead of means: percentiles of a machine's lateness have long
#' tails, and the range shows the run that went wrong. Of a run with several flows
#' flow 1, which is of the run's own transport, stands for it.
#'
#' @param certificates from [pacing_certificates()].
#' @return data.table, one row per cell; limits only where all its runs had the same.
#' @examples
#' pacing_overview(pacing_certificates(example_campaign()))
#' @export
pacing_overview <- function(certificates) {
  rows <- certificates[flow == 1]
  if (nrow(rows) == 0L) {
    return(table_of("pacing_overview"))
  }
  in_cell_order(rows[, overview_of(.SD), by = overview_keys])
}

overview_of <- function(rows) {
  measures <- lapply(names(overview_measures), function(name) {
    values <- rows[[name]][!is.na(rows[[name]])]
    found <- if (length(values) == 0L) rep(NA_real_, 3L) else c(stats::median(values), range(values))
    stats::setNames(as.list(found), sprintf(overview_measures[[name]], c("", "_least", "_greatest")))
  })
  c(
    list(
      certificates_n = nrow(rows), passed_n = sum(rows$passed %in% TRUE), failed_n = sum(rows$passed %in% FALSE),
      unjudged_n = sum(is.na(rows$passed))
    ),
    unlist(measures, recursive = FALSE),
    list(
      error_max_us = extreme_or_na(rows$error_max_us, max),
      achieved_least_ratio = extreme_or_na(rows$achieved_ratio, min),
      limit_error_p50_us = only_value(rows$limit_error_p50_us), limit_error_p99_us = only_value(rows$limit_error_p99_us)
    )
  )
}

extreme_or_na <- function(x, of) if (all(is.na(x))) NA_real_ else of(x, na.rm = TRUE)

only_value <- function(x) {
  values <- unique(x)
  if (length(values) == 1L) values else NA_real_
}
