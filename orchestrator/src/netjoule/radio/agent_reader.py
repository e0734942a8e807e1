# SPDX-License-Identifier: Apache-2.0
"""Reads a real radio: runs netjoule_radio's agent on the radio's host and takes its lines (NDJSON).

The agent looks at a fixed cadence all the time, so that the power which reading takes is the same in idle and
measure; what it costs is in every record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Process, ProcessEnded
from netjoule.radio.reader import RadioRecord

READY_TIMEOUT_S = 120.0  # pyroute2 takes a second to load, in a guest under software emulation a minute
_GAPS = ("interface_gone", "look_failed")


def agent_options(interface: str, every_s: float = 1.0, source: str = "auto") -> tuple[str, ...]:
    """Options of the agent; before them stands how it is run: python3 and the zipapp's path on that host."""
    return "--interface", interface, "--every-s", f"{every_s:g}", "--source", source


class AgentReader:
    """One agent on one host."""

    def __init__(
        self, node: str, host: Host, argv: Sequence[str], to_campaign_s: Callable[[int], float]
    ) -> None:
        """Not started yet.

        Args:
            node: the topology's name of the host whose radio this is.
            host: where the agent runs: that host, reached over the control network.
            argv: the agent's command line there.
            to_campaign_s: campaign time in seconds of a CLOCK_MONOTONIC reading of that host in nanoseconds.
        """
        self.node = node
        self._host = host
        self._argv = tuple(argv)
        self._to_campaign_s = to_campaign_s
        self._process: Process | None = None
        self._cpu_s: float | None = None
        self.ready: Mapping[str, Any] = {}

    async def open(self) -> None:
        """Start the agent; `ready` then tells source, versions, cadence and boot id.

        Raises RunFailed when it does not come up, HostLacks when it cannot be started.
        """
        process = await self._host.start(self._argv, name=f"the radio agent of {self.node}")
        try:
            self.ready = await process.expect("ready", READY_TIMEOUT_S)
        except BaseException as error:
            await process.stop()
            if isinstance(error, ProcessEnded):
                raise RunFailed(str(error), where=self._host.name, code="radio_reader_lost") from error
            raise
        self._process = process
        self._cpu_s = None

    async def read(self) -> RadioRecord | None:
        """The next record; None when the agent has ended. Raises ValueError for a line it cannot read."""
        while self._process is not None and (line := await self._process.next_line()):
            if not line.endswith(b"\n"):
                return None  # cut off by the agent's end
            told = json.loads(line)
            if told.get("event") == "reading" or told.get("event") in _GAPS:
                return self._record(told)
        return None

    async def close(self) -> None:
        """End the agent by closing its input; may be called twice."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.finish()

    def _record(self, told: Mapping[str, Any]) -> RadioRecord:
        used_s, self._cpu_s = self._cpu_s, float(told["cpu_s"])
        since_s = None if used_s is None else max(0.0, round(self._cpu_s - used_s, 6))
        return record_from_line(told, self._to_campaign_s(int(told["t_ns"])), since_s)


def record_from_line(told: Mapping[str, Any], t_s: float, reader_cpu_s: float | None) -> RadioRecord:
    """One line of the agent as a record at campaign time `t_s`; a line of a gap has its event as flag."""
    if told["event"] in _GAPS:
        return RadioRecord(t_s=t_s, reader_cpu_s=reader_cpu_s, flag=str(told["event"]))
    # What the agent calls a state is the association.
    return RadioRecord.of(told, t_s=t_s, reader_cpu_s=reader_cpu_s, state=None)
