# SPDX-License-Identifier: Apache-2.0
"""A rig whose truth is known, in place of a session's process: campaigns written, not run; R decides."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import synthetic

from netjoule import loads
from netjoule.analysis import decision
from netjoule.core import files
from netjoule.design import run_table
from netjoule.store.campaign import Campaign
from netjoule.topology import topology
from netjoule_energy import compute_and_write
from netjoule_synthetic.clock import ORIGIN_NS

DELTA_W = 0.5
Spans = list[tuple[float, float, float]]
"""Start and end of what a run draws, campaign time, and how much of it, W."""


@dataclass
class Rig:
    """What is true of it.

    Attributes:
        effect: what the head takes above the base, as a ratio.
        anchor: what the release takes, as a ratio to the base.
        sd: standard deviation over blocks of ln(head / base).
        chance: of all scatter.
        reference_sd: of ln(E of the reference workload); that of a run by default.
        sessions: folders that were written.
    """

    effect: float
    sd: float
    chance: random.Random
    reference_sd: float | None = None
    anchor: float = 1.0
    sessions: list[Path] = field(default_factory=list)

    def run(
        self,
        workload: Path,
        testbed: Path,
        campaign: Path,
        seed: int,
        told: Callable[[Mapping[str, Any]], None],
    ) -> None:
        """As `campaign_process.run`: the runs of a session as a campaign has them, until a look decides."""
        self.sessions.append(campaign)
        asked = loads.read(workload)
        with synthetic.create(campaign, workload=asked, topology=topology.load(testbed), seed=seed) as made:
            session = synthetic.begin(made)
            made.set_meters([synthetic.passport()])
            t_s = self._write(made, asked.looks)
            synthetic.write_logs(made, t_s + 2)
            made.end_session(
                session,
                end="complete",
                monotonic_ns=ORIGIN_NS + round((t_s + 3) * 1e9),
                utc=synthetic.START,
            )

    def _write(self, campaign: Campaign, looks: tuple[int, ...]) -> float:
        """Write blocks until a look decides; the end of the last, campaign time."""
        t_s, spans = 1.0, Spans()
        edges: list[tuple[float, float]] = []
        while (mini := campaign.next_mini_block()) is not None:
            for row in mini.missing:
                t_s = synthetic.run_one(campaign, row, t_s, edges)
                spans.append((*edges[-1], DELTA_W * self._drawn(row.arm)))
            write_meter(campaign, spans, t_s + 2)
            compute_and_write(campaign.path, [row.run_id for row in mini.missing])
            for row in mini.missing:
                campaign.set_status(row.run_id, "valid")
            if run_table.blocks_done(campaign.rows()) in looks[:-1]:
                found = decision.look(campaign.path)
                if found.code:
                    campaign.end_by_rule(found.code)
        return t_s

    def _drawn(self, arm: str) -> float:
        """What a run of an arm takes, as a ratio to the base's truth."""
        sd = self.sd / math.sqrt(2)
        if arm == "reference" and self.reference_sd is not None:
            sd = self.reference_sd
        return {"head": self.effect, "anchor": self.anchor}.get(arm, 1.0) * math.exp(self.chance.gauss(0, sd))


def write_meter(campaign: Campaign, spans: Spans, until_s: float) -> None:
    """meters/m.csv as the logger writes it: one reading per update, one update late."""
    update_s, rows, stream = synthetic.UPDATE_S, [], []
    first = 0
    for seq in range(round(until_s / update_s)):
        end_s = seq * update_s
        while first < len(spans) and spans[first][1] <= end_s - update_s:
            first += 1
        power_w = synthetic.IDLE_W + sum(
            max(0.0, min(end_s, b) - max(end_s - update_s, a)) / update_s * delta_w
            for a, b, delta_w in spans[first : first + 2]
        )
        rows.append({"t_s": end_s + update_s, "seq": seq, "power_w": round(power_w, 9), "flag": ""})
        sample = {"t_start_s": round(end_s - update_s, 6), "t_end_s": round(end_s, 6), "power_w": power_w}
        stream.append(json.dumps({**sample, "extrapolated": False, "terms": {"idle_w": power_w}}))
    files.write_atomic(campaign.meters_dir / "m.csv", files.table_text("meters", rows))
    files.write_atomic(campaign.devices_dir / "m.ndjson", "\n".join(stream[1:]) + "\n")
