# SPDX-License-Identifier: Apache-2.0
"""What ``demo`` and ``analyse`` print: E_A and the pacer's verdict from R's tables, grades, warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

from netjoule.analysis.energy_table import ENERGY_FILE, energy_tables
from netjoule.analysis.excluded_runs import exclusion_line, valid_results
from netjoule.analysis.floor_warnings import FLOOR_LARGE, floor_warnings, warning_line
from netjoule.core import files
from netjoule.core.console import Output
from netjoule.core.errors import InvalidData
from netjoule.core.tables import Column, Table
from netjoule.core.words import counted
from netjoule_energy import GREATEST_FLOOR_RATIO

SUMMARY_FILE = "tables/ea_summary.csv"
VERDICT_FILE = "tables/pacer_verdict.csv"
"""The pacer's verdict, of a campaign that did both spin and sleep."""
FAIRNESS_FILE = "tables/fairness.csv"
"""Fairness per cell, of a campaign with several flows at once."""
ARM_CONTRASTS_FILE = "tables/arm_contrasts.csv"
"""Arms compared over all cells, of a load without a file of its own in R."""
CONTRASTS_FILE = "tables/contrasts.csv"
"""Transports compared over all loads, the main comparisons first, of a campaign with E_A."""

_FLOWS = "flows at once"

Row = Mapping[str, str]

_LIMITS = {
    "wide": "u95 over 5 % of E_A",
    "few_readings": "under 10 readings in a window",
    "accuracy_unknown": "accuracy of the meter unknown",
    "accuracy_provisional": "accuracy of the meter provisional",
    "apparent_power": "apparent power, not active",
}
"""What keeps a meter's runs from a better grade, in words; the codes of contract result."""


def tell(campaign: Path, output: Output) -> None:
    """Print E_A of an analysed campaign, what is to be known of it, and its files.

    Args:
        campaign: its folder.
        output: takes words and events.

    Raises:
        InvalidData: as `summary_rows`.
    """
    if energy := rows_of(campaign, ENERGY_FILE):
        _tell_energy(campaign, energy, output)
    else:
        _tell_flows(campaign, output)
    _tell_files(campaign, output)


def _tell_energy(campaign: Path, rows: list[dict[str, str]], output: Output) -> None:
    """Of a load that has no file of its own in R."""
    for table in energy_tables(rows):
        output.show(table)
    if line := exclusion_line(campaign):
        output.error(line)
    for line in grade_lines(campaign):
        output.say(line)
    for row in rows:
        output.event({"event": "energy", **typed(row)})
    for row in rows_of(campaign, ARM_CONTRASTS_FILE):
        output.say(row["words"])
        output.event({"event": "contrast", **typed(row)})


def _tell_flows(campaign: Path, output: Output) -> None:
    """Of flows: E_A, the pacer's verdict, fairness and contrasts."""
    rows = summary_rows(campaign)
    for table in summary_tables(rows):
        output.show(table)
    if line := exclusion_line(campaign):
        output.error(line)
    for line in [*outside_lines(rows), *grade_lines(campaign)]:
        output.say(line)
    for warning in floor_warnings(campaign):
        if warning["code"] != FLOOR_LARGE:  # the table has it
            output.say(warning_line(warning))
        output.event({"event": "warning", **warning})
    verdicts = rows_of(campaign, VERDICT_FILE)
    for words in dict.fromkeys(row["words"] for row in verdicts):
        output.say(words)
    for row in verdicts:
        output.event({"event": "pacer_verdict", **typed(row)})
    for row in rows_of(campaign, FAIRNESS_FILE):
        output.say(fairness_line(row))
        output.event({"event": "fairness", **typed(row)})
    for row in rows_of(campaign, CONTRASTS_FILE):
        if row["words"] and row["inference"] != "intervals_only":
            output.say(row["words"])
        output.event({"event": "contrast", **typed(row)})
    for row in rows:
        output.event({"event": "ea", **typed(row)})


def _tell_files(campaign: Path, output: Output) -> None:
    """Name what was made: to people by folder, to machines file by file."""
    made = made_files(campaign)
    if figures := [path for path in made if path.suffix == ".svg"]:
        output.say(f"{counted(len(figures), 'figure')}: {campaign / 'figures'}")
    for path in made:
        if path not in figures:
            output.say(f"report: {path}")
        output.event({"event": "file", "path": str(path)})


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


def rows_of(campaign: Path, table: str) -> list[dict[str, str]]:
    """Rows of a table that R writes only where it has something to say; none without one."""
    path = campaign / table
    return files.read_rows(path) if path.is_file() else []


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
            yield _table(meter_id, sorted(of_table, key=_order), pacing if several else "")


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
        if all(_true(row.get("hollow")) for row in _of_meter(rows, meter_id))
    ]


def _of_meter(rows: list[dict[str, str]], meter_id: str) -> list[dict[str, str]]:
    return [row for row in rows if row["meter_id"] == meter_id and row["transport"] != "null"]


def grade_lines(campaign: Path) -> list[str]:
    """How far each meter's readings carry: its runs by grade, and what keeps them from a better one."""
    grades: dict[str, Counter[str]] = {}
    limits: dict[str, Counter[str]] = {}
    run_ids = sorted(path.parent.name for path in campaign.glob("runs/*/result.json"))
    for result in valid_results(campaign, run_ids).values():
        for node in result.nodes:
            if node.grade is not None:
                grades.setdefault(node.meter_id, Counter())[node.grade] += 1
                limits.setdefault(node.meter_id, Counter()).update(node.grade_limits or ())
    return [_grade_line(meter_id, count, limits[meter_id]) for meter_id, count in grades.items()]


def _grade_line(meter_id: str, count: Counter[str], limits: Counter[str]) -> str:
    runs = ", ".join(f"{n} x {grade.replace('_', ' ')}" for grade, n in sorted(count.items()))
    why = ", ".join(_LIMITS.get(name, name.replace("_", " ")) for name, _ in limits.most_common())
    return f"grade of meter {meter_id}: {runs}" + (f"; a better grade is ruled out by: {why}" if why else "")


def typed(row: Row) -> dict[str, str | float | bool | None]:
    """A row for machines: numbers as numbers, empty cells as null."""
    words: dict[str, bool | None] = {"": None, "NA": None}
    words |= {"TRUE": True, "true": True, "FALSE": False, "false": False}

    def value(cell: str) -> str | float | bool | None:
        number = _number(cell)
        return words.get(cell, cell if number is None else number)

    return {name: value(cell) for name, cell in row.items()}


def made_files(campaign: Path) -> list[Path]:
    """Figures (SVG) and the report that exist, the report last."""
    figures = sorted((campaign / "figures").glob("*.svg"))
    report = campaign / "report.html"
    return [*figures, *([report] if report.is_file() else [])]


def _pacing(row: Row) -> str:
    """The pacing of a cell in words; empty in tables of versions that knew only one."""
    words = [f"pacing {row['pacing']}"] if row.get("pacing") else []
    if _number(row.get("window_us")):
        words.append(f"window {row['window_us']} us")
    if _true(row.get("gso")):
        words.append("offload")
    return ", ".join(words)


def _table(meter_id: str, rows: list[dict[str, str]], pacing: str = "") -> Table:
    first = rows[0]
    model = f" by device model {first['device_model']}" if first.get("device_model") else ""
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
        title=f"E_A of {first['node']} (meter {meter_id}): power {first.get('power_source', '?')}{model}, "
        f"radio {first.get('radio_source', '?')}{f'; {pacing}' if pacing else ''}",
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
        "Mb/s": _shown(row["offered_rate_mbps"], 4),
        "E_A J/Mb": _ea(row),
        **above,
        "± 95 %": _half_width(row),
        "u95": _shown(row.get("u95_meter"), 2),
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
    return (_number(row.get("floor_ratio")) or 0) > GREATEST_FLOOR_RATIO and not _true(row.get("hollow"))


def _above_floor(row: Row) -> str:
    """E_A above the generator floor, where it is told and the meter resolves what it is taken from."""
    told = _number(row.get("floor_ratio")) is not None and not _true(row.get("hollow"))
    return (_shown(row.get("ea_above_floor_j_per_mbit"), 3) if told else "") or "none"


def _ea(row: Row) -> str:
    """E_A of a cell; an upper limit when most runs are below resolution, none where there can be none."""
    if row.get("radio_source") == "hwsim" or row.get("power_source") == "unknown":
        return "none"
    below, runs = _number(row.get("below_resolution_n")) or 0, _number(row.get("n")) or 0
    limit = _shown(row.get("ea_upper_limit_j_per_mbit"), 3)
    mostly = bool(limit) and 2 * below > runs > 0
    text = f"< {limit}" if mostly else _shown(row["ea_j_per_mbit_mean"], 3)
    mark = " *" if below and not mostly else ""
    return text + mark + (" °" if _true(row.get("hollow")) else "")


def _true(cell: str | None) -> bool:
    return cell in ("TRUE", "true")


def _half_width(row: Row) -> str:
    mean, high = _number(row["ea_j_per_mbit_mean"]), _number(row.get("ea_ci95_high"))
    return "" if mean is None or high is None else f"{high - mean:.2g}"


def _percent(cell: str | None, digits: int = 2) -> str:
    value = _number(cell)
    return "" if value is None else f"{100 * value:.{digits}g}%"


def _shown(cell: str | None, digits: int) -> str:
    value = _number(cell)
    return "" if value is None else f"{value:.{digits}g}"


def _order(row: Row) -> tuple[str, float, float]:
    return row["transport"], _number(row["payload_bytes"]) or 0, _number(row["offered_rate_mbps"]) or 0


def _number(cell: str | None) -> float | None:
    try:
        return float(cell) if cell else None
    except ValueError:
        return None
