# SPDX-License-Identifier: Apache-2.0

# When the generator floor may be used: an independent second reading of the rules
# that result.json's floor reasons follow (DESIGN: achieved / asked, spinning, busy core).

least_achieved_ratio <- 0.99
greatest_busy_cores <- 0.9
greatest_wake_ups_factor <- 1.5
spinning_modes <- c("spin", "busy", "busy-wait")

# Codes that hang on what the run or its null run did: a cell's mean over the runs without one would be a selected one.
outcome_refusals <- c("floor_achieved_low", "floor_spinning", "floor_core_busy")

#' What run.json and flow.json say of a sender
#'
#' @param run,flow documents as nested lists; flow NULL when missing.
#' @return list sent_pacing (mode), sent_ratio (messages sent over scheduled),
#'   window_sent_ratio (the same of the sender's whole intervals in the measure window),
#'   busy_cores (CPU seconds per second), wake_ups_per_message; NA when unknown.
#' @noRd
sender_facts <- function(run, flow) {
  number <- function(...) pick_number(flow, "sender", ...)
  sent_pacing <- pick_text(flow, "pacing", "mode")
  seconds <- 1e-9 * (number("end_ns") - number("start_ns"))
  list(
    sent_pacing = if (is.na(sent_pacing)) pick_text(run, "pacing", "mode") else sent_pacing,
    sent_ratio = ratio_or_na(number("messages_sent"), number("messages_scheduled")),
    window_sent_ratio = window_sent_ratio(run, flow),
    busy_cores = ratio_or_na(number("cpu_s"), seconds), wake_ups_per_message = wake_ups_of(list(flow))
  )
}

# Wake-ups of several senders together over messages scheduled; NA when one of them does not tell.
wake_ups_of <- function(flows) {
  total <- function(...) sum(vapply(flows, pick_number, 0, ...))
  ratio_or_na(total("pacing", "wake_ups"), total("sender", "messages_scheduled"))
}

#' The same of a run with several flows: that of the flow that kept its schedule worst, and of the busiest host
#'
#' Senders on one host share its cores, so their CPU time adds up. Wake-ups are those of all.
#'
#' @param flows reports, flow 1 first.
#' @noRd
sender_facts_of_all <- function(run, flows) {
  if (length(flows) < 2L) {
    return(sender_facts(run, flows[[1]]))
  }
  facts <- Map(function(asked, flow) sender_facts(utils::modifyList(run, asked), flow), run$flows, flows)
  of <- function(name) vapply(facts, function(one) as.numeric(one[[name]]), 0)
  kept <- pmax(of("sent_ratio"), of("window_sent_ratio"), na.rm = TRUE)
  kept[is.na(of("sent_ratio"))] <- -Inf
  worst <- facts[[which.min(kept)]]
  busy <- of("busy_cores")
  hosts <- unlist(Map(sending_host, run$flows, flows))
  worst$busy_cores <- if (all(is.na(busy))) NA_real_ else max(tapply(busy, hosts, sum, na.rm = TRUE))
  worst$wake_ups_per_message <- wake_ups_of(flows)
  worst
}

# By its boot: two machines may bear one name, and two clients on one machine share its cores. Else as it is named.
sending_host <- function(asked, flow) {
  named <- c(pick_text(flow, "sender", "boot_id"), pick_text(flow, "sender", "host"), pick_text(asked, "client"), "")
  named[!is.na(named)][1]
}

ratio_or_na <- function(part, whole) if (!is.na(whole) && whole > 0) part / whole else NA_real_

# One message more is allowed for, which may lie on the window's edge. A profile asks for other messages than those of a
# constant rate.
window_sent_ratio <- function(run, flow) {
  if (length(pick(flow, "profile", default = list())) > 0L) {
    return(NA_real_)
  }
  zero_ns <- pick_number(flow, "sender", "first_packet_ns") - 1e9 * pick_number(run, "t_first_packet_s")
  low <- zero_ns + 1e9 * pick_number(run, "windows", "measure", "t_start_s")
  high <- zero_ns + 1e9 * pick_number(run, "windows", "measure", "t_end_s")
  inside <- Filter(function(interval) {
    isTRUE(pick_text(interval, "end") == "sender" && pick_number(interval, "start_ns") >= low &&
      pick_number(interval, "end_ns") <= high)
  }, pick(flow, "intervals", default = list()))
  total <- function(name) sum(vapply(inside, pick_number, 0, name))
  seconds <- 1e-9 * (total("end_ns") - total("start_ns"))
  asked <- pick_number(run, "offered_rate_mbps") * 1e6 * seconds / (8 * pick_number(run, "payload_bytes"))
  ratio_or_na(total("messages") + 1, asked)
}

#' Code that refuses a floor, NA when it may be used
#'
#' @param own,null data.tables or lists of [sender_facts()], row by row.
#' @noRd
floor_refusal <- function(own, null) {
  kept <- function(facts) {
    ratio <- pmax(facts$sent_ratio, facts$window_sent_ratio, na.rm = TRUE)
    !is.na(facts$sent_ratio) & ratio >= least_achieved_ratio
  }
  spins <- function(facts) facts$sent_pacing %in% spinning_modes
  busy <- function(facts) !is.na(facts$busy_cores) & facts$busy_cores > greatest_busy_cores
  fcase(
    !kept(own) | !kept(null), "floor_achieved_low",
    spins(own) | spins(null), "floor_spinning",
    busy(own) | busy(null), "floor_core_busy",
    default = NA_character_
  )
}

#' Whether the senders of a run and of its null run had so different a rate of wake-ups that it is worth a warning
#'
#' @param own,null wake-ups per message, element by element.
#' @return logical; NA where either is unknown.
#' @noRd
wake_ups_differ <- function(own, null) pmax(own, null) > greatest_wake_ups_factor * pmin(own, null)

#' Cells of which the floor takes a large part; of an extrapolated model no share is told
#' @noRd
floor_large_cells <- function(rows) {
  rows[transport != "null" & !hollow & !is.na(floor_ratio) & floor_ratio > greatest_floor_ratio]
}

# Cells without a floor, and those in which some runs have none, each once with its codes, most frequent first. That a
# campaign ran no null at all is no news of a cell.
floor_empty_words <- function(rows) {
  rows <- rows[transport != "null" & !is.na(floor_reason) & floor_reason != "no_null_run"]
  c(
    floor_count_words(rows[is.na(floor_w)], "E_A above floor is empty in %s: %s."),
    floor_count_words(rows[!is.na(floor_w)], "E_A above floor is of runs with a floor alone in %s: %s.")
  )
}

floor_count_words <- function(rows, sentence) {
  counts <- sort(table(gsub(";", ", ", rows$floor_reason, fixed = TRUE)), decreasing = TRUE)
  sprintf(sentence, vapply(as.integer(counts), cell_words, ""), names(counts))
}
