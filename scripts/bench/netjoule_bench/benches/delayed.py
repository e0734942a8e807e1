# SPDX-License-Identifier: Apache-2.0
"""A path with delay: two network namespaces joined by the running link, for kernels without netem."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from netjoule_bench.generators.netjoule_traffic import built
from netjoule_bench.sandbox.veth import Route

_ADDRESSES = {"station": "10.79.0.2/24", "far": "10.79.0.1/24"}


@contextmanager
def path(repo: Path, round_trip_ms: float) -> Iterator[Route]:
    """A route over 802.11n at 216 Mb/s and a wired path of half of ``round_trip_ms`` each way.

    Raises:
        FileNotFoundError: when netjoule-link is not built.
        RuntimeError: when it does not start, or ends before it is told to.
    """
    binary = built(repo, "netjoule-link")
    for name in _ADDRESSES:
        subprocess.run(["ip", "netns", "add", name], check=True)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "link.json"
        config.write_text(json.dumps(_config(folder, round_trip_ms / 2)), encoding="utf-8")
        command = [str(binary), "run", "--config", str(config)]
        link = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert link.stdout is not None
            if "ready" not in link.stdout.readline():
                raise RuntimeError("netjoule-link did not start")
            yield Route("station", "far", "10.79.0.1")
        finally:
            ended = link.poll()
            said = link.communicate()[0]
            for name in _ADDRESSES:
                subprocess.run(["ip", "netns", "del", name], check=True)
            if ended is not None:
                raise RuntimeError(f"netjoule-link ended with {ended} during the measurement: {said[-300:]}")


def _config(folder: str, delay_ms: float) -> dict[str, Any]:
    def end(name: str, interface: str) -> dict[str, Any]:
        return {"netns": f"/run/netns/{name}", "ifname": interface, "addresses": [_ADDRESSES[name]]}

    return {
        "schema_version": 2,
        "preset": "ideal-216",
        "seed": 1,
        "stats_socket": f"{folder}/link.sock",
        "stations": [{"name": "client", **end("station", "wlan0")}],
        "wired": [{"name": "far", **end("far", "eth0"), "elements": [{"delay_ms": delay_ms}]}],
    }
