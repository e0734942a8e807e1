# SPDX-License-Identifier: Apache-2.0
"""How much of a difference's uncertainty is the meter's range error, which no longer measuring reduces."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from netjoule.core import files
from netjoule.core.errors import NetjouleError
from netjoule.store.blocks import run_folder
from netjoule.store.planfile import read_plan
from netjoule_contracts.types.result import Result

Row = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Metering:
    """Uncertainty by metering of the difference of two runs, as if nothing in it cancelled.

    Attributes:
        u95_range: 95 % half-width by the range part of the meter's specification alone, J/Mb.
        u95: that of all parts, J/Mb.
    """

    u95_range: float
    u95: float


def dominates(u95_range: float, u95: float) -> bool:
    """Whether range error is more than half of a variance."""
    return u95_range**2 > u95**2 / 2


def metering(campaign: Path, row: Row) -> Metering | None:
    """That of a row of the table of differences, from the results of its runs.

    Args:
        campaign: folder of the campaign.
        row: of tables/delta_ea.csv.

    Returns:
        None where the results do not tell: what is said with it is advice, and nothing fails without it.
    """
    ranges, all_parts = 0.0, 0.0
    for transport in (row["reference"], row["transport"]):
        try:
            parts = list(_parts(campaign, row, transport))
        except NetjouleError:
            return None
        if not parts:
            return None
        ranges += fmean(u95_range**2 for u95_range, _ in parts)
        all_parts += fmean(u95**2 for _, u95 in parts)
    return Metering(math.sqrt(ranges), math.sqrt(all_parts))


def _parts(campaign: Path, row: Row, transport: str) -> Iterator[tuple[float, float]]:
    """u95 by range error and by all parts of a cell's runs that count, where a meter's has both, J/Mb."""
    for planned in read_plan(campaign):
        cell = planned.cell
        at = (planned.arm, str(cell["payload_bytes"]), cell["direction"])
        pace = (cell["pacing"], cell["window_us"], cell["gso"])
        if (
            planned.status == "valid"
            and at == (transport, row["payload_bytes"], row["direction"])
            and pace == (row["pacing"], int(row["window_us"] or 0), row["gso"] == "true")
            and math.isclose(cell["offered_rate_mbps"], float(row["offered_rate_mbps"]), rel_tol=1e-6)
        ):
            result = files.read_document(run_folder(campaign, planned) / "result.json", Result)
            for node in result.nodes if result.valid else ():
                u95, parts = node.u95_energy_per_work_j, node.u95_components
                if node.meter_id == row["meter_id"] and u95 is not None and parts is not None:
                    yield parts.offset, u95
