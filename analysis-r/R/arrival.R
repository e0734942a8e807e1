# SPDX-License-Identifier: Apache-2.0

#' What arrived in a run's measure window, by the intervals of its receivers
#'
#' The intervals themselves are not kept: of ten thousand runs they are gigabytes, and
#' E_A asks only for the window that whole intervals fill and the bytes in it.
#'
#' @param run run.json as nested lists, or NULL.
#' @param flows reports of all flows, that of flow 1 first; NULL for each that cannot be used.
#' @return list span (list arrived_start_s, arrived_end_s in s, arrived_bytes; NA when nothing is
#'   known), by_flow (list of list(run_id, flow, bytes) of runs with several flows),
#'   has_intervals, readable, problems (list of list(code, detail)).
#' @noRd
read_arrival <- function(campaign_dir, run_id, transport, run, flows, contracts) {
  path <- file.path(campaign_dir, "runs", run_id, "intervals.csv")
  measure <- c(pick_number(run, "windows", "measure", "t_start_s"), pick_number(run, "windows", "measure", "t_end_s"))
  found <- list(
    span = arrived_columns(list(span = measure, bytes = NA_real_)), by_flow = list(),
    has_intervals = file.exists(path), readable = TRUE, problems = list()
  )
  if (transport == "null" || !found$has_intervals || anyNA(measure)) {
    return(found)
  }
  read <- tryCatch(read_receiver_intervals(path, contracts, run), netjoule_error = conditionMessage)
  if (is.character(read)) {
    found$readable <- FALSE
    # The campaign's folder is somebody's own.
    detail <- gsub(paste0(dirname(path), "/"), "", read, fixed = TRUE)
    found$problems <- list(list(code = "table_unreadable", detail = detail))
    return(found)
  }
  lost <- lost_intervals(read$rows, flows)
  if (length(lost) > 0L) {
    found$readable <- FALSE
    found$problems <- lost
    return(found)
  }
  effective <- effective_window(joined_intervals(read$rows), measure)
  found$span <- arrived_columns(effective)
  found$by_flow <- arrived_by_flow(run_id, read$rows, effective$span)
  found$problems <- lapply(seq_len(nrow(read$problems)), function(i) as.list(read$problems[i]))
  found
}

# A table that was cut off between two rows looks whole: only the receivers' own counts tell that rows are gone.
lost_intervals <- function(intervals, flows) {
  found <- lapply(seq_along(flows), function(number) {
    counted <- pick_number(flows[[number]], "receiver", "bytes_received_unique")
    told <- sum(intervals$bytes[intervals$flow == number])
    if (!is.na(counted) && told < counted) {
      list(code = "half_written_run", detail = sprintf(
        "intervals.csv has %.0f of the %.0f bytes that flow %d received", told, counted, number
      ))
    }
  })
  Filter(Negate(is.null), found)
}

arrived_columns <- function(effective) {
  list(arrived_start_s = effective$span[1], arrived_end_s = effective$span[2], arrived_bytes = effective$bytes)
}

arrived_by_flow <- function(run_id, intervals, span) {
  numbers <- unique(intervals$flow)
  if (length(numbers) < 2L) {
    return(list())
  }
  lapply(numbers, function(number) {
    list(run_id = run_id, flow = number, bytes = bytes_within(intervals[intervals$flow == number], span))
  })
}

#' Receivers' intervals of a run
#'
#' @return list rows (data.table flow, t_start_s, t_end_s (s), bytes), problems (data.table code, detail).
#' @noRd
read_receiver_intervals <- function(path, contracts, run) {
  read <- lift_intervals(path, contracts, run)
  rows <- read$rows[, c("flow", "t_start_s", "t_end_s", "bytes"), with = FALSE]
  if (anyNA(rows)) {
    abort_invalid_data("The file ", path, " has a receiver's row without flow, t_start_s, t_end_s or bytes.")
  }
  list(rows = rows, problems = read$problems)
}
