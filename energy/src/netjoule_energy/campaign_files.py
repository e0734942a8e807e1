# SPDX-License-Identifier: Apache-2.0
"""Reads what one run needs from the files of a campaign; nothing in a campaign is ever executed."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import netjoule_contracts
from netjoule_contracts import reading
from netjoule_energy.alignment import LEAST_CONFIDENCE
from netjoule_energy.assess import NULL_TRANSPORT, RunInput
from netjoule_energy.extrapolation import DeviceSamples
from netjoule_energy.node_power import UNKNOWN_POWER, MeterInput
from netjoule_energy.power import ENERGY_COUNTER, GREATEST_COUNT_SPACING, INTERVAL_MEAN, Readings
from netjoule_energy.resolution import counter_step_j, step_of_decimals
from netjoule_energy.series import lines_between
from netjoule_energy.several_flows import FlowInput, clients_of, idle_clients, joined
from netjoule_energy.uncertainty import Accuracy, SpecificationTerm
from netjoule_energy.windows import FloatArray, Intervals

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
PROVISIONAL = "provisional"
"""First word of an accuracy's source that no document at hand confirms."""
METER_COLUMNS = ("t_s", "power_w", "flag")
INTERVAL_COLUMNS = ("end", "t_start_s", "t_end_s", "bytes")


class CampaignError(ValueError):
    """A campaign file is missing or does not hold what it must; the text names file and fault."""


@dataclass(frozen=True, slots=True)
class MeasuredLag:
    """The lag of one meter as a sync pulse gave it, s, with its standard uncertainty."""

    lag_s: float
    u_lag_s: float


@dataclass(frozen=True, slots=True)
class Campaign:
    """What campaign.json says that per-run numbers rest on; lags by meter_id, where a pulse told one.

    clients: of the topology, see clients_of.
    """

    passports: list[dict[str, Any]]
    seed: int
    lags: dict[str, MeasuredLag]
    clients: frozenset[str]


def read_campaign(campaign: Path) -> Campaign:
    """Return the meter passports of a campaign, each held to its contract, its seed and measured lags."""
    path = campaign / "campaign.json"
    document = read_document(path)
    passports, seed = document.get("meters"), document.get("seed")
    if not isinstance(passports, list) or not isinstance(seed, int):
        raise CampaignError(f"{path} must hold a list 'meters' and an integer 'seed'")
    for passport in passports:
        _check(path, "meter_passport", passport)
    lags = _measured_lags(path, document.get("alignment") or [])
    return Campaign(passports, seed, lags, clients_of(document.get("topology") or {}))


def _measured_lags(path: Path, entries: Any) -> dict[str, MeasuredLag]:
    """The last lag of each meter that is sure enough."""
    try:
        return {
            str(entry["meter_id"]): MeasuredLag(float(entry["lag_s"]), float(entry["u_lag_s"]))
            for entry in entries
            if float(entry["confidence"]) >= LEAST_CONFIDENCE
        }
    except (TypeError, KeyError, ValueError) as error:
        raise CampaignError(f"{path}: an entry of 'alignment' is broken: {error!r}") from None


def invalidating_codes() -> frozenset[str]:
    """Return the reason codes that make a run invalid, from the contracts."""
    reasons = read_document(netjoule_contracts.root() / "reasons.json")["reasons"]
    return frozenset(reason["code"] for reason in reasons if reason["invalidates"])


def read_document(path: Path) -> dict[str, Any]:
    """Return a JSON object.

    Raises:
        CampaignError: when the file is missing, is no JSON or no object.
    """
    try:
        document = reading.document(path)
    except FileNotFoundError:
        raise CampaignError(f"{path} is missing; is this a campaign folder?") from None
    except (OSError, ValueError) as error:
        raise CampaignError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(document, dict):
        raise CampaignError(f"{path} must hold a JSON object")
    return document


def run_folder(campaign: Path, run_id: str) -> Path:
    """Return the folder of a run.

    Raises:
        CampaignError: when the id is no plain name (it must not lead out of the campaign).
    """
    if not RUN_ID.fullmatch(run_id):
        raise CampaignError(f"{run_id!r} is not a run id")
    return campaign / "runs" / run_id


def read_run(campaign: Path, run_id: str) -> dict[str, Any]:
    """Return run.json of a run, held to its contract."""
    path = run_folder(campaign, run_id) / "run.json"
    run = read_document(path)
    _check(path, "run", run)
    return run


def read_run_input(campaign: Path, known: Campaign, run_id: str) -> RunInput:
    """Return everything that the numbers of one run rest on.

    Raises:
        CampaignError: naming the file that is missing or broken.
    """
    folder = run_folder(campaign, run_id)
    run = read_run(campaign, run_id)
    flow_path, intervals_path = folder / "flow.json", folder / "intervals.csv"
    flow = _read_flow(flow_path) if flow_path.exists() else {}
    by_flow = _read_intervals_by_flow(intervals_path) if intervals_path.exists() else {}
    flows = _read_flows(folder, run, flow, by_flow)
    intervals = joined(list(by_flow.values()))
    t_from_s, t_to_s = _extent(run)
    meters = tuple(
        read_meter(campaign, passport, t_from_s, t_to_s, known.lags.get(str(passport["meter_id"])))
        for passport in known.passports
    )
    return RunInput(run, flow, intervals, meters, flows, idle_clients(known.clients, run))


def _read_flow(path: Path) -> dict[str, Any]:
    """Return flow.json; generators differ in what they can tell, so only its shape is demanded."""
    flow = read_document(path)
    for part in ("sender", "receiver", "clock_offset"):
        if not isinstance(flow.get(part), dict | None):
            raise CampaignError(f"{path}: {part} must be an object or null")
    return flow


def _read_flows(
    folder: Path, run: dict[str, Any], first: dict[str, Any], by_flow: dict[int, Intervals]
) -> tuple[FlowInput, ...]:
    """Return the flows of a run with several, by their numbers; none for a run with one."""
    found = []
    for asked in run.get("flows") or ():
        number = int(asked["flow"])
        path = folder / "flows" / f"{number}.json"
        report = first if number == 1 else _read_flow(path) if path.exists() else {}
        found.append(FlowInput(asked, report, by_flow.get(number, _no_intervals())))
    return tuple(found)


def find_null_run(campaign: Path, run: dict[str, Any]) -> str | None:
    """Return the id of the null run of the same mini-block and attempt, None when there is none."""
    prefix = str(run["run_id"]).split("-", 1)[0]
    for path in sorted((campaign / "runs").glob(f"{prefix}-*/run.json")):
        other = read_document(path)
        same = all(other.get(key) == run[key] for key in ("block", "mini_block", "attempt"))
        if same and other.get("transport") == NULL_TRANSPORT:
            return str(other["run_id"])
    return None


def _read_intervals_by_flow(path: Path) -> dict[int, Intervals]:
    """Return each flow's receiver rows of intervals.csv in time order; a file without flows has flow 1."""
    rows = [row for row in _rows(path, INTERVAL_COLUMNS) if row["end"] == "receiver"]
    cells: dict[int, list[list[float]]] = {}
    try:
        for row in rows:
            numbers = [float(row[name]) for name in INTERVAL_COLUMNS[1:]]
            cells.setdefault(int(row.get("flow") or 1), []).append(numbers)
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{path}: a receiver interval is not a number: {error}") from None
    return {flow: _intervals_of(path, numbers) for flow, numbers in sorted(cells.items())}


def _intervals_of(path: Path, cells: list[list[float]]) -> Intervals:
    table = np.array(cells, dtype=np.float64).reshape(-1, 3)
    if not np.all(np.isfinite(table)):
        raise CampaignError(f"{path}: a receiver interval is not a finite number")
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Intervals(table[:, 0], table[:, 1], table[:, 2])


def read_meter(
    campaign: Path, passport: dict[str, Any], t_from_s: float, t_to_s: float, lag: MeasuredLag | None = None
) -> MeterInput:
    """Return one meter's readings (and its device's samples) that can touch [t_from_s, t_to_s].

    lag: as a sync pulse gave it, in place of the passport's. The contract of a passport allows only plain
    names as meter_id, so no path leaves the campaign.
    """
    meter_id = str(passport["meter_id"])
    if passport["power_source"] == UNKNOWN_POWER:
        return _unlogged(passport)
    device: DeviceSamples | None = None
    if passport.get("device_model") is not None:
        device = read_device(campaign / "devices" / f"{meter_id}.ndjson", t_from_s, t_to_s)
    lag_s = float(passport["lag_s"]) if lag is None else lag.lag_s
    readings, step = _read_readings(campaign, passport, lag_s, t_from_s, t_to_s)
    stated = passport.get("resolution")
    return MeterInput(
        meter_id=meter_id,
        node=str(passport["node"]),
        power_source=str(passport["power_source"]),
        device_model=passport.get("device_model"),
        device_form=passport.get("device_form"),
        accuracy=accuracy_of(passport),
        readings=readings,
        device=device,
        quantity=str(passport.get("quantity") or "active_power"),
        u_lag_s=None if lag is None else lag.u_lag_s,
        step=step if stated is None else float(stated),
    )


def _unlogged(passport: dict[str, Any]) -> MeterInput:
    """Return what stands for a meter where no power was logged: no readings, nothing known of them."""
    empty = np.empty(0)
    return MeterInput(
        meter_id=str(passport["meter_id"]),
        node=str(passport["node"]),
        power_source=UNKNOWN_POWER,
        device_model=None,
        device_form=None,
        accuracy=accuracy_of(passport),
        readings=Readings(empty, empty, np.empty(0, dtype=np.str_), update_interval_s=0.0, lag_s=0.0),
        device=None,
    )


def read_trace(
    campaign: Path, passport: dict[str, Any], t_from_s: float, t_to_s: float, lag_s: float | None = None
) -> Readings:
    """Return one meter's readings that can touch [t_from_s, t_to_s]; `lag_s`: by default the passport's."""
    known_s = float(passport["lag_s"]) if lag_s is None else lag_s
    return _read_readings(campaign, passport, known_s, t_from_s, t_to_s)[0]


def accuracy_of(passport: dict[str, Any]) -> Accuracy:
    """Return the specification in a passport; anything it does not state makes it unknown."""
    stated = passport.get("accuracy") or {}
    power_w = (passport.get("range") or {}).get("power_w")
    reading, of_range = stated.get("reading_ratio"), stated.get("range_ratio")
    # A part of the range needs a range; without one there is none to take a part of.
    if power_w is None and of_range == 0:
        power_w = 0.0
    if stated.get("status") != "known" or reading is None or of_range is None or power_w is None:
        return Accuracy(0.0, 0.0, known=False)
    terms = tuple(
        SpecificationTerm(
            str(term["term"]), float(term["reading_ratio"]), float(term["range_ratio"]) * float(power_w)
        )
        for term in stated.get("terms") or ()
    )
    # An emulated instrument is drawn within the limits: for it they are true, whoever confirms them.
    measured = passport.get("power_source") == "measured"
    return Accuracy(
        reading_ratio=float(reading),
        range_w=float(of_range) * float(power_w),
        known=True,
        zeroed=bool(stated.get("zeroed")),
        terms=terms,
        provisional=measured and str(stated.get("source") or "").startswith(PROVISIONAL),
    )


def _read_readings(
    campaign: Path, passport: dict[str, Any], lag_s: float, t_from_s: float, t_to_s: float
) -> tuple[Readings, float]:
    """Readings that can touch [t_from_s, t_to_s], and their least step in W (of a counter J)."""
    tau_s = float(passport["update_interval_s"])
    semantics = str(passport.get("semantics") or INTERVAL_MEAN)
    modulus_j = passport.get("counter_modulus_j")
    reach_s = GREATEST_COUNT_SPACING * tau_s
    path = campaign / "meters" / f"{passport['meter_id']}.csv"
    table = read_readings_table(path, t_from_s + lag_s - reach_s, t_to_s + lag_s + reach_s)
    readings = Readings(
        t_s=table.t_s,
        power_w=table.power_w,
        flag=table.flag,
        update_interval_s=tau_s,
        lag_s=lag_s,
        semantics=semantics,
        energy_j=table.energy_j,
        counter_modulus_j=None if modulus_j is None else float(modulus_j),
    )
    if semantics != ENERGY_COUNTER:
        return readings, step_of_decimals(table.power_decimals)
    if table.energy_j is None:
        raise CampaignError(f"{path} lacks the column energy_j, but its meter counts energy")
    return readings, counter_step_j(table.energy_j[table.flag == ""])


@dataclass(frozen=True, slots=True)
class ReadingsTable:
    """Columns of meters/<meter_id>.csv; power_decimals: most decimals with which any power is written."""

    t_s: FloatArray
    power_w: FloatArray
    energy_j: FloatArray | None
    flag: npt.NDArray[np.str_]
    power_decimals: int


def read_readings_table(path: Path, t_from_s: float, t_to_s: float) -> ReadingsTable:
    """Return the rows of meters/<meter_id>.csv with t_from_s <= t_s <= t_to_s."""
    header = _header(path, METER_COLUMNS)
    t_at, power_at, flag_at = (header.index(name) for name in METER_COLUMNS)
    energy_at = header.index("energy_j") if "energy_j" in header else None

    def time_of(line: bytes) -> float | None:
        return _number(line.split(b",", t_at + 1)[t_at : t_at + 1])

    rows = []
    with _readable(path):
        for line in lines_between(path, t_from_s, t_to_s, time_of):
            cells = line.decode("utf-8", "replace").rstrip("\r\n").split(",")
            if len(cells) == len(header):
                rows.append(cells)
    return ReadingsTable(
        t_s=np.array([float(cells[t_at]) for cells in rows], dtype=np.float64),
        power_w=_column(rows, power_at),
        energy_j=None if energy_at is None else _column(rows, energy_at),
        flag=np.array([cells[flag_at] for cells in rows], dtype=np.str_),
        power_decimals=max((_decimals(cells[power_at]) for cells in rows), default=0),
    )


def _column(rows: Sequence[Sequence[str]], at: int) -> FloatArray:
    numbers = (_number([cells[at].encode()]) for cells in rows)
    return np.array([math.nan if number is None else number for number in numbers], dtype=np.float64)


def _decimals(text: str) -> int:
    """Decimals of a number as written, 2.5e-3 having four."""
    mantissa, _, exponent = text.lower().partition("e")
    _, _, fraction = mantissa.partition(".")
    try:
        return max(len(fraction) - int(exponent or "0"), 0)
    except ValueError:
        return 0


def read_device(path: Path, t_from_s: float, t_to_s: float) -> DeviceSamples:
    """Return the samples of a device stream that overlap [t_from_s, t_to_s]."""
    if not path.exists():
        raise CampaignError(f"{path} is missing, though its meter reads a modelled device")
    samples: list[tuple[float, float, bool]] = []
    sample: dict[str, Any] = {}

    def end_s(line: bytes) -> float | None:
        nonlocal sample
        try:
            sample = reading.value_of(line)
            return float(sample["t_end_s"])
        except (ValueError, KeyError, TypeError):
            return None

    with _readable(path):
        for _ in lines_between(path, t_from_s, t_to_s + 60.0, end_s):  # of each line its time was asked last
            _check(path, "device_stream", sample)
            if sample["t_start_s"] > t_to_s:
                break
            samples.append((sample["t_start_s"], sample["t_end_s"], sample["extrapolated"]))
    table = np.array([row[:2] for row in samples], dtype=np.float64).reshape(-1, 2)
    return DeviceSamples(
        table[:, 0], table[:, 1], np.array([bool(row[2]) for row in samples], dtype=np.bool_)
    )


def _extent(run: dict[str, Any]) -> tuple[float, float]:
    """Return first start and last end of the run's windows in campaign seconds ((0, 0) without any)."""
    windows = [window for window in run["windows"].values() if window is not None]
    if not windows:
        return 0.0, 0.0
    return min(float(w["t_start_s"]) for w in windows), max(float(w["t_end_s"]) for w in windows)


def _no_intervals() -> Intervals:
    return Intervals(np.empty(0), np.empty(0), np.empty(0))


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    header: list[str] = []
    with _readable(path):
        for line, cells, defect in reading.rows(path, reading.MOST_DOCUMENT_BYTES):
            if defect or (header and len(cells) != len(header)):
                raise reading.Unreadable(f"line {line}", defect or f"{len(cells)} cells, not {len(header)}")
            if header:
                yield dict(zip(header, cells, strict=True))
            else:
                _demand(path, cells, columns)
                header = cells
    if not header:
        _demand(path, header, columns)


def _header(path: Path, columns: tuple[str, ...]) -> list[str]:
    try:
        with _readable(path):
            _, header, _ = next(reading.rows(path), reading.Row(1, []))
    except FileNotFoundError:
        raise CampaignError(
            f"{path} is missing: the campaign names this meter but holds no readings of it"
        ) from None
    _demand(path, header, columns)
    return header


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """What is beyond the limits of all readers is the campaign's fault."""
    try:
        yield
    except reading.Unreadable as error:
        raise CampaignError(f"{path} cannot be read: {error}") from None


def _demand(path: Path, header: list[str], columns: tuple[str, ...]) -> None:
    missing = [name for name in columns if name not in header]
    if missing:
        raise CampaignError(f"{path} lacks the column {', '.join(missing)}; its header is {header}")


def _check(path: Path, contract: str, document: dict[str, Any]) -> None:
    try:
        netjoule_contracts.validate(contract, document)
    except netjoule_contracts.ContractError as error:
        raise CampaignError(f"{path} {error}") from None


def _number(cells: list[bytes]) -> float | None:
    """Return the first cell as a finite number, None when there is none."""
    try:
        value = float(cells[0])
    except (IndexError, ValueError):
        return None
    return value if math.isfinite(value) else None
