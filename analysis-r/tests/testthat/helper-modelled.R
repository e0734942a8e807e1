# SPDX-License-Identifier: Apache-2.0

# Campaigns whose device stream is known: the terms add up to the power that the synthetic meter reads.

linear_model <- function(u_frame = 0.04, u_air = 0.03, u_p0 = NULL) {
  list(
    meter_id = "client-wt210", name = "linear-test", form = "linear", status = "test", source = "by construction",
    parameters = list(p0_w = 8, frame_j = 1, air_time_w = 1),
    relative_uncertainty = list(p0_w = u_p0, frame_j = u_frame, air_time_w = u_air)
  )
}

#' A campaign with devices/<meter_id>.ndjson in which `share` of the power over idle is the term frames
modelled_campaign <- function(share = function(transport) 0.7, model = linear_model(), ...) {
  meter <- synthetic_meter()
  dir <- synthetic_campaign(meters = list(meter), ...)
  edit_json(file.path(dir, "campaign.json"), function(doc) {
    doc$device_models <- list(model)
    doc
  })
  readings <- data.table::fread(file.path(dir, "meters", "client-wt210.csv"))
  plan <- read_campaign(dir)$plan
  step <- sum(unlist(timeline))
  end_s <- readings$t_s - 0.1
  run <- pmin(nrow(plan), floor((end_s - 0.05) / step) + 1)
  added <- readings$power_w - meter$idle_w
  frames <- added * vapply(plan$transport[run], share, 0)
  lines <- sprintf(
    paste0(
      '{"t_start_s":%.6f,"t_end_s":%.6f,"power_w":%.9g,"extrapolated":false,',
      '"terms":{"p0":%.9g,"frames":%.9g,"air_time":%.9g}}'
    ),
    end_s - tick_s, end_s, readings$power_w, meter$idle_w, frames, added - frames
  )
  dir.create(file.path(dir, "devices"))
  writeLines(lines, file.path(dir, "devices", "client-wt210.ndjson"))
  dir
}
