# SPDX-License-Identifier: Apache-2.0

# What a gate decides upon: per run one value that costs, and of two arms its log ratio by block and cell.

#' What a workload says of its gate
#' @noRd
gate_settings <- function(campaign) {
  gate <- pick(campaign$meta$workload, "gate", default = list())
  if (length(gate) == 0L) {
    abort_netjoule(
      "The workload of ", campaign$dir, " has no section gate: it was not made by netjoule gate.",
      exit_code = exit_codes$usage
    )
  }
  looks <- sort(as.integer(unlist(gate$looks)))
  c(
    pick_texts(gate, c("head", "base", "objective", "anchor", "reference")),
    pick_numbers(gate, c("margin_percent", "tolerance_percent", "reference_log_sd", "pilot_blocks")),
    list(looks = looks, blocks_max = max(looks))
  )
}

#' Cells of a campaign, in the order of its workload
#'
#' As planned: a mini-block holds one cell, whatever its runs made of it.
#'
#' @return data.table: the factors but the arm, and `place`, the name of the cell here.
#' @noRd
gate_cells <- function(campaign) {
  factors <- gate_factors(campaign)
  if (length(factors) == 0L) {
    return(data.table(place = "1"))
  }
  cells <- unique(campaign$plan[kind == "work", factors, with = FALSE])
  listed <- pick(campaign$meta, "workload", "factors", default = list())
  keys <- lapply(factors, function(name) {
    at <- match(as.character(cells[[name]]), as.character(unlist(listed[[name]])))
    fcoalesce(as.numeric(at), as.numeric(rank(cells[[name]], ties.method = "min")))
  })
  cells <- cells[do.call(order, keys)]
  cells[, place := as.character(.I)][]
}

gate_factors <- function(campaign) setdiff(names(campaign$plan), c(no_factors, campaign$arm))

#' Runs that count at the first meter, with what the objective asks for as `ea` and their cell as `place`
#'
#' Whatever is asked, more of `ea` costs more: of throughput it is the time for a unit of work.
#' @noRd
gate_rows <- function(campaign, objective = "energy") {
  rows <- without_control(energy_rows(campaign), campaign)
  rows <- of_meter(rows, campaign$meters$meter_id[1])
  if (objective != "energy") {
    # The meter has no part in it.
    rows[, `:=`(ea = objective_values(campaign, rows, objective), below_resolution = FALSE, hollow = FALSE)]
  }
  rows[, place := places_of(campaign, rows$mini_block)][]
}

# Which of gate_cells() each mini-block has.
places_of <- function(campaign, mini_blocks) {
  factors <- gate_factors(campaign)
  if (length(factors) == 0L) {
    return(rep("1", length(mini_blocks)))
  }
  cells <- gate_cells(campaign)
  planned <- campaign$plan[kind == "work"]
  key <- function(of) do.call(paste, c(unname(as.list(of[, factors, with = FALSE])), sep = "\r"))
  cells$place[match(key(planned), key(cells))[match(mini_blocks, planned$mini_block)]]
}

# What of each run is no energy; stops where the load measures no such thing.
objective_values <- function(campaign, rows, objective) {
  column <- function(name) if (name %in% names(rows)) as.numeric(rows[[name]])
  values <- switch(objective,
    throughput = 1 / rows$t_a_mbps,
    cpu_time = if (is.null(column("cpu_s"))) {
      column("cpu_us_per_message")
    } else {
      column("cpu_s") * rows$repeats / rows$work
    },
    p99_delay = column("p99_delay_ms")
  )
  if (is.null(values) || nrow(rows) > 0L && all(is.na(values))) {
    abort_netjoule(
      "The load ", campaign$load, " of ", campaign$dir, " measures no ", chartr("_", " ", objective),
      ": choose another objective.",
      exit_code = exit_codes$usage
    )
  }
  values
}

#' Unit of the objective, and the objective as words name it
#' @noRd
objective_words <- function(campaign, objective) {
  work <- work_unit(campaign)
  per <- if (work == "1") "" else paste0("/", plain_text(work, 20L))
  # A load that measures no CPU time of a run tells it per message.
  of_messages <- !"cpu_s" %in% measure_names(campaign)
  switch(objective,
    energy = list(unit = paste0("J", per), name = tolower_first(per_work_words(campaign))),
    throughput = list(unit = paste0("s", per), name = "time for the same work"),
    cpu_time = list(
      unit = if (of_messages) "us/message" else paste0("s", per),
      name = paste("CPU time per", if (of_messages) "message" else "unit of work")
    ),
    p99_delay = list(unit = "ms", name = "delay (99th percentile)")
  )
}

#' Pairs with what each says of the change: `how` and `value`
#'
#' A cell below the meter's resolution has no ratio. Its difference of P_A is divided by three standard uncertainties,
#' the least power that counts as seen there, so that the margin is the same share of it as of an energy elsewhere.
#'
#' @param pairs from arm_pairs().
#' @return pairs with how (from place_methods()), resolution_w (3u of the cell) and value (NA where none).
#' @noRd
with_changes <- function(pairs) {
  pairs <- place_methods(pairs)[pairs, on = "place"]
  pairs[, `:=`(resolution_w = 3 * mean_or_na(c(u_delta_p_w, u_delta_p_w_ref))), by = place]
  pairs[, value := NA_real_]
  pairs[how == "ratio", value := log(ea / ea_ref)]
  pairs[how == "p_a_difference" & resolution_w > 0, value := (p_a_w - p_a_w_ref) / resolution_w]
  pairs[]
}

#' What the blocks of two arms say: log ratios over the cells that take part
#'
#' @param pairs from arm_pairs().
#' @param margin_percent a cell in watts whose 95 % interval is wider on a side takes no part.
#' @return list cells (data.table place, how, blocks, mean, low, high (95 %), log_sd, p, resolution_w,
#'   takes_part), grid (of
#'   blocks and cells that take part), possible (whether any cell could).
#' @noRd
changes_of <- function(pairs, margin_percent) {
  pairs <- with_changes(pairs)
  cells <- pairs[, {
    by_block <- block_means(.SD, value)
    found <- mean_interval(by_block)
    list(
      blocks = found$n, mean = found$mean, low = found$low, high = found$high, log_sd = sd(by_block, na.rm = TRUE),
      p = t_test_p(by_block), resolution_w = resolution_w[1]
    )
  }, by = list(place, how)]
  narrow <- cells$high - cells$mean <= margin_percent / 100
  cells[, takes_part := how == "ratio" | how == "p_a_difference" & narrow %in% TRUE]
  used <- pairs[place %in% cells$place[cells$takes_part]]
  list(
    cells = cells, grid = complete_grid(pair_grid(used, used$value)),
    possible = any(cells$how %in% c("ratio", "p_a_difference"))
  )
}

# Two-sided p of a mean of 0 by Student's t, NA below two values.
t_test_p <- function(x) {
  x <- x[!is.na(x)]
  n <- length(x)
  if (n < 2L) {
    return(NA_real_)
  }
  error <- sd(x) / sqrt(n)
  if (error == 0) as.numeric(mean(x) == 0) else 2 * stats::pt(-abs(mean(x)) / error, n - 1)
}
