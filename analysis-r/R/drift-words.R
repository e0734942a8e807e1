# SPDX-License-Identifier: Apache-2.0

# What each session did, in words; a campaign of one session needs none.

#' What E_A or P_I did in each session, after what it did over the campaign
#'
#' @param one row of [ea_drift()]; sessions from ea_drift_sessions(), NULL for none.
#' @return ": it fell by 14.2 % [10 to 18] in the second session, no trend is seen in the first"; "" with one session.
#' @noRd
sessions_clause <- function(one, sessions) {
  rows <- sessions_beside(one, sessions)
  if (is.null(rows)) {
    return("")
  }
  moved <- rows[verdict == "drift"]
  paste0(": ", paste(c(
    if (nrow(moved) > 0L) sprintf("it %s in the %s session", moved_words(moved), ordinal(moved$session)),
    quiet_words(rows[verdict == "no_drift_seen"], "no trend is seen in the"),
    quiet_words(rows[verdict == "cannot_tell"], "there are too few mini-blocks in the")
  ), collapse = ", "))
}

# The same for the line under a figure's title: "By session: no trend; fell by 14.2 % [10 to 18]."
sessions_short <- function(one, sessions) {
  rows <- sessions_beside(one, sessions)
  most_told <- 3L
  if (is.null(rows) || nrow(rows) > most_told) {
    return(NULL)
  }
  words <- fcase(
    rows$verdict == "drift", moved_words(rows), rows$verdict == "no_drift_seen", "no trend",
    default = "unknown"
  )
  paste0("By session: ", paste(words, collapse = "; "), ".")
}

sessions_beside <- function(one, sessions) {
  if (NROW(sessions) == 0L || NROW(one) == 0L || one$verdict == "constant") {
    return(NULL)
  }
  rows <- sessions[sessions$meter_id == one$meter_id & sessions$quantity == one$quantity]
  if (nrow(rows) > 1L) rows
}

# "fell by 14.2 % [10 to 18]": without signs, the smaller end first.
moved_words <- function(rows) {
  ends <- abs(cbind(rows$change_ci95_low, rows$change_ci95_high))
  sprintf(
    "%s by %s %% [%s to %s]", ifelse(rows$change_percent < 0, "fell", "rose"), short(abs(rows$change_percent)),
    short(pmin(ends[, 1], ends[, 2])), short(pmax(ends[, 1], ends[, 2]))
  )
}

quiet_words <- function(rows, words) {
  if (nrow(rows) > 0L) paste(words, enumerated(ordinal(rows$session)))
}

ordinal <- function(number) {
  words <- c("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
  fcoalesce(words[number], paste0(number, "th"))
}
