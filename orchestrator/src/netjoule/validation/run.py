# SPDX-License-Identifier: Apache-2.0
"""Holds one run's folder to its contracts, to the plan and to its own arithmetic."""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
import netjoule_energy
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import UNTIL_DONE
from netjoule.radio import reader_cost
from netjoule.radio.reader_cost import ReaderCost
from netjoule.store.campaign import document_name
from netjoule.validation import tables
from netjoule.validation.tables import Defect
from netjoule_contracts import flow_work
from netjoule_contracts.lift import runs as lift
from netjoule_contracts.lift.results import lifted_result
from netjoule_energy import agree, jain_index

__all__ = ["check_run", "reason_codes"]

_SHARED_WITH_PLAN = ("block", "mini_block", "attempt", "order", "seed")
_SHARED_WITH_FLOW = ("transport", "payload_bytes", "direction", "ip_version")
_WINDOW_ORDER = ("idle_before", "warm_up", "measure", "tail", "idle_after")
_PLAN_STATUS = {"done": {"valid", "superseded"}, "invalid": {"invalid"}, "failed": {"invalid"}}
# Times are stored with 6 decimals.
_TIME_TOLERANCE_S = 2e-6
# Shares of flows rest on intervals whose times are rounded so; as a part of a window of a second.
_SHARES_TOLERANCE = 1e-4


@cache
def reason_codes() -> frozenset[str]:
    """Codes of protocols/contracts/reasons.json."""
    document = json.loads((contracts.root() / "reasons.json").read_text(encoding="utf-8"))
    return frozenset(r["code"] for r in document["reasons"])


def check_run(
    campaign: Path,
    run_id: str,
    row: PlanRow | None,
    meter_ids: frozenset[str],
    *,
    settled: bool,
    asked: Mapping[str, Any] | None = None,
    imported: bool = False,
    known: netjoule_energy.Campaign | None = None,
) -> Iterator[Defect]:
    """Every defect of runs/<run_id>/ of a finished run, and of the readings that it rests on.

    Args:
        campaign: folder of the campaign.
        run_id: of the run.
        row: its row of plan.csv, with a final status; None when the plan cannot be used.
        meter_ids: meters that campaign.json has passports of.
        settled: every finished run must have its result; not so before an interrupted mini-block goes on.
        asked: what the run's load says of it in run.json; None when the workload cannot be used.
        imported: another program's run, which has a measure window and no others.
        known: the campaign as its numbers are computed from it; None when it is too broken for that.
    """
    folder = campaign / "runs" / run_id
    base = f"runs/{run_id}"
    run: dict[str, Any] = {}
    yield from tables.document(f"{base}/run.json", folder / "run.json", "run", run)
    if row is not None:
        yield from _fits_plan(f"{base}/run.json", run, row, asked or {})
    yield from _windows(f"{base}/run.json", run, ("measure",) if imported else _needed(run))
    yield from _codes(f"{base}/run.json", run.get("reasons"))
    yield from _reader_cpu(f"{base}/run.json", run)
    if (folder / "events.csv").exists():
        yield from _events(f"{base}/events.csv", folder / "events.csv")
    if run.get("status") == "failed":
        return
    if lift.load_of(run) == "flow":
        flows = yield from _flows(base, folder, run)
        yield from _intervals(f"{base}/intervals.csv", folder / "intervals.csv", run, flows)
    else:
        yield from _load_document(base, folder, run)
        yield from _work(f"{base}/intervals.csv", folder / "intervals.csv", run)
    result: dict[str, Any] = {}
    if settled or (folder / "result.json").exists():
        written: dict[str, Any] = {}
        broken = list(tables.document(f"{base}/result.json", folder / "result.json", "result", written))
        yield from broken
        result = written if broken else lifted_result(written)
        yield from _result(f"{base}/result.json", result, run, meter_ids)
    counted = run.get("status") == "done" if row is None else row.status in ("valid", "superseded")
    if known is not None and counted:
        yield from _readings(campaign, run_id, known, run, result)


def _readings(
    campaign: Path,
    run_id: str,
    known: netjoule_energy.Campaign,
    run: Mapping[str, Any],
    result: Mapping[str, Any],
) -> Iterator[Defect]:
    """Readings cover every window of a run that counts."""
    try:
        for lacking in netjoule_energy.uncovered(campaign, known, run, result):
            words = f"{lacking}; 'netjoule resume' runs it again"
            yield Defect(f"meters/{lacking.meter_id}.csv", f"run {run_id}", words)
    except (netjoule_energy.CampaignError, OSError, ValueError, KeyError, TypeError):
        return  # the defects of its documents and of the table say why


def _fits_plan(file: str, run: Mapping[str, Any], row: PlanRow, asked: Mapping[str, Any]) -> Iterator[Defect]:
    if not run:
        return
    planned = {name: getattr(row, name) for name in _SHARED_WITH_PLAN}
    # What else a load says there is not the plan's.
    of_plan = {
        "load",
        "kind",
        "arm",
        "factors",
        *row.cell,
        contracts.loads().get(row.load, {}).get("arm"),
        "generator",
    }
    planned |= {name: value for name, value in asked.items() if name in of_plan}
    if run.get("run_id") != row.run_id:
        yield Defect(file, "field run_id", f"{run.get('run_id')!r} stands in the folder of {row.run_id}")
    for name, wanted in planned.items():
        if name in asked and name not in run and not lift.is_first(run):
            yield Defect(file, "", f"{name!r} is missing")
        elif name in run and run[name] != wanted:
            yield Defect(file, f"field {name}", f"{run[name]!r}, but plan.csv has {wanted!r}")
    if row.status not in _PLAN_STATUS.get(str(run.get("status")), {row.status}):
        yield Defect(file, "field status", f"{run.get('status')!r}, but status.csv has {row.status!r}")


def _needed(run: Mapping[str, Any]) -> tuple[str, ...]:
    """Windows that a finished run has: work until done has no warm-up."""
    if _part(run, "window").get("kind") == UNTIL_DONE:
        return tuple(name for name in _WINDOW_ORDER if name != "warm_up")
    return _WINDOW_ORDER


def _windows(file: str, run: Mapping[str, Any], needed: tuple[str, ...]) -> Iterator[Defect]:
    """Each window has a length, and one ends before the next begins."""
    before: tuple[str, float] | None = None
    windows = run.get("windows")
    for name in _WINDOW_ORDER if isinstance(windows, Mapping) else ():
        window = windows.get(name) if isinstance(windows, Mapping) else None
        span = _span(window)
        if span is None:
            if run.get("status") == "done" and name in needed:
                yield Defect(file, f"field windows.{name}", "a finished run has every window")
            continue
        if span[1] < span[0]:
            yield Defect(file, f"field windows.{name}", "it ends before it starts")
        if before and span[0] < before[1] - _TIME_TOLERANCE_S:
            yield Defect(file, f"field windows.{name}", f"it starts before {before[0]} ends")
        before = (name, span[1])


def _codes(file: str, reasons: object, field: str = "reasons") -> Iterator[Defect]:
    for index, reason in enumerate(reasons if isinstance(reasons, list) else []):
        code = reason.get("code") if isinstance(reason, Mapping) else None
        if code is not None and str(code) not in reason_codes():
            yield Defect(file, f"field {field}.{index}.code", f"{code!r} is not in reasons.json")


def _reader_cpu(file: str, run: Mapping[str, Any]) -> Iterator[Defect]:
    """A reader that took more in one window than in another is a reason of the run."""
    parts = run.get("reader_cpu")
    told = "reader_cpu_differs" in _reasons_of(run)
    for index, part in enumerate(parts if isinstance(parts, list) else []):
        if not isinstance(part, Mapping):
            continue
        idle, measure = _number(part.get("idle_cores")), _number(part.get("measure_cores"))
        if idle is None or measure is None or told:
            continue
        if reader_cost.differs(ReaderCost(str(part.get("node")), idle, measure)):
            words = f"{idle:g} of a core in idle, {measure:g} in measure, without reader_cpu_differs"
            yield Defect(file, f"field reader_cpu.{index}", words)


def _reasons_of(run: Mapping[str, Any]) -> list[object]:
    reasons = run.get("reasons")
    return [r.get("code") for r in reasons if isinstance(r, Mapping)] if isinstance(reasons, list) else []


def _events(file: str, path: Path) -> Iterator[Defect]:
    # Not in order of time: what a meter says of a past moment stands where it became known.
    yield from tables.table(file, path, "events")
    for line, cells in tables.rows(path):
        if cells.get("code") and cells["code"] not in reason_codes():
            yield Defect(file, f"line {line}, column code", f"{cells['code']!r} is not in reasons.json")


def _load_document(base: str, folder: Path, run: Mapping[str, Any]) -> Iterator[Defect]:
    """Defects of what the load keeps of its run."""
    load = lift.load_of(run)
    contract = contracts.loads().get(load, {}).get("document")
    if contract is not None:
        name = document_name(load)
        yield from tables.document(f"{base}/{name}", folder / name, contract, {})


def _work(file: str, path: Path, run: Mapping[str, Any]) -> Iterator[Defect]:
    """The intervals of each part come to its work in run.json; of a fixed window they may be more."""
    if not path.exists():
        yield Defect(file, "", "the file is missing")
        return
    yield from tables.table(file, path, "intervals")
    yield from tables.rising(file, path, "t_start_s", by=("part",))
    parts = [one for one in _listed(_part(run, "work"), "parts") if isinstance(one, Mapping)]
    done = {str(one.get("part")): 0.0 for one in parts}
    for line, cells in tables.rows(path):
        if cells.get("part") not in done:
            yield Defect(file, f"line {line}, column part", f"the run has no part {cells.get('part')!r}")
            return
        done[cells["part"]] += tables.number(cells.get("work", "")) or 0.0
    for one in parts:
        told, found = _number(one.get("quantity")), done[str(one.get("part"))]
        if told is not None and not math.isclose(told, found, rel_tol=1e-9, abs_tol=1e-12):
            words = f"the intervals of part {one.get('part')} come to {found:g}, run.json has {told:g}"
            yield Defect(file, "column work", words)


def _flows(
    base: str, folder: Path, run: Mapping[str, Any]
) -> Generator[Defect, None, dict[int, dict[str, Any]]]:
    """Defects of the reports of all flows; the reports by the flows' numbers."""
    found: dict[int, dict[str, Any]] = {}
    several = [one for one in _listed(run, "flows") if isinstance(one, Mapping)]
    for number, expected in enumerate(several or [run], start=1):
        name = document_name("flow", number)
        flow: dict[str, Any] = {}
        yield from tables.document(f"{base}/{name}", folder / name, "flow_report", flow)
        if several and expected.get("flow") != number:
            yield Defect(f"{base}/run.json", f"field flows.{number - 1}.flow", "flows are numbered from 1")
        # Options and reasons are the run's; those of what runs beside its transport stand in the campaign.
        names = ["reasons", "ip_version"]
        if expected.get("transport") == run.get("transport"):
            names.append("transport_options")
        of_run = {key: run[key] for key in names if key in run}
        yield from _flow(f"{base}/{name}", flow, {**expected, **of_run})
        found[number] = flow
    return found


def _flow(file: str, flow: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Defect]:
    if not flow:
        return
    for name in _SHARED_WITH_FLOW:
        # null sends nothing, so its report has no IP version.
        if flow.get(name) is not None and name in run and flow[name] != run[name]:
            yield Defect(file, f"field {name}", f"{flow[name]!r}, but run.json has {run[name]!r}")
    used = _part(flow, "transport_options")
    for name, asked in _part(run, "transport_options").items():
        if used.get(name) != asked:
            where = f"field transport_options.{name}"
            yield Defect(file, where, f"{used.get(name)!r}, but run.json has {asked!r}")
    if "bookkeeping_mismatch" in _reasons_of(run):
        return
    yield from _bookkeeping(file, flow)


def _bookkeeping(file: str, flow: Mapping[str, Any]) -> Iterator[Defect]:
    """What the load reconciles, where the run is not invalid for it."""
    try:
        broken = flow_work.books(flow)
    except (AttributeError, TypeError):
        return  # the contract has named the field
    for words in broken:
        place = "field sender" if words.startswith("scheduled") else "field receiver"
        yield Defect(file, place, words)
    if flow.get("reconciles") is False:
        yield Defect(file, "field reconciles", "false, but the run is not invalid for bookkeeping_mismatch")


def _intervals(
    file: str, path: Path, run: Mapping[str, Any], flows: Mapping[int, Mapping[str, Any]]
) -> Iterator[Defect]:
    if not path.exists():
        yield Defect(file, "", "the file is missing")
        return
    contract = lift.contract_of("intervals", run)
    yield from tables.table(file, path, contract)
    by = ("flow", "end") if lift.is_first(run) else ("part",)
    yield from tables.rising(file, path, "t_start_s", by=by)
    received = dict.fromkeys(map(str, flows), 0.0)
    for line, cells in tables.rows(path):
        part = cells.get("part") or str(int(tables.number(cells.get("flow", "1")) or 0))
        if part not in received:
            column = "flow" if lift.is_first(run) else "part"
            yield Defect(file, f"line {line}, column {column}", f"the run has no flow {part}")
            return
        with suppress(KeyError, ValueError):
            for row in lift.lifted_intervals(run, [cells]):
                received[part] += flow_work.bytes_of(row["work"])
    for number, flow_report in flows.items():
        expected = _part(flow_report, "receiver").get("bytes_received_unique")
        if expected is not None and round(received[str(number)]) != expected:
            where = document_name("flow", number)
            words = f"the receiver's intervals sum to {received[str(number)]:.0f}, {where} has {expected}"
            yield Defect(file, "column bytes" if lift.is_first(run) else "column work", words)


def _result(
    file: str, result: Mapping[str, Any], run: Mapping[str, Any], meter_ids: frozenset[str]
) -> Iterator[Defect]:
    if not result:
        return
    if lift.is_first(run):
        asked = {"arm": run.get("transport")} | {name: run.get(name) for name in lift.FACTORS}
    else:
        asked = {"arm": run.get("arm"), **_part(run, "factors")}
    told = {"arm": result.get("arm"), **_part(result, "factors")}
    for name, value in ({"run_id": run.get("run_id")} | asked).items():
        found = result.get(name) if name == "run_id" else told.get(name)
        if value is not None and found != value:
            yield Defect(file, f"field {name}", f"{found!r}, but run.json has {value!r}")
    yield from _result_window(file, result, run)
    yield from _codes(file, result.get("reasons"))
    yield from _shares(file, result, run)
    nodes = result.get("nodes")
    for index, node in enumerate(nodes if isinstance(nodes, list) else []):
        if isinstance(node, Mapping):
            yield from _node(file, f"nodes.{index}", node, result, meter_ids)


def _result_window(file: str, result: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Defect]:
    inner, outer = _span(result.get("window")), _span(_part(run, "windows").get("measure"))
    if inner is None or outer is None:
        return
    if inner[0] < outer[0] - _TIME_TOLERANCE_S or inner[1] > outer[1] + _TIME_TOLERANCE_S:
        yield Defect(file, "field window", "it reaches beyond windows.measure of run.json")


def _shares(file: str, result: Mapping[str, Any], run: Mapping[str, Any]) -> Iterator[Defect]:
    """With several parts: one for each part of run.json, which together are the run's work."""
    asked = _several_parts(run)
    told = [one for one in _listed(result, "parts") if isinstance(one, Mapping)]
    if result.get("window") is None:
        return
    if [one.get("part") for one in told] != asked:
        yield Defect(file, "field parts", f"{len(told)} parts, but run.json has {len(asked)}")
        return
    shares = [_number(one.get("work_per_s")) for one in told]
    whole = _number(_part(result, "work").get("work_per_s"))
    known = [share for share in shares if share is not None]
    if not told or whole is None or len(known) < len(shares):
        return
    if not math.isclose(sum(known), whole, rel_tol=_SHARES_TOLERANCE, abs_tol=1e-9):
        yield Defect(file, "field parts", f"they got {sum(known):g} per second in all, the run {whole:g}")
    index, expected = _number(_part(result, "fairness").get("jain_work")), jain_index(known)
    if (index is None) != (expected is None) or (
        index is not None and expected is not None and not agree(index, expected)
    ):
        yield Defect(file, "field fairness.jain_work", f"{index}, but the parts give {expected}")


def _several_parts(run: Mapping[str, Any]) -> list[str]:
    """Names of the parts of a run's work; none where there is one."""
    if lift.is_first(run):
        return [str(one.get("flow")) for one in _listed(run, "flows") if isinstance(one, Mapping)]
    parts = [one for one in _listed(_part(run, "work"), "parts") if isinstance(one, Mapping)]
    return [str(one.get("part")) for one in parts] if len(parts) > 1 else []


def _node(
    file: str, place: str, node: Mapping[str, Any], result: Mapping[str, Any], meter_ids: frozenset[str]
) -> Iterator[Defect]:
    if str(node.get("meter_id")) not in meter_ids:
        yield Defect(file, f"field {place}.meter_id", f"campaign.json has no meter {node.get('meter_id')!r}")
    p_a, p_i, delta = (_number(node.get(k)) for k in ("p_a_w", "p_i_w", "delta_p_w"))
    if p_a is not None and p_i is not None and delta is not None and not agree(delta, p_a - p_i, p_a):
        yield Defect(
            file, f"field {place}.delta_p_w", f"{delta:.12g} is not p_a_w - p_i_w = {p_a - p_i:.12g}"
        )
    of_run = _part(result, "work").get("work_per_s")
    rate = _number(node.get("work_per_s", of_run))
    for name in ("energy_per_work_j", "ea_j_per_mbit"):
        energy = _number(node.get(name))
        if energy is None or delta is None or not rate or agree(energy, delta / rate, (p_a or 0.0) / rate):
            continue
        words = f"{energy:.12g} is not delta_p_w / work_per_s = {delta / rate:.12g}"
        yield Defect(file, f"field {place}.{name}", words)
    yield from _floor(file, f"{place}.floor", _part(node, "floor"), (p_a, delta), rate)


def _floor(
    file: str,
    place: str,
    floor: Mapping[str, Any],
    powers_w: tuple[float | None, float | None],
    rate: float | None,
) -> Iterator[Defect]:
    """A floor is given or has a reason; energy above it is without it (`powers_w`: P_A and P_A - P_I)."""
    p_a, delta = powers_w
    floor_w = _number(floor.get("floor_w"))
    code = floor.get("reason")
    if code is not None and str(code) not in reason_codes():
        yield Defect(file, f"field {place}.reason", f"{code!r} is not in reasons.json")
    if floor and (floor_w is None) == (code is None):
        words = f"{floor.get('floor_w')!r}, with the reason {code!r}: it is one or the other"
        yield Defect(file, f"field {place}.floor_w", words)
    if floor_w is None or delta is None or not rate:
        return
    expected = (delta - floor_w) / rate
    for name in ("energy_per_work_above_floor_j", "ea_above_floor_j_per_mbit"):
        above = _number(floor.get(name))
        if above is not None and not agree(above, expected, max(delta, floor_w, p_a or 0.0) / rate):
            words = f"{above:.12g} is not (delta_p_w - floor_w) / work_per_s = {expected:.12g}"
            yield Defect(file, f"field {place}.{name}", words)


def _listed(document: Mapping[str, Any], name: str) -> list[Any]:
    value = document.get(name)
    return value if isinstance(value, list) else []


def _part(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = document.get(name)
    return part if isinstance(part, Mapping) else {}


def _span(window: object) -> tuple[float, float] | None:
    if not isinstance(window, Mapping):
        return None
    start, end = _number(window.get("t_start_s")), _number(window.get("t_end_s"))
    return None if start is None or end is None else (start, end)


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None
