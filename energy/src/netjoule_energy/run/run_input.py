# SPDX-License-Identifier: Apache-2.0
"""Everything one run left behind, as its numbers are computed from it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from netjoule_energy.power.windows import Intervals, MeasuredSpan, Window, measured_span
from netjoule_energy.run.model_terms import ModelTerms
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.parts import PartInput, joined, parts_of_node, u_of, work_within
from netjoule_energy.uncertainty.budget import TIMEBASE_RATIO, Throughput

UNTIL_DONE = "until_done"
CONTROL = "control"
SIMULATED = "simulated"


@dataclass(frozen=True, slots=True)
class RunInput:
    """run.json, the intervals of its work (of several parts joined), its meters.

    parts: what the work is made of. idle_clients: hosts with the role client that have no part in this run.
    modelled: power of nodes that a model tells without a meter, of a simulated run.
    """

    run: dict[str, Any]
    intervals: Intervals
    meters: tuple[MeterInput, ...]
    parts: tuple[PartInput, ...] = ()
    idle_clients: frozenset[str] = frozenset()
    modelled: tuple[ModelTerms, ...] = ()

    def window(self, name: str) -> Window | None:
        """Return a window of run.json, None when the run did not reach it."""
        return _window(self.run["windows"].get(name))

    @property
    def measure(self) -> Window | None:
        """The window that the work was done in, None when the run did not reach it."""
        return _window(self.run["window"])

    @property
    def until_done(self) -> bool:
        """Whether all of the work lies in the window."""
        return self.run["window"] is not None and self.run["window"]["kind"] == UNTIL_DONE

    @property
    def is_control(self) -> bool:
        """Whether the run is the control run of its mini-block."""
        return bool(self.run["kind"] == CONTROL)

    @property
    def is_simulated(self) -> bool:
        """Whether a model told it: its clock has no error, and nothing was read at any moment."""
        return bool(self.run["radio_source"] == SIMULATED)

    @property
    def counted(self) -> bool:
        """Whether any work of the run is counted."""
        return self.run["work"] is not None and self.run["work"]["quantity"] is not None

    @property
    def several(self) -> tuple[PartInput, ...]:
        """The parts of the work where there is more than one."""
        return self.parts if len(self.parts) > 1 else ()

    def span(self, measure: Window) -> MeasuredSpan:
        """Return the effective window and the work in it."""
        if not self.counted:
            return MeasuredSpan(measure, None)
        if self.until_done:
            return MeasuredSpan(measure, float(self.run["work"]["quantity"]))
        return measured_span(measure, self.intervals)

    def throughput(self, span: MeasuredSpan) -> Throughput | None:
        """Return the work per second of all parts; None without any."""
        rate = span.work_per_s
        if not rate or not span.work:
            return None
        return Throughput(
            work_per_s=rate,
            edge_ratio=_edges(float(self.run["work"]["u"])) / span.work,
            clock_ratio=float(self.run["window"]["clock_limit_s"]) / span.window.length_s,
            timebase_ratio=TIMEBASE_RATIO,
        )

    def throughput_of_node(
        self, span: MeasuredSpan, node: str, whole: Throughput | None
    ) -> Throughput | None:
        """Return the work per second of a client's own parts, and of the run at any other node."""
        if node in self.idle_clients:
            return None
        own = parts_of_node(self.parts, node)
        if whole is None or len(own) == len(self.parts):
            return whole
        work = self._work_of(own, span.window)
        if work <= 0:
            return None
        rate = work / span.window.length_s
        return replace(whole, work_per_s=rate, edge_ratio=_edges(u_of(own)) / work)

    def _work_of(self, parts: Sequence[PartInput], window: Window) -> float:
        if self.until_done:
            return sum(float(part.entry["quantity"] or 0.0) for part in parts)
        return sum(work_within(part.intervals, window) for part in parts)


def run_input(
    run: dict[str, Any],
    by_part: dict[str, Intervals],
    meters: tuple[MeterInput, ...],
    idle_clients: frozenset[str] = frozenset(),
) -> RunInput:
    """Return the input of a run; by_part: the intervals of each part that has any."""
    none = Intervals.empty()
    entries = [] if run["work"] is None else run["work"]["parts"]
    parts = tuple(PartInput(entry, by_part.get(str(entry["part"]), none)) for entry in entries)
    return RunInput(run, joined(list(by_part.values())), meters, parts, idle_clients)


def _window(found: dict[str, Any] | None) -> Window | None:
    return None if found is None else Window(float(found["t_start_s"]), float(found["t_end_s"]))


def _edges(u: float) -> float:
    """What two edges may miscount, each by half of it either way, that have such a standard uncertainty."""
    return math.sqrt(6) * u
