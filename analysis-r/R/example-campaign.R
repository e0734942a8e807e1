# SPDX-License-Identifier: Apache-2.0

example_memory <- new.env(parent = emptyenv())

#' A small campaign that comes with the package
#'
#' Synthetic, so modelled: UDP, TCP and the generator alone (`null`), messages of 64 and 1440 bytes at 1, 3 and
#' 10 Mb/s, 3 blocks. It is unpacked into the session's temporary folder and read once.
#'
#' @return nj_campaign, as from [read_campaign()]; `$dir` is its folder.
#' @examples
#' example_campaign()
#' @export
example_campaign <- function() {
  if (is.null(example_memory$campaign)) {
    place <- tempfile("netjoule-example")
    packed <- system.file("extdata", "campaign.tar.xz", package = "netjoule", mustWork = TRUE)
    utils::untar(packed, exdir = place, tar = "internal")
    example_memory$campaign <- read_campaign(file.path(place, "campaign"))
  }
  example_memory$campaign
}
