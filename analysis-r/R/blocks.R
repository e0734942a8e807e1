# SPDX-License-Identifier: Apache-2.0

# A campaign on rigs holds each block in a folder of its own (blocks/<block>/), with runs and logs of its own. A
# simulated block has no folder for each run: documents of one kind stand in one file, a line each.

simulated_files <- c("run.json" = "runs.ndjson", "result.json" = "results.ndjson")

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
  # Simulated blocks have no logs.
  if (!dir.exists(file.path(campaign$dir, "blocks")) || is_simulated(campaign)) {
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

is_simulated <- function(campaign) identical(pick_text(campaign$meta, "topology", "kind"), "simulated")

# A simulated campaign whose model tells no power: its work and its measures hold.
is_unpowered <- function(campaign) is_simulated(campaign) && all(is.na(campaign$results$p_a_w))

is_simulated_block <- function(home) file.exists(file.path(home, "runs.ndjson"))

# Lines of the block that was read last: runs are read block by block, and of a long sweep no more than one fits.
block_memory <- new.env(parent = emptyenv())

#' Document of a run, as jsonlite::fromJSON() takes it
#'
#' @param home folder of the run's block, or the campaign's.
#' @param name of the document in a run's folder: run.json, result.json, or the load's.
#' @return path of its file, or the text of its line; NULL when there is none.
#' @noRd
run_document <- function(home, run_id, name) {
  if (!is_simulated_block(home)) {
    path <- file.path(home, "runs", run_id, name)
    return(if (file.exists(path)) path)
  }
  # Of a load's documents the first is LOAD.json, and a further one LOADs/<part>.json.
  further <- grepl("^[a-z]+s/[0-9]+[.]json$", name)
  part <- if (further) sub("^.*/([0-9]+)[.]json$", "\\1", name) else "1"
  of_load <- if (further) sub("s/.*$", ".ndjson", name) else sub("[.]json$", ".ndjson", name)
  lines <- lines_of_block(home, fcoalesce(unname(simulated_files[name]), of_load))
  line <- lines[if (name %in% names(simulated_files)) run_id else paste(run_id, part)]
  if (is.na(line)) NULL else unname(line)
}

# Lines of a file of a block, named by run, of a load's documents by run and part.
lines_of_block <- function(home, file) {
  if (!identical(block_memory$home, home)) {
    rm(list = ls(block_memory), envir = block_memory)
    block_memory$home <- home
  }
  if (is.null(block_memory[[file]])) {
    path <- file.path(home, file)
    text <- if (file.exists(path)) readLines(path, warn = FALSE, encoding = "UTF-8") else character()
    id <- sub('^.*?"run_id": ?"([^"]*)".*$', "\\1", text, perl = TRUE)
    if (!file %in% simulated_files) {
      id <- paste(id, sub('^\\{"run_id": ?"[^"]*", ?"part": ?([0-9]+),.*$', "\\1", text))
      text <- sub('^[^{]*\\{[^{]*"document": ?(.*)\\}$', "\\1", text, perl = TRUE)
    }
    block_memory[[file]] <- stats::setNames(text, id)
  }
  block_memory[[file]]
}
