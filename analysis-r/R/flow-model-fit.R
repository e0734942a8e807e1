# SPDX-License-Identifier: Apache-2.0

# What a packet and what a bit cost: P_A - P_I = P0 + a * packets/s + b * bits/s, fitted per transport and node.

# A plane needs a cell more than it has parameters, or its residuals say nothing.
form_parameters <- c(packets_and_bits = 3L, packets = 2L)
# Packets and bits whose rates are this much alike (1 - r^2) cannot be distinguished: one size of packets, in effect.
least_tolerance <- 0.001

# Powers are rounded to this: scatter below it is rounding.
least_noise_w <- 1e-9

model_keys <- c(
  "node", "meter_id", "device_model", "power_source", "radio_source", "transport", "direction", "pacing", "window_us",
  "gso"
)

#' Fit P_A - P_I = P0 + a * packets/s + b * bits/s per transport and node
#'
#' P0 is what a flow costs above idle whatever it sends; `p_i_w` beside it is the idle
#' power that P = P_I + P0 + ... starts from. Packets and bits are those that the flow
#' sent, IP headers included, from T_A, loss, frames per message and packet size; what
#' goes along with them (acknowledgements, the receiver's side) is in a and b. Of null,
#' which makes no packets, they are its messages and payload bits. Least squares over
#' cell means, every cell counts once; see `fit_plane()` for the intervals. They hold no
#' metering: an instrument's gain is common to all cells and scales P0, a and b alike.
#'
#' Hollow runs (device model extrapolated), runs with several flows, without a known
#' number of packets or over a radio without air time are left out and counted.
#'
#' @param campaign from [read_campaign()].
#' @return list fit (one row per node, transport, direction and pacing: coefficients
#'   with 95 % intervals, ranges of load, packets/s, Mb/s and size over which they hold)
#'   and residuals (one row per cell). `form` says which terms the cells can distinguish
#'   (packets_and_bits or packets, where a holds the bits of its packet too), `reason`
#'   why it is not more: few_cells, one_packet_size, constant_traffic; or that without one
#'   of the blocks it cannot be fitted, so that its intervals are those of cells alone:
#'   no_block_interval.
#' @examples
#' fit_power_model(example_campaign())
#' @export
fit_power_model <- function(campaign) {
  rows <- usable_results(campaign$results)
  rows <- rows[flows == 1 & !is.na(delta_p_w) & !ea_reason %in% "radio_without_air_time"]
  fitted <- lapply(split(with_traffic_rates(rows), by = model_keys), fit_group)
  in_order <- function(part, name) {
    found <- table_of(name, rbindlist(unname(lapply(fitted, `[[`, part))))
    found[, place := match(meter_id, campaign$meters$meter_id)]
    in_cell_order(found, c("place", pacing_keys, "transport", "direction"))[, place := NULL][]
  }
  list(fit = in_order("fit", "model_fit"), residuals = in_order("residuals", "model_residuals"))
}

#' Packets and IP bits per second that a run's flow sent
#'
#' What arrived, over the share that arrives, is what was sent; nothing is known of a
#' run that lost all.
#' @noRd
with_traffic_rates <- function(rows) {
  is_null <- rows$transport == "null"
  arrived_ratio <- 1 - fcoalesce(rows$loss_ratio, 0)
  sent_mbps <- fifelse(
    is_null, rows$offered_rate_mbps * fcoalesce(rows$achieved_ratio, 1),
    fifelse(arrived_ratio > 0, rows$t_a_mbps / arrived_ratio, NA_real_)
  )
  frames <- fifelse(is_null, 1, rows$frames_per_message)
  packet_bytes <- fifelse(is_null, as.numeric(rows$payload_bytes), rows$mean_ip_packet_bytes)
  packets_pps <- sent_mbps * 1e6 / (8 * rows$payload_bytes) * frames
  rows[, `:=`(packets_pps = packets_pps, ip_mbps = packets_pps * packet_bytes * 8e-6)]
  rows[]
}

# Runs of one transport at one node; NULL when none of them can be used.
fit_group <- function(rows) {
  known <- !is.na(rows$packets_pps) & !is.na(rows$ip_mbps)
  kept <- rows[known & !hollow]
  if (nrow(kept) == 0L) {
    return(NULL)
  }
  per_block <- kept[, list(
    packets_pps = mean(packets_pps), ip_mbps = mean(ip_mbps), p_w = to_nanowatt(mean(delta_p_w))
  ), by = list(payload_bytes, offered_rate_mbps, block)]
  cells <- model_cells(per_block)
  form <- form_of(cells)
  plane <- fit_plane(per_block, form)
  noise <- residual_noise(per_block, form)
  plane$reason <- joined_codes(plane$reason, noise$reason)
  keys <- kept[1, model_keys, with = FALSE]
  fit <- cbind(keys, as.data.table(plane[c("form", "reason")]), coefficient_columns(plane), data.table(
    p_i_w = mean_or_na(kept$p_i_w), u_delta_p_w = mean_or_na(kept$u_delta_p_w), cells_n = nrow(cells),
    blocks_n = length(unique(kept$block)), runs_n = nrow(kept), extrapolated_n = sum(rows$hollow),
    unknown_n = sum(!known & !rows$hollow)
  ), fit_quality(cells, plane), as.data.table(noise[c("lack_of_fit_ratio", "residuals_are_noise")]), model_range(cells))
  residuals <- if (!is.na(plane$form)) {
    cbind(keys, cells[, list(
      payload_bytes, offered_rate_mbps, n, packets_pps, ip_mbps, delta_p_w = p_w, delta_p_ci95_low = low,
      delta_p_ci95_high = high, fitted_w = plane$fitted_w, residual_w = p_w - plane$fitted_w
    )])
  }
  list(fit = fit, residuals = residuals)
}

# Means over blocks.
cell_means <- function(per_block) {
  cells <- per_block[, list(packets_pps = mean(packets_pps), ip_mbps = mean(ip_mbps), p_w = mean(p_w)), by = list(
    payload_bytes, offered_rate_mbps
  )]
  setorderv(cells, c("payload_bytes", "offered_rate_mbps"))[]
}

# The same with their intervals.
model_cells <- function(per_block) {
  intervals <- per_block[, mean_interval(p_w)[c("n", "low", "high")], by = list(payload_bytes, offered_rate_mbps)]
  intervals[cell_means(per_block), on = c("payload_bytes", "offered_rate_mbps")]
}

# Blocks that have every cell: of others what a block adds to all its cells would lie in some cells' means and not in
# others', and so in the residuals.
whole_blocks <- function(per_block) {
  cells <- uniqueN(per_block, by = c("payload_bytes", "offered_rate_mbps"))
  per_block[, if (.N == cells) .SD, by = block]
}

# Variance of each cell's mean over whole blocks, about the cell's mean and the block's, since what a block adds to all
# its cells moves P0 and no residual.
noise_of_means <- function(per_block) {
  rows <- copy(per_block)[, of_cell := p_w - mean(p_w), by = list(payload_bytes, offered_rate_mbps)]
  rows[, `:=`(own = of_cell - mean(of_cell), share = 1 - 1 / .N), by = block]
  noise <- rows[, list(
    variance = sum(own^2 / share) / (.N - 1) / .N, n = .N
  ), by = list(payload_bytes, offered_rate_mbps)]
  setorderv(noise, c("payload_bytes", "offered_rate_mbps"))[]
}

#' Which terms cells can distinguish
#'
#' @param cells with packets_pps and ip_mbps.
#' @return list form (packets_and_bits, packets or NA) and reason (NA for the first).
#' @noRd
form_of <- function(cells) {
  count <- nrow(cells)
  if (count <= form_parameters[["packets"]]) {
    return(list(form = NA_character_, reason = "few_cells"))
  }
  if (stats::var(cells$packets_pps) == 0) {
    return(list(form = NA_character_, reason = "constant_traffic"))
  }
  alike <- stats::var(cells$ip_mbps) == 0 ||
    1 - stats::cor(cells$packets_pps, cells$ip_mbps)^2 < least_tolerance
  if (alike) {
    list(form = "packets", reason = "one_packet_size")
  } else if (count <= form_parameters[["packets_and_bits"]]) {
    list(form = "packets", reason = "few_cells")
  } else {
    list(form = "packets_and_bits", reason = NA_character_)
  }
}

#' Least squares over cell means, with the wider of two 95 % intervals for each coefficient
#'
#' One is that of the cells about the plane (t, cells less parameters): it holds what
#' the plane does not describe. The other is that of the blocks (jackknife over blocks,
#' t, blocks less 1): it holds what whole blocks share, which cells cannot show. Either
#' alone would be too narrow where the other matters. Without a fit for each left out
#' block there is the first alone, with the reason no_block_interval.
#'
#' @param per_block one row per cell and block: payload_bytes, offered_rate_mbps,
#'   block, packets_pps (1/s), ip_mbps (Mb/s), p_w (W).
#' @param form from [form_of()].
#' @return list form, reason, estimate, low, high (each c(p0_w, a in J, b in J/Mb)),
#'   fitted_w of the cells in the order of cell_means().
#' @noRd
fit_plane <- function(per_block, form) {
  cells <- cell_means(per_block)
  unknown <- c(NA_real_, NA_real_, NA_real_)
  if (is.na(form$form)) {
    return(c(form, list(estimate = unknown, low = unknown, high = unknown, fitted_w = rep(NA_real_, nrow(cells)))))
  }
  count <- form_parameters[[form$form]]
  solved <- least_squares(cells, count)
  of_blocks <- block_half_width(per_block, solved$estimate, count)
  if (anyNA(of_blocks) && length(unique(per_block$block)) > 1L) {
    form$reason <- joined_codes(form$reason, "no_block_interval")
  }
  half <- pmax(cell_half_width(solved), of_blocks, na.rm = TRUE)
  to_three <- function(x) c(x, rep(NA_real_, 3L - count))
  c(form, list(
    estimate = to_three(solved$estimate), low = to_three(solved$estimate - half),
    high = to_three(solved$estimate + half), fitted_w = cells$p_w - solved$residuals
  ))
}

# Codes one after the other; NA without any.
joined_codes <- function(...) {
  codes <- stats::na.omit(c(...))
  if (length(codes) > 0L) paste(codes, collapse = ";") else NA_character_
}

# Columns are scaled for the solution: thousands of packets stand beside a constant.
least_squares <- function(cells, parameters) {
  x <- cbind(1, cells$packets_pps, cells$ip_mbps)[, seq_len(parameters), drop = FALSE]
  size <- apply(abs(x), 2L, max)
  decomposed <- qr(sweep(x, 2L, size, "/"), tol = 1e-9)
  if (decomposed$rank < parameters) {
    return(NULL)
  }
  list(
    estimate = qr.coef(decomposed, cells$p_w) / size, residuals = qr.resid(decomposed, cells$p_w),
    # Variance of each coefficient per unit of residual variance.
    leverage = diag(chol2inv(qr.R(decomposed))) / size^2,
    residual_maker = diag(nrow(x)) - tcrossprod(qr.Q(decomposed))
  )
}

cell_half_width <- function(solved) {
  freedom <- length(solved$residuals) - length(solved$estimate)
  qt(0.975, freedom) * sqrt(sum(solved$residuals^2) / freedom * solved$leverage)
}

# Delete-one jackknife over blocks; with whole blocks it is the scatter of the blocks' own fits. NA for fewer than two.
block_half_width <- function(per_block, estimate, parameters) {
  blocks <- unique(per_block$block)
  count <- length(blocks)
  unknown <- rep(NA_real_, parameters)
  if (count < 2L) {
    return(unknown)
  }
  pseudo <- vapply(blocks, function(left_out) {
    rest <- cell_means(per_block[block != left_out])
    solved <- if (nrow(rest) >= parameters) least_squares(rest, parameters)
    if (is.null(solved)) unknown else count * estimate - (count - 1) * solved$estimate
  }, unknown)
  qt(0.975, count - 1) * apply(pseudo, 1L, sd) / sqrt(count)
}

coefficient_columns <- function(plane) {
  of <- function(i, name, unit) {
    stats::setNames(
      list(plane$estimate[i], plane$low[i], plane$high[i]), paste0(name, c(unit, "_ci95_low", "_ci95_high"))
    )
  }
  as.data.table(c(of(1L, "p0", "_w"), of(2L, "packet_energy", "_j"), of(3L, "bit_energy", "_j_per_mbit")))
}

#' How well a plane describes its cells
#'
#' @param cells from model_cells(); plane from fit_plane().
#' @noRd
fit_quality <- function(cells, plane) {
  residuals <- cells$p_w - plane$fitted_w
  total <- sum((cells$p_w - mean(cells$p_w))^2)
  data.table(
    residual_rms_w = sqrt(mean(residuals^2)), residual_greatest_w = max(abs(residuals)),
    explained_ratio = if (total > 0) 1 - sum(residuals^2) / total else NA_real_
  )
}

#' Whether noise alone would leave such residuals, asked of the blocks that have every cell
#'
#' `lack_of_fit_ratio` is the sum of squared residuals over the one that the run-to-run
#' noise of each cell's mean would leave (with equal noise the classic F ratio); the
#' residuals are noise while it is under its 95 % quantile. Degrees of freedom by
#' Satterthwaite (1946), as cells differ in noise.
#'
#' @param per_block, form see fit_plane().
#' @return list lack_of_fit_ratio, residuals_are_noise and reason: single_block,
#'   few_whole_blocks (less than two have every cell), no_noise (runs of a cell are all
#'   alike); NA where the ratio is told or there is no form.
#' @noRd
residual_noise <- function(per_block, form) {
  untold <- function(reason) list(lack_of_fit_ratio = NA_real_, residuals_are_noise = NA, reason = reason)
  if (is.na(form$form)) {
    return(untold(NA_character_))
  }
  whole <- whole_blocks(per_block)
  blocks <- uniqueN(whole$block)
  if (blocks < 2L) {
    return(untold(if (uniqueN(per_block$block) < 2L) "single_block" else "few_whole_blocks"))
  }
  noise <- noise_of_means(whole)
  if (max(noise$variance) < least_noise_w^2) {
    return(untold("no_noise"))
  }
  solved <- least_squares(cell_means(whole), form_parameters[[form$form]])
  # What each cell's noise leaves of itself in the residuals.
  left <- diag(solved$residual_maker) * noise$variance
  ratio <- sum(solved$residuals^2) / sum(left)
  alike <- ratio < noise_quantile(solved$residual_maker, noise$variance, noise$n)
  list(lack_of_fit_ratio = ratio, residuals_are_noise = alike, reason = NA_character_)
}

# 95 % quantile of the ratio of residual_noise(). A variance that is itself estimated from n values is too scattered:
# its square is on average (n + 1) / (n - 1) of the true one's.
noise_quantile <- function(residual_maker, noise, n) {
  squares <- tcrossprod(noise)
  diag(squares) <- noise^2 * (n - 1) / (n + 1)
  left <- diag(residual_maker) * noise
  # With equal noise: cells less parameters, and (cells - 1) (blocks - 1).
  of_residuals <- min(sum(left)^2 / sum(residual_maker^2 * squares), sum(diag(residual_maker)))
  of_noise <- (1 - 1 / length(n)) * sum(left)^2 / sum(diag(residual_maker)^2 * diag(squares) / (n - 1))
  stats::qf(0.95, of_residuals, of_noise)
}

# Where the coefficients may be used: what was fitted, and nothing beyond it.
model_range <- function(cells) {
  ends <- function(column, name) stats::setNames(as.list(range(cells[[column]])), sprintf(name, c("least", "greatest")))
  as.data.table(c(
    ends("offered_rate_mbps", "offered_rate_%s_mbps"), ends("packets_pps", "packets_%s_pps"),
    ends("ip_mbps", "ip_%s_mbps"), ends("payload_bytes", "payload_bytes_%s")
  ))
}
