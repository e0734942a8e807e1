# SPDX-License-Identifier: Apache-2.0
"""What stands for a testbed's runner and for R where only a command itself is tested."""

import json

import synthetic

from netjoule.execution.progress import ProgressEvent
from netjoule.execution.runner import Outcome

SUMMARY = (
    "node,meter_id,device_model,power_source,radio_source,transport,payload_bytes,offered_rate_mbps,n,"
    "ea_j_per_mbit_mean,ea_ci95_low,ea_ci95_high,u95_meter,loss_ratio,below_resolution_n,hollow,"
    "ea_upper_limit_j_per_mbit\n"
    "client,m,laptop-cpu,modelled,link-model,udp,64,3,3,0.1234,0.12,0.1268,0.004,0.015,0,FALSE,\n"
    "client,m,laptop-cpu,modelled,link-model,quic,1440,30,3,0.05,0.04,0.06,0.01,0,1,TRUE,0.08\n"
    "client,m,laptop-cpu,modelled,link-model,tcp,64,1,3,0.05,0.04,0.06,0.03,0,3,FALSE,0.08\n"
    "client,m,laptop-cpu,modelled,link-model,null,64,3,3,,,,,,0,FALSE,\n"
)


def lines(text: str) -> list[dict]:
    return [json.loads(line) for line in text.splitlines()]


def perfect(campaign, sink):
    """A runner whose runs are all done at once."""
    session = synthetic.begin(campaign)
    t_s = 1.0
    total = len(campaign.rows())
    node = {"meter_id": "m", "ea_j_per_mbit": 0.0625, "u95_ea_j_per_mbit": 0.004, "power_source": "modelled"}
    for done, row in enumerate(campaign.rows(), start=1):
        if row.status != "valid":
            t_s = synthetic.run_one(campaign, row, t_s, [])
            campaign.set_status(row.run_id, "valid")
            sink(ProgressEvent("run_result", t_s, done, total, 4.0, row, "valid", [node]))
    campaign.end_session(
        session, end="complete", monotonic_ns=synthetic.ORIGIN_NS + 10**11, utc=synthetic.START
    )
    return Outcome("complete", total, 0)


def fake_r(verb, campaign, sink, *, margin_percent):
    """Stands for the R program: writes what it would."""
    for name, text in (("tables/ea_summary.csv", SUMMARY), ("figures/ea.svg", "<svg/>")):
        (campaign / name).parent.mkdir(exist_ok=True)
        (campaign / name).write_text(text)
    if verb == "report":
        (campaign / "report.html").write_text("<html>")
    sink({"event": "table", "path": "tables/ea_summary.csv"})
