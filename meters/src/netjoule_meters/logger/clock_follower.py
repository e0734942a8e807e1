# SPDX-License-Identifier: Apache-2.0
"""Keeps a logger on another host in step with the controller: asks its clock every minute while logging."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from netjoule_meters.clock import Clock
from netjoule_meters.errors import DialogueError, MeterError
from netjoule_meters.logger.clock_exchange import (
    Offset,
    clock_row,
    clock_was_stepped,
    drift_of,
    measure,
)
from netjoule_meters.logger.clock_map import ClockMap

_EVERY_S = 60.0
_JOIN_S = 0.5
_KEPT = 60
"""Offsets kept for the drift: an hour. A quartz changes its rate with temperature."""


class ClockFollower:
    """Measures against ``server`` (HOST, PORT) at the start and then from a thread until ``stop`` is set.

    Args:
        emit: takes an event ``clock`` with a row of clocks.csv, or with a message when it fails.
        host: what this host is called in clocks.csv.
    """

    def __init__(
        self,
        server: tuple[str, int],
        *,
        clock: Clock,
        origin_ns: int,
        emit: Callable[[Mapping[str, Any]], None],
        host: str | None = None,
        every_s: float = _EVERY_S,
    ) -> None:
        self._server = server
        self._clock = clock
        self._origin_ns = origin_ns
        self._emit = emit
        self._host = host or socket.gethostname()
        self._every_s = every_s
        self._ours: list[Offset] = []
        self._thread: threading.Thread | None = None
        self._map = ClockMap(self._measured())

    def to_controller_ns(self, t_ns: int) -> int:
        """The controller's CLOCK_MONOTONIC at the instant ``t_ns`` of ours, ns."""
        return self._map.to_controller_ns(t_ns)

    def start(self, stop: threading.Event) -> None:
        """Go on measuring until ``stop`` is set."""
        self._thread = threading.Thread(target=self._follow, args=(stop,), name="clock", daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for the thread, after ``stop`` was set; not for a controller that does not answer."""
        if self._thread is not None:
            self._thread.join(_JOIN_S)

    def _follow(self, stop: threading.Event) -> None:
        while not stop.wait(self._every_s):
            try:
                newest = self._measured()
            except (MeterError, DialogueError) as error:
                self._emit({"event": "clock", "message": f"{error}; the last drift is used on"})
                continue
            self._map.learn(newest, drift_of(self._ours))

    def _measured(self) -> Offset:
        """A new offset, ours minus the controller's; its row is announced.

        A clock that was stepped (a host that slept, a controller that was started anew) begins a new line:
        a drift over the step would be none, and slewing a step away would take hours of wrong stamps.
        """
        ours = _at_our_time(measure(*self._server, clock=self._clock))
        moved = clock_was_stepped(self._row([self._ours[-1]]), self._row([ours])) if self._ours else None
        self._ours = [ours] if moved else [*self._ours, ours][-_KEPT:]
        self._emit({"event": "clock", "row": self._row(self._ours)})
        if moved is not None:
            self._map.begin_anew(ours)
            self._emit({"event": "clock", "message": f"{moved}; readings since the last look are unsure"})
        return ours

    def _row(self, ours: Sequence[Offset]) -> dict[str, Any]:
        by_controller = [Offset(o.t_ns - o.offset_ns, o.offset_ns, o.residual_ns) for o in ours]
        return clock_row(self._host, by_controller, self._origin_ns)


def _at_our_time(controllers: Offset) -> Offset:
    """The controller's clock minus ours, as ours minus the controller's, still by our time."""
    return Offset(controllers.t_ns, -controllers.offset_ns, controllers.residual_ns)
