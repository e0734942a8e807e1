# SPDX-License-Identifier: Apache-2.0

#' Write a file of a campaign whole, and through no link
#'
#' A campaign may be anybody's, and its tables/ or report.html a link to a file of ours. The file's folder is made the
#' current one, so that it stays the one that was looked at; what is written there gets a name that nobody can foresee,
#' then its own: a reader sees the old file or the new one.
#'
#' @param path of the file; its folder is made when it is missing.
#' @param write called with the name to write to.
#' @return path.
#' @noRd
write_whole <- function(path, write) {
  in_folder(dirname(path), function() {
    part <- basename(tempfile(".part-"))
    on.exit(unlink(part))
    write(part)
    if (!file.rename(part, basename(path))) abort_netjoule("Cannot write ", path, ".")
  })
  path
}

# Calls `work` with the folder current; a folder that is reached through a link of its own name is refused.
in_folder <- function(folder, work) {
  dir.create(folder, showWarnings = FALSE, recursive = TRUE)
  named <- !basename(folder) %in% c(".", "..", "")
  real <- if (named) sub("^//", "/", file.path(normalizePath(dirname(folder)), basename(folder)))
  before <- setwd(folder)
  on.exit(if (!is.null(before)) setwd(before))
  if (named && !identical(getwd(), real)) abort_link(folder)
  work()
}

# Before anything is read or written: links where the analysis writes.
refuse_links <- function(campaign_dir) {
  places <- list.files(
    file.path(campaign_dir, c(".", "tables", "figures")),
    all.files = TRUE, full.names = TRUE, no.. = TRUE
  )
  links <- places[nzchar(Sys.readlink(places))]
  if (length(links) > 0L) abort_link(sub("/./", "/", links[1], fixed = TRUE))
}

abort_link <- function(place) {
  abort_invalid_data(place, " is a symbolic link, which has no place in a campaign: remove it; nothing was written.")
}

write_utf8 <- function(text, path) writeLines(enc2utf8(text), path, useBytes = TRUE)
