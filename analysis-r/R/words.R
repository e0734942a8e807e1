# SPDX-License-Identifier: Apache-2.0

# Words and sentences of every report: numbers with intervals, drift, outliers, runs that do not count.

short <- function(x) number_text(signif(x, 3))

start_sentence <- function(model, text) {
  if (nzchar(model)) paste0(model, text) else paste0(toupper(substr(text, 1L, 1L)), substring(text, 2L))
}

# A sentence about a meter; of a modelled one it says so.
model_sentence <- function(campaign, id, ...) {
  start_sentence(if (is_modelled(campaign, id)) "In this model, " else "", paste0(...))
}

tolower_first <- function(text) paste0(tolower(substr(text, 1L, 1L)), substring(text, 2L))

sentence_list <- function(sentences) tag$ul(lapply(prose(without_codes(sentences)), tag$li))

# Codes are for who looks a cell up in the tables, where they stand.
without_codes <- function(text) gsub(" \\(floor_[a-z_]+\\)", "", text)

#' An interval of a difference in plain words, the end nearer to 0 first: "8.9 to 14.1 % more than UDP (mean 11.5 %)"
#'
#' @param percent,low,high as in contrasts: positive is more.
#' @param than what follows the side.
#' @noRd
side_words <- function(percent, low, high, than = "") {
  if (is.na(low)) {
    return(paste0(percent_words(short(abs(percent)), percent), than, ", in a single block"))
  }
  size <- sub("^-", "", same_decimals(percent, low, high))
  if (low * high <= 0) {
    sprintf(
      "between %s %% less and %s %% more%s (mean %s)", size[2], size[3], than, percent_words(size[1], percent)
    )
  } else {
    ends <- unique(if (low > 0) size[2:3] else size[3:2])
    centre <- if (length(ends) > 1L) sprintf(" (mean %s %%)", size[1]) else ""
    paste0(paste(ends, collapse = " to "), " % ", more_or_less(percent), than, centre)
  }
}

# "12 % less"; what is nothing is on neither side.
percent_words <- function(size, difference) {
  if (size == "0") "no difference" else paste(size, "%", more_or_less(difference))
}

# The one sign of every difference, in words.
more_or_less <- function(difference) if (difference < 0) "less" else "more"

# Sentences of each meter as a list, under its name where there are several; nothing where none has any.
by_meter <- function(campaign, tables, heading, sentences) {
  ids <- setdiff(campaign$meters$meter_id, outside_meters(campaign, headline(tables)))
  several <- length(ids) > 1L
  parts <- lapply(ids, function(id) {
    told <- sentences(id)
    if (length(told) > 0L) {
      list(
        if (several) tag$h4(paste0(meter_title(campaign, id), " (meter ", id, ")")),
        sentence_list(told)
      )
    }
  })
  if (any(lengths(parts) > 0L)) list(tag$h3(heading), parts)
}

enumerated <- function(words) {
  last <- length(words)
  if (last < 2L) words else paste(paste(words[-last], collapse = ", "), "and", words[last])
}

# A mini-block with a run that does not count is repeated: what was planned is its last attempt.
counts_sentence <- function(campaign) {
  of_last <- campaign$plan[, .SD[attempt == max(attempt)], by = "mini_block"]
  planned <- nrow(of_last)
  usable <- sum(campaign$runs$usable & campaign$runs$run_id %in% of_last$run_id)
  again <- uniqueN(campaign$plan$mini_block[!campaign$plan$run_id %in% of_last$run_id])
  paste0(
    sprintf("%d of %d planned runs count, %d are invalid or unfinished", usable, planned, planned - usable),
    if (again == 1L) "; 1 mini-block was repeated",
    if (again > 1L) sprintf("; %d mini-blocks were repeated", again),
    sprintf("; blocks: %d.", blocks_of(campaign))
  )
}

#' Did anything but arms and cells change E_A or P_I while the campaign ran?
#' @noRd
drift_sentences <- function(campaign, drift, sessions = NULL) {
  several <- nrow(campaign$meters) > 1L
  vapply(unique(drift$meter_id), function(id) {
    rows <- drift[meter_id == id]
    parts <- vapply(seq_len(nrow(rows)), function(i) drift_part(rows[i], sessions), "")
    clock <- time_unit(max(rows$span_s))
    paste0(
      model_sentence(campaign, id, "from the first to the last run ("),
      number_text(signif(max(rows$span_s) / clock$seconds, 3)), " ", clock$name, if (several) paste0(", meter ", id),
      ") ", paste(parts, collapse = "; "), "."
    )
  }, "", USE.NAMES = FALSE)
}

drift_part <- function(one, sessions = NULL) {
  if (one$verdict == "constant") {
    return(paste(one$quantity, "is one constant in this device model, so it cannot show drift"))
  }
  if (one$verdict == "cannot_tell") {
    return(paste("a trend of", one$quantity, "is unknown: there are too few mini-blocks"))
  }
  # A hundredth of a percent is less than any meter tells.
  percent <- function(x) short(round(x, 2L))
  change <- sprintf(
    "%s %% [%s to %s]", percent(one$change_percent), percent(one$change_ci95_low), percent(one$change_ci95_high)
  )
  if (one$verdict == "drift") {
    paste0(
      one$quantity, " drifted by ", change, ", which does not affect comparisons, because runs are compared only ",
      "inside a mini-block",
      sessions_clause(one, sessions)
    )
  } else {
    paste0("no drift of ", one$quantity, " is seen (", change, ")", sessions_clause(one, sessions))
  }
}

#' An estimate with its interval, both with the same decimals: "1.230 [1.198 to 1.262]"; alone where it has none
#'
#' @param unit what stands behind the estimate, with its space.
#' @noRd
range_words <- function(value, low, high, unit = "") {
  unit <- rep_len(unit, length(value))
  vapply(seq_along(value), function(i) {
    if (is.na(value[i])) {
      NA_character_
    } else if (is.na(low[i]) || is.na(high[i])) {
      paste0(short(without_rounding(value[i])), unit[i])
    } else {
      text <- same_decimals(value[i], low[i], high[i])
      sprintf("%s%s [%s to %s]", text[1], unit[i], text[2], text[3])
    }
  }, "")
}

#' An estimate and the ends of its interval as texts with the same decimals
#'
#' Two digits of the interval's shorter side, at most four of the estimate; zeros that all of them end in are cut. What
#' is no interval about the estimate (its longer side is over 20 times the shorter), or smaller than any decimals that
#' one reads, is rounded each by itself.
#' @noRd
same_decimals <- function(value, low, high) {
  x <- without_rounding(c(value, low, high))
  sides <- sort(c(x[1] - x[2], x[3] - x[1]))
  width <- sides[2]
  size <- if (x[1] == 0) max(abs(x)) else abs(x[1])
  if (size == 0 || sides[1] < 0 || width > 20 * max(sides[1], 0.01 * size)) {
    return(short(x))
  }
  place <- function(of, digits) digits - 1L - floor(log10(of))
  decimals <- min(place(size, 4L), if (sides[1] > 0) place(sides[1], 2L))
  if (decimals > 6L) {
    return(short(x))
  }
  text <- formatC(round(x, decimals), format = "f", digits = max(0L, decimals))
  while (all(grepl("\\.[0-9]*0$", text))) text <- sub("\\.?0$", "", text)
  sub("^-(0[.0]*)$", "\\1", text)
}

span_of <- function(low, high) ifelse(is.na(low), NA_character_, paste(number_text(low), "to", number_text(high)))

# Columns that the rows have and that have something in any row: on a phone an empty one only takes room.
filled <- function(rows, columns) {
  columns[vapply(columns, function(column) {
    values <- rows[[shown_columns(column)[if (grepl("~!", column, fixed = TRUE)) 2L else 1L]]]
    any(!is.na(values) & values != "")
  }, NA)]
}

# Codes as words.
spaced <- function(codes) gsub("_", " ", gsub(";", ", ", codes, fixed = TRUE), fixed = TRUE)

# "2.1 to 30", "30" or "unknown".
short_span <- function(values, unit = "") {
  values <- values[is.finite(values)]
  if (length(values) == 0L) "unknown" else paste0(paste(short(unique(range(values))), collapse = " to "), unit)
}

plural <- function(word, count) if (count == 1L) word else paste0(word, "s")

cell_words <- function(count) paste(count, plural("cell", count))

p_text <- function(p) if (p < 1e-4) formatC(p, digits = 1, format = "e") else number_text(signif(p, 2))

#' Runs that do not count, by reason
#' @noRd
invalid_sentence <- function(campaign) {
  invalid <- invalid_runs(campaign)
  if (nrow(invalid) == 0L) {
    return("No finished run is invalid.")
  }
  counts <- sort(table(unique(invalid[, c("run_id", "code"), with = FALSE])$code), decreasing = TRUE)
  runs <- length(unique(invalid$run_id))
  sprintf(
    "%d finished %s not count, by reason: %s (tables/invalid_runs.csv).", runs,
    if (runs == 1L) "run does" else "runs do", paste(counts, plain_text(names(counts)), collapse = ", ")
  )
}

outlier_sentence <- function(outliers) {
  if (is.null(outliers)) {
    return(NULL)
  }
  rule <- sprintf(
    "more than %g robust standard deviations (1.4826 MAD) from the median of their cell", outlier_limit
  )
  count <- length(unique(outliers$run_id))
  if (count == 0L) {
    return(sprintf("No run is flagged as an outlier (%s).", rule))
  }
  sprintf(
    "%d %s (%s; tables/outliers.csv). %s in every number: none is dropped.", count,
    if (count == 1L) "run is flagged as an outlier" else "runs are flagged as outliers", rule,
    if (count == 1L) "It stays" else "They stay"
  )
}
