# SPDX-License-Identifier: Apache-2.0
"""The one writer of a campaign's folder (results/<campaign>/).

Layout and meaning of every file: protocols/contracts and results/README.md. Two exceptions write for
themselves: the logger (meters/*.csv) and netjoule_energy (runs/*/result.json). A campaign on rigs has a
folder per block in place of these, itself in a campaign's form and written by a worker of its own (`blocks`).

A kill -9 at any moment leaves a campaign that opens: documents are replaced atomically, tables grow by
whole lines, and ``recover`` settles what was under way.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import files
from netjoule.core.errors import InvalidData, RunFailed, UsageError, file_errors
from netjoule.design import run_table
from netjoule.design.run_table import MiniBlock, PlanRow
from netjoule.store import blocks, folder_limits, planfile, recovery, simulated_blocks
from netjoule.store.blocks import document_name
from netjoule.store.ledger import Ledger, with_state
from netjoule.store.owned_blocks import OwnedBlocks
from netjoule.store.session import Session, begun, ended, rfc3339
from netjoule.topology.rigs import FIRST
from netjoule.topology.topology import SIMULATED, Topology
from netjoule.workload.load import Document
from netjoule.workload.workload import Workload
from netjoule_contracts.lift import runs as lift

SCHEMA_VERSION = 1
_TESTBED = ".testbed"  # like .lock it belongs to this machine, and is no part of what a campaign is


class Campaign(AbstractContextManager["Campaign"]):
    """A campaign's folder, open for writing (``create``, ``open``) or only for reading (``read``).

    Use it as a context manager: it holds a lock that a second writer is refused by and that the kernel
    releases when the process dies.
    """

    def __init__(
        self, path: Path, document: dict[str, Any], rows: Sequence[PlanRow], lock: int | None
    ) -> None:
        self.path = path
        self.meters_dir = path / "meters"
        """Where the logger appends meters/<meter_id>.csv."""
        self.devices_dir = path / "devices"
        """Where device streams of modelled campaigns go (devices/<meter_id>.ndjson)."""
        self.name = str(document["campaign"])
        self.seed = int(document["seed"])
        """Of every random choice of the campaign."""
        self.created = datetime.fromisoformat(str(document["created_utc"]))
        self._document = document
        self._lock = lock
        self._ledger = Ledger(
            path, rows, session=len(document["sessions"]), rig=str(document["topology"].get("rig", FIRST))
        )
        self._owned = OwnedBlocks(path, self._ledger, is_simulated=self.is_simulated, rows_in=self._rows_in)
        self.cut: dict[str, int] = {}
        """Bytes of unfinished last lines that opening cut, by file."""
        self.ends_s: dict[str, float | None] = {}
        """Campaign time of the last line that the logs among them have now; None without any line."""
        self.lost: dict[str, str] = {}
        """What finished runs had lost when they were opened, by run_id; they are planned again."""

    # -- opening ---------------------------------------------------------------------------------

    @classmethod
    def create(
        cls,
        path: Path,
        *,
        workload: Workload,
        topology: Topology,
        seed: int,
        versions: Mapping[str, str | None],
        host: Mapping[str, object],
        created: datetime,
        rows: Sequence[PlanRow] | None = None,
        imported: Mapping[str, Any] | None = None,
        block: Mapping[str, Any] | None = None,
        name: str = "",
    ) -> Campaign:
        """Make the folder and write campaign.json and plan.csv, before the first packet.

        Args:
            rows: its plan, where that is not all that workload and seed expand to.
            imported: of results that another program made; `rows` are then what there is.
            block: of one block of a campaign on rigs (campaign.json, field block); `rows` are its runs.
            name: the folder's unless given.

        Raises:
            UsageError: when the folder exists and is not empty.
            RunFailed: when it cannot be written.
        """
        with file_errors("create", path):
            folder_limits.require_empty(path)
            path.mkdir(parents=True, exist_ok=True)
            lock = files.take_lock(path)
        document: dict[str, Any] = {
            "schema_version": SCHEMA_VERSION,
            "kind": "campaign",
            "campaign": name or path.resolve().name,
            "created_utc": rfc3339(created),
            "status": "created",
            "seed": seed,
            "workload": {**workload.document, "seed": seed},
            "topology": topology.document,
            "radio_source": topology.radio_source,
            "versions": dict(versions),
            "host": dict(host),
            "meters": [],
            "sessions": [],
        }
        if imported is not None:
            document["imported"] = dict(imported)
        if block is not None:
            document["block"] = dict(block)
        campaign = cls(path, document, run_table.expand(workload, seed) if rows is None else rows, lock)
        for folder in campaign._folders:
            with file_errors("create", path / folder):
                (path / folder).mkdir()
        planfile.write_plan(path, campaign.rows())
        planfile.append_status(path, campaign.rows(), 0, created)
        campaign._save_document()
        return campaign

    @classmethod
    def open(cls, path: Path) -> Campaign:
        """Open an existing campaign for writing and settle what a crash left (see ``recover``).

        A finished run that has lost its files, or readings that cover its windows, is planned again.

        Raises:
            UsageError: when it is no campaign, another process is writing it, or it is not finished and was
                begun by a netjoule with another plan.csv.
            InvalidData: when campaign.json, plan.csv or status.csv are broken or of a newer version.
        """
        document, rows = _load(path)
        if document["status"] != "complete":
            _require_continuable(path, document)
        with file_errors("open", path):
            lock = files.take_lock(path)
        campaign = cls(path, document, rows, lock)
        if campaign.on_rigs:
            campaign._cut_torn_lines()
            campaign.lost = campaign.owned.recover(every=True)
        else:
            campaign.recover()
            campaign._plan_lost_again()
        return campaign

    @classmethod
    def read(cls, path: Path) -> Campaign:
        """Open an existing campaign for reading only; takes no lock and repairs nothing.

        Raises:
            InvalidData: also for a folder that no reader may trust, see `campaign_folder`.
        """
        if (path / "campaign.json").exists():
            folder_limits.require_readable(path)
        return cls.read_own(path)

    @classmethod
    def read_own(cls, path: Path) -> Campaign:
        """As `read`, of one that this netjoule writes just now: its files come and go, and are its own."""
        document, rows = _load(path)
        return cls(path, document, rows, None)

    @classmethod
    def read_head(cls, path: Path) -> Campaign:
        """As `read_own`, without its runs: what campaign.json alone says."""
        return cls(path, _document(path), (), None)

    def close(self) -> None:
        """Release the lock."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what it holds ---------------------------------------------------------------------------

    @property
    def document(self) -> Mapping[str, Any]:
        """campaign.json as it is on disk."""
        return self._document

    @property
    def workload(self) -> Workload:
        """Effective workload."""
        return Workload.from_document(self._document["workload"], where=str(self.path / "campaign.json"))

    @property
    def topology(self) -> Topology:
        """Effective topology; secrets are references."""
        return Topology.from_document(self._document["topology"], where=str(self.path / "campaign.json"))

    def rows(self) -> tuple[PlanRow, ...]:
        """All rows of plan.csv, in the order of execution."""
        return self._ledger.rows

    def run_dir(self, run_id: str) -> Path:
        """Folder of a run; made by the first write."""
        return blocks.run_folder(self.path, self._ledger.row(run_id))

    @property
    def on_rigs(self) -> bool:
        """Whether its blocks run on rigs, each in a folder of its own."""
        return "rigs" in self._document["topology"]

    @property
    def is_simulated(self) -> bool:
        """Whether its blocks are simulated, and written as `simulated_blocks` has it."""
        return bool(self._document["topology"]["kind"] == SIMULATED)

    @property
    def owned(self) -> OwnedBlocks:
        """Its blocks and their owners, of a campaign on rigs that is open for writing."""
        self._writable()
        return self._owned

    def rows_of(self, block: int) -> tuple[PlanRow, ...]:
        """Rows of a block, in the order of execution."""
        return self._ledger.rows_of(block)

    # -- on this machine ---------------------------------------------------------------------------

    @property
    def testbed_file(self) -> Path | None:
        """The topology file that it was begun with; None where that is not known."""
        try:
            return Path((self.path / _TESTBED).read_text(encoding="utf-8").strip())
        except FileNotFoundError:
            return None

    def remember_testbed(self, file: Path) -> None:
        """Note the topology file: what stands beside it says more about the hosts (group_vars)."""
        files.write_atomic(self.path / _TESTBED, f"{file.resolve()}\n")

    def remove_untouched(self) -> bool:
        """Remove the campaign unless something was measured or run; whether it is gone."""
        self._writable()
        if any(any((self.path / folder).iterdir()) for folder in self._folders):
            return False
        with file_errors("remove", self.path):
            shutil.rmtree(self.path)
        return True

    # -- plan ------------------------------------------------------------------------------------

    def next_mini_block(self) -> MiniBlock | None:
        """The next mini-block to run, repeats of invalid ones included; None when all is done.

        Appends repeats to plan.csv.
        """
        rows = self._ledger.rows
        repeated = run_table.with_repeats(rows, self.seed, self.workload.max_attempts)
        if len(repeated) > len(rows):
            self._writable()
            self._ledger.add(repeated)
        return run_table.next_mini_block(self._ledger.rows)

    def set_status(self, run_id: str, status: str, reason: str = "") -> None:
        """Record the state of a run in status.csv, on disk when this returns.

        Args:
            run_id: the run.
            status: running, valid or invalid.
            reason: reason code; required for ``invalid``.
        """
        if status == "invalid" and not reason:
            raise RunFailed(f"run {run_id}: status invalid needs a reason code")
        self._writable()
        _require_continuable(self.path, self._document)
        self._ledger.settle([with_state(self._ledger.row(run_id), status, reason)])

    def end_by_rule(self, rule: str) -> None:
        """Record that nothing more has to run, on disk when this returns; `rule`: what ended the campaign."""
        self._writable()
        left = [row for row in self._ledger.rows if row.status not in run_table.FINAL]
        self._ledger.settle([with_state(row, "not_needed", rule) for row in left])

    # -- sessions --------------------------------------------------------------------------------

    def begin_session(self, *, boot_id: str, monotonic_ns: int, utc: datetime) -> Session:
        """Start a session and fix its clock (see ``session.begun``)."""
        session, sessions = begun(
            self._document["sessions"],
            zero=self._document.get("block", {}).get("zero"),
            boot_id=boot_id,
            monotonic_ns=monotonic_ns,
            utc=utc,
            last_logged_s=recovery.last_logged_s(self.path),
        )
        self._update(sessions=sessions, status="running")
        self._ledger.session = len(sessions)
        return session

    def end_session(self, session: Session, *, end: str, monotonic_ns: int, utc: datetime) -> None:
        """Close a session and write datapackage.json.

        Args:
            session: the session.
            end: complete, stopped or failed.
            monotonic_ns: CLOCK_MONOTONIC now.
            utc: UTC now.
        """
        sessions = ended(self._document["sessions"], session, end=end, monotonic_ns=monotonic_ns, utc=utc)
        done = self.next_mini_block() is None
        self._update(sessions=sessions, status="complete" if done else "interrupted")
        self.write_datapackage()

    def set_meters(self, passports: Sequence[Mapping[str, Any]]) -> None:
        """Record the passports of the meters as they answered."""
        for passport in passports:
            contracts.validate("meter_passport", dict(passport))
        self._update(meters=[dict(p) for p in passports])

    def set_device_models(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Record the device models behind emulated meters, once: later sessions read the same."""
        if entries and "device_models" not in self._document:
            self._update(device_models=[dict(entry) for entry in entries])

    def set_lab_hosts(self, entries: Sequence[Mapping[str, Any]]) -> None:
        """Record the hosts of a lab as they were found (`lab.host_facts.joined`)."""
        self._update(lab_hosts=[dict(entry) for entry in entries])

    def set_alignment(
        self, alignment: Sequence[Mapping[str, Any]], pulses: Sequence[Mapping[str, Any]]
    ) -> None:
        """Record the sync pulses of the campaign so far and the lag that each meter showed in them."""
        self._update(alignment=[dict(a) for a in alignment], load_pulses=[dict(p) for p in pulses])

    def fix_settings(self, found: Mapping[str, Mapping[str, Any]]) -> None:
        """Replace settings of meters in the effective topology by what a ranging pass found, by meter_id."""
        topology = dict(self._document["topology"])
        topology["meters"] = [
            {**meter, "settings": {**meter.get("settings", {}), **found.get(meter["meter_id"], {})}}
            for meter in topology["meters"]
        ]
        self._update(topology=topology)

    def set_versions(self, versions: Mapping[str, str | None]) -> None:
        """Add versions of programs that are known only once they run."""
        self._update(versions={**self._document["versions"], **versions})

    # -- runs ------------------------------------------------------------------------------------

    def write_run(self, document: Mapping[str, Any]) -> None:
        """Write runs/<run_id>/run.json; ``document`` must fit the contract of its version."""
        contract = lift.contract_of("run", document)
        self._write_run_part(str(document["run_id"]), "run.json", contract, document)

    def read_run(self, run_id: str) -> dict[str, Any]:
        """run.json of a run that has one."""
        return files.read_json(self.run_dir(run_id) / "run.json")

    def write_document(self, run_id: str, load: str, document: Document) -> None:
        """Write what a run's load keeps of a part of it; it must fit its contract.

        That of the first part is runs/<run_id>/<load>.json, further ones are <load>s/<part>.json beside it.
        """
        name = document_name(load, document.part)
        self._write_run_part(run_id, name, document.contract, document.content)

    def read_documents(self, run_id: str, load: str) -> dict[int, dict[str, Any]]:
        """What a load has kept of a run, by part, in order."""
        folder = self.run_dir(run_id)
        further = sorted(int(path.stem) for path in folder.glob(f"{load}s/*.json") if path.stem.isdecimal())
        paths = {part: folder / document_name(load, part) for part in (1, *further)}
        return {part: files.read_json(path) for part, path in paths.items() if path.exists()}

    def write_intervals(self, run_id: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Write runs/<run_id>/intervals.csv whole (columns of Table Schema ``intervals``)."""
        files.write_atomic(self.run_dir(run_id) / "intervals.csv", files.table_text("intervals", rows))

    def write_routers(self, run_id: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Write runs/<run_id>/routers.csv whole (columns of Table Schema ``routers``)."""
        files.write_atomic(self.run_dir(run_id) / "routers.csv", files.table_text("routers", rows))

    def append_events(self, run_id: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Append to runs/<run_id>/events.csv (t_s, source, event, code, detail)."""
        files.append_table(self.run_dir(run_id) / "events.csv", "events", rows)

    def append_clocks(self, rows: Iterable[Mapping[str, object]]) -> None:
        """Append to clocks.csv (t_s, host, offset_s, drift_ppm, residual_s, method)."""
        files.append_table(self.path / "clocks.csv", "clocks", rows)

    def append_radio(self, node: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Append to radio/<node>.csv (columns of Table Schema ``radio``)."""
        files.append_table(self.path / "radio" / f"{node}.csv", "radio", rows)

    def append_meter_lines(self, meter_id: str, lines: Iterable[bytes]) -> None:
        """Append whole lines that a logger on another host wrote to meters/<meter_id>.csv."""
        path = self.meters_dir / f"{meter_id}.csv"
        with file_errors("write", path), path.open("ab") as table:
            table.writelines(lines)

    def write_datapackage(self) -> None:
        """Write datapackage.json over the tables that exist now."""
        from netjoule.store.datapackage import describe

        files.write_json(self.path / "datapackage.json", describe(self.path, self._document))

    def finished_without_result(self) -> tuple[str, ...]:
        """Runs marked valid or invalid that have no result.json yet, in plan order.

        A kill between the end of a run and its arithmetic leaves such runs; their raw data are whole.
        """
        return tuple(
            row.run_id
            for row in self._ledger.rows
            if row.status in run_table.FINAL
            and not (self.run_dir(row.run_id) / "result.json").exists()
            and recovery.finished_status(self.run_dir(row.run_id)) is not None
        )

    # -- crash safety ----------------------------------------------------------------------------

    def recover(self) -> None:
        """Settle what a crash left; harmless when nothing is to settle.

        Unfinished last lines of tables are cut. A run that was under way counts as finished when its
        run.json is complete (closing idle window known); otherwise its partial files are removed, its
        events stay, and it is planned again. Blocks on rigs: see `OwnedBlocks.recover`.
        """
        if self.on_rigs:
            self.owned.recover(every=False)
            return
        self._cut_torn_lines()
        again = set()
        for row in self._ledger.rows:
            if row.status != "running":
                continue
            finished = recovery.finished_status(self.run_dir(row.run_id))
            if finished is None:
                recovery.discard(self.run_dir(row.run_id))
                again.add(row.run_id)
            self.set_status(row.run_id, *(finished or planfile.STOPPED))
        self._ledger.plan_again(again)

    def _cut_torn_lines(self) -> None:
        self.cut |= recovery.cut_torn_lines(self.path)
        logs = (file for file in self.cut if file.startswith(("meters/", "radio/")))
        self.ends_s = {file: recovery.last_time_s(self.path / file) for file in logs}

    def _plan_lost_again(self) -> None:
        """Plan the finished runs again that are not whole any more; of imported ones there is no again."""
        if "imported" not in self._document:
            self.lost = recovery.lost(self.path, self._ledger.finished())
        for run_id in self.lost:
            recovery.discard(self.run_dir(run_id))
            self.set_status(run_id, *planfile.STOPPED)
        self._ledger.plan_again(self.lost)

    # -- internals -------------------------------------------------------------------------------

    @property
    def _folders(self) -> tuple[str, ...]:
        """Folders that it begins with."""
        return (blocks.BLOCKS,) if self.on_rigs else ("meters", "radio", "runs")

    def _rows_in(self, block: int) -> Sequence[PlanRow]:
        """Runs of a block that is a part of the campaign, as its own files have them."""
        home = blocks.home(self.path, block)
        if self.is_simulated:
            return run_table.superseded(simulated_blocks.rows_of(home))
        of_block = Campaign.read(home)
        if not self._document["meters"]:
            known = of_block.document
            found = {name: known[name] for name in ("meters", "device_models") if name in known}
            self._update(**found, versions={**self._document["versions"], **known["versions"]})
        return of_block.rows()

    def _write_run_part(self, run_id: str, name: str, contract: str, document: Mapping[str, Any]) -> None:
        try:
            contracts.validate(contract, dict(document))
        except contracts.ContractError as error:
            raise RunFailed(f"run {run_id}: {name} {error}") from error
        files.write_json(self.run_dir(run_id) / name, document)

    def _update(self, **changes: object) -> None:
        self._document = {**self._document, **changes}
        self._save_document()

    def _save_document(self) -> None:
        self._writable()
        try:
            contracts.validate("campaign", self._document)
        except contracts.ContractError as error:
            raise RunFailed(f"campaign.json {error}") from error
        files.write_json(self.path / "campaign.json", self._document)

    def _writable(self) -> None:
        if self._lock is None:
            raise RunFailed(f"{self.path} is open for reading only")


def _load(path: Path) -> tuple[dict[str, Any], list[PlanRow]]:
    """campaign.json and plan.csv of a campaign, checked."""
    return _document(path), planfile.read_plan(path)


def _document(path: Path) -> dict[str, Any]:
    """campaign.json of a campaign, checked."""
    folder_limits.require_campaign(path)
    document = files.read_json(path / "campaign.json")
    version = document.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        raise InvalidData(
            f"the campaign was written with contract version {version}, this netjoule knows {SCHEMA_VERSION}",
            where=str(path / "campaign.json"),
            next_step="use the netjoule version named in campaign.json, or a newer one",
        )
    try:
        contracts.validate("campaign", document)
    except contracts.ContractError as error:
        raise InvalidData(str(error), where=str(path / "campaign.json")) from error
    return document


def _require_continuable(path: Path, document: Mapping[str, Any]) -> None:
    """Refuse to write to a campaign whose plan.csv is of an older form.

    Raises:
        UsageError: naming the version that can.
    """
    if planfile.is_older(path):
        version = document["versions"].get("netjoule", "that began it")
        raise UsageError(
            f"{path} was begun by netjoule {version}; this version reads it, and cannot continue it",
            next_step=f"finish it with netjoule {version}",
        )
