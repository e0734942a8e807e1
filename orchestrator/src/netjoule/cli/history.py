# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule history``: what gates decided over weeks, and what somebody knows better by now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli.typed import Json

if TYPE_CHECKING:
    from netjoule.core.console import Output
    from netjoule.core.tables import Table
    from netjoule.gate.history.trend import Series

Row = Mapping[str, Any]
History = Annotated[
    str | None,
    typer.Option(
        "--history",
        metavar="URL",
        help="File, sqlite:///FILE or postgresql://USER@HOST/DB [default: $NETJOULE_HISTORY, or"
        " results/history.sqlite].",
    ),
]


def history(
    rig: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this rig.")] = None,
    workload: Annotated[str | None, typer.Option(metavar="NAME", help="Only of this workload.")] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="Write the list as CSV.")] = None,
    html: Annotated[
        Path | None,
        typer.Option("--html", metavar="FILE", help="Draw each series with its changes into one page."),
    ] = None,
    trend: Annotated[
        bool, typer.Option("--trend", help="List lasting changes instead (needs apache-otava).")
    ] = False,
    health: Annotated[
        bool, typer.Option("--health", help="Count why gates decided nothing, by rig, instead.")
    ] = False,
    days: Annotated[
        int, typer.Option(metavar="N", min=1, max=365_000, help="Of health: how many until now.")
    ] = 1,
    was_false: Annotated[
        str | None, typer.Option(metavar="ID", help="Mark a regression that was none.")
    ] = None,
    was_missed: Annotated[
        str | None, typer.Option(metavar="ID", help="Mark a gate that should have failed.")
    ] = None,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Why, for a mark.")] = "",
    record: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", help="Take in the verdict of a gate that could not be kept."),
    ] = None,
    url: History = None,
    json: Json = False,
) -> None:
    """List gates and pilots, newest last; draw, export or mark them.

    Example: netjoule history --rig bench --html history.html
    """
    from netjoule.core.console import Output
    from netjoule.gate.history import store

    output = Output(json_lines=json)
    if record is not None:
        _record(record, url, output)
    for gate, as_what in ((was_false, store.WAS_FALSE), (was_missed, store.WAS_MISSED)):
        if gate is not None:
            new = store.mark(gate, as_what, note, url)
            output.say(f"{gate}: {'marked' if new else 'was marked already'} as {as_what}")
            output.event({"event": "marked", "gate": gate, "mark": as_what, "new": new})
    if record or was_false or was_missed:
        return
    if html is not None:
        _draw(rig, workload, url, html, output)
    if trend:
        _tell_changes(rig, workload, url, output)
    rows = store.listed(rig, workload, url)
    if csv is not None:
        _export(rows, csv, output)
    if health:
        _tell_health(rows, days, output)
    if not (csv or html or trend or health):
        _list(rows, url, output)


def _record(folder: Path, url: str | None, output: Output) -> None:
    from netjoule.core import files
    from netjoule.gate.history import store

    verdict = files.read_json(folder / "verdict.json")
    new = store.record(verdict, folder, url)
    output.say(f"{verdict['id']}: {'recorded' if new else 'was there already'}")
    output.event({"event": "recorded", "gate": verdict["id"], "new": new})


def _list(rows: Sequence[Row], url: str | None, output: Output) -> None:
    if not rows:
        output.say("no gates yet")
    else:
        output.show(_table(rows))
    for row in rows:
        output.event({"event": "gate", **row})
    for rig in dict.fromkeys(row["rig"] for row in rows if row["same_arms"]):
        _tell_false_alarms(rig, url, output)


def _tell_false_alarms(rig: str, url: str | None, output: Output) -> None:
    from netjoule.core.errors import HostLacks
    from netjoule.gate.history import store

    try:
        found = store.false_alarms(rig, url)
    except HostLacks as error:  # a list needs no R
        output.error(f"no rate of false alarms: {error}")
        return
    if found.gates:
        output.say(f"{rig}: {found}")
        rate = {"fails": found.fails, "gates": found.gates, "low": found.low, "high": found.high}
        output.event({"event": "false_alarms", "rig": rig, **rate})


def _table(rows: Sequence[Row]) -> Table:
    from netjoule.core.tables import Column, Table

    lines = [
        [
            row["finished_utc"][:16].replace("T", " "),
            row["id"],
            row["rig"],
            f"{row['workload']} {row['workload_version']}",
            row["kind"],
            row["verdict"],
            _percent(row),
            ", ".join(_remarks(row)),
        ]
        for row in rows
    ]
    names = [
        Column("decided (UTC)", right=False),
        Column("id", right=False, key=True),
        Column("rig", right=False),
        Column("workload", right=False),
        Column("kind", right=False),
        Column("verdict", right=False),
        Column("more than base %"),
        Column("remarks", right=False, text=True),
    ]
    return Table(names, lines)


def _percent(row: Row) -> str:
    """``+1.0 [-0.9 to +2.9]``."""
    if row["ratio"] is None:
        return ""
    middle, low, high = (
        None if row[name] is None else f"{100 * (row[name] - 1):+.1f}"
        for name in ("ratio", "ratio_low", "ratio_high")
    )
    return f"{middle} [{low} to {high}]" if low and high else str(middle)


def _remarks(row: Row) -> Iterator[str]:
    if row["reason_code"]:
        yield row["reason_code"]
    if row["same_arms"] and row["kind"] == "gate":
        yield "base and head are the same"
    yield from (mark.replace("_", " ") for mark in row["marks"])


def _export(rows: Sequence[Row], path: Path, output: Output) -> None:
    from netjoule.core import files
    from netjoule.gate.history.tables import gates

    columns = [*gates.c.keys(), "marks"]
    files.write_atomic(path, _csv_text(columns, [{**row, "marks": ";".join(row["marks"])} for row in rows]))
    output.say(f"table: {path}")
    output.event({"event": "table", "path": str(path)})


def _csv_text(columns: Sequence[str], rows: Sequence[Row]) -> str:
    import csv
    import io

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_cell(row[name]) for name in columns] for row in rows)
    return out.getvalue()


def _cell(value: object) -> object:
    return str(value).lower() if isinstance(value, bool) else value


def _draw(rig: str | None, workload: str | None, url: str | None, path: Path, output: Output) -> None:
    from tempfile import TemporaryDirectory

    from netjoule.analysis import analysis
    from netjoule.core.errors import InvalidData
    from netjoule.gate.history import trend

    rows = [row for series in trend.series_of(rig, workload, url) for row in _points(series)]
    if not rows:
        raise InvalidData(
            "the history has no session with a reference workload to draw",
            next_step="'netjoule history' lists what it has",
        )
    with TemporaryDirectory(prefix="netjoule-history-") as folder:
        table = Path(folder) / "history.csv"
        table.write_text(_csv_text(list(rows[0]), rows), encoding="utf-8")
        analysis.run_history(table, path, output.event)
    output.say(f"page: {path}")


def _points(series: Series) -> Iterator[dict[str, Any]]:
    """A series as R draws it; where there is no apache-otava, without changes."""
    from netjoule.gate.history import trend

    places = {change.place for change in series.changes} if trend.is_there() else None
    for place, point in enumerate(series.points):
        yield {
            "series": series.name,
            "power_source": series.key["power_source"],
            "run": place + 1,
            **{name: point[name] for name in ("id", "finished_utc", "verdict", "head_over_reference")},
            "change": None if places is None else place in places,
        }


def _tell_changes(rig: str | None, workload: str | None, url: str | None, output: Output) -> None:
    from netjoule.gate.history import trend

    trend.require()
    count = 0
    for series in trend.series_of(rig, workload, url):
        for change in series.changes:
            count += 1
            output.say(trend.sentence(series, change))
            since = series.points[change.place]["id"]
            output.event({"event": "change", **series.key, "since": since, "percent": change.percent})
    if count == 0:
        output.say("no lasting change")


def _tell_health(rows: Sequence[Row], days: int, output: Output) -> None:
    from netjoule.core.clock import SystemClock
    from netjoule.gate import health

    found = health.health(rows, SystemClock().utc_now(), days)
    output.show(health.table(found))
    output.event({"event": "health", **health.as_json(found)})
