# SPDX-License-Identifier: Apache-2.0

test_that("a noiseless campaign gives back its truth, whatever drifts between mini-blocks", {
  campaign <- memory_campaign(c(udp = 0, tcp = log(0.74)), run_sd = 0, drift = 2, payload_bytes = c(64, 1440))
  found <- transport_contrasts(campaign)
  expect_identical(names(found), columns_of("contrasts"))
  expect_equal(found$difference_percent, c(-26, -26))
  expect_equal(found$difference_ci95_low, c(-26, -26))
  expect_equal(found$blocks_n, c(8, 8))
  expect_equal(found$loads_n, c(2, 2))
  expect_equal(found$p_value, rep(2 / 256, 2))
  expect_equal(found$p_holm, rep(4 / 256, 2))
  expect_identical(found$verdict, c("less", "less"))
})

test_that("the numbers are those of the definition", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0.1), blocks = 9, offered_rate_mbps = c(1, 3, 10), seed = 12)
  wide <- dcast(campaign$results, block + offered_rate_mbps ~ transport, value.var = "ea_j_per_mbit")
  d <- wide[, list(d = mean(log(tcp / udp))), by = block]$d
  one <- transport_contrasts(campaign)
  expect_equal(one$log_ratio_mean, mean(d))
  expect_equal(one$log_ratio_sd, sd(d))
  interval <- t.test(d)$conf.int
  expect_equal(c(one$difference_ci95_low, one$difference_ci95_high), 100 * (exp(interval) - 1), ignore_attr = TRUE)
  flips <- as.matrix(expand.grid(rep(list(c(-1, 1)), 9)))
  expect_equal(one$p_value, mean(abs(flips %*% d) >= abs(sum(d)) - 1e-12))
  expect_identical(one$p_method, "exact")
})

test_that("blocks decide between tests, what could be attained, and intervals alone", {
  effect <- c(udp = 0, dccp = -0.3, tcp = 0.2, quic = 0.4)
  found <- lapply(c(2, 5, 6, 7, 8), function(blocks) {
    transport_contrasts(memory_campaign(effect, blocks = blocks, payload_bytes = c(64, 1440), run_sd = 0.01))
  })
  kinds <- vapply(found, function(one) unique(one[in_family == TRUE, inference]), "")
  expect_identical(kinds, c("intervals_only", "intervals_only", "attainable_only", "attainable_only", "tested"))
  for (one in found[1:4]) {
    expect_true(all(is.na(one$p_value)) && all(is.na(one$verdict)))
    expect_false(anyNA(one$difference_ci95_low))
  }
  expect_equal(unique(found[[4]][in_family == TRUE, least_p]), 2 / 128)
  expect_equal(unique(found[[4]][in_family == TRUE, least_p_holm]), 12 / 128)
  eight <- found[[5]]
  expect_identical(sum(eight$in_family), 6L)
  expect_equal(eight[in_family == TRUE, p_holm], rep(12 / 256, 6))
  expect_true(all(eight[in_family == TRUE, verdict] == rep(c("less", "more", "more"), each = 2)))
  expect_identical(unique(eight[in_family == FALSE, inference]), "exploratory")
  expect_true(all(is.na(eight[in_family == FALSE, p_value])))
  expect_match(
    found[[4]]$words[1],
    "7 repetitions \\(blocks\\) are too few for a significance test: the least p .* is 0.016, 0.094"
  )
  expect_match(found[[4]]$words[1], "; 8 are needed.", fixed = TRUE)
})

test_that("tests that nobody reads are not made", {
  context <- list(seed = 1, design = list(margin_percent = 3))
  d <- c(0.1, 0.2, 0.15, 0.12, 0.11, 0.17, 0.14, 0.13)
  expect_equal(tests_of(d, context, TRUE)$p_value, 2 / 256)
  untested <- tests_of(d, context, FALSE)
  expect_true(is.na(untested$p_value) && is.na(untested$p_method) && is.na(untested$p_equivalence))
})

test_that("only the first meter has the family", {
  found <- transport_contrasts(memory_campaign(meters = c("b", "a")))
  expect_identical(found$meter_id, c("b", "a"))
  expect_identical(found$in_family, c(TRUE, FALSE))
})

test_that("runs are paired inside mini-blocks alone: a missing partner takes its block out, not another's run", {
  campaign <- memory_campaign(c(udp = 0, tcp = log(0.9)), run_sd = 0, drift = 3, blocks = 9)
  campaign$results[transport == "udp" & mini_block %in% c(1, 2), usable := FALSE]
  found <- transport_contrasts(campaign)
  expect_equal(found$blocks_n, 8)
  expect_equal(found$difference_percent, -10)
  # Attempts of a mini-block are not mixed either.
  campaign$results[transport == "udp" & mini_block == 3, attempt := 2]
  expect_equal(transport_contrasts(campaign)$difference_percent, -10)
})

test_that("loads or blocks that lack pairs go, whichever lacks more", {
  grid <- matrix(1, 8, 3, dimnames = list(1:8, c(1, 3, 10)))
  one_load <- grid
  one_load[, 2] <- NA
  expect_identical(dimnames(complete_grid(one_load)), list(as.character(1:8), c("1", "10")))
  one_block <- grid
  one_block[8, 2:3] <- NA
  expect_identical(dim(complete_grid(one_block)), c(7L, 3L))
  one_run <- matrix(1, 8, 12, dimnames = list(1:8, 1:12))
  one_run[4, 5] <- NA
  expect_identical(dim(complete_grid(one_run)), c(8L, 11L))
  expect_identical(dim(complete_grid(grid * NA)), c(0L, 0L))
  expect_identical(complete_grid(grid), grid)
})

test_that("a load with a run below resolution is compared by difference of P_A, apart from the ratio", {
  campaign <- memory_campaign(c(udp = 0, tcp = log(2)), run_sd = 0)
  campaign$results[offered_rate_mbps == 1 & block == 3 & transport == "tcp", `:=`(
    below_resolution = TRUE, ea_j_per_mbit = NA_real_
  )]
  found <- transport_contrasts(campaign)
  expect_equal(found$loads_n, 1)
  expect_equal(found$loads_by_p_a_n, 1)
  expect_equal(found$difference_percent, 100)
  expect_equal(found$difference_p_a_w, 1)
  expect_match(found$words, "there is no ratio: P_A of TCP minus that of UDP was 1 W")
  expect_match(found$words, "(mean over 1 of 2 loads and 8 blocks)", fixed = TRUE)
  # Nothing but loads below resolution: no ratio at all, and it is said.
  campaign$results[, below_resolution := TRUE]
  none <- transport_contrasts(campaign)
  expect_equal(none$blocks_n, 0)
  expect_true(is.na(none$difference_percent))
  expect_match(none$words, "cannot be compared with UDP by ratio")
})

test_that("the difference of P_A is over blocks that all have the same loads", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0), blocks = 9, offered_rate_mbps = c(1, 10), run_sd = 0)
  campaign$results[, below_resolution := TRUE]
  campaign$results[transport == "udp", p_a_w := p_a_w + fifelse(offered_rate_mbps == 1, 0.1, 1)]
  whole <- transport_contrasts(campaign)
  expect_equal(c(whole$difference_p_a_w, whole$difference_p_a_ci95_low, whole$difference_p_a_ci95_high), rep(-0.55, 3))
  # The block that lacks the smaller difference goes: its mean would be 1.
  campaign$results[block == 4 & offered_rate_mbps == 1 & transport == "tcp", usable := FALSE]
  part <- transport_contrasts(campaign)
  expect_equal(c(part$difference_p_a_w, part$difference_p_a_ci95_low, part$difference_p_a_ci95_high), rep(-0.55, 3))
  expect_equal(part$loads_by_p_a_n, 2)
})

# Every planned load is in exactly one of the counts.
planned_loads <- function(found) rowSums(found[, load_counts, with = FALSE])

test_that("every planned load is counted once, and the sentence says which are missing and why", {
  rates <- c(1, 3, 10, 30)
  campaign <- memory_campaign(c(udp = 0, tcp = 0.5), offered_rate_mbps = rates, run_sd = 0, blocks = 9)
  expect_equal(planned_loads(transport_contrasts(campaign)), 4)
  # Nothing arrives at 30 Mb/s, so no pair is valid; most mini-blocks at 10 Mb/s could not be repeated; one run at
  # 3 Mb/s drew less than idle.
  campaign$results[offered_rate_mbps == 30 & transport == "tcp", usable := FALSE]
  campaign$results[offered_rate_mbps == 10 & block <= 5 & transport == "udp", usable := FALSE]
  campaign$results[offered_rate_mbps == 3 & block == 5 & transport == "tcp", ea_j_per_mbit := -0.1]
  found <- transport_contrasts(campaign)
  expect_equal(found$loads_n, 1)
  expect_equal(found$loads_no_ea_n, 1)
  expect_equal(found$loads_incomplete_n, 2)
  expect_equal(planned_loads(found), 4)
  expect_match(found$words, "(mean over 1 of 4 loads and 9 blocks)", fixed = TRUE)
  expect_match(found$words, paste(
    "Left out: 1 load with a run without an E_A above 0 and 2 loads without a pair in every block that counts."
  ), fixed = TRUE)
})

test_that("loads at which a core was full stay in the mean, are counted, and the rest stands beside it", {
  campaign <- memory_campaign(c(udp = 0, tcp = log(0.8)), run_sd = 0, offered_rate_mbps = c(1, 3, 10))
  whole <- transport_contrasts(campaign)
  expect_equal(whole$loads_core_busy_n, 0)
  expect_equal(whole$difference_without_core_busy_percent, whole$difference_percent)
  expect_no_match(whole$words, "core")
  campaign$results[offered_rate_mbps == 10, ea_j_per_mbit := 1]
  campaign$results[offered_rate_mbps == 10 & block == 4 & transport == "udp", floor_reason := "floor_core_busy"]
  found <- transport_contrasts(campaign)
  expect_equal(found$log_ratio_mean, 2 / 3 * log(0.8))
  expect_equal(found$loads_n, 3)
  expect_equal(found$loads_core_busy_n, 1)
  expect_equal(found$difference_without_core_busy_percent, -20)
  expect_match(
    found$words,
    "At 1 load a sender, or that of a null run, was over 90 % of a core busy (floor_core_busy); without it: 20 % less.",
    fixed = TRUE
  )
  campaign$results[, floor_reason := "floor_core_busy"]
  all_full <- transport_contrasts(campaign)
  expect_true(is.na(all_full$difference_without_core_busy_percent))
  expect_match(all_full$words, "At 3 loads a sender, or that of a null run, was over .* without them: no load is left.")
})

test_that("the contrast above the floor is over the loads at which every run resolves it", {
  campaign <- memory_campaign(c(udp = 0, tcp = log(0.8)), run_sd = 0, offered_rate_mbps = c(1, 3, 10))
  without <- transport_contrasts(campaign)
  expect_equal(without$loads_above_floor_n, 0)
  expect_true(is.na(without$difference_above_floor_percent))
  expect_no_match(without$words, "generator floor")
  campaign$results[, ea_above_floor_j_per_mbit := ea_j_per_mbit - 0.5]
  campaign$results[offered_rate_mbps == 3 & block == 2 & transport == "tcp", ea_above_floor_j_per_mbit := -0.1]
  found <- transport_contrasts(campaign)
  expect_equal(found$difference_percent, -20)
  expect_equal(found$loads_above_floor_n, 2)
  expect_equal(found$difference_above_floor_percent, -40)
  expect_equal(c(found$difference_above_floor_ci95_low, found$difference_above_floor_ci95_high), c(-40, -40))
  expect_equal(c(found$above_floor_from_mbps, found$above_floor_to_mbps), c(1, 10))
  expect_equal(found$difference_at_these_loads_percent, -20)
  expect_match(
    found$words,
    "exploratory: 40 % less [95 %: 40 to 40 %], over the 2 loads (1 to 10 Mb/s) at which every run resolves it",
    fixed = TRUE
  )
  expect_match(found$words, "it; E_A there: 20 % less.", fixed = TRUE)
  # One run without a floor takes its load out, whatever refused it.
  campaign$results[offered_rate_mbps == 10 & block == 1 & transport == "udp", ea_above_floor_j_per_mbit := NA]
  expect_equal(transport_contrasts(campaign)$loads_above_floor_n, 1)
  # Three standard uncertainties of 0.1 J/Mb are resolved, of 0.11 they are not: UDP has 0.5 less than E_A = 1.
  campaign$results[, u95_ea_above_floor_j_per_mbit := 0.2]
  expect_equal(transport_contrasts(campaign)$loads_above_floor_n, 1)
  campaign$results[run_id == campaign$results[offered_rate_mbps == 1 & transport == "tcp", run_id][1],
    u95_ea_above_floor_j_per_mbit := 0.22
  ]
  none <- transport_contrasts(campaign)
  expect_equal(none$loads_above_floor_n, 0)
  expect_true(is.na(none$above_floor_from_mbps) && is.na(none$difference_at_these_loads_percent))
})

test_that("hollow loads are left out and counted", {
  campaign <- memory_campaign(c(udp = 0, tcp = 0.5), run_sd = 0)
  campaign$results[offered_rate_mbps == 10 & transport == "udp", `:=`(hollow = TRUE, ea_j_per_mbit = 77)]
  found <- transport_contrasts(campaign)
  expect_equal(found$log_ratio_mean, 0.5)
  expect_equal(found$loads_hollow_n, 1)
  expect_equal(planned_loads(found), 2)
  expect_match(found$words, "Left out: 1 load outside the device model's validity.", fixed = TRUE)
})

test_that("equivalence is asked by the workload or by the argument, and Holm counts the whole family", {
  effect <- c(udp = 0, tcp = 0.001, quic = 0.2)
  silent <- transport_contrasts(memory_campaign(effect, run_sd = 0.004))
  expect_true(all(is.na(silent$equivalence)))
  asked <- memory_campaign(effect, run_sd = 0.004, statistics = list(equivalence_margin_percent = 3))
  found <- transport_contrasts(asked)
  expect_identical(found$equivalence, c("equivalent", "not_shown", "not_shown"))
  expect_equal(found$p_equivalence_holm, holm(found$p_equivalence, 3))
  wide <- transport_contrasts(asked, margin_percent = 40)
  expect_identical(wide$equivalence, rep("equivalent", 3))
  expect_identical(wide$margin_percent, rep(40, 3))
  expect_match(wide$words[2], "Equivalent within a margin of 40 %", fixed = TRUE)
  few <- transport_contrasts(memory_campaign(effect, blocks = 5, run_sd = 0.004), margin_percent = 3)
  expect_true(all(is.na(few$equivalence)))
})

test_that("the level of the workload decides the verdict", {
  strict <- memory_campaign(c(udp = 0, tcp = 0.02), blocks = 11, statistics = list(alpha = 0.001))
  expect_identical(transport_contrasts(strict)$verdict, "no_clear_difference")
  loose <- memory_campaign(c(udp = 0, tcp = 0.5), statistics = list(alpha = 0.01))
  expect_identical(transport_contrasts(loose)$verdict, "more")
})

test_that("a level that no data of so many blocks can reach gives no verdict", {
  strict <- transport_contrasts(memory_campaign(c(udp = 0, tcp = 0.5), statistics = list(alpha = 0.001)))
  expect_identical(strict$inference, "attainable_only")
  expect_true(is.na(strict$verdict) && is.na(strict$p_value))
  expect_match(strict$words, "8 repetitions .blocks. are too few for a significance test: .* 11 are needed")
  enough <- transport_contrasts(memory_campaign(c(udp = 0, tcp = 0.5), blocks = 11, statistics = list(alpha = 0.001)))
  expect_identical(enough$verdict, "more")
})

test_that("a campaign without E_A or without a pair has no contrasts", {
  campaign <- memory_campaign()
  campaign$results[, `:=`(ea_j_per_mbit = NA_real_, ea_reason = "radio_without_air_time")]
  expect_null(transport_contrasts(campaign))
  expect_null(transport_contrasts(memory_campaign(c(udp = 0))))
})

# How many of so many campaigns, in which E_A drifts from run to run, have the truth in the contrast's interval.
holding_truth <- function(campaigns, random_order) {
  sum(vapply(seq_len(campaigns), function(seed) {
    campaign <- memory_campaign(
      c(udp = 0, tcp = log(0.9)),
      run_sd = 0.03, block_sd = 0.01, run_drift = 1, random_order = random_order, seed = seed
    )
    one <- transport_contrasts(campaign, outliers = NULL)
    one$difference_ci95_low <= -10 && -10 <= one$difference_ci95_high
  }, NA))
}

test_that("the 95 % interval holds the truth in about 95 of 100 campaigns that drift, in random order", {
  campaigns <- 300
  bounds <- binomial_bounds(campaigns, 0.95)
  hits <- holding_truth(campaigns, random_order = TRUE)
  expect_gte(hits, bounds[1])
  expect_lte(hits, bounds[2])
  # In a fixed order the later transport would be charged with the drift.
  expect_lt(holding_truth(100, random_order = FALSE), binomial_bounds(100, 0.95)[1])
})

test_that("six true hypotheses raise any false alarm in at most 5 of 100 campaigns", {
  campaigns <- 200
  alike <- c(udp = 0, dccp = 0, tcp = 0)
  alarms <- vapply(seq_len(campaigns), function(seed) {
    campaign <- memory_campaign(alike, payload_bytes = c(64, 1440), run_drift = 1, seed = seed)
    any(transport_contrasts(campaign, outliers = NULL)$verdict %in% c("less", "more"))
  }, NA)
  expect_lte(sum(alarms), binomial_bounds(campaigns, 0.05)[2])
})

test_that("one test over ten blocks keeps its level, and finds what is there", {
  campaigns <- 150
  alarms <- function(effect) {
    sum(vapply(seq_len(campaigns), function(seed) {
      campaign <- memory_campaign(c(udp = 0, tcp = effect), blocks = 10, run_drift = 1, seed = seed)
      transport_contrasts(campaign, outliers = NULL)$verdict != "no_clear_difference"
    }, NA))
  }
  bounds <- binomial_bounds(campaigns, 0.05)
  none <- alarms(0)
  expect_lte(none, bounds[2])
  expect_gte(none, binomial_bounds(campaigns, 50 / 1024)[1])
  # Block means over 2 loads scatter by 0.05: an effect of 0.1 is found nearly always.
  expect_gte(alarms(0.1), binomial_bounds(campaigns, t_power(10, 0.1, 0.05, 0.05) - 0.01)[1])
})
