# SPDX-License-Identifier: Apache-2.0

# Figures of 1 to 8 transports (and null), 1 to 4 sizes, 2 to 24 loads: words stay inside, shapes stay apart.

eight <- c("udp", "tcp", "quic", "quic-datagram", "dccp", "dccp-kernel", "mptcp", "sctp")
table_i_loads <- c(0.031, 0.049, 0.25, 0.5, 1:10, seq(12, 30, 2))
names(eight) <- eight

figures_of <- function(transports, sizes, loads, nodes = "client") {
  campaign <- wide_campaign(unname(transports), sizes, loads)
  tables <- wide_tables(campaign, wide_phy(unname(transports), sizes, loads, nodes))
  campaign_figures(campaign, tables)
}

inches <- function(width) grid::convertWidth(width, "in", valueOnly = TRUE)

# Width of the widest line of a text element, in inches.
text_width <- function(text, size_pt, bold = FALSE) {
  lines <- unlist(strsplit(as.character(text), "\n", fixed = TRUE))
  style <- grid::gpar(fontsize = size_pt, fontface = if (bold) "bold" else "plain")
  max(0, vapply(lines, function(line) inches(grid::grobWidth(grid::textGrob(line, gp = style))), 0))
}

words_of <- function(plot) {
  labels <- if (inherits(plot, "patchwork")) plot$patches$annotation else plot$labels
  list(title = labels$title, subtitle = labels$subtitle, caption = labels$caption)
}

# What is wider than its place: words over a figure, its legend, names over a panel.
overfull <- function(one) {
  words <- words_of(one$plot)
  inside <- one$width_in - 20 / 72.27
  found <- c(
    if (text_width(words$title, 11 * 1.15, bold = TRUE) > inside) "title",
    if (text_width(words$subtitle, 11) > inside) "subtitle",
    if (text_width(words$caption, 11 * 0.72) > inside) "caption"
  )
  plots <- if (inherits(one$plot, "patchwork")) {
    lapply(seq_len(part_count(one$plot)), function(i) one$plot[[i]])
  } else {
    list(one$plot)
  }
  c(found, unlist(lapply(plots, overfull_panels, inside = inside)))
}

overfull_panels <- function(plot, inside) {
  table <- ggplot2::ggplotGrob(plot)
  legend <- table$grobs[table$layout$name == "guide-box"]
  wide <- vapply(legend, function(grob) {
    if (inherits(grob, "gtable")) sum(inches(grob$widths)) > inside else FALSE
  }, NA)
  # Panels share what axes, names on the right and margins leave.
  fixed <- table$widths[!grid::unitType(table$widths) %in% "null"]
  columns <- sum(grid::unitType(table$widths) %in% "null")
  panel <- (inside - sum(inches(fixed))) / max(1, columns)
  strips <- strip_texts(table, "^strip-t")
  c(if (any(wide)) "legend", if (length(strips) > 0L && text_width(strips, 11 * 0.85) > panel + 0.15) "strip")
}

strip_texts <- function(table, pattern) {
  grobs <- table$grobs[grepl(pattern, table$layout$name)]
  unlist(lapply(grobs, labels_in))
}

labels_in <- function(grob) {
  if (inherits(grob, "text")) {
    return(as.character(grob$label))
  }
  unlist(lapply(c(grob$grobs, grob$children), labels_in))
}

# The device of the PNG files: its fonts are those that readers see.
with_device <- function(expr) {
  ragg::agg_png(tempfile(fileext = ".png"), width = 8.5, height = 8, units = "in", res = 72)
  on.exit(grDevices::dev.off())
  expr
}

cases <- list(
  "eight transports, four sizes, 24 loads" = list(c(eight, "null"), c(64, 300, 512, 1440), table_i_loads),
  "one transport, one size, two loads" = list("udp", 1440, c(1, 30)),
  "one transport, four sizes, two loads" = list("tcp", c(64, 300, 512, 1440), c(1, 30)),
  "two transports, three sizes, 24 loads" = list(c("udp", "dccp", "null"), c(64, 512, 1440), table_i_loads)
)
for (case in names(cases)) {
  test_that(paste("no word leaves its place:", case), {
    figures <- do.call(figures_of, cases[[case]])
    expect_gt(length(figures), 4)
    # Nothing is dropped from a panel with a warning, either.
    expect_silent(found <- with_device(lapply(figures, overfull)))
    names(found) <- vapply(figures, function(one) one$name, "")
    expect_identical(Filter(length, found), stats::setNames(list(), character()))
    for (one in figures) {
      expect_lte(length(strsplit(paste0(words_of(one$plot)$subtitle, ""), "\n")[[1]]), 3L, label = one$name)
    }
  })
}

test_that("transports that share shape and line differ in lightness, for grey print", {
  styles <- transport_looks()
  lightness <- grDevices::convertColor(t(grDevices::col2rgb(styles$colour)) / 255, "sRGB", "Lab")[, 1]
  pairs <- utils::combn(nrow(styles), 2)
  alike <- apply(pairs, 2, function(pair) {
    styles$shape[pair[1]] == styles$shape[pair[2]] && styles$linetype[pair[1]] == styles$linetype[pair[2]]
  })
  for (i in which(alike)) {
    expect_gt(abs(diff(lightness[pairs[, i]])), 20, label = paste(styles$transport[pairs[, i]], collapse = " and "))
  }
  expect_false(anyDuplicated(styles[, c("shape", "linetype", "colour")]) > 0)
})

test_that("points without lines are distinguished by shape alone", {
  shapes <- scatter_shapes(transport_looks()$transport)
  expect_identical(names(shapes), transport_looks()$transport)
  expect_identical(anyDuplicated(shapes), 0L)
  # Those of the four main transports are the ones of every other figure.
  main <- c("udp", "tcp", "quic", "dccp")
  expect_identical(shapes[main], style_values("shape")[main])
  expect_false(25 %in% shapes)
})

test_that("the legend takes a second row only where one is not enough", {
  expect_equal(legend_rows(c("udp", "tcp", "quic", "dccp", "null")), 1)
  expect_equal(legend_rows(c(eight, "null")), 2)
})

test_that("PHY rates of two nodes and four sizes get a figure per node", {
  figures <- figures_of(c("udp", "tcp"), c(64, 300, 512, 1440), c(1, 10), nodes = c("access_point", "client"))
  names <- vapply(figures, function(one) one$name, "")
  expect_identical(grep("^phy-rates", names, value = TRUE), c("phy-rates", "phy-rates-client"))
  few <- figures_of(c("udp", "tcp"), c(64, 1440), c(1, 10), nodes = c("access_point", "client"))
  expect_identical(sum(grepl("^phy-rates", vapply(few, function(one) one$name, ""))), 1L)
  expect_identical(mcs_words(c(13, NA, 13, 27)), " (MCS 13, 27)")
  expect_identical(mcs_words(NA_real_), "")
})

test_that("empty groups leave a figure out and break none", {
  campaign <- wide_campaign(c("udp", "dccp", "null"), c(64, 1440), c(1, 10, 30))
  campaign$results[transport == "dccp", `:=`(t_a_mbps = 0, ea_j_per_mbit = NA_real_)]
  campaign$results[payload_bytes == 64, usable := FALSE]
  tables <- wide_tables(campaign, table_of("phy_rates"))
  figures <- campaign_figures(campaign, tables)
  expect_silent(with_device(for (one in figures) print(one$plot)))
  names <- vapply(figures, function(one) one$name, "")
  expect_true(all(c("ea", "goodput", "power", "pacing") %in% names))
  expect_false(any(grepl("phy", names)))
})
