# SPDX-License-Identifier: Apache-2.0
"""Reads a radio at fixed times, all the time, and tells what it reads and what reading costs.

The cadence never changes, whether something is measured or not: the power that reading takes is then part of
the idle power as it is of the loaded one. Deadlines are absolute (start + k x period); one that has passed is
left out and counted, never made up for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from netjoule_radio.snapshot import RowBuilder
from netjoule_radio.source import InterfaceGone, ReadFailed, Source

VERSION = "0.1.0"
"""That of the package: inside a zipapp there is no metadata to ask."""

CPU_SOURCE = "getrusage, this process and the programs it ran"


def next_deadline(deadline_ns: int, every_ns: int, now_ns: int) -> tuple[int, int]:
    """The deadline after `deadline_ns` that is still to come, and how many between them have passed."""
    missed = max(0, (now_ns - deadline_ns) // every_ns)
    return deadline_ns + (missed + 1) * every_ns, missed


class Agent:
    """One interface, one source, one cadence."""

    def __init__(
        self,
        source: Source,
        *,
        every_ns: int,
        now_ns: Callable[[], int],
        cpu_s: Callable[[], float],
        wait_until_ns: Callable[[int], bool],
        emit: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """Everything of the outside is an argument.

        Args:
            source: whom to ask.
            every_ns: period.
            now_ns: CLOCK_MONOTONIC of this host.
            cpu_s: CPU seconds used so far by this process and the programs it ran.
            wait_until_ns: returns True at that time, False as soon as the end is asked for.
            emit: takes one event.
        """
        self._source = source
        self._every_ns = every_ns
        self._now_ns = now_ns
        self._cpu_s = cpu_s
        self._wait = wait_until_ns
        self._emit = emit
        self._row_builder = RowBuilder()
        self._trouble = ""
        self.snapshots = 0
        self.missed = 0

    def run(self) -> None:
        """Read until the end is asked for."""
        deadline_ns = self._now_ns()
        while self._wait(deadline_ns):
            self._read()
            deadline_ns, missed = next_deadline(deadline_ns, self._every_ns, self._now_ns())
            self.missed += missed
        self._emit(self._dated({"event": "ended", "snapshots": self.snapshots}))

    def _read(self) -> None:
        self.snapshots += 1
        try:
            snapshot = self._source.snapshot()
        except ReadFailed as error:
            gone = isinstance(error, InterfaceGone)
            self._report_failure("interface_gone" if gone else "look_failed", str(error))
            return
        if self._trouble:
            self._trouble = ""
            self._emit(self._dated({"event": "reading_again"}))
        stamp = self._dated({"event": "reading", "source": self._source.name})
        for row in self._row_builder.rows(snapshot, stamp["t_ns"]):
            self._emit({**stamp, **row})

    def _report_failure(self, event: str, message: str) -> None:
        """Once for each kind of trouble; the agent goes on trying at its cadence."""
        if self._trouble != event:
            self._trouble = event
            self._emit(self._dated({"event": event, "message": message}))

    def _dated(self, event: dict[str, Any]) -> dict[str, Any]:
        return {
            "event": event.pop("event"),
            "t_ns": self._now_ns(),
            "cpu_s": round(self._cpu_s(), 6),
            "missed": self.missed,
            **event,
        }
