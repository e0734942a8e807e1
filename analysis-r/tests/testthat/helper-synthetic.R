# SPDX-License-Identifier: Apache-2.0

# Synthetic campaigns with known truth, in the files that a real campaign writes.
# Power is piecewise constant on the meter's grid, so every number of result.json
# has a closed form that the generator writes without the code under test.

timeline <- list(idle = 2, warm_up = 0.5, measure = 2, tail = 0.5)
tick_s <- 0.1

#' Power while sending, above idle, in W: linear in goodput and in messages per second
linear_power <- function(w_per_mbps = 0.02, mj_per_message = 0.05, floor_w = 0.05) {
  function(transport, payload_bytes, rate_mbps) {
    messages <- rate_mbps * 1e6 / (8 * payload_bytes)
    factor <- c(udp = 1, tcp = 0.8, quic = 1.5, "quic-datagram" = 1.4, dccp = 1.2, "dccp-kernel" = 1.1)[transport]
    if (transport == "null") floor_w else unname(factor) * (w_per_mbps * rate_mbps + mj_per_message * 1e-3 * messages)
  }
}

synthetic_meter <- function(meter_id = "client-wt210", node = "client", idle_w = 8, power = linear_power(),
                            power_source = "modelled", device_model = "linear-test", device_form = "linear",
                            u_delta_p_w = 0.001, hollow = function(rate_mbps) FALSE) {
  list(
    meter_id = meter_id, node = node, idle_w = idle_w, power = power, power_source = power_source,
    device_model = device_model, device_form = device_form, u_delta_p_w = u_delta_p_w, hollow = hollow
  )
}

#' Write a campaign and return its folder
#'
#' @param noise_w standard deviation of the run-to-run power, W (seeded).
#' @param loss share of messages lost on datagram transports, by rate.
#' @param held_back share of messages that DCCP's congestion control does not let leave, by rate.
#' @param pacings factor of the campaign; a meter's power function may take the pacing as its fourth argument.
synthetic_campaign <- function(dir = tempfile("campaign"), name = "synthetic",
                               transports = c("udp", "tcp", "quic", "null"), payload_bytes = c(64, 1440),
                               offered_rate_mbps = c(1, 10), blocks = 3, meters = list(synthetic_meter()),
                               noise_w = 0, loss = function(rate_mbps) 0, held_back = function(rate_mbps) 0,
                               phy_rate_mbps = function(n) rep(216, n), seed = 1, pacings = "absolute") {
  set.seed(seed)
  dir.create(dir, recursive = TRUE)
  for (sub in c("meters", "radio", "runs")) dir.create(file.path(dir, sub))
  plan <- synthetic_plan(transports, payload_bytes, offered_rate_mbps, blocks, pacings)
  step <- sum(unlist(timeline))
  plan$t0 <- (seq_len(nrow(plan)) - 1) * step
  noise <- matrix(rnorm(nrow(plan) * length(meters), sd = noise_w), nrow(plan))
  path <- list(loss = loss, held_back = held_back)
  for (i in seq_len(nrow(plan))) write_synthetic_run(dir, name, plan, i, meters, noise, path)
  for (k in seq_along(meters)) write_synthetic_meter(dir, plan, meters[[k]], noise[, k])
  write_synthetic_radio(dir, nrow(plan) * step, phy_rate_mbps)
  columns <- intersect(names(schema_columns("plan_1")), names(plan))
  data.table::fwrite(plan[, columns], file.path(dir, "plan.csv"), na = "")
  write_json(file.path(dir, "campaign.json"), synthetic_meta(name, transports, meters))
  dir
}

synthetic_plan <- function(transports, payload_bytes, offered_rate_mbps, blocks, pacings) {
  cells <- expand.grid(
    payload_bytes = payload_bytes, offered_rate_mbps = offered_rate_mbps, pacing = pacings, stringsAsFactors = FALSE
  )
  rows <- list()
  for (block in seq_len(blocks)) {
    for (cell in sample(nrow(cells))) {
      count <- length(transports)
      rows[[length(rows) + 1]] <- data.frame(
        block = block, mini_block = length(rows) + 1, order = seq_len(count), attempt = 1,
        transport = sample(transports), payload_bytes = cells$payload_bytes[cell],
        offered_rate_mbps = cells$offered_rate_mbps[cell], direction = "up", generator = "netjoule-traffic",
        seed = length(rows) * count + seq_len(count), status = "done", reason = "", pacing = cells$pacing[cell],
        window_us = 0, gso = FALSE
      )
    }
  }
  plan <- do.call(rbind, rows)
  plan$run_id <- sprintf("b%02dm%03d-%s-a%d", plan$block, plan$mini_block, plan$transport, plan$attempt)
  plan
}

run_spans <- function(t0) {
  edges <- t0 + cumsum(c(0, timeline$idle, timeline$warm_up, timeline$measure, timeline$tail, timeline$idle))
  span <- function(i) list(t_start_s = round(edges[i], 6), t_end_s = round(edges[i + 1], 6))
  list(idle_before = span(1), warm_up = span(2), measure = span(3), tail = span(4), idle_after = span(5))
}

# What leaves of the schedule, and what arrives of that.
synthetic_shares <- function(row, path) {
  list(
    sent = if (grepl("^dccp", row$transport)) 1 - path$held_back(row$offered_rate_mbps) else 1,
    arrived = if (row$transport %in% c("tcp", "quic")) 1 else 1 - path$loss(row$offered_rate_mbps)
  )
}

write_synthetic_run <- function(dir, name, plan, i, meters, noise, path) {
  row <- plan[i, ]
  run_dir <- file.path(dir, "runs", row$run_id)
  dir.create(run_dir)
  spans <- run_spans(row$t0)
  shares <- synthetic_shares(row, path)
  goodput <- row$offered_rate_mbps * shares$sent * shares$arrived
  write_json(file.path(run_dir, "run.json"), list(
    schema_version = 1L, run_id = row$run_id, campaign = name, block = row$block, mini_block = row$mini_block,
    attempt = row$attempt, order = row$order, transport = row$transport, payload_bytes = row$payload_bytes,
    offered_rate_mbps = row$offered_rate_mbps, direction = row$direction, generator = row$generator, ip_version = 4L,
    pacing = list(mode = row$pacing, window_us = 0L, gso = FALSE), seed = row$seed,
    hosts = list(client = "client", server = "server"), radio_source = "link-model", windows = spans,
    t_first_packet_s = spans$warm_up$t_start_s, started_utc = "2026-01-01T00:00:00Z",
    versions = list(netjoule = "0.1.0"), status = "done", reasons = list()
  ))
  write_json(file.path(run_dir, "flow.json"), synthetic_flow(row, goodput, shares$sent))
  write_synthetic_intervals(run_dir, row, spans, goodput)
  write_json(file.path(run_dir, "result.json"), synthetic_result(plan, i, spans, goodput, meters, noise, shares))
}

synthetic_flow <- function(row, goodput, sent_share) {
  packed <- min(1, row$payload_bytes / 1440 + 1 / row$offered_rate_mbps)
  frames <- if (row$transport != "null") if (row$transport %in% c("tcp", "quic")) packed else 1
  list(
    schema_version = 1L, kind = "flow_report", flow_id = row$run_id, transport = row$transport,
    payload_bytes = row$payload_bytes, offered_rate_mbps = row$offered_rate_mbps, frames_per_message = frames,
    mean_ip_packet_bytes = if (is.null(frames)) NULL else row$payload_bytes / frames + 28,
    packetisation_source = "computed", pacing = list(mode = row$pacing, window_us = 0L, gso = FALSE),
    sender = list(
      start_ns = 0, first_packet_ns = 0, end_ns = 2.5e9, messages_scheduled = 1000, messages_sent = 1000 * sent_share,
      cpu_s = if (row$pacing == "spin") 2.4 else 0.1
    ), reconciles = TRUE
  )
}

write_synthetic_intervals <- function(run_dir, row, spans, goodput) {
  if (row$transport == "null") {
    return(invisible())
  }
  count <- round((timeline$warm_up + timeline$measure) / tick_s)
  starts <- spans$warm_up$t_start_s + (seq_len(count) - 1) * tick_s
  data.table::fwrite(data.frame(
    end = "receiver", t_start_s = sprintf("%.6f", starts), t_end_s = sprintf("%.6f", starts + tick_s), messages = 10,
    bytes = goodput * 1e6 / 8 * tick_s, messages_lost = 0, messages_duplicate = 0, messages_reordered = 0,
    jitter_ms = 0.1, cpu_s = 0.001, flow = 1
  ), file.path(run_dir, "intervals.csv"))
}

synthetic_result <- function(plan, i, spans, goodput, meters, noise, shares) {
  row <- plan[i, ]
  null_row <- which(plan$mini_block == row$mini_block & plan$transport == "null")
  nodes <- lapply(seq_along(meters), function(k) {
    synthetic_node(plan, i, null_row, meters[[k]], noise[, k], goodput, shares)
  })
  is_null <- row$transport == "null"
  list(
    schema_version = 1L, run_id = row$run_id, transport = row$transport, payload_bytes = row$payload_bytes,
    offered_rate_mbps = row$offered_rate_mbps, direction = row$direction, window = spans$measure,
    t_a_mbps = if (is_null) NULL else goodput, u95_t_a_mbps = if (is_null) NULL else 0.001 * goodput,
    loss_ratio = if (is_null) NULL else 1 - shares$arrived, achieved_ratio = shares$sent, valid = TRUE,
    reasons = list(), nodes = nodes
  )
}

#' Power above idle of a run; a power function may or may not ask for the pacing
power_of <- function(meter, row, transport = row$transport) {
  given <- list(transport, row$payload_bytes, row$offered_rate_mbps, row$pacing)
  do.call(meter$power, given[seq_along(formals(meter$power))])
}

# Why result.json has no floor: what this generator can make go wrong.
refused_floor <- function(row, null_row, shares) {
  if (length(null_row) == 0) {
    "no_null_run"
  } else if (shares$sent < 0.99) {
    "floor_achieved_low"
  } else if (row$pacing == "spin") {
    "floor_spinning"
  }
}

synthetic_node <- function(plan, i, null_row, meter, noise, goodput, shares) {
  row <- plan[i, ]
  delta <- power_of(meter, row) + noise[i]
  is_null <- row$transport == "null"
  has_ea <- !is_null && goodput > 0 && delta >= 0
  refused <- refused_floor(row, null_row, shares)
  floor <- no_floor(refused, if (length(null_row) == 1) plan$run_id[null_row])
  if (is_null) floor <- no_floor("null_has_no_throughput", row$run_id)
  if (!is_null && is.null(refused)) {
    floor_w <- power_of(meter, row, "null") + noise[null_row]
    floor <- list(
      run_id = plan$run_id[null_row], p_null_w = meter$idle_w + floor_w, floor_w = floor_w, u95_floor_w = 0.002,
      ea_above_floor_j_per_mbit = if (has_ea) (delta - floor_w) / goodput, u95_ea_above_floor_j_per_mbit = 0.001,
      reason = NULL
    )
  }
  below <- delta < 3 * meter$u_delta_p_w
  list(
    meter_id = meter$meter_id, node = meter$node, power_source = meter$power_source, radio_source = "link-model",
    device_model = meter$device_model, device_form = meter$device_form, p_a_w = meter$idle_w + delta,
    p_i_w = meter$idle_w, p_i_before_w = meter$idle_w, p_i_after_w = meter$idle_w, delta_p_w = delta,
    u_delta_p_w = meter$u_delta_p_w, ea_j_per_mbit = if (has_ea) delta / goodput,
    ea_reason = if (is_null) {
      "null_has_no_throughput"
    } else if (goodput == 0) {
      "nothing_received"
    } else if (delta < 0) {
      "below_resolution"
    },
    u95_ea_j_per_mbit = if (has_ea) 2 * meter$u_delta_p_w / goodput,
    ea_upper_limit_j_per_mbit = if (below && goodput > 0 && !is_null) (max(delta, 0) + 2 * meter$u_delta_p_w) / goodput,
    u95_components = NULL, coverage = 1, below_resolution = below, extrapolated_ratio = 0,
    hollow = meter$hollow(row$offered_rate_mbps), readings = 20, effective_readings = 20, tail_energy_j = 0,
    grade = "B", floor = floor
  )
}

no_floor <- function(reason = "no_null_run", run_id = NULL) {
  list(
    run_id = run_id, p_null_w = NULL, floor_w = NULL, u95_floor_w = NULL, ea_above_floor_j_per_mbit = NULL,
    u95_ea_above_floor_j_per_mbit = NULL, reason = reason
  )
}

# Readings of tau = 0.1 s, logged 0.1 s after the interval that they stand for.
write_synthetic_meter <- function(dir, plan, meter, noise) {
  per_run <- lapply(seq_len(nrow(plan)), function(i) {
    row <- plan[i, ]
    delta <- power_of(meter, row) + noise[i]
    ticks <- round(unlist(timeline) / tick_s)
    rep(meter$idle_w + c(0, delta, delta, 0), ticks)
  })
  power <- c(unlist(per_run), rep(meter$idle_w, round(timeline$idle / tick_s) + 2))
  data.table::fwrite(data.frame(
    t_s = sprintf("%.6f", seq_along(power) * tick_s + 0.1), seq = seq_along(power), power_w = power, voltage_v = 12,
    current_a = power / 12, energy_j = NA, flag = ""
  ), file.path(dir, "meters", paste0(meter$meter_id, ".csv")))
}

write_synthetic_radio <- function(dir, seconds, phy_rate_mbps) {
  t <- seq(0.05, seconds, by = 1)
  data.table::fwrite(data.frame(
    t_s = t, phy_rate_mbps = phy_rate_mbps(length(t)), mcs = 13, streams = 2, width_mhz = 40, guard_interval_ns = 800,
    rx_phy_rate_mbps = NA, rx_mcs = NA, rx_streams = NA, rx_width_mhz = NA, rx_guard_interval_ns = NA, rssi_dbm = NA,
    retries = 0, failed = 0, power_save = NA, airtime_tx_s = 0.01, airtime_rx_s = 0.001, frames_tx = 10, frames_rx = 1,
    ppdus_tx = 5, ppdus_rx = 1, bssid = NA, station = NA, source = "link", reader_cpu_s = NA, flag = ""
  ), file.path(dir, "radio", "client.csv"), na = "")
}

synthetic_workload <- function(transports) {
  options <- list(dccp = list(ccid = 3L, carrier = "udp"), "dccp-kernel" = list(ccid = 3L))
  c(
    list(name = "synthetic", transports = transports),
    if (any(names(options) %in% transports)) {
      list(transport_options = options[names(options) %in% transports])
    }
  )
}

synthetic_meta <- function(name, transports, meters) {
  list(
    schema_version = 1L, kind = "campaign", campaign = name, created_utc = "2026-01-01T00:00:00Z", status = "complete",
    seed = 1L, workload = synthetic_workload(transports), topology = list(kind = "emulated"),
    radio_source = "link-model", versions = list(netjoule = "0.1.0", commit = "0123abc"),
    host = list(
      kernel = "6.1.0", machine = "x86_64", distribution = "Debian 12", cpu_model = "test", cpu_cores = 2L,
      memory_bytes = 4e9
    ),
    meters = lapply(meters, function(meter) {
      list(
        schema_version = 1L, meter_id = meter$meter_id, node = meter$node, adapter = "wt210",
        make = "Yokogawa", model = "WT210",
        serial = "0", firmware = "1", identification = "YOKOGAWA,WT210",
        range = list(voltage_v = 30, current_a = 1, power_w = 30), crest_factor = 3,
        accuracy = list(reading_ratio = 0.002, range_ratio = 0.001, source = "none: synthetic", status = "unknown"),
        update_interval_s = 0.1, lag_s = 0.1,
        emulated = TRUE, power_source = meter$power_source, device_model = meter$device_model,
        device_form = meter$device_form, calibration_date = NULL
      )
    }),
    sessions = list()
  )
}

#' Let the senders of a campaign tell how often they woke up, in flow.json and result.json
#'
#' @param own,null wake-ups per message of the transports and of null.
with_wake_ups <- function(dir, own, null) {
  for (run_dir in list.dirs(file.path(dir, "runs"), recursive = FALSE)) {
    count <- if (grepl("-null-", basename(run_dir), fixed = TRUE)) null else own
    edit_json(file.path(run_dir, "flow.json"), function(doc) {
      doc$pacing$wake_ups <- count * doc$sender$messages_scheduled
      doc
    })
    edit_json(file.path(run_dir, "result.json"), function(doc) {
      doc$wake_ups_per_message <- count
      doc
    })
  }
  dir
}

#' Refuse runs their floor at the first meter, in result.json
refuse_floor <- function(dir, run_ids, reason) {
  for (path in file.path(dir, "runs", run_ids, "result.json")) {
    edit_json(path, function(doc) {
      doc$nodes[[1]]$floor <- no_floor(reason, doc$nodes[[1]]$floor$run_id)
      doc
    })
  }
  dir
}

write_json <- function(path, doc) writeLines(json_of(doc), path)

# What jsonlite::toJSON() writes, at a fraction of its time, of which it takes most to find each number's method.
json_of <- function(x, indent = "") {
  if (is.null(x)) {
    return("null")
  }
  if (is.list(x) && length(x) > 0L) {
    inner <- paste0(indent, "  ")
    values <- vapply(x, json_of, "", inner)
    if (!is.null(names(x))) values <- paste0(vapply(names(x), json_of, ""), ": ", values)
    ends <- if (is.null(names(x))) c("[", "]") else c("{", "}")
    return(paste0(ends[1], "\n", paste0(inner, values, collapse = ",\n"), "\n", indent, ends[2]))
  }
  plain <- is.numeric(x) && all(is.finite(x)) || is.logical(x) && !anyNA(x) || is.character(x) && !anyNA(x) &&
    !any(grepl("[^ !#-\\[\\]-~]", x, perl = TRUE))
  if (!plain || length(x) != 1L || is.object(x)) {
    return(as.character(jsonlite::toJSON(x, auto_unbox = TRUE, digits = NA, null = "null")))
  }
  if (is.character(x)) paste0("\"", x, "\"") else tolower(as.character(x))
}

edit_json <- function(path, change) {
  write_json(path, change(jsonlite::fromJSON(path, simplifyVector = FALSE)))
}

edit_csv <- function(path, change) {
  rows <- data.table::fread(path, na.strings = "", data.table = FALSE)
  data.table::fwrite(change(rows), path, na = "")
}

#' A campaign of flows written anew so that a mini-block holds one cell with every value of another factor
rearmed <- function(arm, ...) {
  dir <- synthetic_campaign(...)
  old <- fread(file.path(dir, "plan.csv"), colClasses = "character", na.strings = NULL)
  # Null is the control arm: of each mini-block one run, whose cell has the first transport.
  null <- old$transport == "null"
  old <- old[!null | old[[arm]] == old[[arm]][1]]
  null <- old$transport == "null"
  old[null, transport := setdiff(old$transport, "null")[1]]
  factors <- c("transport", "payload_bytes", "offered_rate_mbps", "pacing")
  cell <- setdiff(factors, arm)
  plan <- old[, c("run_id", "block"), with = FALSE]
  plan[, `:=`(mini_block = old[, .GRP, by = c("block", cell)][old, on = c("block", cell)]$GRP, attempt = 1)]
  plan[, order := seq_len(.N), by = mini_block]
  plan[, `:=`(load = "flow", kind = fifelse(null, "control", "work"), seed = old$seed)]
  plan[, arm := fifelse(null, "null", old[[arm]])]
  plan <- cbind(plan, old[, cell, with = FALSE])
  fwrite(plan, file.path(dir, "plan.csv"))
  fwrite(plan[, list(
    t_utc = "2026-11-21T00:00:00.000Z", run_id, attempt, session = 1, rig = "rig1", owner_token = 1, status = "valid",
    reason = ""
  )], file.path(dir, "status.csv"), quote = FALSE)
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    values <- lapply(utils::type.convert(old[, factors, with = FALSE], as.is = TRUE), function(x) as.list(unique(x)))
    doc$workload <- list(
      schema_version = 2L, name = "rearmed", load = "flow", arm = arm, control = FALSE, blocks = 3L, factors = values
    )
    doc
  })
  dir
}
