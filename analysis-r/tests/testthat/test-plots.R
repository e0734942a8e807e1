# SPDX-License-Identifier: Apache-2.0

# A campaign that has everything: five transports, loss, a transport that is held back, hollow and
# below-resolution cells, two PHY rates.
rich_campaign <- function() {
  meter <- synthetic_meter(hollow = function(rate) rate >= 30, u_delta_p_w = 0.012)
  read_campaign(synthetic_campaign(
    name = "rich", offered_rate_mbps = c(1, 3, 10, 30), noise_w = 0.004,
    loss = function(rate) if (rate > 20) 0.3 else 0, held_back = function(rate) if (rate > 20) 0.45 else 0,
    transports = c("udp", "dccp", "tcp", "quic", "quic-datagram", "null"),
    meters = list(meter),
    phy_rate_mbps = function(n) rep(c(216, 216, 162), length.out = n), seed = 7
  ))
}
campaign <- rich_campaign()
tables <- campaign_tables(campaign)
figures <- campaign_figures(campaign, tables)
names(figures) <- vapply(figures, function(one) one$name, "")

# The same elements and words, coordinates within 0.05 px: another processor rounds them differently.
same_drawing <- function(old, new) {
  number <- "-?[0-9]+[.]?[0-9]*"
  parts <- lapply(c(old, new), function(path) {
    text <- paste(readLines(path, encoding = "UTF-8"), collapse = "\n")
    text <- gsub("cp[A-Za-z0-9+/]+=*", "clip", text)
    list(words = gsub(number, "#", text), numbers = as.numeric(regmatches(text, gregexpr(number, text))[[1]]))
  })
  parts[[1]]$words == parts[[2]]$words && max(abs(parts[[1]]$numbers - parts[[2]]$numbers)) <= 0.05
}

test_that("figures look as reviewed", {
  # Another ggplot2 draws other ticks and paths; the table below is held everywhere.
  skip_if_not(utils::packageVersion("ggplot2")$minor == 4, "ggplot2 is not 3.4, which drew the reviewed figures")
  for (name in names(figures)) {
    drawn <- file.path(tempdir(), paste0(name, ".svg"))
    vdiffr::write_svg(figures[[name]]$plot, drawn, name)
    expect_snapshot_file(drawn, compare = same_drawing)
  }
})

test_that("the table behind the figures is as reviewed", {
  shown <- rounded(tables$ea_summary)[, columns_of("ea_summary")[6:21], with = FALSE]
  for (column in names(Filter(is.numeric, shown))) set(shown, j = column, value = signif(shown[[column]], 6))
  expect_snapshot_output(fwrite(shown, na = ""))
})

caption_of <- function(plot) {
  caption <- if (inherits(plot, "patchwork")) plot$patches$annotation$caption else plot$labels$caption
  gsub("[\u00a0\n]", " ", caption)
}

test_that("every figure carries its sources and says that it is a model", {
  for (name in names(figures)) {
    caption <- caption_of(figures[[name]]$plot)
    for (words in c(
      "power_source: modelled", "radio_source: link-model", "device model: linear-test", "meter: client-wt210",
      "node: client", "campaign: rich", "commit: 0123abc", "in this model"
    )) {
      expect_match(caption, words, fixed = TRUE, label = paste(name, "caption"))
    }
  }
})

test_that("every figure has an alt text with its range and, when modelled, says so", {
  for (name in names(figures)) {
    alt <- figure_alt(figures[[name]]$plot)
    expect_gt(nchar(alt), 80)
    expect_match(alt, "[0-9]", label = name)
    expect_match(alt, "[Ii]n this model", label = name)
  }
})

test_that("PHY rates stand on the axis with their MCS", {
  built <- ggplot2::ggplot_build(figures$`phy-rates`$plot)
  expect_identical(unname(built$layout$panel_params[[1]]$y$get_labels()), c("162 (MCS 13)", "216 (MCS 13)"))
})

test_that("a measured campaign on a real radio does not speak of a model", {
  campaign <- read_campaign(synthetic_campaign(blocks = 2, meters = list(
    synthetic_meter(power_source = "measured", device_model = NULL, device_form = NULL)
  )))
  campaign$results$radio_source <- "real"
  campaign$runs$radio_source <- "real"
  campaign$meta$radio_source <- "real"
  plot <- plot_ea(summarise_ea(campaign), campaign, "client-wt210")
  expect_false(grepl("model", caption_of(plot)))
  expect_false(grepl("model", plot$labels$subtitle))
  expect_false(grepl("model", figure_alt(plot)))
})

test_that("apparent power is named in every figure and in the head of the report", {
  dir <- synthetic_campaign(blocks = 2)
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$meters[[1]]$quantity <- "apparent_power"
    doc
  })
  campaign <- read_campaign(dir)
  plot <- plot_ea(summarise_ea(campaign), campaign, "client-wt210")
  expect_match(gsub("[\u00a0\n]", " ", caption_of(plot)), "apparent power, not active power", fixed = TRUE)
  expect_match(as.character(report_header(campaign)), "grade C at most", fixed = TRUE)
  expect_false(grepl("apparent", as.character(report_header(read_campaign(synthetic_campaign(blocks = 1))))))
})

test_that("measured power over a modelled radio still counts as modelled", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, meters = list(synthetic_meter(power_source = "measured"))))
  expect_true(is_modelled(campaign))
})

test_that("hollow cells are white and upper limits are downward triangles", {
  plot <- figures$ea$plot
  built <- ggplot2::ggplot_build(plot)$data
  points <- rbindlist(Filter(function(data) "shape" %in% names(data), built), fill = TRUE)
  hollow <- tables$ea_summary[hollow == TRUE & transport != "null" & below_resolution_n == 0]
  limits <- tables$ea_summary[below_resolution_n > 0 & transport != "null"]
  expect_gt(nrow(hollow), 0)
  expect_gt(nrow(limits), 0)
  expect_identical(nrow(points[fill == "white" & shape != 25]), nrow(hollow))
  expect_identical(nrow(points[shape == 25]), nrow(limits))
})

test_that("a cell with at most half of its runs below resolution is its mean, open; with more an upper limit", {
  campaign <- read_campaign(synthetic_campaign(payload_bytes = 64, transports = c("udp", "null"), blocks = 3))
  at_1 <- which(campaign$results$transport == "udp" & campaign$results$offered_rate_mbps == 1)
  campaign$results[at_1, ea_upper_limit_j_per_mbit := 9]
  campaign$results[at_1[1], below_resolution := TRUE]
  summary <- summarise_ea(campaign)
  points <- ea_points(summary)
  expect_identical(points$limit, c(FALSE, FALSE))
  expect_identical(points$value, summary[transport == "udp", ea_j_per_mbit_mean])
  expect_identical(is_open(points), c(TRUE, FALSE))
  expect_identical(point_words(points), "Open points: 1 run below resolution.")
  built <- ggplot2::ggplot_build(plot_ea(summary, campaign, "client-wt210"))$data
  shown <- rbindlist(Filter(function(data) "shape" %in% names(data), built), fill = TRUE)
  expect_identical(nrow(shown[fill == "white"]), 1L)
  expect_false(25 %in% shown$shape)
  campaign$results[at_1[2], below_resolution := TRUE]
  most <- ea_points(summarise_ea(campaign))
  expect_identical(most$limit, c(TRUE, FALSE))
  expect_equal(most$value[1], 9)
  expect_identical(point_words(most), "Downward triangles: upper limits.")
  both <- data.table(hollow = c(TRUE, FALSE), below_n = c(1L, 3L), limit = FALSE, unshown = FALSE)
  expect_identical(
    point_words(both), "Hollow points: device model extrapolated, or up to 3 runs below resolution."
  )
})

test_that("floors that the meter does not resolve are drawn in no figure, and are counted", {
  campaign <- read_campaign(synthetic_campaign(transports = c("udp", "null"), blocks = 3))
  subtitle <- function(plot) gsub("\n", " ", plot$patches$annotation$subtitle)
  campaign$results[transport == "null" & offered_rate_mbps == 1, below_resolution := TRUE]
  summary <- summarise_ea(campaign)
  plot <- plot_floor(summary, campaign, "client-wt210")
  expect_identical(unique(plot[[1]]$data$offered_rate_mbps), 10)
  expect_match(subtitle(plot), "Floor of 2 cells below resolution: in the table only.", fixed = TRUE)
  expect_identical(unique(floor_per_mbit(summary)$offered_rate_mbps), 10)
  campaign$results[transport == "null", below_resolution := TRUE]
  expect_null(plot_floor(summarise_ea(campaign), campaign, "client-wt210"))
  # A minority of its runs leaves a floor where it is, open in both figures.
  campaign$results[transport == "null", below_resolution := block == 1]
  summary <- summarise_ea(campaign)
  plot <- plot_floor(summary, campaign, "client-wt210")
  expect_true(all(is_open(plot[[1]]$data)))
  expect_true(all(is_open(floor_per_mbit(summary))))
  expect_match(subtitle(plot), "Open points: 1 run below resolution. Floor: the sender alone", fixed = TRUE)
})

test_that("axes are logarithmic exactly where values span a decade", {
  expect_true(spans_decades(c(1, 3, 10)))
  expect_false(spans_decades(c(2, 3, 10)))
  expect_false(spans_decades(c(-1, 0)))
  expect_identical(load_axis(c(1, 30))$trans$name, "log-10")
  expect_identical(load_axis(c(20, 30))$trans$name, "identity")
})

test_that("transports of a single load stand at its place, not at the edges of the panel", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, payload_bytes = 1440, offered_rate_mbps = 6))
  summary <- summarise_ea(campaign)
  id <- campaign$meters$meter_id[1]
  floor <- plot_floor(summary, campaign, id)
  drawn <- list(plot_ea(summary, campaign, id), floor[[1]], floor[[2]], plot_goodput(summary, campaign))
  for (plot in drawn) {
    axis <- ggplot2::ggplot_build(plot)$layout$panel_params[[1]]$x
    expect_identical(axis$breaks[!is.na(axis$breaks)], 6)
    places <- axis$rescale(plot$data$x)
    expect_lt(max(abs(places - axis$rescale(6))), 0.06)
  }
  # They still stand side by side.
  expect_identical(anyDuplicated(unique(drawn[[1]]$data[, c("transport", "x")])$x), 0L)
})

test_that("neighbouring numbers of an axis differ", {
  expect_identical(apart_text(c(6.001, 6.002, NA, 6.003)), c("6.001", "6.002", NA, "6.003"))
  expect_identical(apart_text(c(0.1, 0.25, 1)), c("0.1", "0.25", "1"))
  axis <- value_axis(c(5.9981, 5.9987), "Goodput")
  expect_identical(axis$labels(c(5.998, 5.9985)), c("5.998", "5.9985"))
})

test_that("stream and datagram transports share a panel only with frames per message shown", {
  labels <- payload_labels(tables$ea_summary)
  shown <- gsub("[\u00a0\n]", " ", labels[["64"]])
  expect_match(shown, "64-byte messages frames per message: UDP 1, TCP 0.078\u20131, QUIC 0.078\u20131", fixed = TRUE)
})

test_that("values that a logarithmic axis cannot show are counted, not dropped in silence", {
  points <- data.table(
    transport = c("udp", "udp", "tcp"), value = c(0.1, 10, -1), low = c(-0.1, 9, NA), high = c(0.2, 11, NA)
  )
  shown <- hide_unplottable(points)
  expect_identical(shown$unshown, c(FALSE, FALSE, TRUE))
  settled <- settle_lows(shown)
  expect_identical(settled$low_open, c(TRUE, FALSE, FALSE))
  expect_equal(settled$low[1], 0.1 / 1.5)
  expect_equal(attr(settled, "foot"), 0.1 / 1.5)
  words <- point_words(cbind(settled, hollow = FALSE, limit = FALSE))
  expect_match(words, "include zero|1 cell", all = TRUE)
  expect_length(words, 2)
})

test_that("a line never crosses a load whose point is an upper limit or missing", {
  points <- plain_points(data.table(
    arm = transport_factor("udp"), panel = 64, at = c(1, 3, 10, 30, 100), value = c(5, 4, 3, 2, 1)
  ))
  expect_identical(joinable(points)$at, c(1, 3, 10, 30, 100))
  expect_identical(length(unique(joinable(points)$piece)), 1L)
  points[at == 10, limit := TRUE]
  broken <- joinable(points)
  expect_identical(broken$at, c(1, 3, 30, 100))
  expect_identical(length(unique(broken$piece)), 2L)
  points[at == 3, value := NA_real_]
  expect_identical(joinable(points)$at, c(30, 100))
})

test_that("an envelope with runs left out does not claim all blocks for each point", {
  expect_match(interval_words(campaign, "client-wt210", 3L, up_to = TRUE), "interval, up to 3 blocks", fixed = TRUE)
  expect_match(interval_words(campaign, "client-wt210", 3L), "interval, 3 blocks", fixed = TRUE)
})

test_that("what stands under a title stays short, whatever is to be said", {
  for (name in names(figures)) {
    plot <- figures[[name]]$plot
    subtitle <- if (inherits(plot, "patchwork")) plot$patches$annotation$subtitle else plot$labels$subtitle
    expect_lte(length(strsplit(paste0(subtitle, ""), "\n", fixed = TRUE)[[1]]), 3L, label = name)
  }
})

test_that("each meter has its own set and the first one has the plain names", {
  campaign <- read_campaign(synthetic_campaign(
    blocks = 2, meters = list(synthetic_meter(), synthetic_meter("ap-meter", node = "access_point"))
  ))
  names <- vapply(campaign_figures(campaign, campaign_tables(campaign)), function(one) one$name, "")
  expect_setequal(names, c(
    paste0(rep(c(
      "ea", "envelope", "delta-ea", "floor", "model-fit", "model-residuals", "power", "ea-order"
    ), 2), rep(c("", "-ap-meter"), each = 8)), "goodput", "delta-goodput", "loss", "phy-rates"
  ))
})

test_that("cells that congestion control held back are counted, and only those of transports that have it", {
  rows <- data.table(
    transport = c("udp", "dccp", "tcp", "dccp-kernel", "null"), achieved_ratio = c(0.5, 0.6, 0.995, 0.98, 0.1)
  )
  expect_identical(held_back(rows)$transport, c("dccp", "dccp-kernel"))
  expect_identical(held_back_words(rows), "2 cells held back by congestion control.")
  expect_null(held_back_words(rows[1]))
  expect_match(figures$goodput$plot$labels$subtitle, "2 cells held\\s+back")
  expect_match(figures$loss$plot$labels$subtitle, "not_sent,\\s+not lost")
  expect_match(
    held_back_sentence(tables$ea_summary), "In 2 of 40 cells .* least for DCCP at 64 bytes and 30 Mb/s: 55 % of the"
  )
})

test_that("figures name the CCID and the carrier of DCCP, whatever a file says of them", {
  expect_identical(option_words(campaign), "DCCP: CCID 3 over UDP")
  campaign$meta$workload$transport_options <- list("dccp-kernel" = list(ccid = 2L), dccp = list(carrier = "\u2028<x>"))
  expect_identical(option_words(campaign)[1], "DCCP (kernel): CCID 2")
  expect_false(grepl("\u2028", option_words(campaign)[2]))
  campaign$meta$workload$transport_options <- NULL
  expect_length(option_words(campaign), 0)
})

test_that("transports are told apart by shape within their kind, and by colour", {
  four <- transport_styles[transport_styles$transport %in% c("udp", "dccp", "tcp", "quic"), ]
  expect_identical(anyDuplicated(four$shape), 0L)
  expect_identical(anyDuplicated(transport_styles$colour), 0L)
  expect_false(25 %in% transport_styles$shape) # kept for upper limits
})

test_that("a campaign without null runs has no floor figure", {
  campaign <- read_campaign(synthetic_campaign(blocks = 1, transports = c("udp", "tcp")))
  expect_null(plot_floor(summarise_ea(campaign), campaign, "client-wt210"))
})

test_that("SVG and PNG are written, the SVG with title and description", {
  dir <- tempfile("figures")
  paths <- write_figures(figures["ea"], dir)
  expect_true(all(file.size(paths) > 0))
  svg <- paste(readLines(file.path(dir, "ea.svg"), encoding = "UTF-8"), collapse = "\n")
  expect_match(svg, "<title>Energy per megabit</title>", fixed = TRUE)
  expect_match(svg, "<desc>Line plot of E_A", fixed = TRUE)
  expect_identical(readBin(file.path(dir, "ea.png"), "raw", 4), as.raw(c(0x89, 0x50, 0x4e, 0x47)))
  index <- jsonlite::fromJSON(file.path(dir, "index.json"))
  expect_identical(index$svg, "ea.svg")
  expect_gt(nchar(index$alt), 80)
})
