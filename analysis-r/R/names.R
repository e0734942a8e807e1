# SPDX-License-Identifier: Apache-2.0

# Names come from files that anyone may have written. What goes into a path must
# be a plain identifier; what goes onto paper must be one line of visible text.

#' Assert that identifiers may be used inside a path
#'
#' @param ids character vector.
#' @param what what they name, for the message.
#' @noRd
assert_path_ids <- function(ids, what) {
  bad <- is.na(ids) | !grepl("^[A-Za-z0-9][A-Za-z0-9._-]*$", ids) | grepl("..", ids, fixed = TRUE)
  if (any(bad)) {
    abort_invalid_data(
      what, " ", encodeString(ids[bad][1], quote = "\""),
      " is not a plain name (letters, digits, dot, dash, underscore): the campaign is refused; rename it in the files."
    )
  }
  invisible(ids)
}

# Characters that are not seen but break lines, hide others or turn them round, so that a name would not read as it
# is written: soft hyphen, zero width spaces, marks of direction (Unicode Standard Annex 9), separators.
unseen_codes <- c(0x00ad, 0x061c, 0x200b, 0x200e, 0x200f, 0x2028:0x202e, 0x2060, 0x2066:0x2069, 0xfeff)

#' Show such characters by their code, e.g. <U+202E>
#' @noRd
show_unseen <- function(text) {
  for (code in unseen_codes) {
    one <- intToUtf8(code)
    found <- grepl(one, text, fixed = TRUE)
    if (any(found)) text[found] <- gsub(one, sprintf("<U+%04X>", code), text[found], fixed = TRUE)
  }
  text
}

#' Make text fit for one line of a figure: nothing unseen, no control characters, bounded length
#'
#' @param text character vector; NA becomes "unknown".
#' @param width greatest number of characters.
#' @noRd
plain_text <- function(text, width = 60L) {
  text <- enc2utf8(as.character(text))
  text[is.na(text) | !validUTF8(text)] <- "unknown"
  text <- gsub("[[:cntrl:]]+", " ", show_unseen(text))
  long <- nchar(text) > width
  text[long] <- paste0(substr(text[long], 1L, width - 1L), "\u2026")
  text
}
