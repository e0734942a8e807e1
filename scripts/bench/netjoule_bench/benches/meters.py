# SPDX-License-Identifier: Apache-2.0
"""What logging costs: CPU of the logger's process per meter at 10 Hz, reading emulated instruments."""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
import time
from pathlib import Path

from netjoule_bench.sandbox.processes import Running
from netjoule_bench.tables import Section, by_arm

INTERVAL_S = 0.1
MOST_CORE_SHARE = 0.02
_RANGES = {"update_interval_s": INTERVAL_S, "voltage_range_v": 300, "current_range_a": 0.1}
_COMMAND = [sys.executable, "-m", "netjoule_meters"]


def section(seconds: float) -> Section:
    """CPU share per meter for one, three and six emulated meters at 10 Hz."""
    found = {
        f"{len(models)}: {' '.join(sorted(set(models)))}": (len(models), *_logging(models, seconds))
        for models in (["wt210"], ["wt310"], ["wt210", "wt210", "wt310"], ["wt210"] * 6)
    }
    expected = seconds / INTERVAL_S
    return by_arm(
        "CPU of the meter logger at 10 Hz",
        found,
        {
            "logger, % of a core per meter": lambda one: f"{100 * one[1]:.2f}",
            f"below {100 * MOST_CORE_SHARE:g} %": lambda one: "yes" if one[1] < MOST_CORE_SHARE else "NO",
            "updates logged %": lambda one: f"{100 * one[3] / expected / one[0]:.1f}",
            "emulated instrument, % of a core": lambda one: f"{100 * one[2]:.2f}",
        },
        arms="meters",
        note="Run time of the processes (/proc/PID/task/*/schedstat), start-up left out; every update "
        "is asked for, checked, watched and written in a write of its own.",
        passed=all(share < MOST_CORE_SHARE for _, share, *_ in found.values()),
    )


def _logging(models: list[str], seconds: float) -> tuple[float, float, int]:
    """Share of a core per meter of the logger and per instrument, and rows written meanwhile."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        instruments, meters = [], []
        for number, model in enumerate(models):
            port = folder / f"m{number}"
            arguments = ["emulate", model, "--power-w", "12.5", "--port-kind", "pty", "--link", str(port)]
            instruments.append(_started(stack, arguments))
            meters.append(
                {"meter_id": port.name, "node": "bench", "adapter": model, "resource": str(port)}
                | {"settings": _RANGES, "power_source": "modelled"}
            )
        (folder / "meters.json").write_text(json.dumps({"schema_version": 1, "meters": meters}))
        logger = _started(stack, ["log", "--config", str(folder / "meters.json"), "--out", str(folder)])
        time.sleep(1)
        before = [child.cpu_s() for child in (logger, *instruments)]
        rows_before, began = _rows(folder), time.monotonic()
        time.sleep(seconds)
        lasted = time.monotonic() - began
        used = [child.cpu_s() - was for child, was in zip((logger, *instruments), before, strict=True)]
        shares = [cpu_s / lasted for cpu_s in used]
        readings = round((_rows(folder) - rows_before) * seconds / lasted)
        return shares[0] / len(models), sum(shares[1:]) / len(models), readings


def _started(stack: contextlib.ExitStack, arguments: list[str]) -> Running:
    """A child that has said that it is ready; ended with ``stack``."""
    child = stack.enter_context(Running(None, [*_COMMAND, *arguments]))
    child.wait_for_line('"ready"')
    return child


def _rows(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in (folder / "meters").glob("*.csv"))
