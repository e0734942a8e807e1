# SPDX-License-Identifier: Apache-2.0
"""The terminal's table of a load that has no file of its own in R: energy per work by arm and cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from netjoule.core.tables import Column, Table

ENERGY_FILE = "tables/energy_summary.csv"

Row = Mapping[str, str]

_METER = ("node", "meter_id", "device_model", "power_source", "radio_source")
_END_OF_CELL = "kind"
_LAST = "work_unit"


def energy_tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table per meter; rows of `ENERGY_FILE`, whose columns a Table Schema describes."""
    for meter_id in dict.fromkeys(row["meter_id"] for row in rows):
        yield _table(meter_id, [row for row in rows if row["meter_id"] == meter_id])


def _table(meter_id: str, rows: Sequence[Row]) -> Table:
    first = rows[0]
    names = list(first)
    factors = [name for name in names[: names.index(_END_OF_CELL)] if name not in _METER]
    varied = [name for name in factors if len({row[name] for row in rows}) > 1] or factors[:1]
    model = f" by device model {first['device_model']}" if first["device_model"] else ""
    modelled = " In this model: no absolute joules of a real device follow from it."
    return Table(
        [Column(name, right=False, key=True) for name in varied] + [Column(name) for name in _cells(first)],
        [[*(row[name] for name in varied), *_cells(row).values()] for row in rows],
        title=f"Energy of {first['node']} (meter {meter_id}): power {first['power_source']}{model}, "
        f"radio {first['radio_source']}",
        caption="E: energy above idle per unit of work, E_d: of a run; ± 95 %: over n blocks; u95: metering,"
        " one run; tail: after the work; * some runs below resolution; ° extrapolated model."
        + (modelled if first["power_source"] == "modelled" else ""),
    )


def _cells(row: Row) -> dict[str, str]:
    """Figures of a row, by the column's name."""
    unit = row[_LAST] if row[_LAST] not in ("", "1") else "run"
    measures = [name for name in row if f"{name}_ci95_low" in row and name not in _ENERGIES]
    return {
        f"E J/{unit}": _energy(row),
        "± 95 %": _half_width(row, "energy_per_work_j"),
        "u95": _shown(row["u95_energy_per_work_j"], 2),
        "E_d J": _shown(row["e_d_j"]),
        "E_t J": _shown(row["e_t_j"]),
        "tail J": _shown(row["tail_energy_j"]),
        **{name: _shown(row[name]) for name in measures if row[name]},
        "n": row["n"],
    }


_ENERGIES = frozenset(
    {"energy_per_work_j", "e_d_j", "e_t_j", "tail_energy_j", "window_s", "work", "work_per_s"}
)


def _energy(row: Row) -> str:
    """Energy per work; an upper limit when most runs are below resolution."""
    below, runs = float(row["below_resolution_n"] or 0), float(row["runs_n"] or 0)
    limit = _shown(row["upper_limit_energy_per_work_j"])
    mostly = bool(limit) and 2 * below > runs > 0
    text = f"< {limit}" if mostly else _shown(row["energy_per_work_j"]) or "none"
    return text + (" *" if below and not mostly else "") + (" °" if row["hollow"] in ("TRUE", "true") else "")


def _half_width(row: Row, name: str) -> str:
    mean, high = row[name], row[f"{name}_ci95_high"]
    return f"{float(high) - float(mean):.2g}" if mean and high else ""


def _shown(cell: str, digits: int = 3) -> str:
    return f"{float(cell):.{digits}g}" if cell else ""
