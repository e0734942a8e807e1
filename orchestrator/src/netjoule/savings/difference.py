# SPDX-License-Identifier: Apache-2.0
"""A user's own difference of E_A: out of R's table (tables/delta_ea.csv), or typed in."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction
from functools import partial
from pathlib import Path

from netjoule.core import files
from netjoule.core.errors import InvalidData, UsageError
from netjoule.savings.calculation import exact, is_in_bounds
from netjoule.savings.range_error import Metering, dominates, metering

DELTA_FILE = "tables/delta_ea.csv"
SAME_LOAD_RATIO = 1.1
"""Loads within this factor count as the load of the chain, as `netjoule plan` takes profiles' rates."""

Row = Mapping[str, str]
_MeteringOf = Callable[[Row], Metering | None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which cell of a campaign.

    Attributes:
        transport: the one that is compared with UDP; None for DCCP.
        meter_id: None for every meter.
        payload_bytes: None where the campaign leaves no choice.
        offered_rate_mbps: None for the load of the chain, or the only one.
        direction: None where the campaign leaves no choice.
        pacing: None for ``absolute``, or the only one; cells with a window or offload only where there are
            no others.
    """

    transport: str | None = None
    meter_id: str | None = None
    payload_bytes: int | None = None
    offered_rate_mbps: float | None = None
    direction: str | None = None
    pacing: str | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """What a megabit takes less over a transport than over UDP, in one cell at one meter.

    Attributes:
        saved: minus the table's difference of E_A, J/Mb.
        u95: 95 % half-width of blocks and metering together, J/Mb; None of a single block.
        node: whose power.
        device_model: empty when metered.
        payload_bytes: message size.
        offered_rate_mbps: offered load, Mb/s.
        pairs: how many pairs inside mini-blocks.
        u95_range_j_per_mbit: what of ``u95`` is the meter's range error, J/Mb; None when unknown.
    """

    saved: Fraction
    u95: Fraction | None
    node: str
    meter_id: str
    device_model: str
    power_source: str
    radio_source: str
    reference: str
    transport: str
    direction: str
    payload_bytes: int
    offered_rate_mbps: float
    pairs: int
    u95_range_j_per_mbit: float | None = None

    @property
    def modelled(self) -> bool:
        """Whether power or radio comes from a model; what is not said to be measured counts as modelled."""
        return self.power_source != "measured" or self.radio_source not in ("real", "wired")

    @property
    def cell(self) -> str:
        """The cell in words."""
        return f"{self.payload_bytes} bytes, {self.offered_rate_mbps:g} Mb/s {self.direction}"


def of_campaign(campaign: Path, wanted: Wanted, load_mbps: float) -> tuple[list[Difference], list[str]]:
    """Difference of E_A of the wanted cell at each meter, and what is to be said of meters without one.

    Args:
        campaign: folder of an analysed campaign.
        wanted: which cell.
        load_mbps: load of the chain, which picks the cell where ``wanted`` names no load.

    Raises:
        InvalidData: not analysed, no pair, or no meter with a value.
        UsageError: when the cell is not one, or does not exist.
    """
    of_row = partial(metering, campaign)
    return choose(_rows(campaign), wanted, load_mbps, str(campaign), of_row)


def choose(
    rows: Sequence[Row],
    wanted: Wanted,
    load_mbps: float,
    where: str,
    metering_of: _MeteringOf = lambda _row: None,
) -> tuple[list[Difference], list[str]]:
    """The same from the rows of the table, and what the metering of each adds to its uncertainty."""
    transport = wanted.transport or _published_name(rows)
    of_transport = [row for row in rows if row["transport"] == transport]
    if not of_transport:
        raise _no_pair(rows, transport, where)
    cells = _one_cell(of_transport, wanted, load_mbps, where)
    found: list[Difference] = []
    refused: list[str] = []
    for row in cells:
        reason = _why_not(row)
        if reason:
            refused.append(f"{_cell(row)} at meter {row['meter_id']}: {reason}")
        else:
            found.append(_difference(row, metering_of(row)))
    if not found:
        step = _to_resolve(cells, metering_of)
        raise InvalidData(f"no difference of E_A: {'; '.join(refused)}", where=where, next_step=step)
    return found, refused


def _to_resolve(rows: Sequence[Row], metering_of: _MeteringOf) -> str:
    """What to do where no meter has a difference of E_A."""
    budgets = [metering_of(row) if row["method"] == "p_a_difference" else None for row in rows]
    if all(budget is not None and dominates(budget.u95_range, budget.u95) for budget in budgets):
        return (
            "longer measuring does not help, since the meter's range error is most of the uncertainty: choose"
            " a smaller range, a meter with a smaller range error or a higher load, or give --difference and"
            " --u95"
        )
    return (
        "measure one flow at a time, longer, at a higher load or with a finer meter, or give --difference and"
        " --u95"
    )


def _published_name(rows: Sequence[Row]) -> str:
    """DCCP, as the publication has it: ours, or the kernel's where that alone was run."""
    there = {row["transport"] for row in rows}
    return "dccp-kernel" if "dccp-kernel" in there and "dccp" not in there else "dccp"


def _rows(campaign: Path) -> list[dict[str, str]]:
    path = campaign / DELTA_FILE
    if not path.is_file():
        if path.parent.is_dir():
            what = "the campaign compares no transports"
            raise InvalidData(what, where=str(campaign), next_step="name one that compares udp with another")
        raise InvalidData(
            "the campaign is not analysed",
            where=str(path),
            next_step=f"run 'netjoule analyse {campaign}' first",
        )
    try:
        return files.read_table(path, "delta_ea")
    except InvalidData as error:
        again = f"run 'netjoule analyse {campaign}' again"
        raise InvalidData(error.what, where=error.where, next_step=again) from error


def _no_pair(rows: Sequence[Row], transport: str, where: str) -> Exception:
    others = sorted({row["transport"] for row in rows})
    if others:
        return UsageError(
            f"there is no pair of udp and {transport}",
            where=where,
            next_step=f"choose one of its pairs with --transport: {', '.join(others)}",
        )
    return InvalidData(
        f"there is no pair of udp and {transport}, nor of udp and anything else",
        where=where,
        next_step="run a workload that has udp and another transport in its mini-blocks",
    )


def _one_cell(rows: list[Row], wanted: Wanted, load_mbps: float, where: str) -> list[Row]:
    """The rows of one cell, one per meter."""
    for column in ("meter_id", "direction", "pacing", "payload_bytes", "offered_rate_mbps"):
        rows = _at(rows, column, getattr(wanted, column), where)
    if wanted.pacing is None:
        rows = [row for row in rows if row["pacing"] == "absolute"] or rows
    # Messages that left one by one: neither a coalescing window nor offload.
    rows = [row for row in rows if float(row["window_us"] or 0) == 0 and row["gso"] != "true"] or rows
    if wanted.offered_rate_mbps is None:
        rows = [row for row in rows if same_load(float(row["offered_rate_mbps"]), load_mbps)] or rows
    cells = sorted({_cell(row) for row in rows})
    if len(cells) > 1:
        raise UsageError(
            f"{len(cells)} cells have a pair of udp and {rows[0]['transport']}: {'; '.join(cells)}",
            where=where,
            next_step="choose one with --payload-bytes, --offered-rate-mbps, --direction and --pacing",
        )
    return rows


def _at(rows: list[Row], column: str, value: str | float | None, where: str) -> list[Row]:
    if value is None:
        return rows
    number = not isinstance(value, str)
    kept = [row for row in rows if (float(row[column]) == value if number else row[column] == value)]
    if not kept:
        there = ", ".join(sorted({row[column] for row in rows}, key=lambda c: float(c) if number else 0.0))
        given = f"{value:g}" if isinstance(value, float) else value
        option = f"--{column.removesuffix('_id').replace('_', '-')}"
        raise UsageError(f"no pair has {option} {given}", where=where, next_step=f"there are {there}")
    return kept


def same_load(one: float, other: float) -> bool:
    """Whether two loads, in the same unit, count as one."""
    return max(one, other) <= SAME_LOAD_RATIO * min(one, other)


def _cell(row: Row) -> str:
    extra = "".join(
        f", {words}"
        for words, there in (
            (f"pacing {row['pacing']}", row["pacing"] != "absolute"),
            (f"window {row['window_us']} us", float(row["window_us"] or 0) > 0),
            ("offload", row["gso"] == "true"),
        )
        if there
    )
    return f"{row['payload_bytes']} bytes {row['offered_rate_mbps']} Mb/s {row['direction']}{extra}"


def _why_not(row: Row) -> str:
    """Why a cell has no difference that the chain can take, which is of one flow; empty when it has one."""
    if row["direction"] == "both" or row["flows_at_once"]:
        return f"its runs had several flows at once ({row['flows_at_once'] or 'both directions'})"
    if row["radio_source"] == "hwsim":
        return "the radio (hwsim) carries frames without air time, so there is no E_A"
    if row["method"] == "p_a_difference":
        runs = row["below_resolution_n"]
        below = "1 run is" if int(runs) == 1 else f"{runs} runs are"
        return f"{below} below the meter's resolution, so only power can be compared, not E_A"
    if not row["difference_j_per_mbit"]:
        return "its runs have no E_A"
    for column in ("difference_j_per_mbit", "u95_difference_j_per_mbit"):
        if not is_in_bounds(float(row[column] or 0)):
            return f"{column} of {row[column]} J/Mb is of no device"
    return ""


def _difference(row: Row, budget: Metering | None) -> Difference:
    u95 = row["u95_difference_j_per_mbit"]
    return Difference(
        saved=-exact(row["difference_j_per_mbit"]),
        u95=exact(u95) if u95 else None,
        # Its texts stand in the table under the same names.
        **{one.name: row[one.name] for one in fields(Difference) if one.type == "str"},
        payload_bytes=int(row["payload_bytes"]),
        offered_rate_mbps=float(row["offered_rate_mbps"]),
        pairs=int(row["n_pairs"]),
        u95_range_j_per_mbit=None if budget is None else budget.u95_range,
    )
