# SPDX-License-Identifier: Apache-2.0
"""What a router's rule costs the running link, and how late its ticks are: practRA on an idle path."""

from __future__ import annotations

import contextlib
import json
import signal
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import RECEIVER_NETNS, SENDER_NETNS
from netjoule_bench.tables import Section, at_most, by_arm

INTERVAL_MS = 10
MOST_CORE_SHARE = 0.02
_ARMS: dict[str, dict[str, Any]] = {
    "none": {"kind": "none"},
    "practra": {"kind": "practra", "interval_ms": INTERVAL_MS},
}


@dataclass(frozen=True)
class Idle:
    """An idle link: share of a core, and how late its wake-ups were."""

    core_share: float
    wakes: int
    late_mean_us: float
    late_max_us: float


def section(repo: Path, seconds: float) -> Section:
    """Both side by side, for a machine's own noise meets both then."""
    program = repo / "target" / "release" / "netjoule-link"
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        links = {arm: _started(stack, program, Path(name), arm) for arm in _ARMS}
        before = {arm: link.cpu_s() for arm, link in links.items()}
        began = time.monotonic()
        time.sleep(seconds)
        lasted = time.monotonic() - began
        used = {arm: (link.cpu_s() - before[arm]) / lasted for arm, link in links.items()}
        found = {arm: _ended(link, used[arm]) for arm, link in links.items()}
    share = used["practra"] - used["none"]
    return by_arm(
        f"A router on an idle path of the running link, {seconds:g} s",
        found,
        {
            "% of a core": lambda one: f"{100 * one.core_share:.2f}",
            "wake-ups": lambda one: f"{one.wakes}",
            "late by us, mean": lambda one: f"{one.late_mean_us:.0f}" if one.wakes else "-",
            "late by us, at most": lambda one: f"{one.late_max_us:.0f}" if one.wakes else "-",
        },
        arms="scaling",
        note=f"practRA's ticks, each {INTERVAL_MS} ms, are all that wakes the link up. Run time of the relay "
        "(/proc/PID/task/*/schedstat).",
        verdicts=[at_most("practRA on an idle link: % of a core more", 100 * share, 100 * MOST_CORE_SHARE)],
    )


def _started(stack: contextlib.ExitStack, program: Path, folder: Path, arm: str) -> Running:
    """A link of its own between the two namespaces, whose path has the router."""
    index = list(_ARMS).index(arm)
    router = {"rate_mbps": 10, "queue_packets": 42, "direction": "up", "scaling": _ARMS[arm]}
    client, server = (f"/run/netns/{name}" for name in (SENDER_NETNS, RECEIVER_NETNS))
    config = {
        "schema_version": 2,
        "preset": "ideal-216",
        "seed": 1,
        "stats_socket": str(folder / f"{arm}.sock"),
        "stations": [
            {
                "name": "client",
                "netns": client,
                "ifname": f"wlan{index}",
                "addresses": [f"10.8{index}.0.2/24"],
            }
        ],
        "wired": [
            {
                "name": "server",
                "netns": server,
                "ifname": f"link{index}",
                "addresses": [f"10.8{index}.0.1/24"],
                "elements": [router],
            }
        ],
    }
    file = folder / f"{arm}.json"
    file.write_text(json.dumps(config))
    link = stack.enter_context(Running(None, [str(program), "run", "--keep", "--config", str(file)]))
    link.wait_for_line('"ready"')
    return link


def _ended(link: Running, core_share: float) -> Idle:
    link.tell(signal.SIGTERM)
    said = json.loads(link.finish().text.splitlines()[-1])
    return Idle(core_share, said["wakes"], said["late_mean_us"], said["late_max_us"])
