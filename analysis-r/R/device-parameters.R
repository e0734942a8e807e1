# SPDX-License-Identifier: Apache-2.0

# What E_A of a modelled campaign owes to the parameters of its device models. Every form of model is linear in its
# parameters: a term of the device stream moves by as many percent as its parameter does. So parameters are drawn
# with the standard uncertainty that their source states, and E_A follows without a second run.

# JCGM 101 (7.2) wants so many that the 95 % limits stand still in two digits.
parameter_draws <- 4000L
# A longer stream is days of emulated runs: reading it would take longer than the rest of the analysis.
most_stream_bytes <- 3e8

# Parameter of each term, by form (testbed/devices: power.py); tx and rx of cross_factor follow tables over the rate.
term_parameters <- list(
  constant = c(p0 = "p0_w"),
  linear = c(p0 = "p0_w", frames = "frame_j", air_time = "air_time_w"),
  cross_factor = c(idle = "rho_id_w", generated_frames = "gamma_xg_j", received_frames = "gamma_xr_j"),
  cpu = c(base = "base_w", radio_idle = "rho_idle_w", radio_tx = "rho_tx_w", radio_rx = "rho_rx_w", cpu = "core_w")
)
table_terms <- c(tx = "rho_tx", rx = "rho_rx")

#' Parameters of the device models behind a campaign's meters
#'
#' @param campaign from [read_campaign()].
#' @return data.table by the contract model_parameters.table.json: one row per meter and parameter, `drawn` where an
#'   uncertainty is stated; NULL when campaign.json records no model.
#' @noRd
model_parameters <- function(campaign) {
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
  if (nrow(rows) == 0L) NULL else rows
}

parameter_row <- function(name, value, relative) {
  list(
    parameter = name, parameter_value = value, relative_uncertainty_ratio = relative,
    drawn = !is.na(relative) && relative > 0 && value != 0
  )
}

point_name <- function(table, rate_mbps) paste0(table, "_w at ", number_text(rate_mbps), " Mb/s")

#' How E_A of each run moves with each drawn parameter, and the draws
#'
#' @param campaign from [read_campaign()].
#' @param draws number of draws, seeded by the campaign's seed.
#' @return list: by meter_id a list of runs (run_ids), relative (matrix, runs by parameters: relative change of
#'   P_A - P_I, and so of E_A, per relative change of the parameter) and draws (matrix, parameters by draws, relative
#'   changes); NULL without a recorded model that states an uncertainty, or without its device stream.
#' @noRd
model_sensitivity <- function(campaign, draws = parameter_draws) {
  parameters <- model_parameters(campaign)
  if (is.null(parameters) || nrow(campaign$results) == 0L) {
    return(NULL)
  }
  models <- pick(campaign$meta, "device_models", default = list())
  names(models) <- vapply(models, pick_text, "", "meter_id")
  found <- lapply(campaign$meters$meter_id, function(id) {
    meter_sensitivity(campaign, id, models[[id]], parameters[meter_id == id & drawn == TRUE], draws)
  })
  names(found) <- campaign$meters$meter_id
  found <- found[!vapply(found, is.null, NA)]
  if (length(found) == 0L) NULL else found
}

meter_sensitivity <- function(campaign, id, model, drawn, draws) {
  stream <- if (nrow(drawn) > 0L) read_device_stream(campaign, id)
  if (is.null(stream)) {
    return(NULL)
  }
  rows <- usable_results(campaign$results)[meter_id == id & transport != "null"]
  runs <- merge(
    rows[, c("run_id", "node", "delta_p_w", window_edges), with = FALSE],
    campaign$runs[, c("run_id", idle_edges), with = FALSE],
    by = "run_id"
  )
  runs <- runs[stats::complete.cases(runs) & delta_p_w > 0]
  if (nrow(runs) == 0L) {
    return(NULL)
  }
  terms <- added_terms_w(stream, runs)
  rates <- run_phy_rates(campaign, runs)
  watts <- vapply(drawn$parameter, function(name) parameter_share(name, model, terms, rates), numeric(nrow(runs)))
  watts <- matrix(watts, nrow(runs), nrow(drawn), dimnames = list(NULL, drawn$parameter))
  normal <- with_seed(campaign_seed(campaign, paste("device parameters of", id)), {
    t(vapply(drawn$parameter, function(name) stratified(stats::qnorm, draws), numeric(draws)))
  })
  list(runs = runs$run_id, relative = watts / runs$delta_p_w, draws = normal * drawn$relative_uncertainty_ratio)
}

# Draws at the middles of equally likely strata, shuffled: their own 95 % limits are exact whatever their number.
stratified <- function(quantile, draws) sample(quantile(stats::ppoints(draws, 0.5)))

window_edges <- c("window_t_start_s", "window_t_end_s")
idle_edges <- c("idle_before_start_s", "idle_before_end_s", "idle_after_start_s", "idle_after_end_s")

#' What each term of the model adds over idle in each run
#'
#' @param stream from read_device_stream(); runs: data.table with window_edges and idle_edges.
#' @return matrix in W, runs by terms; idle is the straight line between both idle windows, as in P_I.
#' @noRd
added_terms_w <- function(stream, runs) {
  middle <- (runs$window_t_start_s + runs$window_t_end_s) / 2
  before <- (runs$idle_before_start_s + runs$idle_before_end_s) / 2
  after <- (runs$idle_after_start_s + runs$idle_after_end_s) / 2
  share <- (middle - before) / (after - before)
  active <- term_means_w(stream, runs$window_t_start_s, runs$window_t_end_s)
  idle_before <- term_means_w(stream, runs$idle_before_start_s, runs$idle_before_end_s)
  idle_after <- term_means_w(stream, runs$idle_after_start_s, runs$idle_after_end_s)
  active - idle_before - share * (idle_after - idle_before)
}

#' Mean of each term over spans of time, prorated at their edges
#' @noRd
term_means_w <- function(stream, t_start_s, t_end_s) {
  terms <- setdiff(names(stream), c("t_start_s", "t_end_s"))
  length_s <- stream$t_end_s - stream$t_start_s
  edges_s <- c(rbind(stream$t_start_s, stream$t_end_s))
  means <- vapply(terms, function(term) {
    energy_j <- stream[[term]] * length_s
    until_j <- cumsum(energy_j)
    at <- function(t_s) stats::approx(edges_s, c(rbind(until_j - energy_j, until_j)), t_s, ties = "ordered")$y
    (at(t_end_s) - at(t_start_s)) / (t_end_s - t_start_s)
  }, numeric(length(t_start_s)))
  matrix(means, length(t_start_s), length(terms), dimnames = list(NULL, terms))
}

#' Watts over idle of a term, or the part of it that one point of a table over the PHY rate carries
#' @noRd
parameter_share <- function(name, model, terms, rates_mbps) {
  form <- pick_text(model, "form")
  term <- names(which(term_parameters[[form]] == name))
  if (length(term) == 1L) {
    return(if (term %in% colnames(terms)) terms[, term] else numeric(nrow(terms)))
  }
  table <- sub("_w at .*", "", name)
  term <- names(which(table_terms == table))
  if (length(term) == 0L || !term %in% colnames(terms)) {
    return(numeric(nrow(terms)))
  }
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

#' Read the stream of a modelled device: what each term of its model drew, in time order
#'
#' @return data.table t_start_s, t_end_s (s) and one column per term (W); NULL when there is none, when it is too
#'   long, or when its lines are not all of one form. A line cut off by a kill is left out.
#' @noRd
read_device_stream <- function(campaign, meter_id) {
  path <- file.path(campaign$dir, "devices", paste0(meter_id, ".ndjson"))
  if (!file.exists(path) || file.size(path) > most_stream_bytes) {
    return(NULL)
  }
  lines <- readLines(path, warn = FALSE, encoding = "UTF-8")
  lines <- lines[endsWith(lines, "}}")]
  first <- if (length(lines) > 0L) tryCatch(jsonlite::fromJSON(lines[1]), error = function(e) NULL)
  keys <- c("t_start_s", "t_end_s", "power_w", "extrapolated", "terms")
  form <- gsub(":(-?[0-9][0-9.eE+-]*|true|false)", ":", lines, perl = TRUE)
  if (!identical(names(first), keys) || any(form != form[1])) {
    return(NULL)
  }
  values <- gsub("\"[A-Za-z0-9_]+\":|[{}]", "", lines, perl = TRUE)
  stream <- fread(text = values, header = FALSE, sep = ",", col.names = c(keys[1:4], names(first$terms)))
  stream[, c("power_w", "extrapolated") := NULL]
  setorderv(stream, "t_start_s")[]
}
