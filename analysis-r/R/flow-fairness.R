# SPDX-License-Identifier: Apache-2.0

# Runs with several flows: what each got, and how evenly they shared the path. Most campaigns have none.

#' Jain's fairness index, (sum x)^2 / (n sum x^2)
#'
#' Jain, Chiu, Hawe: DEC-TR-301, 1984. 1 when all shares are equal, 1/n when one has everything.
#'
#' @param shares numeric, in any unit.
#' @return number in (0, 1]; NA for fewer than two shares, for one that is unknown or
#'   negative, and when there is nothing to share.
#' @examples
#' jain_index(c(1, 1, 2))
#' @export
jain_index <- function(shares) {
  if (length(shares) < 2L || !all(is.finite(shares)) || any(shares < 0) || max(shares) == 0) {
    return(NA_real_)
  }
  parts <- shares / max(shares)
  min(1, sum(parts)^2 / (length(parts) * sum(parts^2)))
}

#' Receivers' intervals of several flows as those of one
#'
#' An independent second reading of the rule that result.json follows: time is cut at
#' every edge of any flow, payload counts as spread evenly over its interval, and a
#' piece is kept where every flow has an interval.
#'
#' @param intervals data.table flow, t_start_s, t_end_s (s), bytes.
#' @return data.table t_start_s, t_end_s, bytes in time order.
#' @noRd
joined_intervals <- function(intervals) {
  columns <- c("t_start_s", "t_end_s", "bytes")
  if (length(unique(intervals$flow)) < 2L) {
    return(intervals[, columns, with = FALSE])
  }
  by_flow <- lapply(split(intervals, by = "flow"), touching)
  edges <- sort(unique(unlist(lapply(by_flow, function(one) c(one$t_start_s, one$t_end_s)))))
  starts <- edges[-length(edges)]
  ends <- edges[-1]
  rates <- vapply(by_flow, bytes_per_second_at, numeric(length(starts)), at_s = (starts + ends) / 2)
  rates <- matrix(rates, nrow = length(starts))
  everywhere <- rowSums(is.na(rates)) == 0L
  data.table(t_start_s = starts, t_end_s = ends, bytes = rowSums(rates) * (ends - starts))[everywhere]
}

# Neighbours that touch but for the rounding of their times share their edge.
touching <- function(one) {
  one <- setorderv(copy(one), "t_start_s")
  n <- nrow(one)
  near <- which(abs(one$t_start_s[-1] - one$t_end_s[-n]) <= edge_tolerance_s)
  set(one, near + 1L, "t_start_s", one$t_end_s[near])
  one
}

bytes_per_second_at <- function(one, at_s) {
  place <- findInterval(at_s, one$t_start_s)
  place[place == 0L] <- NA_integer_
  rate <- one$bytes[place] / (one$t_end_s[place] - one$t_start_s[place])
  ifelse(at_s < one$t_end_s[place], rate, NA_real_)
}

#' Payload bytes in a window; a cut interval counts by the share of it that lies inside
#' @noRd
bytes_within <- function(intervals, window) {
  overlap <- pmax(pmin(intervals$t_end_s, window[2]) - pmax(intervals$t_start_s, window[1]), 0)
  sum(intervals$bytes * overlap / (intervals$t_end_s - intervals$t_start_s))
}

# Numbers of the flows that a client's power moved; NULL where all did: one client, or a node that is none.
flows_of_node <- function(flows, id, node) {
  of_run <- flows$run_id %in% id
  own <- of_run & flows$client %in% node
  if (any(own) && sum(own) < sum(of_run)) flows$flow[own]
}

# Whether a node is a client and nothing else of the path, and has no flow in a run: no payload is its own.
took_no_part <- function(campaign, run, node) {
  roles <- unlist(pick(campaign$meta, "topology", "hosts", node, "roles", default = list()))
  clients <- c(run$client_host, campaign$flows$client[campaign$flows$run_id %in% run$run_id])
  "client" %in% roles && !any(c("server", "access_point") %in% roles) && !node %in% clients
}

# Fields of a flow of several in result.json that are read; a test holds them to its schema.
flow_text <- c("client", "transport", "direction")
flow_numbers <- c(
  "flow", "payload_bytes", "offered_rate_mbps", "goodput_mbps", "demand_met_ratio", "loss_ratio", "achieved_ratio"
)

#' The flows of a run with several, as result.json has them
#'
#' @return list of lists, one per flow; none for a run with one.
#' @noRd
flow_rows <- function(run_id, result) {
  lapply(pick(result, "flows", default = list()), function(flow) {
    c(
      list(run_id = run_id),
      pick_texts(flow, flow_text),
      pick_numbers(flow, flow_numbers)
    )
  })
}

#' One row per flow of every usable run with several flows
#'
#' `run_transport` is the transport that the run was planned for: of its own flows
#' `transport` is the same, of what runs beside them it is another.
#'
#' @param campaign from [read_campaign()].
#' @return data.table; NULL for a campaign whose runs have one flow each.
#' @noRd
flow_table <- function(campaign) {
  if (nrow(campaign$flows) == 0L) {
    return(NULL)
  }
  of_run <- campaign$runs[usable == TRUE, list(
    run_id, block, mini_block, attempt,
    run_transport = transport, run_payload_bytes = payload_bytes, run_rate_mbps = offered_rate_mbps,
    pacing, window_us, gso
  )]
  rows <- merge(of_run, campaign$flows, by = "run_id", sort = FALSE)
  setorderv(rows, c("mini_block", "attempt", "run_id", "flow"))[]
}

#' Add the column flows_at_once: which flows the runs of a cell had
#'
#' @param cells table with transport, direction and offered_rate_mbps.
#' @return the same table where every run has one flow.
#' @noRd
with_flows_at_once <- function(cells, campaign) {
  if (nrow(campaign$flows) == 0L) {
    return(cells)
  }
  of_run <- campaign$flows[, list(words = flow_list(.SD)), by = run_id]
  runs <- merge(campaign$runs, of_run, by = "run_id", sort = FALSE)
  key <- function(rows) paste(rows$transport, rows$direction, rows$offered_rate_mbps)
  words <- vapply(split(runs$words, key(runs)), function(of_cell) paste(unique(of_cell), collapse = " or "), "")
  copy(cells)[, flows_at_once := unname(words[key(cells)])][]
}

# "udp up 5 Mb/s + 2 x tcp up 100 Mb/s"; with several clients each is named.
flow_list <- function(flows) {
  flows <- flows[order(flow)]
  at <- if (length(unique(flows$client)) > 1L) paste0(" at ", flows$client)
  words <- paste0(flows$transport, " ", flows$direction, " ", number_text(flows$offered_rate_mbps), " Mb/s", at)
  count <- table(words)[unique(words)]
  paste0(ifelse(count > 1L, paste(count, "x "), ""), names(count), collapse = " + ")
}

#' What each flow got, per cell: goodput with its 95 % interval over blocks, demand met, loss
#'
#' @param flows from flow_table(), or NULL.
#' @return data.table, one row per cell and flow, null runs left out; NULL without flows.
#' @noRd
flow_shares <- function(flows) {
  if (is.null(flows)) {
    return(NULL)
  }
  cell <- c("run_transport", "run_payload_bytes", "run_rate_mbps", pacing_keys)
  flow <- c("flow", "client", "transport", "direction", "payload_bytes", "offered_rate_mbps")
  shares <- flows[run_transport != "null", c(
    list(n = uniqueN(block)), interval_columns(block_means(.SD, goodput_mbps), "goodput_mbps", "goodput"),
    means_over_blocks(.SD, c("demand_met_ratio", "loss_ratio", "achieved_ratio"))
  ), by = c(cell, flow)]
  shares[, own := transport_factor(run_transport)]
  in_cell_order(shares, c(pacing_keys, "run_payload_bytes", "run_rate_mbps", "own", "flow"))[, own := NULL][]
}

#' What each of several flows got, by arm and cell, where another factor than the transport is compared
#'
#' @return data.table by the contract arm_shares.table.json; NULL of transports, for which flow_shares() is, and of runs
#'   with one flow.
#' @noRd
arm_shares <- function(campaign) {
  if (campaign$arm == "transport" || NROW(campaign$flows) == 0L) {
    return(NULL)
  }
  runs <- unique(without_control(energy_rows(campaign), campaign), by = "run_id")
  rows <- merge(runs, campaign$flows[, list(run_id, flow, goodput_mbps)], by = "run_id", sort = FALSE)
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  setorderv(rows, "flow")[, cell := cell_name(campaign, rows)]
  of_run <- c("mini_block", "attempt", "flow")
  first <- reference_arm(campaign)
  rows[rows[arm == first], goodput_ref := i.goodput_mbps, on = of_run]
  rows[, percent := fifelse(arm != first & goodput_ref > 0, 100 * (goodput_mbps / goodput_ref - 1), NA_real_)]
  found <- rows[, c(
    list(n = uniqueN(block)), interval_columns(block_means(.SD, goodput_mbps), "goodput_mbps", "goodput"),
    interval_columns(block_means(.SD, percent), "difference_percent")
  ), by = c("arm", "cell", "flow", campaign$factors)]
  found[, reference := fifelse(arm == first, NA_character_, first)]
  table_of("arm_shares", found[in_arm_order(campaign, found, found$arm)])
}

#' Fairness per cell: Jain's indices with their 95 % intervals over blocks
#'
#' @param campaign from [read_campaign()].
#' @return data.table transport, direction, payload_bytes, offered_rate_mbps (Mb/s, of one
#'   flow), the pacing, flows, n (blocks), jain_goodput and jain_demand_met with their
#'   intervals; NULL for a campaign whose runs have one flow each.
#' @examples
#' # NULL: its runs have one flow each.
#' fairness(example_campaign())
#' @export
fairness <- function(campaign) {
  if (nrow(campaign$flows) == 0L) {
    return(NULL)
  }
  rows <- campaign$runs[usable == TRUE & transport != "null" & flows > 1]
  keys <- c("transport", "direction", "payload_bytes", "offered_rate_mbps", pacing_keys, "flows")
  in_cell_order(rows[, c(
    list(n = uniqueN(block)), interval_columns(block_means(.SD, jain_goodput), "jain_goodput"),
    interval_columns(block_means(.SD, jain_demand_met), "jain_demand_met")
  ), by = keys])
}

#' Which flows each run has, where these are several; for captions
#' @noRd
flow_words <- function(campaign) {
  if (is.null(campaign$flows) || nrow(campaign$flows) == 0L) {
    return(NULL)
  }
  workload <- pick(campaign$meta, "workload", default = list())
  own <- fcoalesce(pick_number(workload, "parallel"), 1)
  clients <- fcoalesce(pick_number(workload, "clients"), 1)
  beside <- vapply(pick(workload, "beside", default = list()), function(other) {
    rate_mbps <- pick_number(other, "offered_rate_mbps")
    rate <- if (!is.na(rate_mbps)) paste0(" at ", number_text(rate_mbps), " Mb/s")
    paste0(transport_label(pick_text(other, "transport")), rate)
  }, "")
  paste0(
    "each run: ", if (own == 1) "one flow" else paste(own, "flows"), " of the transport",
    if (length(beside) > 0L) paste0(" beside ", paste(beside, collapse = ", ")),
    if (pick_text(workload, "direction") %in% "both") ", each up and down",
    if (clients > 1) paste0(", at each of ", clients, " clients")
  )
}

#' How evenly flows that ran at once shared the path
#' @noRd
section_fairness <- function(campaign, tables) {
  rows <- tables$fairness
  if (is.null(rows)) {
    return(NULL)
  }
  counts <- sort(unique(rows$flows))
  source <- source_line(campaign, NULL, 10000L)
  tag$section(
    id = "fairness", tag$h2("Fairness"),
    tag$p(paste0(
      "Each run had ", paste(counts, collapse = " or "), " flows at once: ",
      sub("^each run: ", "", flow_words(campaign)),
      ". E_A and T_A are of all of them; at a client, of its own. The offered load is that of one flow of the run's ",
      "transport."
    )),
    tag$p(
      "Jain's index is (sum x)^2 / (n sum x^2): 1 when all flows got the same, 1/n when one got everything. Of demand ",
      "met (goodput over offered load) it tells whether flows that ask for different rates are served alike."
    ),
    table_html("fairness", rows, source),
    tag$details(tag$summary("What each flow got"), table_html("flow_shares", tables$flow_shares, source))
  )
}
