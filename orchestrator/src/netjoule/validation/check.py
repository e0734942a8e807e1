# SPDX-License-Identifier: Apache-2.0
"""``netjoule check``: names every defect of a campaign's folder and executes nothing from it.

It reads a folder that anybody may have made: no link is followed, no path from a document is opened
without being inside the folder, and no value of a secret field is printed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any

import netjoule_contracts as contracts
import netjoule_energy
from netjoule.core import files
from netjoule.core.errors import NetjouleError, UsageError
from netjoule.core.reason import codes as reason_codes
from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.loads import load_of
from netjoule.store import blocks, datapackage, folder_limits, simulated_blocks
from netjoule.store.planfile import STATUS, is_older, read_plan
from netjoule.topology.topology import Topology
from netjoule.validation import simulated_check, tables
from netjoule.validation.run import MEASURE_ALONE, Asked, check_run
from netjoule.validation.tables import Defect
from netjoule.workload.workload import Workload
from netjoule_contracts import reading
from netjoule_contracts.lift.workload import newest_campaign
from netjoule_contracts.reading import Unreadable

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_campaign(path: Path) -> Iterator[Defect]:
    """Every defect of a campaign, file by file.

    Raises:
        UsageError: when ``path`` is not a campaign's folder at all.
    """
    folder_limits.require_campaign(path)
    # Nothing of such a campaign is opened: a link leads elsewhere, a FIFO waits for a writer.
    unopened = False
    for place, what in folder_limits.beyond_limits(path):
        yield Defect(place.relative_to(path).as_posix(), "", what)
        unopened |= what in (folder_limits.LINK, folder_limits.SPECIAL)
    if not unopened:
        yield from _opened(path)


def _opened(path: Path) -> Iterator[Defect]:
    """Defects of a folder that may be opened."""
    broken, campaign = tables.document_and_defects("campaign.json", path / "campaign.json", "campaign")
    yield from broken
    yield from _campaign(campaign)
    rows = _rows(path)
    yield from _plan(path, campaign, rows)
    meter_ids = _names(_list(campaign, "meters"))
    if simulated_check.is_simulated(campaign):
        yield from simulated_check.blocks_and_runs(path, campaign, rows, _asked(campaign))
    elif (path / blocks.BLOCKS).is_dir():
        yield from _blocks(path, campaign, rows)
    else:
        yield from _runs(path, campaign, rows, meter_ids, _asked(campaign))
        yield from _logs(path, campaign, meter_ids)
    yield from _package(path, campaign)


def unfinished(path: Path) -> str:
    """How much of a campaign's plan is there, as ``incomplete: 2 of 6 runs``; empty when all of it is.

    Counted are the latest attempts: a run that does not count and is to be repeated is not there yet.
    """
    rows = None if any(folder_limits.beyond_limits(path)) else _rows(path)
    if rows is None:
        return ""  # its defects say why
    with suppress(NetjouleError, OSError, ValueError, KeyError, TypeError):
        document = files.read_json(path / "campaign.json")
        load = Workload.from_document(document["workload"], where="campaign.json")
        if "imported" not in document:
            rows = list(run_table.with_repeats(rows, int(document["seed"]), load.max_attempts))
    wanted = run_table.last_attempts(rows)
    has_run = _presence(path)
    there = sum(r.status == "not_needed" or (r.status in run_table.HAPPENED and has_run(r)) for r in wanted)
    return "" if there == len(wanted) else f"incomplete: {there} of {len(wanted)} runs"


def _presence(path: Path) -> Callable[[PlanRow], bool]:
    """What tells whether a run has left its document."""
    if not any((path / blocks.BLOCKS).glob(f"*/{simulated_blocks.RUNS}")):
        return lambda row: (blocks.run_folder(path, row) / "run.json").exists()
    known = set[str]()
    with suppress(NetjouleError):
        for folder in (path / blocks.BLOCKS).iterdir():
            known |= {run["run_id"] for run in simulated_blocks.documents(folder / simulated_blocks.RUNS)}
    return lambda row: row.run_id in known


def valid_runs(path: Path) -> int:
    """How many of a campaign's runs count, as its plan says; 0 where the plan cannot be read."""
    rows = None if any(folder_limits.beyond_limits(path)) else _rows(path)
    return sum(row.status == "valid" for row in rows or ())


def _campaign(campaign: dict[str, Any]) -> Iterator[Defect]:
    file = "campaign.json"
    lifted = newest_campaign(campaign)
    for part in ("workload", "topology"):
        if part in campaign:
            yield from tables.against(file, lifted[part], part, prefix=f"{part}.")
    factors = _part(_part(lifted, "workload"), "factors")
    for name, contract in contracts.factor_documents().items():
        for index, value in enumerate(_list(factors, name)):
            yield from tables.against(file, value, contract, prefix=f"workload.factors.{name}.{index}.")
    wanted = _names(_list(campaign.get("topology"), "meters"))
    for index, passport in enumerate(_list(campaign, "meters")):
        yield from tables.against(file, passport, "meter_passport", prefix=f"meters.{index}.")
        if str(passport.get("meter_id")) not in wanted:
            what = f"{passport.get('meter_id')!r} is not in the topology"
            yield Defect(file, f"field meters.{index}.meter_id", what)
    before = -1.0
    for index, session in enumerate(_list(campaign, "sessions")):
        start = session.get("t_start_s")
        if isinstance(start, (int, float)) and start < before:
            yield Defect(file, f"field sessions.{index}.t_start_s", "it starts before the session before it")
        before = start if isinstance(start, (int, float)) else before


def _rows(path: Path) -> list[PlanRow] | None:
    """Runs of plan.csv with their status; None when they are too broken to be used."""
    try:
        return read_plan(path)
    except (NetjouleError, ValueError):
        return None


def _plan(path: Path, campaign: dict[str, Any], rows: list[PlanRow] | None) -> Iterator[Defect]:
    file = "plan.csv"
    if not (path / file).exists():
        yield Defect(file, "", "the file is missing")
        return
    yield from tables.table(file, path / file, "plan")
    older = not (path / STATUS).exists()
    if not older:
        yield from tables.table(STATUS, path / STATUS, "status")
    elif campaign.get("status") == "complete" and not is_older(path):
        yield Defect(STATUS, "", "the file is missing")
    if rows is None:
        return
    yield from _strangers(path / STATUS, rows)
    codes, said = reason_codes(), file if older else STATUS
    for row in rows:
        if row.status == "invalid" and row.reason not in codes:
            what = f"{row.reason!r} is not in reasons.json"
            yield Defect(said, f"run {row.run_id}, column reason", what)
        if campaign.get("status") == "complete" and row.status not in run_table.FINAL:
            yield Defect(said, f"run {row.run_id}", f"{row.status!r} in a complete campaign")
    if "imported" in campaign:
        yield from _from_files(file, campaign, rows)
    else:
        yield from _expansion(file, campaign, rows)
    yield from _repeats(file, rows)


def _strangers(path: Path, rows: list[PlanRow]) -> Iterator[Defect]:
    """Each row of status.csv is of a run of plan.csv, and of its attempt."""
    attempts = {row.run_id: str(row.attempt) for row in rows}
    for line, cells in tables.rows(path) if path.exists() else ():
        if cells["run_id"] not in attempts:
            yield Defect(STATUS, f"line {line}, column run_id", f"plan.csv has no run {cells['run_id']!r}")
        elif cells["attempt"] != attempts[cells["run_id"]]:
            yield Defect(STATUS, f"line {line}, column attempt", "not that of the run in plan.csv")


def _from_files(file: str, campaign: dict[str, Any], rows: list[PlanRow]) -> Iterator[Defect]:
    """Each run of an imported campaign comes from a file that campaign.json names, and the other way."""
    imported = _part(campaign, "imported")
    named = [runs for source in _list(imported, "files") if isinstance(runs := source.get("runs"), list)]
    told = {str(run_id) for runs in named for run_id in runs}
    planned = {row.run_id for row in rows}
    for run_id in sorted(planned - told):
        yield Defect(file, f"run {run_id}", "none of the imported files contains this run")
    for run_id in sorted(told - planned):
        yield Defect("campaign.json", "field imported.files", f"plan.csv has no run {run_id!r}")
    workload = _part(newest_campaign(campaign), "workload")
    load = str(workload.get("load"))
    said = _part(workload, load).get("generator")
    if said != imported.get("generator"):
        what = f"{said!r}, but it was imported from {imported.get('generator')!r}"
        yield Defect("campaign.json", f"field workload.{load}.generator", what)


def _workload(campaign: dict[str, Any]) -> Workload | None:
    """The workload; None where its own defects say why not."""
    try:
        return Workload.from_document(campaign["workload"], where="campaign.json")
    except (NetjouleError, KeyError, TypeError, ValueError):
        return None


def _asked(campaign: dict[str, Any]) -> Asked | None:
    """What its runs do; None where the documents' own defects say why not."""
    workload, seed = _workload(campaign), campaign.get("seed")
    with suppress(NetjouleError, KeyError, TypeError, ValueError, AttributeError):
        topology = Topology.from_document(campaign["topology"], where="campaign.json")
        if workload is not None and isinstance(seed, int):
            return Asked(workload, load_of(workload, topology), seed)
    return None


def _expansion(file: str, campaign: dict[str, Any], rows: list[PlanRow]) -> Iterator[Defect]:
    """The first attempts are exactly what workload and seed expand to."""
    workload, seed = _workload(campaign), campaign.get("seed")
    if workload is None or not isinstance(seed, int):
        return  # the document's own defects say why
    try:
        only = _part(campaign, "block").get("number")
        expected = {r.run_id: r for r in run_table.expand(workload, seed) if only in (None, r.block)}
    except UsageError as error:
        yield Defect("campaign.json", "field workload", error.what)
        return
    first = {r.run_id: r for r in rows if r.attempt == 1}
    for run_id in expected.keys() - first.keys():
        what = "the workload and seed of campaign.json ask for it, but it is missing"
        yield Defect(file, f"run {run_id}", what)
    for run_id, row in first.items():
        if run_id not in expected:
            yield Defect(file, f"run {run_id}", "the workload and seed of campaign.json do not ask for it")
        elif replace(row, status="planned", reason="") != expected[run_id]:
            yield Defect(file, f"run {run_id}", "its cell or seed is not what workload and seed expand to")


def _repeats(file: str, rows: list[PlanRow]) -> Iterator[Defect]:
    """An attempt repeats a mini-block that had an invalid run, with the same cell and arms."""
    groups = {(group[0].mini_block, group[0].attempt): group for group in run_table.groups(rows)}
    for (mini_block, attempt), group in groups.items():
        place = f"mini-block {mini_block}, attempt {attempt}"
        if len({(r.block, r.cell) for r in group}) > 1:
            yield Defect(file, place, "its runs have different blocks or cells")
        if attempt == 1:
            continue
        older = groups.get((mini_block, attempt - 1), ())
        if all(r.status != "invalid" for r in older):
            yield Defect(file, place, "it repeats an attempt that has no invalid run")
        if {r.arm for r in older} != {r.arm for r in group}:
            yield Defect(file, place, "its arms are not those of the attempt it repeats")


def _runs(
    path: Path,
    campaign: dict[str, Any],
    rows: list[PlanRow] | None,
    meter_ids: frozenset[str],
    asked: Asked | None,
) -> Iterator[Defect]:
    """Each run's folder; `asked`: what runs do, where the documents tell it."""
    settled = campaign.get("status") == "complete"
    check = partial(
        check_run,
        path,
        meter_ids=meter_ids,
        settled=settled,
        needed=MEASURE_ALONE if "imported" in campaign else None,
        known=_as_computed_from(path),
    )
    runs = path / "runs"
    folders = sorted(runs.iterdir()) if runs.is_dir() else []
    if rows is None:
        # What each folder says of itself is held to its contracts; where the plan is readable, to it as well.
        for folder in folders:
            if settled or (folder / "run.json").exists():
                yield from check(folder.name, None, load=asked.load if asked else None)
        return
    planned = {row.run_id: row for row in rows}
    for folder in folders:
        if folder.name not in planned:
            yield Defect(f"runs/{folder.name}", "", "plan.csv has no such run")
        elif planned[folder.name].status == "planned" and (folder / "run.json").exists():
            yield Defect(f"runs/{folder.name}/run.json", "", "status.csv says the run did not happen yet")
    for row in rows:
        if row.status in run_table.HAPPENED:
            condition, load = (
                (row.condition(asked.workload, asked.seed), asked.load) if asked else (None, None)
            )
            yield from check(row.run_id, row, asked=condition, load=load)


def _blocks(path: Path, campaign: dict[str, Any], rows: list[PlanRow] | None) -> Iterator[Defect]:
    """Each block's folder is a campaign of its own, of one of the rigs, and as the campaign's plan says."""
    known = {row.run_id: row for row in rows or ()}
    rigs = _part(_part(campaign, "topology"), "rigs")
    for folder in sorted((path / blocks.BLOCKS).iterdir()):
        base = f"{blocks.BLOCKS}/{folder.name}"
        if not folder.name.isdecimal() or int(folder.name) not in {row.block for row in known.values()}:
            yield Defect(base, "", "plan.csv has no such block")
            continue
        for defect in _opened(folder):
            yield replace(defect, file=f"{base}/{defect.file}")
        document = tables.document_and_defects("campaign.json", folder / "campaign.json", "campaign")[1]
        if _part(document, "block").get("number") != int(folder.name):
            yield Defect(f"{base}/campaign.json", "field block.number", "not that of its folder")
        if (rig := _part(document, "topology").get("rig")) not in rigs:
            yield Defect(
                f"{base}/campaign.json", "field topology.rig", f"{rig!r} is none of the campaign's rigs"
            )
        for row in _rows(folder) or ():
            if known.get(row.run_id) != row:
                what = f"run {row.run_id}"
                yield Defect(
                    f"{base}/{STATUS}", what, "plan.csv and status.csv of the campaign say otherwise"
                )
    for row in known.values():
        if row.status in run_table.HAPPENED and not blocks.home(path, row.block).is_dir():
            yield Defect(blocks.BLOCKS, f"run {row.run_id}", "its block is missing")


def _as_computed_from(path: Path) -> netjoule_energy.Campaign | None:
    """What the numbers of its runs rest on; None when campaign.json is too broken to tell."""
    try:
        return netjoule_energy.read_campaign(path)
    except (netjoule_energy.CampaignError, RecursionError, ValueError, TypeError, AttributeError):
        return None


def _logs(path: Path, campaign: dict[str, Any], meter_ids: frozenset[str]) -> Iterator[Defect]:
    """clocks.csv, meters/, radio/ and devices/."""
    hosts = set(_part(_part(campaign, "topology"), "hosts"))
    if (path / "clocks.csv").exists():
        yield from tables.table("clocks.csv", path / "clocks.csv", "clocks")
        yield from tables.rising("clocks.csv", path / "clocks.csv", "t_s", by=("host",))
        for line, cells in tables.rows(path / "clocks.csv"):
            if cells.get("host") not in hosts:
                what = f"no host is called {cells.get('host')!r}"
                yield Defect("clocks.csv", f"line {line}, column host", what)
    for name in sorted(meter_ids):
        if not (path / "meters" / f"{name}.csv").exists():
            yield Defect(f"meters/{name}.csv", "", "the file is missing")
    logged = (
        ("meters", meter_ids, "campaign.json has no such meter"),
        ("radio", hosts, "the topology has no such host"),
    )
    for table, known, what in logged:
        for file in datapackage.table_files(path, table):
            yield from tables.table(file, path / file, table)
            yield from tables.rising(file, path / file, "t_s")
            if table == "meters":
                yield from tables.rising(file, path / file, "seq", by_one=True)
            if PurePosixPath(file).stem not in known:
                yield Defect(file, "", what)
    for name in sorted(_names(m for m in _list(campaign, "meters") if m.get("device_model") is not None)):
        stream = f"devices/{name}.ndjson"
        if not (path / stream).exists():
            yield Defect(stream, "", "the file is missing, though its meter reads a device model")
    for file_path in sorted(path.glob("devices/*.ndjson")):
        yield from tables.device_stream(file_path.relative_to(path).as_posix(), file_path)


def _package(path: Path, campaign: dict[str, Any]) -> Iterator[Defect]:
    """datapackage.json lists every table with the contract's schema; it is written when a session ends."""
    file = "datapackage.json"
    if not (path / file).exists():
        if campaign.get("status") == "complete":
            yield Defect(file, "", "the file is missing")
        return
    try:
        package = reading.document(path / file)
        found = {str(r["name"]): r for r in package["resources"] if r["schema"]["fields"] is not None}
    except Unreadable as error:
        yield Defect(file, error.place, error.what)
        return
    except (OSError, KeyError, TypeError):
        yield Defect(file, "", "not a data package")
        return
    for table in datapackage.TABLES:
        files = datapackage.table_files(path, table)
        resource = found.get(table, {})
        listed = resource.get("path", [])
        listed = [str(name) for name in listed] if isinstance(listed, list) else [str(listed)]
        for name in listed:
            if name not in files:
                yield Defect(file, f"resource {table}", f"{name!r} is not a file of this campaign")
        # A resumed campaign has tables that the package of the last session does not list yet.
        if campaign.get("status") in ("complete", "interrupted"):
            for name in sorted(set(files) - set(listed)):
                yield Defect(file, f"resource {table}", f"{name!r} is not listed")
        contract = datapackage.contract_of(path, table, files)
        if resource and not _is_contract(contract, resource["schema"]["fields"]):
            yield Defect(file, f"resource {table}", "its schema is not the contract's")


def _is_contract(table: str, fields: Any) -> bool:
    """Whether these are the contract's fields, as far as they were there when the package was written."""
    try:
        wanted = contracts.fields_of(table, [str(field["name"]) for field in fields])
        return wanted is not None and _lasting(fields) == _lasting(wanted)
    except (AttributeError, KeyError, TypeError):
        return False


def _lasting(fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same without what a later version may change: words, and values that it adds to factors."""
    lasting = [{name: part for name, part in field.items() if name != "description"} for field in fields]
    return [
        field | {"constraints": {k: v for k, v in field["constraints"].items() if k != "enum"}}
        if contracts.factor(field["name"])
        else field
        for field in lasting
    ]


def _names(meters: Iterable[dict[str, Any]]) -> frozenset[str]:
    """Meter ids that can be file names; another one is a defect of its document and opens nothing."""
    return frozenset(str(m.get("meter_id")) for m in meters if _NAME.fullmatch(str(m.get("meter_id"))))


def _part(document: Any, name: str) -> dict[str, Any]:
    value = document.get(name) if isinstance(document, dict) else None
    return value if isinstance(value, dict) else {}


def _list(document: Any, name: str) -> list[dict[str, Any]]:
    value = document.get(name) if isinstance(document, dict) else None
    return [v for v in value if isinstance(v, dict)] if isinstance(value, list) else []
