# SPDX-License-Identifier: Apache-2.0

# The per-run pass: what the files of each run say, run by run. It takes most of the time of a first analysis, so it
# is kept (run-cache.R) and only runs whose files have changed since are read again.

# Fewer runs are read faster than it is worth to keep them.
least_cached_runs <- 200L

#' Read all finished runs
#'
#' @param finished data.table run_id, block, load, kind, in the order of the plan.
#' @param cache from [run_cache_path()] or NULL.
#' @param least from so many runs on the pass is kept.
#' @param settle_s a run whose files changed within so many seconds before is read again next
#'   time: a second change within a file system's tick would not show.
#' @return named list of data.tables, each with run_id, in the order of `finished`: runs (one row
#'   per run with run.json), results (per run and meter), flows and arrivals (per run and
#'   flow, of runs with several), certificates (per run and flow), problems (code, detail).
#' @noRd
read_runs <- function(campaign_dir, finished, contracts, cache = NULL, least = least_cached_runs, settle_s = 2) {
  if (is.null(cache) || nrow(finished) < least) {
    return(pass_tables(finished, read_each(campaign_dir, finished, contracts)))
  }
  began <- Sys.time()
  keys <- run_keys(campaign_dir, finished)
  known <- read_run_cache(cache, contracts)
  kept <- known$keys$stamp[match(finished$run_id, known$keys$run_id)]
  again <- if (is.null(known)) finished else finished[!(keys$stamp == kept) %in% TRUE]
  fresh <- pass_tables(again, read_each(campaign_dir, again, contracts))
  tables <- joined_passes(fresh, known$tables, finished$run_id, again$run_id)
  if (nrow(again) > 0L) write_run_cache(cache, contracts, settled_keys(keys, began, settle_s), tables)
  tables
}

read_each <- function(campaign_dir, runs, contracts) {
  homes <- block_home(campaign_dir, runs$block)
  Map(function(home, id, load, kind) {
    read_run(home, id, load, kind, contracts)
  }, homes, runs$run_id, runs$load, runs$kind)
}

# Rows of all runs as tables, made at once.
pass_tables <- function(runs, read) {
  of <- function(part) rbindlist(as.list(unlist(lapply(unname(read), `[[`, part), recursive = FALSE)), fill = TRUE)
  problems <- unlist(unname(Map(function(id, one) {
    lapply(one$problems, function(problem) c(list(run_id = id), problem))
  }, runs$run_id, read)), recursive = FALSE)
  list(
    runs = rbindlist(lapply(unname(read), `[[`, "run"), fill = TRUE), results = of("results"), flows = of("flows"),
    arrivals = of("arrivals"), certificates = of("certificates"), problems = rbindlist(as.list(problems), fill = TRUE)
  )
}

# What was read now and what is known of the other runs, in the order of the plan.
joined_passes <- function(fresh, known, ids, again) {
  if (is.null(known)) {
    return(fresh)
  }
  kept <- setdiff(ids, again)
  Map(function(new, old) {
    both <- rbindlist(list(if (nrow(old) > 0L) old[old$run_id %in% kept], new), fill = TRUE)
    if (nrow(both) > 0L) both[order(match(both$run_id, ids))] else new
  }, fresh, known[names(fresh)])
}

#' What tells whether a run's files are those of an earlier pass
#'
#' Size, modification and change time of each: no copy keeps the latter, so what was
#' kept on one machine is read anew on another.
#'
#' @return data.table run_id, stamp, newest (s since 1970: the last change of any of its files).
#' @noRd
run_keys <- function(campaign_dir, finished) {
  homes <- block_home(campaign_dir, finished$block)
  run_dirs <- file.path(homes, "runs", finished$run_id)
  files <- list("run.json", paste0(finished$load, ".json"), "result.json", "intervals.csv")
  if (any(is_simulated_block(unique(homes)))) {
    run_dirs <- homes
    files <- list("runs.ndjson", paste0(finished$load, ".ndjson"), "results.ndjson", "intervals.csv")
  }
  stamps <- c(
    lapply(files, function(name) file_stamps(file.path(run_dirs, name))),
    list(further_stamps(file.path(run_dirs, paste0(finished$load, "s"))))
  )
  texts <- c(list(finished$load, finished$kind), lapply(stamps, `[[`, "text"))
  data.table(
    run_id = finished$run_id, stamp = do.call(paste, c(texts, sep = "|")),
    newest = do.call(pmax, c(lapply(stamps, `[[`, "newest"), na.rm = TRUE))
  )
}

file_stamps <- function(paths) {
  info <- file.info(paths, extra_cols = FALSE)
  modified <- as.numeric(info$mtime)
  changed <- as.numeric(info$ctime)
  text <- sprintf("%.0f %.6f %.6f", as.numeric(info$size), modified, changed)
  list(text = ifelse(is.na(info$size), "-", text), newest = pmax(modified, changed))
}

# Of the reports of further flows, which few campaigns have.
further_stamps <- function(dirs) {
  text <- rep("", length(dirs))
  newest <- rep(NA_real_, length(dirs))
  for (i in which(dir.exists(dirs))) {
    one <- file_stamps(sort(list.files(dirs[i], full.names = TRUE)))
    text[i] <- paste(one$text, collapse = ",")
    newest[i] <- max(one$newest, 0)
  }
  list(text = text, newest = newest)
}

settled_keys <- function(keys, began, settle_s) {
  keys <- copy(keys)
  keys[newest > as.numeric(began) - settle_s, stamp := ""]
  keys[, c("run_id", "stamp"), with = FALSE]
}
