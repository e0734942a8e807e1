# SPDX-License-Identifier: Apache-2.0
"""The terminal's table of a load that has no file of its own in R: energy per work by arm and cell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from netjoule.core.energy_cells import Row, energy, half_width, is_true, number, shown, title
from netjoule.core.tables import Column, Table
from netjoule_energy import GREATEST_FLOOR_RATIO

ENERGY_FILE = "tables/energy_summary.csv"

_METER = ("node", "meter_id", "device_model", "power_source", "radio_source")
_END_OF_CELL = "kind"
_LAST = "work_unit"


def energy_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table per meter; rows of `ENERGY_FILE`, whose columns a Table Schema describes."""
    for meter_id in dict.fromkeys(row["meter_id"] for row in rows):
        yield _table([row for row in rows if row["meter_id"] == meter_id])


def _table(rows: Sequence[Row]) -> Table:
    first = rows[0]
    names = list(first)
    factors = [name for name in names[: names.index(_END_OF_CELL)] if name not in _METER]
    varied = [name for name in factors if len({row[name] for row in rows}) > 1] or factors[:1]
    measures = [
        name
        for name in names
        if f"{name}_ci95_low" in first and name not in _ENERGIES and any(row[name] for row in rows)
    ]
    powered = any(row["p_a_w"] for row in rows)
    large = powered and any(map(_floor_is_large, rows))
    modelled = " In this model: no absolute joules of a real device follow from it."
    energies = (
        "E: energy above idle per unit of work, E_d, E_t: of one repetition; ± 95 %: over n blocks;"
        " u95: metering, one run; tail: after the work; * some runs below resolution; ° extrapolated model."
    )
    if large:
        energies += (
            " above floor: E without what the control run took for the same work, over"
            f" {100 * GREATEST_FLOOR_RATIO:g} % of P_A - P_I in some rows; none where it does not compare."
        )
    return Table(
        [Column(name, right=False, key=True) for name in varied]
        + [Column(name) for name in _cells(first, measures, powered=powered, large=large)],
        # A control run has no value of an arm of numbers.
        [
            [
                *(row[name] or row[_END_OF_CELL] for name in varied),
                *_cells(row, measures, powered=powered, large=large).values(),
            ]
            for row in rows
        ],
        title=title("Energy", first) if powered else "Measures, in a model",
        caption=(energies if powered else "n: blocks. Nothing tells the power of a host.")
        + (modelled if powered and first["power_source"] == "modelled" else ""),
    )


def _floor_is_large(row: Row) -> bool:
    """Whether the floor takes much of P_A - P_I, where the meter resolves it and its model is valid."""
    floor_w, added_w = number(row.get("floor_w")), number(row.get("delta_p_w"))
    if floor_w is None or added_w is None or number(row["below_resolution_n"]) or is_true(row["hollow"]):
        return False
    return floor_w > GREATEST_FLOOR_RATIO * added_w > 0


def _cells(row: Row, measures: Sequence[str], *, powered: bool, large: bool) -> dict[str, str]:
    """Figures of a row, by the column's name; without energies where nothing tells of any."""
    measured = {name: shown(row[name]) for name in measures}
    if not powered:
        return {**measured, "n": row["n"]}
    unit = row[_LAST] if row[_LAST] not in ("", "1") else "run"
    per_work = energy(row, "energy_per_work_j", "upper_limit_energy_per_work_j", "runs_n") or "none"
    width = half_width(row["energy_per_work_j"], row["energy_per_work_j_ci95_high"])
    above = {"above floor": shown(row["energy_per_work_above_floor_j"]) or "none"} if large else {}
    return {
        f"E J/{unit}": per_work,
        **above,
        "± 95 %": "" if per_work.startswith("<") else width,
        "u95": shown(row["u95_energy_per_work_j"], 2),
        "E_d J": shown(row["e_d_j"]),
        "E_t J": shown(row["e_t_j"]),
        "tail J": shown(row["tail_energy_j"]),
        **measured,
        "n": row["n"],
    }


_ENERGIES = frozenset(
    {"energy_per_work_j", "e_d_j", "e_t_j", "tail_energy_j", "window_s", "work", "work_per_s"}
)
