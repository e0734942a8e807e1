# SPDX-License-Identifier: Apache-2.0

# docs/findings.md quotes what the analysis says of the shipped campaigns of the study.

# Campaign, how often its family tests, and the section of the page.
sections <- list(
  list("study-ideal-216", 6L, "ideal-216"), list("study-seed-like", 6L, "seed-like"),
  list("study-cubic", 3L, "Both with CUBIC")
)

for (of in sections) {
  test_that(paste("the findings quote every main comparison:", of[[1]]), {
    family <- campaign_statistics(read_campaign(shipped(of[[1]])))$contrasts[in_family == TRUE]
    expect_identical(nrow(family), of[[2]])
    expect_true(all(family$inference == "tested"))
    section <- sub("\n## .*", "", sub(paste0(".*\n## ", of[[3]]), "", page("findings.md")))
    quoted <- vapply(family$words, grepl, NA, x = section, fixed = TRUE)
    expect_identical(family$words[!quoted], character())
  })
}

# A row of Table IV as the findings have it, up to what was published.
table_iv_line <- function(row) {
  half <- function(name, unit = 1) (row[[paste0(name, "_high")]] - row[[paste0(name, "_low")]]) / 2 * unit
  below <- row$below_resolution_n
  value <- if (below == row$n) {
    sprintf("below %.2f", row$ea_upper_limit_j_per_mbit)
  } else {
    digits <- if (below > 0) 2L else 3L
    sprintf("%.*f \u00b1 %.*f", digits, row$ea_j_per_mbit_mean, digits, half("ea_ci95"))
  }
  if (below > 0 && below < row$n) {
    value <- sprintf("%s, %d of %d runs below resolution", value, below, row$n)
  }
  if (!is.na(row$difference_percent)) {
    value <- sprintf(
      "%s: %.0f %% [%.0f to %.0f %%] more", value, row$difference_percent, row$difference_ci95_low,
      row$difference_ci95_high
    )
  }
  above <- if (is.na(row$difference_p_a_w)) {
    ""
  } else {
    sprintf("%.1f \u00b1 %.1f ", 1000 * row$difference_p_a_w, half("difference_p_a_ci95", 1000))
  }
  sprintf("| %s | %s | %s | %s| %.2g |", row$application, row$transport, value, above, row$u95_meter)
}

for (application in c("skype", "youtube")) {
  test_that(paste("the findings have Table IV of the shipped campaign:", application), {
    rows <- campaign_tables(read_campaign(shipped(paste0(application, "-short"))))$table_iv
    for (sender in c("udp", "dccp")) {
      line <- table_iv_line(rows[meter_id == "client-cpu" & transport == sender])
      expect_match(page("findings.md"), line, fixed = TRUE)
    }
  })
}
