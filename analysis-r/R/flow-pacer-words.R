# SPDX-License-Identifier: Apache-2.0

# The pacer's verdict in plain words; the command line prints the same sentences.

#' One sentence or two on one meter, transport and size
#'
#' @param campaign from [read_campaign()].
#' @param loads rows of [pacer_verdict()] without its keys.
#' @param keys their node, meter_id, device_model, ... as a list.
#' @return one string.
#' @noRd
pacer_words <- function(campaign, loads, keys) {
  if (loads$reason[1] %in% "model_without_cpu") {
    return(without_cpu_words(keys))
  }
  model <- if (is_modelled(campaign, keys$meter_id)) "In this model, " else ""
  subject <- sprintf(
    "%s, %g-byte messages%s%s (meter %s):", transport_label(keys$transport), keys$payload_bytes,
    if (keys$window_us > 0) sprintf(", window %g us", keys$window_us) else "", if (keys$gso) ", offload" else "",
    plain_text(keys$meter_id, 40L)
  )
  whole <- loads[!is.na(difference_w)]
  if (nrow(whole) == 0L) {
    return(paste0(model, subject, " ", cannot_words("arm_missing")))
  }
  paste0(
    model, subject, " P_A - P_I (E_A times T_A) is ", arm_words(whole, "spin"), " with pacing spin, ",
    shape_words(whole$shape_spin[1]), "; with pacing absolute it is ", arm_words(whole, "absolute"), ", ",
    shape_words(whole$shape_absolute[1]), ". Spinning adds ",
    at_loads(whole, interval_text(whole$difference_w, whole$difference_ci95_low, whole$difference_ci95_high)), ". ",
    verdict_words(whole$verdict[1], whole$reason[1], nzchar(model))
  )
}

without_cpu_words <- function(keys) {
  device <- if (is.na(keys$device_model)) "no device model" else plain_text(keys$device_model, 40L)
  form <- if (is.na(keys$device_form)) "" else paste0(" (", plain_text(keys$device_form, 20L), ")")
  paste0(
    "The power of meter ", plain_text(keys$meter_id, 40L), " is modelled without a CPU term (", device, form,
    "): it cannot show the cost of a spinning sender. Use the device model laptop-cpu."
  )
}

# "10 W [9.9 to 10.1] at 0.065 Mb/s and ..."; a power that the meter does not resolve is a limit.
arm_words <- function(loads, arm) {
  column <- function(name) loads[[sprintf(name, arm)]]
  high <- column("delta_p_%s_ci95_high")
  text <- interval_text(column("delta_p_%s_w"), column("delta_p_%s_ci95_low"), high)
  below <- column("below_resolution_%s_n") > 0
  limit <- ifelse(is.na(high), "below resolution", paste("at most", short(pmax(high, 0)), "W"))
  at_loads(loads, ifelse(below, limit, text))
}

interval_text <- function(value, low, high) {
  interval <- ifelse(is.na(low), "", sprintf(" [%s to %s]", short(low), short(high)))
  paste0(short(value), " W", interval)
}

at_loads <- function(loads, text) {
  enumerated(sprintf("%s at %s Mb/s", text, number_text(loads$offered_rate_mbps)))
}

shape_words <- function(shape) {
  switch(shape,
    constant = "constant over load: consistent with a busy-waiting sender or a wrong idle baseline",
    grows = "growing with load",
    falls = "falling with load",
    below_resolution = "partly below the meter's resolution, so that its course over load is unknown",
    "so that constant and growing power cannot be distinguished"
  )
}

verdict_words <- function(verdict, reason, modelled) {
  here <- if (modelled) " in this model" else ""
  switch(verdict,
    sender = paste0("The constant power came from the busy-waiting sender", here, "."),
    sender_in_part = paste0(
      "A part of the constant power came from the busy-waiting sender", here, "; the rest is there without it: a ",
      "wrong idle baseline, or a load on the node that comes with any flow."
    ),
    not_sender = paste0(
      "The constant power did not come from a spinning sender", here, ": a wrong idle baseline is left, or a load on ",
      "the node that comes with any flow."
    ),
    no_constant_power = paste0("There is no constant power to explain", here, "."),
    cannot_words(reason)
  )
}

cannot_words <- function(reason) {
  why <- switch(reason,
    arm_missing = "no load has runs with both pacings",
    few_blocks = "a single block gives no interval",
    few_loads = "the loads are too close together",
    below_resolution = "runs are below the meter's resolution",
    intervals_overlap = "the intervals overlap"
  )
  paste0("Whether constant power came from the sender is unknown: ", why, ".")
}
