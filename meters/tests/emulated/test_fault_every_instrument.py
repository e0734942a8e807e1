# SPDX-License-Identifier: Apache-2.0
"""Every emulated instrument loses its cable on request, and every adapter finds it again."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from meter_processes import PATIENCE_S, Process

from netjoule_meters.emulated.control import request_fault
from netjoule_meters.emulated.registry import EMULATED

WT = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}
SETTINGS = {
    "wt210": WT,
    "wt310": WT,
    "hm8115": {"voltage_range_v": 500, "current_range_a": 0.16},
    "ptd": {"voltage_range_v": 300, "current_range_a": 0.1},
    "socket": {"update_interval_s": 1},
    "isockets": {"update_interval_s": 1},
}
"""Settings of the adapters beside those that the instrument's ready line gives."""
INTERVALS_S = {"isockets": 1, "socket": 1}
SLOW = {"cc128"}
"""It speaks every 6 s, and one message must be missed before the cable is."""


def good_rows(folder: Path) -> int:
    lines = (folder / "meters" / "m1.csv").read_text().splitlines()[1:]
    return sum(line.endswith(",") for line in lines)


def wait_for_good_rows(folder: Path, count: int, log: Process) -> None:
    deadline_s = time.monotonic() + 2 * PATIENCE_S
    while good_rows(folder) < count:
        assert log.child.poll() is None, log.child.stderr.read()
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in sorted(EMULATED)]
)
def test_a_lost_cable_is_told_and_found_again(tmp_path, name):
    control = tmp_path / "faults"
    port = ["--link", str(tmp_path / "port")] if EMULATED[name].ports[0] == "pty" else []
    arguments = ("emulate", name, "--power-w", "12.5", "--control", str(control), *port)
    if interval_s := INTERVALS_S.get(name):
        arguments += ("--update-interval-s", str(interval_s))
    with Process(*arguments) as instrument:
        ready = instrument.wait_for("ready")
        settings = {**ready.get("settings", {}), **SETTINGS.get(ready["adapter"], {})}
        meter = {"meter_id": "m1", "node": "client", "adapter": ready["adapter"]}
        meter |= {"resource": ready["resource"], "settings": settings, "power_source": "modelled"}
        config = tmp_path / "meters.json"
        config.write_text(json.dumps({"schema_version": 1, "meters": [meter]}))
        with Process("log", "--config", str(config), "--out", str(tmp_path)) as log:
            log.wait_for("ready")
            wait_for_good_rows(tmp_path, 3, log)
            request_fault(control, {"fault": "disconnect", "seconds": 1.0 if name not in SLOW else 8.0})
            log.wait_for("meter", '"reconnect"')
            wait_for_good_rows(tmp_path, good_rows(tmp_path) + 2, log)
            assert log.end() == 0
            ended = log.wait_for("ended")["summary"]["m1"]
    assert ended["reconnect"] == 1 and ended["readings"] >= 5
