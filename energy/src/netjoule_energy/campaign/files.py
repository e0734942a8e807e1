# SPDX-License-Identifier: Apache-2.0
"""Reads campaign.json, meters and devices of a campaign; nothing in a campaign is ever executed."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import netjoule_contracts
from netjoule_contracts import reading
from netjoule_energy.campaign.series import lines_between
from netjoule_energy.power.alignment import LEAST_CONFIDENCE
from netjoule_energy.power.extrapolation import DeviceSamples
from netjoule_energy.power.readings import ENERGY_COUNTER, GREATEST_COUNT_SPACING, INTERVAL_MEAN, Readings
from netjoule_energy.power.resolution import counter_step_j, step_of_decimals
from netjoule_energy.power.until_done import RadioStates
from netjoule_energy.power.windows import FloatArray
from netjoule_energy.run.node_power import UNKNOWN_POWER, MeterInput
from netjoule_energy.run.parts import clients_of
from netjoule_energy.uncertainty.budget import Accuracy, SpecificationTerm

PROVISIONAL = "provisional"
"""First word of an accuracy's source that no document at hand confirms."""
IDLE_STATE = "idle"
"""Of a radio's log: the state in which a tail ends."""
METER_COLUMNS = ("t_s", "power_w", "flag")
NO_READINGS = Readings(np.empty(0), np.empty(0), np.empty(0, np.str_), update_interval_s=0.0, lag_s=0.0)
"""Of a meter where no power was logged."""


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
        check(path, "meter_passport", passport)
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
    return _invalidating(netjoule_contracts.root() / "reasons.json")


@lru_cache(maxsize=1)
def _invalidating(path: Path) -> frozenset[str]:
    reasons = read_document(path)["reasons"]
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


def read_meter(
    campaign: Path, passport: dict[str, Any], t_from_s: float, t_to_s: float, lag: MeasuredLag | None = None
) -> MeterInput:
    """Return one meter's readings (and its device's samples) that can touch [t_from_s, t_to_s].

    lag: as a sync pulse gave it, in place of the passport's. The contract of a passport allows only plain
    names as meter_id, so no path leaves the campaign.
    """
    meter_id = str(passport["meter_id"])
    device: DeviceSamples | None = None
    if passport.get("device_model") is not None:
        device = read_device(campaign / "devices" / f"{meter_id}.ndjson", t_from_s, t_to_s)
    lag_s = float(passport["lag_s"]) if lag is None else lag.lag_s
    readings, step = NO_READINGS, 0.0
    if passport["power_source"] != UNKNOWN_POWER:
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


def as_in_run(passport: dict[str, Any], run: dict[str, Any]) -> dict[str, Any]:
    """Return a meter's passport with the device model that it read in a run, where runs differ in that."""
    device = run.get("in_force", {}).get("device")
    if device is None or passport["meter_id"] not in device["meters"]:
        return passport
    return passport | {"device_model": device["model"], "device_form": device["form"]}


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
    with readable(path):
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

    with readable(path):
        for _ in lines_between(path, t_from_s, t_to_s + 60.0, end_s):  # of each line its time was asked last
            check(path, "device_stream", sample)
            if sample["t_start_s"] > t_to_s:
                break
            samples.append((sample["t_start_s"], sample["t_end_s"], sample["extrapolated"]))
    table = np.array([row[:2] for row in samples], dtype=np.float64).reshape(-1, 2)
    return DeviceSamples(
        table[:, 0], table[:, 1], np.array([bool(row[2]) for row in samples], dtype=np.bool_)
    )


def _header(path: Path, columns: tuple[str, ...]) -> list[str]:
    try:
        with readable(path):
            _, header, _ = next(reading.rows(path), reading.Row(1, []))
    except FileNotFoundError:
        raise CampaignError(
            f"{path} is missing: the campaign names this meter but holds no readings of it"
        ) from None
    demand(path, header, columns)
    return header


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """What is beyond the limits of all readers is the campaign's fault."""
    try:
        yield
    except reading.Unreadable as error:
        raise CampaignError(f"{path} cannot be read: {error}") from None


def demand(path: Path, header: Sequence[str], columns: Sequence[str]) -> None:
    """Demand columns of a table.

    Raises:
        CampaignError: naming those that its header lacks.
    """
    missing = [name for name in columns if name not in header]
    if missing:
        raise CampaignError(f"{path} lacks the column {', '.join(missing)}; its header is {header}")


def read_states(campaign: Path, node: str, t_from_s: float, t_to_s: float) -> RadioStates | None:
    """Return the states of a node's radio that can touch [t_from_s, t_to_s]; None where no log tells them."""
    path = campaign / "radio" / f"{node}.csv"
    if not path.exists():
        return None
    log = _states_in(path, path.stat().st_size, path.stat().st_mtime_ns)
    # The last state before the stretch holds when it begins.
    first = max(0, int(np.searchsorted(log.t_s, t_from_s, side="right")) - 1)
    end = int(np.searchsorted(log.t_s, t_to_s, side="right"))
    return RadioStates(log.t_s[first:end], log.idle[first:end]) if end > first else None


@lru_cache(maxsize=8)
def _states_in(path: Path, _size: int, _mtime_ns: int) -> RadioStates:
    """Return all states in the log of a radio, which is read once for all runs and meters."""
    header = _header(path, ("t_s",))
    found: list[tuple[float, bool]] = []
    if "state" in header:
        t_at, state_at = header.index("t_s"), header.index("state")
        with readable(path):
            for _, cells, defect in reading.rows(path):
                whole = not defect and len(cells) == len(header) and cells[state_at]
                if whole and (t_s := _number([cells[t_at].encode()])) is not None:
                    found.append((t_s, cells[state_at] == IDLE_STATE))
    return RadioStates(np.array([t for t, _ in found]), np.array([idle for _, idle in found], dtype=np.bool_))


def check(path: Path, contract: str, document: dict[str, Any]) -> None:
    """Hold a document to a contract.

    Raises:
        CampaignError: naming the file and every offending field.
    """
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
