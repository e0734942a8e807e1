# SPDX-License-Identifier: Apache-2.0
"""The power that a host of a lab in namespaces would take, by the frames that its cable counts.

`python counted_power.py IDLE_W ORIGIN_NS`, run in the host's namespace, prints samples as netjoule-device
does until its reader is gone; an emulated meter takes them. ORIGIN_NS: CLOCK_MONOTONIC at time 0.
"""

import sys
import time
from pathlib import Path

from netjoule_devices.model import DeviceModel
from netjoule_devices.power import Activity, terms_w
from netjoule_devices.sampler import Sample

STEP_S = 0.1
FRAME_J = 0.002
FLICKER_W = 0.05
"""Of every second one: a power that never moves is that of a frozen meter, and no repetition of it counts."""
COUNTERS = Path("/sys/class/net/cable/statistics")


def model(idle_w: float) -> DeviceModel:
    """Linear in frames sent and received."""
    parameters = {"p0_w": idle_w, "frame_j": FRAME_J, "air_time_w": 0.0}
    return DeviceModel("counted", "Frames of a cable", "linear", "test", "orchestrator/tests", parameters, {})


def main(idle_w: float, origin_ns: int) -> None:
    """Print a sample per step."""
    of, begin_ns, sent, received = model(idle_w), time.monotonic_ns(), *counted()
    while True:
        time.sleep(STEP_S - time.monotonic() % STEP_S)
        end_ns, now_sent, now_received = time.monotonic_ns(), *counted()
        length_s = (end_ns - begin_ns) * 1e-9
        activity = Activity(length_s, frames_tx=now_sent - sent, frames_rx=now_received - received)
        start_s, end_s = (round((ns - origin_ns) * 1e-9, 6) for ns in (begin_ns, end_ns))
        terms = terms_w(of, activity) | {"flicker": FLICKER_W * (int(start_s) % 2)}
        sys.stdout.write(Sample(start_s, end_s, sum(terms.values()), False, terms).to_line())
        sys.stdout.flush()
        begin_ns, sent, received = end_ns, now_sent, now_received


def counted() -> tuple[int, int]:
    """Frames that the cable has sent and received."""
    sent, received = (int((COUNTERS / f"{way}_packets").read_text()) for way in ("tx", "rx"))
    return sent, received


if __name__ == "__main__":
    try:
        main(float(sys.argv[1]), int(sys.argv[2]))
    except BrokenPipeError:
        sys.exit(0)
