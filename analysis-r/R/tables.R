# SPDX-License-Identifier: Apache-2.0

#' Compute every table across runs
#'
#' @param campaign from [read_campaign()].
#' @param margin_percent see [campaign_statistics()].
#' @return named list of data.tables; the names are those of the CSV files.
#' @examples
#' names(campaign_tables(example_campaign()))
#' @export
campaign_tables <- function(campaign, margin_percent = NULL) {
  of_load(campaign, "tables", energy_tables)(campaign, margin_percent)
}

# What every load has: runs that do not count, the recomputation, the order of time.
tables_of_all <- function(campaign) {
  recomputed <- compute_campaign_ea(campaign)
  listed <- ea_order(campaign)
  rigs <- rig_effects(campaign)
  beside <- of_load(campaign, "tables_beside", function(campaign) list())(campaign)
  c(list(
    invalid_runs = invalid_runs(campaign), run_notes = run_notes(campaign),
    ea_check = if (nrow(recomputed) > 0L) compare_ea(campaign, recomputed) else empty_check(),
    ea_order = listed, ea_drift = ea_drift(listed, campaign),
    ea_drift_sessions = ea_drift_sessions(listed, campaign), power_trace = power_trace(campaign)
  ), if (nrow(rigs) > 0L) list(rig_effects = rigs), Filter(Negate(is.null), beside))
}

# The table of cells: energy per work, or E_A of flows.
headline <- function(tables) if (is.null(tables$ea_summary)) tables$energy_summary else tables$ea_summary

empty_check <- function() {
  data.table(
    run_id = character(), meter_id = character(), quantity = character(), ours = numeric(), theirs = numeric(),
    relative_difference = numeric(), agrees = logical()
  )
}

#' Write the tables of a campaign as CSV
#'
#' @param tables from campaign_tables().
#' @param out_dir folder, created when missing.
#' @return paths of the files written.
#' @examples
#' write_tables(list(ea_summary = summarise_ea(example_campaign())), tempfile("tables"))
#' @export
write_tables <- function(tables, out_dir) {
  # Most campaigns have none of these: one of an earlier analysis would be read as this one's.
  of_loads <- unlist(lapply(ls(load_parts), function(load) load_parts[[load]]$rare_tables))
  rare <- c(statistics_tables, "rig_effects", "arm_contrasts", "measure_contrasts", of_loads)
  in_folder(out_dir, function() unlink(paste0(rare, ".csv")))
  vapply(names(tables), function(name) {
    write_whole(file.path(out_dir, paste0(name, ".csv")), function(path) {
      as_csv(tables[[name]], path)
    })
  }, "")
}

#' A table as CSV, which people open with a spreadsheet
#' @noRd
as_csv <- function(table, file) fwrite(without_formulas(rounded(table)), file, na = "", scipen = 50L)

# A spreadsheet would compute a text that begins so, and names in a campaign may be a stranger's: as spreadsheets do,
# an apostrophe says that it is text.
without_formulas <- function(table) {
  for (column in names(table)[vapply(table, is.character, NA)]) {
    set(table, j = column, value = sub("^([-=+@\t\r])", "'\\1", table[[column]]))
  }
  table
}

# Nine significant digits: more than any meter gives, and the same text on every machine.
rounded <- function(table) {
  table <- copy(table)
  for (column in names(table)) {
    values <- table[[column]]
    if (is.factor(values)) set(table, j = column, value = as.character(values))
    if (is.logical(values)) set(table, j = column, value = c("false", "true")[values + 1L])
    if (is.double(values)) {
      values[!is.finite(values)] <- NA_real_
      set(table, j = column, value = signif(values, 9))
    }
  }
  table
}
