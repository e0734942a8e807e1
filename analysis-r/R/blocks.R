# SPDX-License-Identifier: Apache-2.0

# A campaign on rigs holds each block in a folder of its own (blocks/<block>/), with runs and logs of its own.

#' Folder that holds the runs and the logs of a block
#'
#' @param block numbers.
#' @return path of each: the campaign's own folder where it has no blocks/.
#' @noRd
block_home <- function(campaign_dir, block) {
  if (!dir.exists(file.path(campaign_dir, "blocks"))) {
    return(rep(campaign_dir, length(block)))
  }
  file.path(campaign_dir, "blocks", format(block, scientific = FALSE, trim = TRUE))
}

#' A campaign by the folders that hold its logs: itself, or of one on rigs each of its blocks
#'
#' @return list of campaigns as from read_campaign(), each with the runs of its folder, which is `dir`, and with the
#'   lags that sync pulses showed there.
#' @noRd
by_block <- function(campaign) {
  if (!dir.exists(file.path(campaign$dir, "blocks"))) {
    return(list(campaign))
  }
  lapply(sort(unique(campaign$runs$block)), function(number) {
    one <- campaign
    one$dir <- block_home(campaign$dir, number)
    one[c("plan", "runs", "results")] <- lapply(
      campaign[c("plan", "runs", "results")], function(rows) rows[block == number]
    )
    one$meters <- with_measured_lags(copy(campaign$meters), pick(read_meta(one$dir), "alignment", default = list()))
    if (!is.null(campaign$cache)) one$cache <- paste0(campaign$cache, "-block-", number)
    one
  })
}
