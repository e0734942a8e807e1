# SPDX-License-Identifier: Apache-2.0

# Where runs of several message sizes share a panel, frames per message stand under the figure instead of over it.

#' Frames per message of each transport over all cells, for a caption
#'
#' A stream packs messages into frames as it likes: it shares a panel with datagrams
#' only with this shown. Datagrams alone need no such line.
#'
#' @param summary from [summarise_ea()].
#' @return one string, NULL when no stream is among the transports.
#' @noRd
frames_words <- function(summary, width = 118L) {
  rows <- summary[transport != "null"]
  styles <- transport_looks()
  if (!any(rows$transport %in% styles$transport[styles$kind == "stream"])) {
    return(NULL)
  }
  frames <- rows[, list(text = range_text(frames_per_message)), by = list(transport)]
  frames <- frames[order(transport_factor(transport))]
  words <- paste0(transport_label(frames$transport), " ", frames$text)
  words <- paste0(words, c(rep(",", length(words) - 1L), ""))
  wrap_items(c("frames per message:", words), " ", width)
}

source_line_with_frames <- function(campaign, meter_id, summary) {
  paste(c(source_line(campaign, meter_id), frames_words(summary)), collapse = "\n")
}
