# SPDX-License-Identifier: Apache-2.0
"""From a design to what every run sends, receives and draws, and to the truth of each cell. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from netjoule import loads
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.workload.workload import Workload
from netjoule_contracts.flow_work import megabits
from netjoule_synthetic.design import NULL, TICKS_PER_S, Design, Meter, ticks

FloatArray = npt.NDArray[np.float64]

SPOILED = "radio_disassociated"
"""Reason of invalid runs; one that nothing but run.json and the plan has to show."""
_PARTS = ("idle_s", "settle_s", "warm_up_s", "measure_s", "tail_s")
FIRST_TICK = TICKS_PER_S
"""Where the first idle window begins."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Lengths of a run's parts and its period, in ticks of 0.1 s."""

    idle: int
    settle: int
    warm_up: int
    measure: int
    tail: int

    @property
    def period(self) -> int:
        """From one run's first idle window to the next one's."""
        return self.idle + self.warm_up + self.measure + self.tail + self.settle

    @property
    def flow(self) -> int:
        """From the first packet to the last."""
        return self.warm_up + self.measure

    def start(self, place: int) -> int:
        """Where the idle window before a run begins, by the run's place in the plan."""
        return FIRST_TICK + place * self.period


def layout(design: Design) -> Layout:
    """The timing of a design on the grid."""
    return Layout(*(ticks(getattr(design.timing, name), f"timing.{name}") for name in _PARTS))


def workload(design: Design, name: str) -> Workload:
    """The workload that a design's plan is the expansion of."""
    document: dict[str, Any] = {
        "schema_version": 2,
        "name": name,
        "description": "Synthetic: written by a generator with known truth; nothing was sent or measured.",
        "load": "flow",
        "control": NULL in design.transports,
        "factors": {
            "transport": [one for one in design.transports if one != NULL],
            "payload_bytes": list(design.payload_bytes),
            "offered_rate_mbps": list(design.offered_rate_mbps),
        },
        "blocks": design.blocks,
        "timing": {name: getattr(design.timing, name) for name in _PARTS},
        "limits": {"max_attempts": 3},
    }
    return loads.made(document, where="the design")


def rows(design: Design, of: Workload) -> tuple[PlanRow, ...]:
    """The plan as it stands at the end: what was spoiled is invalid and its mini-block repeated."""
    planned = run_table.expand(of, design.seed)
    chance = np.random.default_rng([design.seed, 1])
    spoiled = chance.random(1 + max(r.mini_block for r in planned)) < design.invalid_share
    which = chance.integers(1, len(design.transports) + 1, spoiled.size)
    settled = [
        replace(r, status="invalid", reason=SPOILED)
        if spoiled[r.mini_block] and r.order == which[r.mini_block]
        else replace(r, status="valid")
        for r in planned
    ]
    whole = run_table.with_repeats(settled, design.seed, of.max_attempts)
    return tuple(replace(r, status="valid") if r.status == "planned" else r for r in whole)


@dataclass(frozen=True, slots=True)
class Counts:
    """Messages of one flow, in all and in each tenth of a second.

    Attributes:
        sent, received: messages of each interval, from the first packet on.
        in_window: messages received in the measure window.
    """

    scheduled: int
    sent: tuple[int, ...]
    received: tuple[int, ...]
    in_window: int
    payload_bytes: int

    @property
    def loss_ratio(self) -> float:
        """Lost over sent messages; 0 when none was sent."""
        return 1 - sum(self.received) / sum(self.sent) if sum(self.sent) else 0.0

    @property
    def achieved_ratio(self) -> float:
        """Sent over scheduled messages."""
        return sum(self.sent) / self.scheduled if self.scheduled else 0.0

    @property
    def works(self) -> tuple[float, ...]:
        """What arrived in each interval, Mb; none where nothing did."""
        return tuple(megabits(count * self.payload_bytes) for count in self.received if sum(self.received))

    def goodput_mbps(self, measure_s: float) -> float:
        """Payload that arrived in the measure window, Mb/s."""
        return self.in_window * self.payload_bytes * 8e-6 / measure_s


def counts_of(design: Design, transport: str, payload_bytes: int, rate_mbps: float) -> Counts:
    """What a flow of a cell sends and receives: the same in every run of the cell."""
    parts = layout(design)
    scheduled = round(rate_mbps * 1e6 * parts.flow / TICKS_PER_S / (8 * payload_bytes))
    held, lost = (0.0, 0.0)
    if transport != NULL:
        held = design.held_back(transport, payload_bytes, rate_mbps)
        lost = design.loss(transport, payload_bytes, rate_mbps)
    sent = round(scheduled * (1 - held))
    received = 0 if transport == NULL else round(sent * (1 - lost))
    arrived = _spread(received, parts.flow)
    return Counts(scheduled, _spread(sent, parts.flow), arrived, sum(arrived[parts.warm_up :]), payload_bytes)


def _spread(total: int, count: int) -> tuple[int, ...]:
    """A total as evenly over intervals as whole messages go."""
    edges = [total * k // count for k in range(count + 1)]
    return tuple(b - a for a, b in pairwise(edges))


def deltas_w(design: Design, of: Sequence[PlanRow]) -> FloatArray:
    """Power above idle while sending, W: a row per run, a column per meter."""
    chance = np.random.default_rng([design.seed, 2])
    by_block = chance.normal(0, design.block_sd_ratio, 1 + max(r.block for r in of))
    by_mini_block = chance.normal(0, design.mini_block_sd_ratio, 1 + max(r.mini_block for r in of))
    own = chance.normal(0, design.run_sd_ratio, (len(of), len(design.meters)))
    common = np.array([by_block[r.block] + by_mini_block[r.mini_block] for r in of])
    flows = [(r.arm, r.cell["payload_bytes"], r.cell["offered_rate_mbps"]) for r in of]
    true = np.array([[meter.power(*flow) for meter in design.meters] for flow in flows])
    spoiled = np.array([design.invalid_error_w if r.status == "invalid" else 0.0 for r in of])
    found: FloatArray = true * (1 + common[:, None] + own) + spoiled[:, None]
    return found


@dataclass(frozen=True, slots=True)
class Cell:
    """What is true of one cell at one meter; floor_w is None without ``null``."""

    meter_id: str
    node: str
    transport: str
    payload_bytes: int
    offered_rate_mbps: float
    delta_p_w: float
    goodput_mbps: float
    loss_ratio: float
    ea_j_per_mbit: float
    floor_w: float | None
    ea_above_floor_j_per_mbit: float | None


def cells(design: Design) -> list[Cell]:
    """The truth: every cell at every meter, null left out."""
    return [_cell(design, meter, *flow) for meter in design.meters for flow in design.flows()]


def _cell(design: Design, meter: Meter, transport: str, payload_bytes: int, rate_mbps: float) -> Cell:
    counts = counts_of(design, transport, payload_bytes, rate_mbps)
    goodput = counts.goodput_mbps(design.timing.measure_s)
    delta = meter.power(transport, payload_bytes, rate_mbps)
    floor = meter.power(NULL, payload_bytes, rate_mbps) if NULL in design.transports else None
    return Cell(
        meter_id=meter.meter_id,
        node=meter.node,
        transport=transport,
        payload_bytes=payload_bytes,
        offered_rate_mbps=rate_mbps,
        delta_p_w=delta,
        goodput_mbps=goodput,
        loss_ratio=counts.loss_ratio,
        ea_j_per_mbit=delta / goodput,
        floor_w=floor,
        ea_above_floor_j_per_mbit=None if floor is None else (delta - floor) / goodput,
    )
