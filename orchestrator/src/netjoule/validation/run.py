# SPDX-License-Identifier: Apache-2.0
"""Holds one run's folder to its contracts, to the plan and to its own arithmetic.

A document that does not fit its contract has that for a defect, and is held to nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

import netjoule_contracts as contracts
import netjoule_energy
from netjoule.core.reason import codes
from netjoule.core.words import counted
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import UNTIL_DONE
from netjoule.radio import reader_cost
from netjoule.radio.reader_cost import ReaderCost
from netjoule.store.blocks import document_name
from netjoule.validation import tables
from netjoule.validation.tables import Defect
from netjoule.workload.load import Condition, Kept, Load
from netjoule.workload.workload import Workload
from netjoule_contracts.lift import runs as lift
from netjoule_contracts.lift.results import lifted_result
from netjoule_contracts.types.result import Floor, Node, Result
from netjoule_energy import agree, jain_index

_SHARED_WITH_PLAN = ("block", "mini_block", "attempt", "order", "seed")
MEASURE_ALONE = ("measure",)
"""Windows of a run without meters: another program's, or a simulated one."""
_WINDOW_ORDER = ("idle_before", "warm_up", "measure", "tail", "idle_after")
_PLAN_STATUS = {"done": {"valid", "superseded"}, "invalid": {"invalid"}, "failed": {"invalid"}}
# Times are stored with 6 decimals.
_TIME_TOLERANCE_S = 2e-6
# Shares of flows rest on intervals whose times are rounded so; as a part of a window of a second.
_SHARES_TOLERANCE = 1e-4

Document = Mapping[str, Any]


class Asked(NamedTuple):
    """What a campaign's runs do."""

    workload: Workload
    load: Load
    seed: int


def check_run(
    campaign: Path,
    run_id: str,
    row: PlanRow | None,
    meter_ids: frozenset[str],
    *,
    settled: bool,
    asked: Condition | None = None,
    load: Load | None = None,
    needed: tuple[str, ...] | None = None,
    known: netjoule_energy.Campaign | None = None,
) -> Iterator[Defect]:
    """Every defect of runs/<run_id>/ of a finished run, and of the readings that it rests on.

    Args:
        campaign: folder of the campaign.
        run_id: of the run.
        row: its row of plan.csv, with a final status; None when the plan cannot be used.
        meter_ids: meters that campaign.json has passports of.
        settled: every finished run must have its result; not so before an interrupted mini-block goes on.
        asked: of the run; None when the workload cannot be used.
        load: of the campaign, which knows more of its documents; None likewise.
        needed: windows that a finished run has; by default those of a run beside meters.
        known: the campaign as its numbers are computed from it; None when it is too broken for that.
    """
    folder = campaign / "runs" / run_id
    base = f"runs/{run_id}"
    file = f"{base}/run.json"
    run = yield from tables.document(file, folder / "run.json", "run")
    if run:
        if row is not None:
            yield from _fits_plan(file, run, row)
        yield from _windows(file, run, _needed(run) if needed is None else needed)
        yield from _codes(file, _codes_of(run))
        yield from _in_force(file, run, asked)
        yield from _reader_cpu(file, run)
    if (folder / "events.csv").exists():
        yield from _events(f"{base}/events.csv", folder / "events.csv")
    if run.get("status") == "failed":
        return
    named = lift.load_of(run) if run else row.load if row else load.name if load else ""
    documents = yield from _documents(base, folder, run, named)
    arrived = yield from _intervals(f"{base}/intervals.csv", folder / "intervals.csv", run)
    if run and load is not None and asked is not None:
        of_run = lift.lifted_run(run, list(documents.values()), arrived) | {"reasons": run["reasons"]}
        for name, place, what in load.check(asked, Kept(of_run, documents)):
            yield Defect(f"{base}/{name}", place, what)
    result: Document = {}
    if settled or (folder / "result.json").exists():
        file = f"{base}/result.json"
        written = yield from tables.document(file, folder / "result.json", "result")
        result = lifted_result(written) if written else {}
        if run and result:
            yield from _result(file, msgspec.convert(result, Result), run, meter_ids)
    counted = run.get("status") == "done" if row is None else row.status in ("valid", "superseded")
    if known is not None and run and counted:
        yield from _readings(campaign, run_id, known, run, result)


def _readings(
    campaign: Path, run_id: str, known: netjoule_energy.Campaign, run: Document, result: Document
) -> Iterator[Defect]:
    """Readings cover every window of a run that counts."""
    try:
        for lacking in netjoule_energy.uncovered(campaign, known, run, result):
            words = f"{lacking}; 'netjoule resume' runs it again"
            yield Defect(f"meters/{lacking.meter_id}.csv", f"run {run_id}", words)
    except (netjoule_energy.CampaignError, OSError, ValueError, KeyError, TypeError):
        return  # the defects of its documents and of the table say why


def _fits_plan(file: str, run: Document, row: PlanRow) -> Iterator[Defect]:
    if run["run_id"] != row.run_id:
        yield Defect(file, "field run_id", f"{run['run_id']!r} stands in the folder of {row.run_id}")
    told = lift.cell_of(run)
    factors = told.pop("factors")
    told |= {name: run[name] for name in _SHARED_WITH_PLAN}
    for name, value in told.items():
        if value != getattr(row, name):
            yield Defect(file, f"field {name}", f"{value!r}, but plan.csv has {getattr(row, name)!r}")
    # A run of before names fewer of them.
    for name in factors if lift.is_first(run) else {**row.cell, **factors}:
        if factors.get(name) != row.cell.get(name):
            words = f"{factors.get(name)!r}, but plan.csv has {row.cell.get(name)!r}"
            yield Defect(file, f"field factors.{name}", words)
    if row.status not in _PLAN_STATUS[run["status"]]:
        yield Defect(file, "field status", f"{run['status']!r}, but status.csv has {row.status!r}")


def _needed(run: Document) -> tuple[str, ...]:
    """Windows that a finished run has: work until done has no warm-up."""
    if (run.get("window") or {}).get("kind") == UNTIL_DONE:
        return tuple(name for name in _WINDOW_ORDER if name != "warm_up")
    return _WINDOW_ORDER


def _windows(file: str, run: Document, needed: tuple[str, ...]) -> Iterator[Defect]:
    """Each window has a length, and one ends before the next begins."""
    before, end_s = "", -math.inf
    for name in _WINDOW_ORDER:
        window = run["windows"][name]
        if window is None:
            if run["status"] == "done" and name in needed:
                yield Defect(file, f"field windows.{name}", "a finished run has every window")
            continue
        if window["t_end_s"] < window["t_start_s"]:
            yield Defect(file, f"field windows.{name}", "it ends before it starts")
        if window["t_start_s"] < end_s - _TIME_TOLERANCE_S:
            yield Defect(file, f"field windows.{name}", f"it starts before {before} ends")
        before, end_s = name, window["t_end_s"]


def _codes(file: str, told: Iterable[str]) -> Iterator[Defect]:
    for index, code in enumerate(told):
        if code not in codes():
            yield Defect(file, f"field reasons.{index}.code", f"{code!r} is not in reasons.json")


def _codes_of(run: Document) -> list[str]:
    return [reason["code"] for reason in run.get("reasons", ())]


def _in_force(file: str, run: Document, asked: Condition | None) -> Iterator[Defect]:
    """A finished run tells what its testbed had in force of all that the run asked of it."""
    if asked is None or run["status"] == "failed":
        return
    for name in sorted(set(asked.testbed) - set(run.get("in_force", ()))):
        yield Defect(file, "field in_force", f"it does not have {name}, which the run asks of its testbed")


def _reader_cpu(file: str, run: Document) -> Iterator[Defect]:
    """A reader that took more in one window than in another is a reason of the run."""
    if "reader_cpu_differs" in _codes_of(run):
        return
    for index, part in enumerate(run.get("reader_cpu", ())):
        cost = ReaderCost(**part)
        if reader_cost.differs(cost):
            words = f"{cost.idle_cores:g} of a core in idle, {cost.measure_cores:g} in measure"
            yield Defect(file, f"field reader_cpu.{index}", f"{words}, without reader_cpu_differs")


def _events(file: str, path: Path) -> Iterator[Defect]:
    # Not in order of time: what a meter says of a past moment stands where it became known.
    yield from tables.table(file, path, "events")
    for line, cells in tables.rows(path):
        if cells.get("code") and cells["code"] not in codes():
            yield Defect(file, f"line {line}, column code", f"{cells['code']!r} is not in reasons.json")


def _documents(
    base: str, folder: Path, run: Document, load: str
) -> Generator[Defect, None, dict[int, dict[str, Any]]]:
    """Defects of what the load keeps of each part of its run; those by the parts' numbers."""
    contract = contracts.loads().get(load, {}).get("document")
    found: dict[int, dict[str, Any]] = {}
    for number, part in enumerate(lift.parts_of(run) if run else ["1"], start=1):
        if part != str(number):
            yield Defect(f"{base}/run.json", "field work.parts", f"{part!r} is no number: they count from 1")
        if contract is not None:
            name = document_name(load, number)
            found[number] = yield from tables.document(f"{base}/{name}", folder / name, contract)
    return found


def _intervals(file: str, path: Path, run: Document) -> Generator[Defect, None, list[dict[str, Any]]]:
    """Defects of intervals.csv, whose rows come to the work of each part; the rows in the newest shape."""
    if not path.exists():
        yield Defect(file, "", "the file is missing")
        return []
    if not run:
        return []  # it says which version the table is of
    yield from tables.table(file, path, lift.contract_of("intervals", run))
    columns = lift.part_columns(run)
    yield from tables.rising(file, path, "t_start_s", by=columns)
    done = dict.fromkeys(lift.parts_of(run), 0.0)
    found: list[dict[str, Any]] = []
    for line, cells in tables.rows(path):
        with suppress(KeyError, ValueError):
            for row in lift.lifted_intervals(run, [cells]):
                if row["part"] not in done:
                    place = f"line {line}, column {columns[0]}"
                    yield Defect(file, place, f"the run has no part {row['part']!r}")
                    return found
                done[row["part"]] += row["work"]
                found.append(row)
    for part in (run.get("work") or {}).get("parts", ()):
        told, summed = part["quantity"], done[part["part"]]
        if told is not None and not math.isclose(told, summed, rel_tol=1e-9, abs_tol=1e-12):
            words = f"the intervals of part {part['part']} come to {summed:g}, run.json has {told:g}"
            yield Defect(file, "column work", words)
    return found


def _result(file: str, result: Result, run: Document, meter_ids: frozenset[str]) -> Iterator[Defect]:
    told = {"run_id": result.run_id, "arm": result.arm, **result.factors}
    cell = lift.cell_of(run)
    asked = {"run_id": run["run_id"], "arm": cell["arm"], **cell["factors"]}
    for name, value in asked.items():
        if value is not None and told.get(name) != value:
            yield Defect(file, f"field {name}", f"{told.get(name)!r}, but run.json has {value!r}")
    outer = run["windows"]["measure"]
    if result.window is not None and outer is not None:
        early = result.window.t_start_s < outer["t_start_s"] - _TIME_TOLERANCE_S
        if early or result.window.t_end_s > outer["t_end_s"] + _TIME_TOLERANCE_S:
            yield Defect(file, "field window", "it reaches beyond windows.measure of run.json")
    yield from _codes(file, [reason.code for reason in result.reasons])
    if result.window is not None:
        parts = lift.parts_of(run)
        yield from _shares(file, result, parts if len(parts) > 1 else [])
    of_run = None if result.work is None else result.work.work_per_s
    for index, node in enumerate(result.nodes):
        place = f"nodes.{index}"
        if node.meter_id not in meter_ids:
            yield Defect(file, f"field {place}.meter_id", f"campaign.json has no meter {node.meter_id!r}")
        rate = of_run if node.work_per_s is msgspec.UNSET else node.work_per_s
        yield from _node(file, place, node, rate)
        yield from _floor(file, f"{place}.floor", node.floor)
        if node.delta_p_w is not None and node.floor.floor_w is not None and rate:
            yield from _above_floor(file, f"{place}.floor", node, (node.delta_p_w, node.floor.floor_w), rate)


def _shares(file: str, result: Result, asked: list[str]) -> Iterator[Defect]:
    """With several parts: one for each part of run.json, which together are the run's work."""
    parts = result.parts or ()
    if [part.part for part in parts] != asked:
        yield Defect(file, "field parts", f"{counted(len(parts), 'part')}, but run.json has {len(asked)}")
        return
    whole = None if result.work is None else result.work.work_per_s
    known = [part.work_per_s for part in parts if part.work_per_s is not None]
    if not parts or whole is None or len(known) < len(parts):
        return
    if not math.isclose(sum(known), whole, rel_tol=_SHARES_TOLERANCE, abs_tol=1e-9):
        yield Defect(file, "field parts", f"they got {sum(known):g} per second in all, the run {whole:g}")
    index = None if result.fairness is None else result.fairness.jain_work
    expected = jain_index(known)
    same = index is expected if index is None or expected is None else agree(index, expected)
    if not same:
        yield Defect(file, "field fairness.jain_work", f"{index}, but the parts give {expected}")


def _node(file: str, place: str, node: Node, rate: float | None) -> Iterator[Defect]:
    p_a, p_i, delta = node.p_a_w, node.p_i_w, node.delta_p_w
    if p_a is not None and p_i is not None and delta is not None and not agree(delta, p_a - p_i, p_a):
        words = f"{delta:.12g} is not p_a_w - p_i_w = {p_a - p_i:.12g}"
        yield Defect(file, f"field {place}.delta_p_w", words)
    for name in ("energy_per_work_j", "ea_j_per_mbit"):
        energy = getattr(node, name)
        if delta is not None and rate and _is_off(energy, delta / rate, (p_a or 0.0) / rate):
            words = f"{energy:.12g} is not delta_p_w / work_per_s = {delta / rate:.12g}"
            yield Defect(file, f"field {place}.{name}", words)


def _floor(file: str, place: str, floor: Floor) -> Iterator[Defect]:
    """A floor is given or has a reason."""
    if floor.reason is not None and floor.reason not in codes():
        yield Defect(file, f"field {place}.reason", f"{floor.reason!r} is not in reasons.json")
    if (floor.floor_w is None) == (floor.reason is None):
        words = f"{floor.floor_w!r}, with the reason {floor.reason!r}: it is one or the other"
        yield Defect(file, f"field {place}.floor_w", words)


def _above_floor(
    file: str, place: str, node: Node, powers_w: tuple[float, float], rate: float
) -> Iterator[Defect]:
    """Energy above the floor is without it (`powers_w`: P_A - P_I, and the floor)."""
    expected = (powers_w[0] - powers_w[1]) / rate
    for name in ("energy_per_work_above_floor_j", "ea_above_floor_j_per_mbit"):
        above = getattr(node.floor, name)
        if _is_off(above, expected, max(*powers_w, node.p_a_w or 0.0) / rate):
            words = f"{above:.12g} is not (delta_p_w - floor_w) / work_per_s = {expected:.12g}"
            yield Defect(file, f"field {place}.{name}", words)


def _is_off(value: float | msgspec.UnsetType | None, expected: float, scale: float) -> bool:
    """Whether a value that there is differs by more than rounding does."""
    return value is not None and value is not msgspec.UNSET and not agree(value, expected, scale)
