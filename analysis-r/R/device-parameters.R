# SPDX-License-Identifier: Apache-2.0

# What E_A of a modelled campaign owes to the parameters of its device models. Every form of model is linear in its
# parameters: a term of the device stream moves by as many percent as its parameter does. So parameters are drawn
# with the standard uncertainty that their source states, and E_A follows without a second run.

# JCGM 101 (7.2) wants so many that the 95 % limits stand still in two digits.
parameter_draws <- 4000L

# Parameter of each term, by form (testbed/devices: power.py; both are held to vectors/device_terms.json); tx and rx of
# cross_factor follow tables over the rate.
term_parameters <- list(
  constant = c(p0 = "p0_w"),
  linear = c(p0 = "p0_w", frames = "frame_j", air_time = "air_time_w"),
  cross_factor = c(idle = "rho_id_w", generated_frames = "gamma_xg_j", received_frames = "gamma_xr_j"),
  cpu = c(base = "base_w", radio_idle = "rho_idle_w", radio_tx = "rho_tx_w", radio_rx = "rho_rx_w", cpu = "core_w"),
  phone = c(cpu_idle = "cpu_idle_w", cpu = "core_w", wifi_on = "wifi_on_w", wifi_active = "wifi_active_w"),
  connections = c(idle = "idle_w", active = "active_w", rate = "rate_w_per_mbps", connections = "connection_w")
)
table_terms <- c(tx = "rho_tx", rx = "rho_rx")

#' Parameters of the device models behind a campaign's meters
#'
#' @param campaign from [read_campaign()].
#' @param sensitivity from model_sensitivity(): what could be drawn.
#' @return data.table by the contract model_parameters.table.json: one row per meter and parameter, `drawn` where its
#'   draws are in intervals, else with the reason; NULL when campaign.json records no model.
#' @noRd
model_parameters <- function(campaign, sensitivity) {
  rows <- recorded_parameters(campaign)
  if (is.null(rows)) {
    return(NULL)
  }
  rows[, runs_uncovered_n := NA_integer_]
  for (id in unique(rows$meter_id)) {
    found <- sensitivity[[id]]
    open <- which(rows$meter_id == id & is.na(rows$reason))
    drawn <- rows$parameter[open] %in% rownames(found$draws)
    why <- if (is.null(found)) "no_covered_run" else fcoalesce(found$reason, "unknown_term")
    set(rows, open[!drawn], "reason", why)
    if (any(drawn)) set(rows, open[drawn], "runs_uncovered_n", found$uncovered_n)
  }
  rows[, drawn := is.na(reason)]
  setcolorder(rows, c(setdiff(names(rows), c("drawn", "reason", "runs_uncovered_n")), "drawn", "reason"))[]
}

#' Parameters as campaign.json has them; `reason` where their own record tells why they are not drawn
#'
#' A meter that runs read with devices in turn has several models, and no draw of one holds for all of its runs.
#' @noRd
recorded_parameters <- function(campaign) {
  rows <- rbindlist(lapply(pick(campaign$meta, "device_models", default = list()), function(model) {
    names <- names(pick(model, "parameters", default = list()))
    single <- lapply(names, function(name) {
      parameter_row(name, pick_number(model, "parameters", name), pick_number(model, "relative_uncertainty", name))
    })
    points <- unlist(lapply(table_terms, function(table) {
      lapply(pick(model, table, default = list()), function(point) {
        parameter_row(
          point_name(table, pick_number(point, "phy_rate_mbps")), pick_number(point, "rho_w"),
          pick_number(point, "relative_uncertainty")
        )
      })
    }), recursive = FALSE)
    rows <- rbindlist(c(single, points))
    cbind(data.table(meter_id = pick_text(model, "meter_id"), device_model = pick_text(model, "name")), rows)
  }))
  if (nrow(rows) == 0L) {
    return(NULL)
  }
  several <- rows[, uniqueN(device_model) > 1L, by = meter_id][V1 == TRUE, meter_id]
  rows[is.na(reason) & meter_id %in% several, reason := "several_models"][]
}

parameter_row <- function(name, value, relative) {
  list(
    parameter = name, parameter_value = value, relative_uncertainty_ratio = relative,
    reason = fcase(
      is.na(relative), "no_stated_uncertainty", relative == 0 || value %in% c(0, NA), "nothing_to_draw"
    )
  )
}

point_name <- function(table, rate_mbps) paste0(table, "_w at ", number_text(rate_mbps), " Mb/s")

#' How the power of each run moves with each drawn parameter, and the draws
#'
#' @param campaign from [read_campaign()].
#' @param draws number of draws, seeded by the campaign's seed.
#' @return list by meter_id, of meters whose model states an uncertainty, and the first meter with a model: reason (NA,
#'   or why nothing is drawn); where something is, runs (run_ids), delta_p_w, watts (matrix, runs by parameters: what
#'   P_A - P_I moves by per relative change of the parameter, W), draws (matrix, parameters by draws, relative changes)
#'   and uncovered_n (runs that the device stream does not cover); held: runs and watts of the parameters that are held
#'   for want of a stated uncertainty and have a term. NULL without such a meter.
#' @noRd
model_sensitivity <- function(campaign, draws = parameter_draws) {
  parameters <- recorded_parameters(campaign)
  if (is.null(parameters)) {
    return(NULL)
  }
  models <- pick(campaign$meta, "device_models", default = list())
  names(models) <- vapply(models, pick_text, "", "meter_id")
  single <- setdiff(campaign$meters$meter_id, names(models)[duplicated(names(models))])
  found <- lapply(stats::setNames(nm = single), function(id) {
    rows <- parameters[meter_id == id & (is.na(reason) | reason == "no_stated_uncertainty")]
    # What is held matters to the main comparisons alone, which are at the first meter.
    if (anyNA(rows$reason) || (nrow(rows) > 0L && id == campaign$meters$meter_id[1])) {
      meter_sensitivity(campaign, id, models[[id]], rows, draws)
    }
  })
  found <- found[!vapply(found, is.null, NA)]
  if (length(found) == 0L) NULL else found
}

meter_sensitivity <- function(campaign, id, model, parameters, draws) {
  runs <- runs_with_energy(campaign, id)
  if (nrow(runs) == 0L) {
    return(list(reason = "no_covered_run"))
  }
  found <- terms_of_runs(campaign, id, runs)
  covered <- stats::complete.cases(found$terms)
  if (!is.na(found$reason) || !any(covered)) {
    return(list(reason = fcoalesce(found$reason, "no_covered_run")))
  }
  runs <- runs[covered]
  terms <- found$terms[covered, , drop = FALSE]
  known <- parameters[vapply(parameters$parameter, function(name) term_of(name, model) %in% colnames(terms), NA)]
  rates <- run_phy_rates(campaign, runs)
  watts <- vapply(known$parameter, function(name) parameter_share(name, model, terms, rates), numeric(nrow(runs)))
  watts <- matrix(watts, nrow(runs), nrow(known), dimnames = list(NULL, known$parameter))
  drawn <- known[is.na(reason)]
  held <- list(runs = runs$run_id, watts = watts[, !is.na(known$reason), drop = FALSE])
  if (nrow(drawn) == 0L) {
    return(list(reason = "unknown_term", held = held))
  }
  normal <- with_seed(campaign_seed(campaign, paste("device parameters of", id)), {
    t(vapply(drawn$parameter, function(name) stratified(stats::qnorm, draws), numeric(draws)))
  })
  list(
    reason = NA_character_, runs = runs$run_id, delta_p_w = runs$delta_p_w,
    watts = watts[, is.na(known$reason), drop = FALSE], draws = normal * drawn$relative_uncertainty_ratio,
    uncovered_n = sum(!covered), held = held
  )
}

# Runs of a meter that have an E_A, with their windows.
runs_with_energy <- function(campaign, id) {
  rows <- without_control(usable_results(campaign$results), campaign)[meter_id == id & !is.na(ea)]
  merge(
    rows[, c("run_id", "node", "delta_p_w", window_edges), with = FALSE],
    campaign$runs[, c("run_id", idle_edges), with = FALSE],
    by = "run_id", all.x = TRUE
  )
}

# Draws at the middles of equally likely strata, shuffled: their own 95 % limits are exact whatever their number.
stratified <- function(quantile, draws) sample(quantile(stats::ppoints(draws, 0.5)))

window_edges <- c("window_t_start_s", "window_t_end_s")
idle_edges <- c("idle_before_start_s", "idle_before_end_s", "idle_after_start_s", "idle_after_end_s")

# added_terms_w() of runs in whatever folder; the first reason that one of them has none.
terms_of_runs <- function(campaign, id, runs) {
  parts <- Filter(function(one) any(runs$run_id %in% one$runs$run_id), by_block(campaign))
  found <- lapply(parts, function(one) {
    here <- which(runs$run_id %in% one$runs$run_id)
    c(added_terms_w(one, id, runs[here]), list(here = here))
  })
  reason <- Find(Negate(is.na), lapply(found, `[[`, "reason"))
  if (!is.null(reason)) {
    return(list(terms = matrix(NA_real_, nrow(runs), 1L), reason = reason))
  }
  terms <- do.call(rbind, lapply(found, `[[`, "terms"))
  list(terms = terms[order(unlist(lapply(found, `[[`, "here"))), , drop = FALSE], reason = NA_character_)
}

#' What each term of the model adds over idle in each run
#'
#' @param runs data.table with window_edges and idle_edges.
#' @return list terms (matrix in W, runs by terms, NA where the stream does not cover a window; idle is the straight
#'   line between both idle windows, as in P_I) and reason, as of stream_means_w().
#' @noRd
added_terms_w <- function(campaign, id, runs) {
  found <- known_stream_means_w(
    campaign, id, c(runs$window_t_start_s, runs$idle_before_start_s, runs$idle_after_start_s),
    c(runs$window_t_end_s, runs$idle_before_end_s, runs$idle_after_end_s)
  )
  if (!is.na(found$reason)) {
    return(list(terms = matrix(NA_real_, nrow(runs), 1L), reason = found$reason))
  }
  middle <- (runs$window_t_start_s + runs$window_t_end_s) / 2
  before <- (runs$idle_before_start_s + runs$idle_before_end_s) / 2
  after <- (runs$idle_after_start_s + runs$idle_after_end_s) / 2
  share <- (middle - before) / (after - before)
  part <- function(k) found$means[(k - 1L) * nrow(runs) + seq_len(nrow(runs)), , drop = FALSE]
  list(terms = part(1L) - part(2L) - share * (part(3L) - part(2L)), reason = NA_character_)
}

#' Term of the device stream that a parameter is a factor of; NA where none is known
#' @noRd
term_of <- function(name, model) {
  form <- pick_text(model, "form")
  of_table <- if (form %in% "cross_factor") table_terms[table_terms == sub("_w at .*", "", name)]
  c(names(which(term_parameters[[form]] == name)), names(of_table), NA_character_)[1]
}

#' Watts over idle of a parameter's term, or the part of it that one point of a table over the PHY rate carries
#' @noRd
parameter_share <- function(name, model, terms, rates_mbps) {
  term <- term_of(name, model)
  if (name %in% term_parameters[[pick_text(model, "form")]]) {
    return(terms[, term])
  }
  table <- table_terms[[term]]
  points <- rbindlist(lapply(pick(model, table, default = list()), function(point) {
    list(rate = pick_number(point, "phy_rate_mbps"), rho = pick_number(point, "rho_w"))
  }))
  terms[, term] * rho_shares(points, rates_mbps)[, match(name, point_name(table, points$rate))]
}

#' Share of rho at a PHY rate that each point of its table carries, by the interpolation of the model
#'
#' @param points data.table rate (Mb/s, rising), rho (W). rates_mbps: NA takes the highest rate.
#' @return matrix, rates by points, rows adding up to 1.
#' @noRd
rho_shares <- function(points, rates_mbps) {
  rates_mbps[is.na(rates_mbps)] <- max(points$rate)
  upper <- pmin(pmax(findInterval(rates_mbps, points$rate, left.open = TRUE) + 1L, 2L), nrow(points))
  weight <- (rates_mbps - points$rate[upper - 1L]) / (points$rate[upper] - points$rate[upper - 1L])
  parts <- matrix(0, length(rates_mbps), nrow(points))
  row <- seq_along(rates_mbps)
  parts[cbind(row, upper - 1L)] <- (1 - weight) * points$rho[upper - 1L]
  parts[cbind(row, upper)] <- weight * points$rho[upper]
  parts / rowSums(parts)
}

# Mean PHY rate of each run's node in the measure window (Mb/s); NA where no reading tells it.
run_phy_rates <- function(campaign, runs) {
  rates <- rep(NA_real_, nrow(runs))
  for (one in by_block(campaign)) {
    here <- which(runs$run_id %in% one$runs$run_id)
    rates[here] <- phy_rates_of_folder(one, runs[here])
  }
  rates
}

phy_rates_of_folder <- function(campaign, runs) {
  rates <- rep(NA_real_, nrow(runs))
  for (of_node in unique(runs$node)) {
    path <- file.path(campaign$dir, "radio", paste0(of_node, ".csv"))
    if (!grepl("^[A-Za-z0-9][A-Za-z0-9._-]*$", of_node) || !file.exists(path)) next
    radio <- read_contract_csv(path, "radio", campaign$contracts)$rows[!is.na(phy_rate_mbps)]
    setorderv(radio, "t_s")
    places <- which(runs$node == of_node)
    from <- findInterval(runs$window_t_start_s[places], radio$t_s)
    to <- findInterval(runs$window_t_end_s[places], radio$t_s)
    sums <- c(0, cumsum(radio$phy_rate_mbps))
    rates[places] <- fifelse(to > from, (sums[to + 1L] - sums[from + 1L]) / (to - from), NA_real_)
  }
  rates
}
