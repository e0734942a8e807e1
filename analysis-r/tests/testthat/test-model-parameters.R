# SPDX-License-Identifier: Apache-2.0

test_that("E_A moves with its terms: the half-width has the closed form of a linear model", {
  campaign <- read_campaign(modelled_campaign(blocks = 3))
  cells <- campaign_statistics(campaign)$ea_uncertainty
  expected <- 1.959964 * cells$ea_j_per_mbit_mean * sqrt((0.7 * 0.04)^2 + (0.3 * 0.03)^2)
  expect_equal(cells$u95_model_j_per_mbit, expected, tolerance = 0.04)
  # No scatter of runs here: the total is metering and model alone.
  total <- (cells$ea_total_ci95_high - cells$ea_total_ci95_low) / 2
  expect_equal(total, sqrt(expected^2 + cells$u95_meter_j_per_mbit^2), tolerance = 0.04)
  expect_equal(cells$u95_runs_j_per_mbit, rep(0, nrow(cells)), tolerance = 1e-6)
})

test_that("an idle term cancels, and the draws are those of a brute recomputation", {
  model <- linear_model(u_p0 = 0.5)
  campaign <- read_campaign(modelled_campaign(blocks = 2, model = model, offered_rate_mbps = 1, payload_bytes = 64))
  sensitivity <- model_sensitivity(campaign, draws = 500L)[["client-wt210"]]
  expect_equal(unname(sensitivity$watts[, "p0_w"]), rep(0, nrow(sensitivity$watts)), tolerance = 1e-6)
  rows <- usable_results(campaign$results)[transport == "udp"]
  shifts <- cell_shifts(rows, sensitivity)
  ea <- rows$ea[1]
  expect_equal(sensitivity$uncovered_n, 0L)
  by_hand <- apply(sensitivity$draws, 2, function(moved) {
    0.7 * ea * (1 + moved[2]) + 0.3 * ea * (1 + moved[3]) - ea
  })
  expect_equal(shifts, by_hand, tolerance = 1e-5)
})

test_that("what the parameters do to both transports alike cancels in a contrast", {
  alike <- campaign_statistics(read_campaign(modelled_campaign(blocks = 3, transports = c("udp", "tcp"))))$contrasts
  width <- function(one) one$difference_model_ci95_high - one$difference_model_ci95_low
  expect_equal(width(alike), c(0, 0), tolerance = 1e-4)
  share <- function(transport) c(udp = 0.2, tcp = 0.9, null = 0)[[transport]]
  apart <- campaign_statistics(read_campaign(modelled_campaign(share, blocks = 3, transports = c("udp", "tcp"))))
  # ln of the ratio moves by 0.7 times each parameter, against each other; tcp takes 0.8 of UDP.
  half <- 1.959964 * 0.7 * sqrt(0.04^2 + 0.03^2)
  expect_equal(width(apart$contrasts), rep(100 * 0.8 * (exp(half) - exp(-half)), 2), tolerance = 0.04)
  expect_equal(apart$contrasts$difference_percent, c(-20, -20), tolerance = 1e-6)
})

# Campaigns whose world differs from what was believed: the device's parameters by their uncertainty, the instrument
# by its gain, runs by noise. Which intervals of the analysis hold what is true of the world?
worlds_held <- function(worlds) {
  share <- c(udp = 0.2, tcp = 0.9)
  believed <- c(udp = 1, tcp = 0.8)
  u_gain <- 0.02
  rowSums(vapply(seq_len(worlds), function(seed) {
    campaign <- memory_campaign(log(believed), offered_rate_mbps = 1, run_sd = 0.02, seed = seed)
    off <- with_seed(1000 + seed, stats::rnorm(3, sd = c(0.04, 0.03, u_gain)))
    campaign$results[, `:=`(ea_j_per_mbit = ea_j_per_mbit * (1 + off[3]), delta_p_w = delta_p_w * (1 + off[3]))]
    campaign$results[, u95_ea_j_per_mbit := normal_97_5 * u_gain * ea_j_per_mbit]
    model <- memory_sensitivity(campaign, share)
    truth <- believed * (1 + share * off[1] + (1 - share) * off[2])
    cell <- ea_uncertainty(campaign, model)[transport == "tcp"]
    contrast <- transport_contrasts(campaign, outliers = NULL, model = model)
    inside <- function(low, value, high) low <= value && value <= high
    more <- 100 * (truth[["tcp"]] / truth[["udp"]] - 1)
    c(
      cell = inside(cell$ea_total_ci95_low, truth[["tcp"]], cell$ea_total_ci95_high),
      contrast = inside(contrast$difference_model_ci95_low, more, contrast$difference_model_ci95_high),
      runs_alone = abs(cell$ea_j_per_mbit_mean - truth[["tcp"]]) <= cell$u95_runs_j_per_mbit,
      without_model = inside(contrast$difference_ci95_low, more, contrast$difference_ci95_high)
    )
  }, logical(4)))
}

test_that("intervals with the parameters hold the truth in about 95 of 100 worlds, those without them do not", {
  worlds <- 300
  held <- worlds_held(worlds)
  least <- binomial_bounds(worlds, 0.95)[1]
  # Three independent parts, one of them known by 8 blocks alone, cover a little more than each by itself.
  most <- binomial_bounds(worlds, 0.975)[2]
  for (name in c("cell", "contrast")) {
    expect_gte(held[[name]], least, label = name)
    expect_lte(held[[name]], most, label = name)
  }
  expect_lt(held[["runs_alone"]], least)
  expect_lt(held[["without_model"]], least)
})

test_that("parameters without a stated uncertainty are held and named", {
  campaign <- read_campaign(modelled_campaign(blocks = 2, model = linear_model(u_air = NULL)))
  statistics <- campaign_statistics(campaign)
  expect_identical(statistics$model_parameters[drawn == TRUE, parameter], "frame_j")
  cells <- statistics$ea_uncertainty
  expect_equal(cells$u95_model_j_per_mbit, 1.959964 * 0.7 * 0.04 * cells$ea_j_per_mbit_mean, tolerance = 0.01)
  words <- parameter_sentences(campaign, statistics)[1]
  expect_match(words, "draw frame_j by their stated standard uncertainty; held at their values, so in no interval: p0")
  expect_match(words, "p0_w, air_time_w (no stated uncertainty).", fixed = TRUE)
})

# Frames make 0.2 of UDP's power over idle and 0.9 of TCP's, which takes 0.8 of UDP's; air time makes the rest.
unstated <- function(...) {
  share <- function(transport) c(udp = 0.2, tcp = 0.9, null = 0)[[transport]]
  read_campaign(modelled_campaign(share, blocks = 3, transports = c("udp", "tcp"), ...))
}

test_that("what hangs on a held parameter is computed anew with it at half and at twice its value", {
  statistics <- campaign_statistics(unstated(model = linear_model(u_air = NULL)))
  held <- statistics$held_parameters
  # The constant base adds nothing over idle, what is drawn is not held.
  expect_identical(unique(held$parameter), "air_time_w")
  expect_equal(held$factor, rep(c(0.5, 2), each = 2))
  expect_equal(held$payload_bytes, c(64, 1440, 64, 1440))
  # (1 + (k - 1) 0.1) of TCP's 0.8 over (1 + (k - 1) 0.8) of UDP's 1.
  expect_equal(held$difference_percent, rep(100 * (0.8 * c(0.95, 1.1) / c(0.6, 1.8) - 1), each = 2), tolerance = 1e-4)
  expect_true(all(is.na(held$reason)))
  words <- held_sentences(statistics)
  expect_match(words, "In this model, with air_time_w at 0.5 and 2 times its value TCP at [0-9]+ bytes took 27 % more")
  expect_match(words, "and 51 % less energy per megabit than UDP (20 % less at its value)", fixed = TRUE)
  expect_match(words, "2 of 2 change their sign.", fixed = TRUE)
})

test_that("a factor of 1 gives the contrast itself, and a model without any stated uncertainty is looked at too", {
  campaign <- unstated(model = linear_model(u_frame = NULL, u_air = NULL), noise_w = 0.001)
  model <- model_sensitivity(campaign)
  contrasts <- transport_contrasts(campaign, model = model)
  expect_true(all(is.na(contrasts$difference_model_ci95_low)))
  held <- held_parameters(campaign, contrasts, model, factors = 1)
  expect_setequal(held$parameter, c("frame_j", "air_time_w"))
  expect_equal(held$difference_percent, rep(contrasts$difference_percent, 2), tolerance = 1e-6)
  # Without a stream there is no term.
  unlink(file.path(campaign$dir, "devices"), recursive = TRUE)
  expect_null(campaign_statistics(campaign)$held_parameters)
})

test_that("a contrast of which the stream does not cover a run is not computed anew from other runs", {
  dir <- modelled_campaign(blocks = 3, transports = c("udp", "tcp"), model = linear_model(u_air = NULL))
  path <- file.path(dir, "devices", "client-wt210.ndjson")
  lines <- readLines(path)
  writeLines(lines[seq_len(floor(0.8 * length(lines)))], path)
  held <- campaign_statistics(read_campaign(dir))$held_parameters
  expect_true("runs_left_out" %in% held$reason)
  expect_identical(is.na(held$difference_percent), !is.na(held$reason))
})

test_that("without a recorded model or its stream everything else is as before, and nothing is said to be drawn", {
  dir <- modelled_campaign(blocks = 2)
  unlink(file.path(dir, "devices"), recursive = TRUE)
  campaign <- read_campaign(dir)
  statistics <- campaign_statistics(campaign)
  expect_true(all(is.na(statistics$ea_uncertainty$u95_model_j_per_mbit)))
  expect_true(all(is.na(statistics$contrasts$difference_model_ci95_low)))
  expect_false(any(statistics$model_parameters$drawn))
  expect_identical(statistics$model_parameters$reason, c("no_stated_uncertainty", "no_stream", "no_stream"))
  expect_match(
    parameter_sentences(campaign, statistics),
    "held at their values, so in no interval: p0_w (no stated uncertainty); frame_j, air_time_w (no device stream).",
    fixed = TRUE
  )
  expect_match(parameter_words(campaign_tables(campaign)), "No interval includes the uncertainty of the meter")
  campaign$meta$device_models <- NULL
  expect_null(campaign_statistics(campaign)$model_parameters)
  expect_null(parameter_sentences(campaign, campaign_statistics(campaign)))
})

test_that("a stream that is cut off takes the parameters from the cells that it does not cover, and ends nothing", {
  dir <- modelled_campaign(blocks = 3, payload_bytes = 64)
  path <- file.path(dir, "devices", "client-wt210.ndjson")
  lines <- readLines(path)
  whole <- campaign_statistics(read_campaign(dir))$ea_uncertainty
  # The last mini-block of the third block lies behind the cut, others do not.
  writeLines(lines[seq_len(floor(0.8 * length(lines)))], path)
  campaign <- read_campaign(dir)
  tables <- campaign_tables(campaign)
  expect_true(all(tables$model_parameters[drawn == TRUE, runs_uncovered_n] > 0))
  expect_match(parameter_sentences(campaign, tables), "runs are not covered by its device stream: intervals of their")
  cut <- tables$ea_uncertainty
  expect_true(anyNA(cut$ea_total_ci95_low))
  expect_identical(is.na(cut$u95_model_j_per_mbit), is.na(cut$ea_total_ci95_low))
  kept <- !is.na(cut$u95_model_j_per_mbit)
  expect_equal(cut$u95_model_j_per_mbit[kept], whole$u95_model_j_per_mbit[kept], tolerance = 0.05)
  writeLines(lines[1:3], path)
  parameters <- campaign_statistics(read_campaign(dir))$model_parameters
  expect_identical(parameters$reason, c("no_stated_uncertainty", "no_covered_run", "no_covered_run"))
})

test_that("a stream in spite of whose form nothing can be drawn says so", {
  dir <- modelled_campaign(blocks = 2)
  path <- file.path(dir, "devices", "client-wt210.ndjson")
  lines <- readLines(path)
  writeLines(gsub("frames", "frame_count", lines, fixed = TRUE), path)
  renamed <- campaign_statistics(read_campaign(dir))
  # A term that nobody knows is held and named; it does not count as zero.
  expect_identical(renamed$model_parameters$reason, c("no_stated_uncertainty", "unknown_term", NA))
  expect_identical(renamed$model_parameters$drawn, c(FALSE, FALSE, TRUE))
  writeLines(c(lines, "no JSON}}"), path)
  broken <- campaign_statistics(read_campaign(dir))
  expect_identical(broken$model_parameters$reason[2:3], rep("stream_unreadable", 2))
  expect_true(all(is.na(broken$ea_uncertainty$u95_model_j_per_mbit)))
})

test_that("a run that drew less than idle has its part in its cell's interval", {
  campaign <- read_campaign(modelled_campaign(blocks = 3, transports = c("udp", "null"), offered_rate_mbps = 1))
  campaign$results[transport == "udp" & block == 2, `:=`(delta_p_w = -0.001, ea_j_per_mbit = NA_real_)]
  cells <- campaign_statistics(campaign)$ea_uncertainty
  expect_false(anyNA(cells$u95_model_j_per_mbit))
  expect_false(anyNA(cells$ea_total_ci95_low))
})

test_that("no total is given that lacks the metering which its title claims", {
  campaign <- read_campaign(modelled_campaign(blocks = 3))
  campaign$results[, u95_ea_j_per_mbit := NA_real_]
  cells <- campaign_statistics(campaign)$ea_uncertainty
  expect_true(all(is.na(cells$ea_total_ci95_low)))
  expect_false(anyNA(cells$u95_model_j_per_mbit))
})

test_that("figures of E_A show the interval with the parameters, and say what is held", {
  campaign <- read_campaign(modelled_campaign(blocks = 3))
  tables <- campaign_tables(campaign)
  summary <- tables$ea_summary
  expect_true(all(summary[transport != "null", ea_total_ci95_high - ea_total_ci95_low] > 0))
  expect_identical(nrow(summary), nrow(summarise_ea(campaign)))
  subtitle <- function(rows) {
    plot <- plot_ea(rows, campaign, "client-wt210", tables$model_parameters)
    gsub("\n", " ", plot$labels$subtitle)
  }
  expect_match(
    subtitle(summary), "thick run to run, thin with metering + model parameters (drawn; held: p0_w).",
    fixed = TRUE
  )
  widths <- ea_points(summary)[, list(inner = inner_high - inner_low, whole = high - low)]
  expect_true(all(widths$inner < widths$whole))
  expect_no_match(subtitle(summary), "run to run only")
  points <- ea_points(summary)
  expect_identical(points$low, summary[transport != "null", ea_total_ci95_low])
  # A cell without them does not stand under that title in silence.
  part <- copy(summary)[transport == "tcp", `:=`(ea_total_ci95_low = NA_real_, ea_total_ci95_high = NA_real_)]
  expect_match(subtitle(part), "4 cells: run to run only.", fixed = TRUE)
})

test_that("page and figure give one interval for one E_A, and titles say what each holds", {
  campaign <- read_campaign(modelled_campaign(blocks = 3, noise_w = 0.001))
  tables <- campaign_tables(campaign)
  row <- tables$ea_summary[transport == "udp"][1]
  told <- estimate_of_cell(with_drawn_intervals(row))
  digits <- as.numeric(regmatches(told, gregexpr("[0-9.]+", told))[[1L]])[1:3]
  shown <- c(row$ea_j_per_mbit_mean, row$ea_total_ci95_low, row$ea_total_ci95_high)
  expect_equal(digits, shown, tolerance = 1e-3)
  expect_match(
    certainty_sentences(campaign, tables),
    "Intervals of E_A by cell include the uncertainty of the meter and of the model's parameters",
    all = FALSE, fixed = TRUE
  )
  # Here the parameters move all transports alike, so that nothing is wider for them.
  expect_match(tables$contrasts[in_family == TRUE, words], "[95 %: ", fixed = TRUE)
  expect_match(parameter_words(tables), "that of model parameters only where this is said", fixed = TRUE)
  shown <- as.character(htmltools::tagList(table_html("contrasts", tables$contrasts)))
  expect_no_match(shown, "model parameters drawn", fixed = TRUE)
  apart <- campaign_statistics(unstated(noise_w = 1e-4))$contrasts
  expect_match(apart[in_family == TRUE, words], "[95 %, model parameters drawn: ", fixed = TRUE)
  shown <- as.character(htmltools::tagList(table_html("contrasts", apart)))
  expect_match(shown, "E_A, more %, model parameters drawn", fixed = TRUE)
  for (plot in list(
    plot_envelope(tables$envelope, tables$ea_summary, campaign, "client-wt210"),
    plot_delta_ea(tables$delta_ea, tables$ea_summary, campaign, "client-wt210")
  )) {
    expect_match(gsub("\n", " ", plot$labels$subtitle), scatter_alone, fixed = TRUE)
    expect_no_match(plot$labels$subtitle, "metering + model", fixed = TRUE)
  }
  html <- as.character(htmltools::tagList(table_parts(campaign, tables)$ea_summary$content))
  expect_match(html, "Model parameters of meter client-wt210 are drawn, but p0_w.", fixed = TRUE)
  campaign$meta$workload$profile <- list(name = "skype")
  applications <- with_total_intervals(table_iv(campaign), tables$ea_uncertainty)
  html <- as.character(section_table_iv(campaign, list(table_iv = applications)))
  expect_match(html, "Those of E_A: metering + model parameters beside the scatter of runs.", fixed = TRUE)
})

test_that("beside a published value stands the interval that the figure shows", {
  campaign <- read_campaign(modelled_campaign(blocks = 3, payload_bytes = 64, transports = c("udp", "dccp")))
  tables <- campaign_tables(campaign)
  where <- our_columns$ea_j_per_mbit
  cells <- comparable_cells(with_drawn_intervals(tables$ea_summary), where)
  expect_identical(cells$low, tables$ea_summary$ea_total_ci95_low)
})

test_that("a verdict that the model's own uncertainty leaves open says so", {
  share <- c(udp = 0.1, tcp = 0.9)
  campaign <- memory_campaign(c(udp = 0, tcp = log(0.98)), run_sd = 0.001)
  found <- transport_contrasts(campaign, model = memory_sensitivity(campaign, share))
  expect_identical(found$verdict, "less")
  expect_match(found$words, "with it, either transport may take less.", fixed = TRUE)
  expect_no_match(transport_contrasts(campaign)$words, "leave open")
})

test_that("points of a table share rho as the model interpolates it", {
  points <- data.table(rate = c(6, 12, 24, 48), rho = c(0.6, 0.7, 0.8, 1.2))
  shares <- rho_shares(points, c(6, 18, 48, 60, NA))
  expect_equal(shares[1, ], c(1, 0, 0, 0))
  expect_equal(shares[2, ], c(0, 0.35, 0.4, 0) / 0.75)
  expect_equal(shares[3, ], c(0, 0, 0, 1))
  # Beyond the table the last segment goes on: 1.4 W, of which the last point carries more than all.
  expect_equal(shares[4, ], c(0, 0, -0.4, 1.8) / 1.4)
  expect_equal(shares[5, ], c(0, 0, 0, 1))
  expect_equal(rowSums(shares), rep(1, 5))
})

test_that("each form's parameters find their terms", {
  terms <- matrix(1:5, 1, dimnames = list(NULL, c("base", "radio_idle", "radio_tx", "radio_rx", "cpu")))
  cpu <- list(form = "cpu")
  expect_identical(unname(parameter_share("core_w", cpu, terms, NA)), 5L)
  expect_identical(unname(parameter_share("rho_idle_w", cpu, terms, NA)), 2L)
  expect_identical(term_of("nonsense", cpu), NA_character_)
  expect_identical(term_of("rho_tx_w at 6 Mb/s", cpu), NA_character_)
  terms <- matrix(c(2, 3), 1, dimnames = list(NULL, c("tx", "generated_frames")))
  point <- function(rate, rho) list(phy_rate_mbps = rate, rho_w = rho)
  cross <- list(form = "cross_factor", rho_tx = list(point(6, 0.5), point(48, 1)))
  expect_equal(unname(parameter_share("rho_tx_w at 48 Mb/s", cross, terms, 48)), 2)
  expect_equal(unname(parameter_share("rho_tx_w at 6 Mb/s", cross, terms, 27)), 2 * 0.25 / 0.75)
  expect_equal(unname(parameter_share("gamma_xg_j", cross, terms, 27)), 3)
  expect_identical(term_of("rho_rx_w at 6 Mb/s", cross), "rx")
})

test_that("terms and parameters are those of the device models", {
  forms <- contract("vectors", "device_terms.json")$forms
  expect_setequal(names(forms), names(term_parameters))
  for (form in names(forms)) {
    ours <- c(term_parameters[[form]], if (form == "cross_factor") table_terms)
    expect_identical(ours[order(names(ours))], unlist(forms[[form]])[order(names(forms[[form]]))], label = form)
  }
})

test_that("a meter that runs read with several models in turn has no draw, and each of its models is told", {
  dir <- modelled_campaign(blocks = 2)
  other <- linear_model(u_p0 = 0.1)
  other$name <- "another"
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$device_models <- c(doc$device_models, list(other))
    doc
  })
  campaign <- read_campaign(dir)
  statistics <- campaign_statistics(campaign)
  parameters <- statistics$model_parameters
  expect_identical(parameters$device_model, rep(c("linear-test", "another"), each = 3))
  expect_identical(parameters$reason, c("no_stated_uncertainty", rep("several_models", 5)))
  expect_true(all(is.na(statistics$ea_uncertainty$u95_model_j_per_mbit)))
  expect_null(statistics$held_parameters)
  expect_match(
    parameter_sentences(campaign, statistics)[2],
    "Device model another (meter client-wt210): held at their values, so in no interval: p0_w, frame_j, air_time_w (",
    fixed = TRUE
  )
})
