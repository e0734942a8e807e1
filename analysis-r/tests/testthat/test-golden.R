# SPDX-License-Identifier: Apache-2.0

# Campaigns that the repository keeps (results/golden): their tables come out as they are.
golden_campaigns <- function() {
  list.dirs(file.path(contracts_dir(), "..", "..", "results", "golden"), recursive = FALSE)
}

test_that("tables of kept campaigns are rebuilt byte for byte", {
  kept <- golden_campaigns()
  expect_true("guest-hwsim" %in% basename(kept))
  for (dir in kept) {
    rebuilt <- tempfile("tables")
    write_tables(campaign_tables(read_campaign(dir)), rebuilt)
    files <- list.files(file.path(dir, "tables"))
    expect_identical(list.files(rebuilt), files)
    expect_identical(
      unname(tools::md5sum(file.path(rebuilt, files))), unname(tools::md5sum(file.path(dir, "tables", files))),
      info = dir
    )
  }
})
