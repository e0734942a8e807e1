# SPDX-License-Identifier: Apache-2.0

# Sender cost per message: CPU time, naps, acknowledgements to read. Much of E_A comes out of it.

message_costs <- c("cpu_user_us_per_message", "cpu_system_us_per_message", "acks_per_message", "naps_per_message")

#' What the senders of a run spent on a message
#'
#' The flows of a run count together; of what one of them does not tell nothing is told.
#'
#' @param flows reports of all flows as nested lists, NULL for a missing one.
#' @return list named by `message_costs`: CPU time and acknowledgements over messages sent, naps over messages
#'   scheduled, as in result.json; NA when unknown.
#' @noRd
message_costs_of <- function(flows) {
  total <- function(...) sum(vapply(flows, pick_number, 0, ...))
  sent <- total("sender", "messages_sent")
  list(
    cpu_user_us_per_message = ratio_or_na(1e6 * total("sender", "cpu_user_s"), sent),
    cpu_system_us_per_message = ratio_or_na(1e6 * total("sender", "cpu_system_s"), sent),
    acks_per_message = ratio_or_na(sum(vapply(flows, acks_received, 0)), sent),
    naps_per_message = ratio_or_na(total("pacing", "naps"), total("sender", "messages_scheduled"))
  )
}

# Counter of transport_stats that says how many packets came back. Of QUIC all: nearly all acknowledge.
ack_counters <- c(
  dccp = "acks_received", quic = "packets_received", "quic-datagram" = "packets_received", sctp = "sacks_received"
)

#' Packets that came back to the sender of a flow, NA where its report does not tell
#' @noRd
acks_received <- function(flow) {
  transport <- pick_text(flow, "transport")
  counted <- function(name) pick_number(flow, "sender", "transport_stats", name)
  switch(fcoalesce(transport, ""),
    udp = , null = 0, # nobody answers
    tcp = counted("segments_in") - counted("data_segments_in"),
    if (transport %in% names(ack_counters)) counted(ack_counters[[transport]]) else NA_real_
  )
}

# Rows of panels of the figure, top down.
message_panels <- c(
  cpu_user_us_per_message = "User CPU (us)", cpu_system_us_per_message = "System CPU (us)",
  wake_ups_per_message = "Wake-ups", acks_per_message = "Acknowledgements"
)

#' Plot the sender's cost per message
#'
#' Rows of panels against offered load: CPU time in user and in system mode, wake-ups and acknowledgements per
#' message; one column per message size. Null shows what building and timing take.
#'
#' @param summary from [summarise_ea()]; a sender is the same at every meter, so the first meter's rows count.
#' @param campaign from [read_campaign()], for the labels.
#' @return a patchwork with alt text, or NULL when no report has CPU time.
#' @examples
#' campaign <- example_campaign()
#' summary <- summarise_ea(campaign)
#' plot_message_cost(summary, campaign)
#' @export
plot_message_cost <- function(summary, campaign) {
  rows <- summary[meter_id == summary$meter_id[1]]
  if (all(is.na(rows$cpu_user_us_per_message))) {
    return(NULL)
  }
  told <- Filter(function(column) !all(is.na(rows[[column]])), names(message_panels))
  panels <- lapply(told, function(column) message_panel(rows, column))
  words <- "CPU and acknowledgements per message sent, pacer wake-ups per scheduled one. Means over blocks."
  stacked_figure(
    named_once(panels), campaign, NULL, words, "Sender cost per message", alt_message_cost(rows, campaign)
  )
}

message_panel <- function(rows, column) {
  # Cells of which nothing is told keep their panel, so that columns stand below each other.
  points <- spread_loads(flow_points(rows, column, known = FALSE))
  size_panels(points, rows, scale_y_continuous(
    name = message_panels[[column]], labels = number_text, limits = c(0, max(0.1, points$value, na.rm = TRUE))
  ))
}

alt_message_cost <- function(rows, campaign) {
  span <- function(column) short_span(rows[[column]])
  paste0(
    "Rows of panels against offered load, one column per message size, for ",
    paste(transport_label(levels(droplevels(transport_factor(rows$transport)))), collapse = ", "),
    ". The senders' CPU time per message: user ", span("cpu_user_us_per_message"), " us, system ",
    span("cpu_system_us_per_message"), " us; wake-ups per message ", span("wake_ups_per_message"),
    "; acknowledgements per message ", span("acks_per_message"), ".", if (is_modelled(campaign)) " In this model."
  )
}
