# SPDX-License-Identifier: Apache-2.0
"""From this host's CLOCK_MONOTONIC to the controller's, for a logger that runs on a meter host of its own.

The map is a straight line that bends when a new offset is known: it goes on from where it is and meets the
new line within a minute. It never runs backwards, and never jumps unless a clock did (`begin_anew`), so that
nothing is stepped during a run.
"""

from __future__ import annotations

from dataclasses import dataclass

from netjoule_meters.logger.clock_exchange import Drift, Offset

_MEETS_WITHIN_NS = 60 * 10**9
_MOST_SLEW = 1e-3
"""At most 1 ms per s beside the clock's own rate; larger errors take longer to be gone."""


@dataclass(frozen=True, slots=True)
class _Line:
    """controller = controller_ns + (t - t_ns) * (1 + rate)."""

    t_ns: int
    controller_ns: int
    rate: float

    def at(self, t_ns: int) -> int:
        return self.controller_ns + (t_ns - self.t_ns) + round((t_ns - self.t_ns) * self.rate)


class ClockMap:
    """Maps instants of this host to the controller's clock; begins with the first known offset.

    Args:
        first: this host's clock minus the controller's, by this host's time.
    """

    def __init__(self, first: Offset) -> None:
        self._line = _Line(first.t_ns, first.t_ns - first.offset_ns, 0.0)

    def to_controller_ns(self, t_ns: int) -> int:
        """The controller's CLOCK_MONOTONIC at the instant ``t_ns`` of ours, ns."""
        return self._line.at(t_ns)

    def learn(self, offset: Offset, drift: Drift | None) -> None:
        """Take a new offset (ours minus the controller's) into account from its time on."""
        rate = 0.0 if drift is None else -drift.ppm * 1e-6
        now_ns = offset.t_ns
        is_ns = self._line.at(now_ns)
        behind_ns = (now_ns - offset.offset_ns) - is_ns
        slew = max(-_MOST_SLEW, min(_MOST_SLEW, behind_ns / _MEETS_WITHIN_NS))
        self._line = _Line(now_ns, is_ns, rate + slew)

    def begin_anew(self, offset: Offset) -> None:
        """Jump to a new offset: a clock was stepped. Back in time is no way to go, that is slewed."""
        controller_ns = offset.t_ns - offset.offset_ns
        self._line = _Line(offset.t_ns, max(controller_ns, self._line.at(offset.t_ns)), 0.0)
