# SPDX-License-Identifier: Apache-2.0
"""The factor ``path`` of a lab: its server delays what it sends to the client (tc-netem(8), tc-tbf(8)).

The whole round-trip time lies in that direction, and so do rate and loss: files come that way. netem delays;
a tbf below it has the rate and the path's queue, in bytes, so that segments which the kernel sends together
count as what they are.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Mapping
from typing import Any

from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts.host import Process, ProcessEnded
from netjoule.hosts.python_program import python_program
from netjoule.hosts.ssh import SshHost
from netjoule.testbeds.lab import path_shaper

READY_TIMEOUT_S = 20.0
NOT_IN_FORCE = "not_in_force"
_DEVICE_QUEUE_PACKETS = 1000  # of an element that tells none (topology schema)
_NO_LIMIT_PACKETS = 100_000
_PACKET_BYTES = 1500
_FRAME_BYTES = 1514
_BURST_S = 0.001


def commands(device: str, element: Mapping[str, Any]) -> list[list[str]]:
    """What gives the interface of a server, which `path_shaper` has taken, the path of an element."""
    on = ["dev", device]
    delay_us = round(2000 * element.get("delay_ms", 0))
    rate_bps = round(1e6 * element.get("rate_mbps", 0))
    queued_packets = element.get("queue_packets", _DEVICE_QUEUE_PACKETS)
    flying_packets = math.ceil(delay_us / 1e6 * rate_bps / 8 / _PACKET_BYTES)
    limit_packets = flying_packets + queued_packets if rate_bps else _NO_LIMIT_PACKETS
    netem = [
        "root",
        "handle",
        path_shaper.HANDLE,
        "netem",
        "limit",
        f"{limit_packets}",
        "delay",
        f"{delay_us}us",
    ]
    if element.get("loss_ratio"):
        netem += ["loss", f"{100 * element['loss_ratio']:g}%"]
    found = [["tc", "qdisc", "del", *on, "root"], ["tc", "qdisc", "add", *on, *netem]]
    if rate_bps:
        burst_bytes = max(math.ceil(_BURST_S * rate_bps / 8), 2 * _FRAME_BYTES)
        queue_bytes = min(queued_packets * _FRAME_BYTES, element.get("queue_bytes", math.inf))
        below = ["parent", f"{path_shaper.HANDLE}1", "tbf", "rate", f"{rate_bps}bit"]
        limits = ["burst", f"{burst_bytes}", "limit", f"{max(queue_bytes, burst_bytes)}"]
        found.append(["tc", "qdisc", "add", *on, *below, *limits])
    return found


class ServerPath:
    """The path from a server to the client, as long as its process runs."""

    def __init__(self, host: SshHost, process: Process, device: str) -> None:
        """`device`: the server's interface."""
        self.process = process
        self._host, self._device = host, device
        self._said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    @classmethod
    async def taken(cls, host: SshHost, client: str) -> ServerPath:
        """Take the interface that leads to an address of the client. Raises HostLacks where it cannot be."""
        process = await host.start(await python_program(host, path_shaper), name="the path's delay")
        try:
            about = {"to": client, "controller": host.controller_address}
            await process.write_line(json.dumps(about))
            ready = await process.expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await process.stop()
            if isinstance(error, ProcessEnded):
                raise HostLacks(
                    error.what.removeprefix(f"{process.name} "), where=f"host {host.name}"
                ) from error
            raise
        return cls(host, process, str(ready["device"]))

    def note(self, line: bytes) -> None:
        """Take a line that the process said: who watches it reads them."""
        self._said.put_nowait(json.loads(line))

    async def set(self, element: Mapping[str, Any]) -> None:
        """Have the path of an element in force. Raises RunFailed when it is not."""
        await self.process.write_line(json.dumps({"commands": commands(self._device, element)}))
        try:
            said = await asyncio.wait_for(self._said.get(), READY_TIMEOUT_S)
        except TimeoutError:
            said = {"message": f"no answer within {READY_TIMEOUT_S:g} s"}
        if said.get("event") != "path":
            what = f"the path to the client is not set: {said.get('message')}"
            raise RunFailed(what, where=f"host {self._host.name}", code=NOT_IN_FORCE)
