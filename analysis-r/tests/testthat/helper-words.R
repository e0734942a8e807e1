# SPDX-License-Identifier: Apache-2.0

#' All that the summary says of one meter: load by load, and what limits it
summary_sentences <- function(campaign, tables, id) {
  c(load_sentences(campaign, tables, id), limit_sentences(campaign, tables, id))
}
