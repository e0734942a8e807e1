# SPDX-License-Identifier: Apache-2.0
"""Runs of flows as version 1 wrote them, without files, and what energy computes from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from netjoule_contracts.flow_work import megabits
from netjoule_contracts.lift import runs as lift
from netjoule_energy.power.windows import Intervals
from netjoule_energy.run.node_power import MeterInput
from netjoule_energy.run.run_input import RunInput, run_input


@dataclass(frozen=True, slots=True)
class FlowInput:
    """One flow: its entry in run.json, its report, what its receiver got in bytes."""

    asked: dict[str, Any]
    report: dict[str, Any]
    intervals: Intervals


@dataclass(frozen=True, slots=True)
class FlowRun:
    """run.json, its flows, its meters."""

    run: dict[str, Any]
    flows: tuple[FlowInput, ...]
    meters: tuple[MeterInput, ...]
    idle_clients: frozenset[str] = frozenset()

    def lifted(self, null: FlowRun | None = None) -> tuple[RunInput, RunInput | None]:
        """The run and its control run as their numbers are computed."""
        run = lift.lifted_run(self._first(), self._reports(), self._rows())
        of_null = None
        if null is not None:
            run["control"] = lift.lifted_control(
                self._first(), self._reports(), null._first(), null._reports()
            )
            of_null = null.lifted()[0]
        return run_input(run, self._by_part(), self.meters, self.idle_clients), of_null

    def _first(self) -> dict[str, Any]:
        return {"schema_version": 1, **self.run}

    def _reports(self) -> list[dict[str, Any]]:
        return [flow.report for flow in self.flows]

    def _by_part(self) -> dict[str, Intervals]:
        """Of a null run none, as its table has no rows of a receiver."""
        if self.run["transport"] == "null":
            return {}
        return {str(n): in_megabits(flow.intervals) for n, flow in enumerate(self.flows, start=1)}

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {"part": part, "node": "", "t_start_s": start_s, "t_end_s": end_s, "work": work}
            for part, of in self._by_part().items()
            for start_s, end_s, work in zip(of.start_s, of.end_s, of.work, strict=True)
        ]


def in_megabits(of_bytes: Intervals) -> Intervals:
    """The same intervals in Mb."""
    return Intervals(of_bytes.start_s, of_bytes.end_s, megabits(of_bytes.work))
