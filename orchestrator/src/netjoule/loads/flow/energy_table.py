# SPDX-License-Identifier: Apache-2.0
"""The terminal's tables of flows: E_A by transport and message size, and what is to be said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from netjoule.core import files
from netjoule.core.energy_cells import Row, energy, half_width, is_true, number, shown, title
from netjoule.core.errors import InvalidData
from netjoule.core.tables import Column, Table
from netjoule_energy import GREATEST_FLOOR_RATIO

SUMMARY_FILE = "tables/ea_summary.csv"
_FLOWS = "flows at once"


def summary_rows(campaign: Path) -> list[dict[str, str]]:
    """Rows of the summary that R wrote.

    Raises:
        InvalidData: when it is missing or has no E_A columns.
    """
    path = campaign / SUMMARY_FILE
    if not path.is_file():
        raise InvalidData(
            "there is no summary table", where=str(path), next_step="run 'netjoule analyse' first"
        )
    rows = files.read_rows(path)
    wanted = {"meter_id", "node", "transport", "payload_bytes", "offered_rate_mbps", "ea_j_per_mbit_mean"}
    if rows and not wanted <= set(rows[0]):
        missing = ", ".join(sorted(wanted - set(rows[0])))
        raise InvalidData(f"the summary table has no column {missing}", where=str(path))
    return rows


def fairness_line(row: Row) -> str:
    """A row of fairness for people."""
    cell = f"{row['transport']} {row['payload_bytes']} B {row['offered_rate_mbps']} Mb/s"
    pacing = "" if _pacing(row) in ("", "pacing absolute") else f", {_pacing(row)}"
    index = (
        f"{float(row[name]):.3f}" if row[name] else "none" for name in ("jain_goodput", "jain_demand_met")
    )
    return f"fairness of {cell}{pacing}, {row['flows']} flows: Jain's index " + ", of demand met ".join(index)


def summary_tables(rows: list[dict[str, str]]) -> Iterator[Table]:
    """One table per meter and pacing: E_A by transport and size, with uncertainty and source labels."""
    several = len({_pacing(row) for row in rows}) > 1
    outside = _outside(rows)
    for meter_id, pacing in dict.fromkeys((row["meter_id"], _pacing(row)) for row in rows):
        of_table = [row for row in _of_meter(rows, meter_id) if _pacing(row) == pacing]
        if of_table and meter_id not in outside:
            yield _table(sorted(of_table, key=_order), pacing if several else "")


def outside_lines(rows: list[dict[str, str]]) -> list[str]:
    """A line for each further meter of whose cells the device model is valid in none."""
    return [
        f"E_A of {cells[0]['node']} (meter {meter_id}): {_all(cells)} outside the validity of"
        f" device model {cells[0].get('device_model') or '?'}; they are in {SUMMARY_FILE}"
        for meter_id in _outside(rows)
        if (cells := _of_meter(rows, meter_id))
    ]


def _all(cells: list[dict[str, str]]) -> str:
    return f"all {len(cells)} cells lie" if len(cells) > 1 else "its cell lies"


def _outside(rows: list[dict[str, str]]) -> list[str]:
    """Meters but the first with extrapolated cells alone: nothing of theirs is worth a table."""
    meters = list(dict.fromkeys(row["meter_id"] for row in rows))
    return [
        meter_id
        for meter_id in meters[1:]
        if all(is_true(row.get("hollow")) for row in _of_meter(rows, meter_id))
    ]


def _of_meter(rows: list[dict[str, str]], meter_id: str) -> list[dict[str, str]]:
    return [row for row in rows if row["meter_id"] == meter_id and row["transport"] != "null"]


def _pacing(row: Row) -> str:
    """The pacing of a cell in words; empty in tables of versions that knew only one."""
    words = [f"pacing {row['pacing']}"] if row.get("pacing") else []
    if number(row.get("window_us")):
        words.append(f"window {row['window_us']} us")
    if is_true(row.get("gso")):
        words.append("offload")
    return ", ".join(words)


def _table(rows: list[dict[str, str]], pacing: str = "") -> Table:
    cells = [_cells(row, rows) for row in rows]
    lines: list[list[str]] = []
    for row, before, line in zip(rows, [None, *rows], cells, strict=False):
        if before and (before["transport"], before["payload_bytes"]) != (
            row["transport"],
            row["payload_bytes"],
        ):
            lines.append([])
        lines.append(list(line.values()))
    return Table(
        list(map(_column, cells[0])),
        lines,
        title=title("E_A", rows[0]) + (f"; {pacing}" if pacing else ""),
        caption=_caption(rows),
    )


def _column(name: str) -> Column:
    if name == _FLOWS:
        return Column(name, right=False, text=True)
    return Column(name, right=name != "transport", key=name in ("transport", "bytes", "Mb/s"))


def _caption(rows: list[dict[str, str]]) -> str:
    row = rows[0]
    text = (
        "± 95 %: over n blocks; u95: metering, one run; sent: of the asked messages, loss: of the sent ones;"
        " * some runs below resolution; ° extrapolated model."
    )
    if large := list(filter(_floor_is_large, rows)):
        most = max(float(row["floor_ratio"]) for row in large)
        text += (
            f" above floor: E_A without what building and timing the packets takes, which is over"
            f" {100 * GREATEST_FLOOR_RATIO:g} % of P_A - P_I in {len(large)} of {len(rows)} cells (at most"
            f" {100 * most:.0f} %); none where no null run compares."
        )
    if _several(rows):
        text += " E_A, sent and loss are of all flows at once; E_A of a client is of its own."
    if row.get("radio_source") == "hwsim":
        text += " No E_A: the radio (hwsim) carries frames without air time."
    if row.get("power_source") == "unknown":
        text += " No E_A: imported results, beside which no power was logged."
    if row.get("power_source") == "modelled":
        text += " In this model: no absolute J/Mb of a real device follows from it."
    return text


def _cells(row: Row, rows: list[dict[str, str]]) -> dict[str, str]:
    """A row of the table, name of column -> text; which columns there are follows from all its rows."""
    above = {"above floor": _above_floor(row)} if any(map(_floor_is_large, rows)) else {}
    flows = {_FLOWS: row.get(_FLOWS.replace(" ", "_"), "")} if _several(rows) else {}
    return {
        "transport": row["transport"],
        "bytes": row["payload_bytes"],
        "Mb/s": shown(row["offered_rate_mbps"], 4),
        "E_A J/Mb": _ea(row),
        **above,
        "± 95 %": half_width(row["ea_j_per_mbit_mean"], row.get("ea_ci95_high")),
        "u95": shown(row.get("u95_meter"), 2),
        "sent": _percent(row.get("achieved_ratio"), digits=3),
        "loss": _percent(row.get("loss_ratio")),
        "n": row.get("n", ""),
        **flows,
    }


def _several(rows: list[dict[str, str]]) -> bool:
    """Whether some runs have several flows at once."""
    return any(row.get("flows_at_once") for row in rows)


def _floor_is_large(row: Row) -> bool:
    """Whether the floor takes much of P_A - P_I; of an extrapolated model no share is told."""
    return (number(row.get("floor_ratio")) or 0) > GREATEST_FLOOR_RATIO and not is_true(row.get("hollow"))


def _above_floor(row: Row) -> str:
    """E_A above the generator floor, where it is told and the meter resolves what it is taken from."""
    told = number(row.get("floor_ratio")) is not None and not is_true(row.get("hollow"))
    return (shown(row.get("ea_above_floor_j_per_mbit"), 3) if told else "") or "none"


def _ea(row: Row) -> str:
    """E_A of a cell; none where there can be none."""
    if row.get("radio_source") == "hwsim" or row.get("power_source") == "unknown":
        return "none"
    return energy(row, "ea_j_per_mbit_mean", "ea_upper_limit_j_per_mbit", "n")


def _percent(cell: str | None, digits: int = 2) -> str:
    value = number(cell)
    return "" if value is None else f"{100 * value:.{digits}g}%"


def _order(row: Row) -> tuple[str, float, float]:
    return row["transport"], number(row["payload_bytes"]) or 0, number(row["offered_rate_mbps"]) or 0
