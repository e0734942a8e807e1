# SPDX-License-Identifier: Apache-2.0
"""What ``analyse`` and ``demo`` warn of in the generator floor, out of the results of a campaign."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netjoule.analysis.excluded_runs import valid_results
from netjoule.store.blocks import run_folder
from netjoule.store.planfile import read_plan
from netjoule.workload.cell import Cell
from netjoule_contracts.flow_control import GREATEST_WAKE_UPS_FACTOR
from netjoule_contracts.types.result import Result
from netjoule_energy import GREATEST_FLOOR_RATIO

FLOOR_LARGE = "floor_large"
FLOOR_WAKE_UPS_DIFFER = "floor_wake_ups_differ"
# A cell with a run refused for one of these has no floor: the mean of the rest would be a selected one.
OUTCOME_REFUSALS = frozenset({"floor_achieved_low", "floor_spinning", "floor_core_busy"})


def floor_warnings(campaign: Path) -> list[dict[str, Any]]:
    """What there is to know of the generator floor of runs that count.

    Where it is a large part of P_A - P_I (reason floor_large): one warning per meter, of cells that have a
    floor. Where null's senders woke up far more or less often than those of the run (reason
    floor_wake_ups_differ): one warning.
    """
    # Not those of an attempt that was repeated.
    rows = {row.run_id: row for row in read_plan(campaign) if row.status == "valid"}
    cells = {run_id: (row.arm, row.cell) for run_id, row in rows.items()}
    valid = valid_results(campaign, (run_folder(campaign, rows[run_id]) for run_id in sorted(rows)))
    return [*_large_floors(cells, valid), *_other_wake_ups(valid)]


def _large_floors(
    cells: Mapping[str, tuple[str, Cell]], results: Mapping[str, Result]
) -> list[dict[str, Any]]:
    runs: Counter[str] = Counter()
    large: dict[str, list[tuple[float, str]]] = {}
    empty = {
        (node.meter_id, cells[run_id])
        for run_id, result in results.items()
        for node in result.nodes
        if node.floor.reason in OUTCOME_REFUSALS
    }
    for run_id, result in results.items():
        for node in result.nodes:
            floor_w, delta_w = node.floor.floor_w, node.delta_p_w
            if floor_w is None or node.below_resolution or not delta_w or delta_w <= 0:
                continue
            if (node.meter_id, cells[run_id]) in empty:
                continue
            runs[node.meter_id] += 1
            share = floor_w / delta_w
            if FLOOR_LARGE in _codes(result) and share > GREATEST_FLOOR_RATIO:
                large.setdefault(node.meter_id, []).append((share, _cell_words(result)))
    return [
        {
            "code": FLOOR_LARGE,
            "meter_id": meter_id,
            "runs": len(found),
            "of_runs": runs[meter_id],
            "floor_ratio": max(found)[0],
            "cell": max(found)[1],
        }
        for meter_id, found in large.items()
    ]


def _other_wake_ups(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    """At most one warning, with the run that lies furthest from its null run."""
    with_floor = 0
    found: list[tuple[float, float, float, str]] = []
    for result in results.values():
        floors = [node.floor for node in result.nodes]
        null_ids = [floor.run_id for floor in floors if floor.floor_w is not None]
        with_floor += bool(null_ids)
        if not null_ids or FLOOR_WAKE_UPS_DIFFER not in _codes(result):
            continue
        null = results.get(null_ids[0] or "")
        own, of_null = (one.measures.get("wake_ups_per_message") if one else None for one in (result, null))
        if isinstance(own, float) and isinstance(of_null, float):
            least, most = sorted((own, of_null))
            found.append((most / least if least else math.inf, own, of_null, _cell_words(result)))
    if not found:
        return []
    _, own, of_null, cell = max(found)
    return [
        {
            "code": FLOOR_WAKE_UPS_DIFFER,
            "runs": len(found),
            "of_runs": with_floor,
            "wake_ups_per_message": own,
            "wake_ups_per_message_of_null": of_null,
            "cell": cell,
        }
    ]


def _codes(result: Result) -> set[str]:
    return {reason.code for reason in result.reasons}


def _cell_words(result: Result) -> str:
    return f"{result.arm} {Cell(result.factors)}"


def wake_ups_line(warning: Mapping[str, Any]) -> str:
    """A warning of other wake-ups for people."""
    own, of_null = warning["wake_ups_per_message"], warning["wake_ups_per_message_of_null"]
    return (
        f"warning {warning['code']}: in {warning['runs']} of {warning['of_runs']} runs wake-ups per"
        " message differ from those of the null run by more than a factor of"
        f" {GREATEST_WAKE_UPS_FACTOR:g}, worst {own:.3g} against {of_null:.3g} ({warning['cell']});"
        " E_A above floor there includes what the difference in wake-ups costs"
    )
