# SPDX-License-Identifier: Apache-2.0
"""Reads what one run needs from the files of a campaign; nothing in a campaign is ever executed."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import netjoule_contracts
from netjoule_meters.energy.assess import NULL_TRANSPORT, RunInput
from netjoule_meters.energy.extrapolation import DeviceSamples
from netjoule_meters.energy.node_power import MeterInput
from netjoule_meters.energy.power import Readings
from netjoule_meters.energy.series import lines_between
from netjoule_meters.energy.uncertainty import Accuracy
from netjoule_meters.energy.windows import Intervals

RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
METER_COLUMNS = ("t_s", "power_w", "flag")
INTERVAL_COLUMNS = ("end", "t_start_s", "t_end_s", "bytes")


class CampaignError(ValueError):
    """A campaign file is missing or does not hold what it must; the text names file and fault."""


def read_campaign(campaign: Path) -> tuple[list[dict[str, Any]], int]:
    """Return the meter passports of a campaign, each held to its contract, and the campaign's seed."""
    path = campaign / "campaign.json"
    document = read_document(path)
    passports, seed = document.get("meters"), document.get("seed")
    if not isinstance(passports, list) or not isinstance(seed, int):
        raise CampaignError(f"{path} must hold a list 'meters' and an integer 'seed'")
    for passport in passports:
        _check(path, "meter_passport", passport)
    return passports, seed


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
        document = json.loads(path.read_text(encoding="utf-8"))
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


def read_run_input(campaign: Path, passports: list[dict[str, Any]], run_id: str) -> RunInput:
    """Return everything that the numbers of one run rest on.

    Raises:
        CampaignError: naming the file that is missing or broken.
    """
    folder = run_folder(campaign, run_id)
    run = read_run(campaign, run_id)
    flow_path, intervals_path = folder / "flow.json", folder / "intervals.csv"
    flow = _read_flow(flow_path) if flow_path.exists() else {}
    intervals = read_receiver_intervals(intervals_path) if intervals_path.exists() else _no_intervals()
    t_from_s, t_to_s = _extent(run)
    meters = tuple(read_meter(campaign, passport, t_from_s, t_to_s) for passport in passports)
    return RunInput(run, flow, intervals, meters)


def _read_flow(path: Path) -> dict[str, Any]:
    """Return flow.json; generators differ in what they can tell, so only its shape is demanded."""
    flow = read_document(path)
    for part in ("sender", "receiver", "clock_offset"):
        if not isinstance(flow.get(part), dict | None):
            raise CampaignError(f"{path}: {part} must be an object or null")
    return flow


def find_null_run(campaign: Path, run: dict[str, Any]) -> str | None:
    """Return the id of the null run of the same mini-block and attempt, None when there is none."""
    prefix = str(run["run_id"]).split("-", 1)[0]
    for path in sorted((campaign / "runs").glob(f"{prefix}-*/run.json")):
        other = read_document(path)
        same = all(other.get(key) == run[key] for key in ("block", "mini_block", "attempt"))
        if same and other.get("transport") == NULL_TRANSPORT:
            return str(other["run_id"])
    return None


def read_receiver_intervals(path: Path) -> Intervals:
    """Return the receiver's rows of intervals.csv in time order."""
    rows = [row for row in _rows(path, INTERVAL_COLUMNS) if row["end"] == "receiver"]
    try:
        cells = [[float(row[name]) for name in INTERVAL_COLUMNS[1:]] for row in rows]
    except (TypeError, ValueError) as error:
        raise CampaignError(f"{path}: a receiver interval is not a number: {error}") from None
    table = np.array(cells, dtype=np.float64).reshape(-1, 3)
    if not np.all(np.isfinite(table)):
        raise CampaignError(f"{path}: a receiver interval is not a finite number")
    table = table[np.argsort(table[:, 0], kind="stable")]
    return Intervals(table[:, 0], table[:, 1], table[:, 2])


def read_meter(campaign: Path, passport: dict[str, Any], t_from_s: float, t_to_s: float) -> MeterInput:
    """Return one meter's readings (and its device's samples) that can touch [t_from_s, t_to_s].

    The contract of a passport allows only plain names as meter_id, so no path leaves the campaign.
    """
    meter_id = str(passport["meter_id"])
    tau_s, lag_s = float(passport["update_interval_s"]), float(passport["lag_s"])
    device: DeviceSamples | None = None
    if passport["power_source"] == "modelled":
        device = read_device(campaign / "devices" / f"{meter_id}.ndjson", t_from_s, t_to_s)
    return MeterInput(
        meter_id=meter_id,
        node=str(passport["node"]),
        power_source=str(passport["power_source"]),
        device_model=passport.get("device_model"),
        device_form=passport.get("device_form"),
        accuracy=accuracy_of(passport),
        readings=read_readings(
            campaign / "meters" / f"{meter_id}.csv", tau_s, lag_s, t_from_s, t_to_s + lag_s + 2 * tau_s
        ),
        device=device,
    )


def accuracy_of(passport: dict[str, Any]) -> Accuracy:
    """Return the specification in a passport; anything it does not state makes it unknown."""
    stated = passport.get("accuracy") or {}
    power_w = (passport.get("range") or {}).get("power_w")
    reading, of_range = stated.get("reading_ratio"), stated.get("range_ratio")
    if stated.get("status") != "known" or reading is None or of_range is None or power_w is None:
        return Accuracy(0.0, 0.0, known=False)
    range_w = float(of_range) * float(power_w)
    return Accuracy(float(reading), range_w, known=True, zeroed=bool(stated.get("zeroed")))


def read_readings(
    path: Path, update_interval_s: float, lag_s: float, t_from_s: float, t_to_s: float
) -> Readings:
    """Return the rows of meters/<meter_id>.csv with t_from_s <= t_s <= t_to_s."""
    header = _header(path, METER_COLUMNS)
    t_at, power_at, flag_at = (header.index(name) for name in METER_COLUMNS)

    def time_of(line: bytes) -> float | None:
        return _number(line.split(b",", t_at + 1)[t_at : t_at + 1])

    times, powers, flags = [], [], []
    for line in lines_between(path, t_from_s, t_to_s, time_of):
        cells = line.decode("utf-8", "replace").rstrip("\r\n").split(",")
        if len(cells) != len(header):
            continue
        power = _number([cells[power_at].encode()])
        times.append(float(cells[t_at]))
        powers.append(math.nan if power is None else power)
        flags.append(cells[flag_at])
    return Readings(
        t_s=np.array(times, dtype=np.float64),
        power_w=np.array(powers, dtype=np.float64),
        flag=np.array(flags, dtype=np.str_),
        update_interval_s=update_interval_s,
        lag_s=lag_s,
    )


def read_device(path: Path, t_from_s: float, t_to_s: float) -> DeviceSamples:
    """Return the samples of a device stream that overlap [t_from_s, t_to_s]."""
    if not path.exists():
        raise CampaignError(f"{path} is missing, though its meter reads a modelled device")
    samples = []
    for line in lines_between(path, t_from_s, t_to_s + 60.0, _sample_end_s):
        sample = json.loads(line)
        _check(path, "device_stream", sample)
        if sample["t_start_s"] > t_to_s:
            break
        samples.append((sample["t_start_s"], sample["t_end_s"], sample["extrapolated"]))
    table = np.array([row[:2] for row in samples], dtype=np.float64).reshape(-1, 2)
    return DeviceSamples(
        table[:, 0], table[:, 1], np.array([bool(row[2]) for row in samples], dtype=np.bool_)
    )


def _sample_end_s(line: bytes) -> float | None:
    try:
        return float(json.loads(line)["t_end_s"])
    except (ValueError, KeyError, TypeError):
        return None


def _extent(run: dict[str, Any]) -> tuple[float, float]:
    """Return first start and last end of the run's windows in campaign seconds ((0, 0) without any)."""
    windows = [window for window in run["windows"].values() if window is not None]
    if not windows:
        return 0.0, 0.0
    return min(float(w["t_start_s"]) for w in windows), max(float(w["t_end_s"]) for w in windows)


def _no_intervals() -> Intervals:
    return Intervals(np.empty(0), np.empty(0), np.empty(0))


def _rows(path: Path, columns: tuple[str, ...]) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as handle:
            rows = csv.DictReader(handle)
            _demand(path, list(rows.fieldnames or ()), columns)
            yield from rows
    except (UnicodeDecodeError, csv.Error) as error:
        raise CampaignError(f"{path} cannot be read as CSV: {error}") from None


def _header(path: Path, columns: tuple[str, ...]) -> list[str]:
    try:
        with path.open(encoding="utf-8") as handle:
            header = handle.readline().rstrip("\r\n").split(",")
    except FileNotFoundError:
        raise CampaignError(
            f"{path} is missing: the campaign names this meter but holds no readings of it"
        ) from None
    except UnicodeDecodeError as error:
        raise CampaignError(f"{path} cannot be read as CSV: {error}") from None
    _demand(path, header, columns)
    return header


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
