# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule table-iv``: applications of several campaigns beside the published ones.

Named after Table IV of "Energy Usage of UDP and DCCP over 802.11n". Its numbers are R's (analysis-r).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule.cli.typed import Json

if TYPE_CHECKING:
    from netjoule.core.tables import Table

Row = Mapping[str, Any]


_NAMED = ("application", "transport")
_FIGURES = ("E_A J/Mb", "± 95 %", "u95", "more J/Mb", "more %", "more P_A W", "n")
_PUBLISHED = ("ea_j_per_mbit", "difference_j_per_mbit", "difference_percent")
_METER = ("meter_id", "node", "power_source", "device_model", "radio_source")


def table_iv(
    campaigns: Annotated[
        list[Path],
        typer.Argument(
            metavar="CAMPAIGN...", help="Campaigns with a profile each, e.g. of skype and youtube."
        ),
    ],
    json: Json = False,
) -> None:
    """E_A of applications, a campaign each, beside published Table IV.

    Example: netjoule table-iv results/skype-1 results/youtube-1
    """
    from netjoule.analysis import analysis
    from netjoule.cli.results import require_each_once
    from netjoule.core.console import Output
    from netjoule.store.campaign import Campaign

    output = Output(json_lines=json)
    for campaign in campaigns:
        Campaign.read(campaign)  # says what is wrong before R is started
    require_each_once(campaigns)
    rows: list[Row] = []

    def sink(event: Row) -> None:
        output.event(event)
        if event.get("event") == "table_iv":
            rows.append(event)

    analysis.run_table_iv(campaigns, sink)
    for table in _tables(rows):
        output.show(table)


def _tables(rows: Sequence[Row]) -> Iterator[Table]:
    """One table per meter."""

    def meter(row: Row) -> tuple[str, ...]:
        return tuple(str(row.get(name) or "") for name in _METER)

    for _, of_meter in groupby(sorted(rows, key=meter), key=meter):
        yield _table(list(of_meter))


def _table(rows: Sequence[Row]) -> Table:
    from netjoule.core.tables import Column, Table

    first = rows[0]
    model = f" by device model {first['device_model']}" if first.get("device_model") else ""
    title = (
        f"E_A of applications at {first['node']} (meter {first['meter_id']}):"
        f" power {first['power_source']}{model}, radio {first['radio_source']}"
    )
    lines = []
    for row in rows:
        lines.append(_here(row))
        if row["published_ea_j_per_mbit"] is not None:
            ea, joules, percent = (_shown(row[f"published_{name}"]) for name in _PUBLISHED)
            which = [str(row[name]) for name in _NAMED]
            lines.append([*which, "published", ea, "", "", joules, percent, "", ""])
    named = [Column(name, right=False, key=True) for name in _NAMED]
    # Only the name of a campaign may be longer than its column.
    whose = Column("whose", right=False, key=True, text=True)
    return Table([*named, whose, *map(Column, _FIGURES)], lines, title=title, caption=_caption(rows))


def _caption(rows: Sequence[Row]) -> str:
    text = (
        "± 95 %: over n blocks, run to run; u95: metering, one run; more: than UDP, of pairs in mini-blocks,"
        " below 0 less; < upper limit, * some runs below resolution (compare P_A there), ° extrapolated"
        " model."
    )
    codes = dict.fromkeys(code for row in rows for code in (row.get("differs") or "").split(";") if code)
    if codes:
        text += f" Published values are of another setup ({', '.join(codes)}); nothing is scaled, dE_A"
        text += " has our sign."
    if any(row["in_this_model"] for row in rows):
        text += " In this model: no absolute J/Mb of a real device follows from it."
    return text


def _here(row: Row) -> list[str]:
    mean, high = row["ea_j_per_mbit_mean"], row["ea_ci95_high"]
    whose = str(row["campaign_label"] or "here")
    return [
        *(str(row["application"]), str(row["transport"]), whose, str(row["ea_cell"])),
        "" if mean is None or high is None else f"{high - mean:.2g}",
        _shown(row["u95_meter"], 2),
        *(
            _shown(row[name])
            for name in ("difference_j_per_mbit", "difference_percent", "difference_p_a_w", "n")
        ),
    ]


def _shown(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:.{digits}g}"
