# SPDX-License-Identifier: Apache-2.0

# The report's section on constant power; only of campaigns that spun and slept.

#' What the arms spin and absolute say about power that stays constant over load
#' @noRd
section_pacer <- function(campaign, verdict) {
  tag$section(
    id = "pacer", tag$h2("Constant power: from the sender or not?"),
    tag$p(
      "Power above idle that stays the same at every load makes E_A fall as 1 over load. A sender that waits in a ",
      "busy loop looks like that, and so does an idle power that was read too low. The same schedules were sent by a ",
      "pacer that spins and by one that sleeps: only what the sender draws differs between the two."
    ),
    tag$ul(lapply(prose(unique(verdict$words)), tag$li)),
    table_html("pacer_verdict", verdict, source_line(campaign, NULL, 10000L))
  )
}
