# SPDX-License-Identifier: Apache-2.0
"""The mapping of a networked socket: from its answer to watts, as settings say it. Pure.

A mapping says how to ask, where each value is and in which unit, and which values mean that there is none.
It comes from a preset, from settings, or from both; nothing in it is guessed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from netjoule_meters.adapters.base import Semantics
from netjoule_meters.adapters.plugs_and_pdus import units
from netjoule_meters.adapters.plugs_and_pdus.response_values import Find, finder
from netjoule_meters.adapters.polled import Sample
from netjoule_meters.errors import GarbageReply, UsageError
from netjoule_meters.reading import Flag
from netjoule_meters.settings import Setting

FORMATS = ("json", "csv", "text", "snmp", "modbus")
FORMATS_OF = {
    "http": ("json", "csv", "text"),
    "kasa": ("json",),
    "text": ("text",),
    "snmp": ("snmp",),
    "modbus": ("modbus",),
}
"""Formats that an interface can carry."""
_NO_WORDS = ("", "nan", "null", "none", "-", "--", "n/a")
_TRUE_WORDS = ("1", "true", "on", "ok", "yes", "valid")

MAPPING_SETTINGS = (
    Setting("format", "Format of the answer.", "json", FORMATS),
    Setting("request", "What is asked: the path of a page, JSON for Kasa, a line for text.", None),
    Setting("pattern", "Regular expression for the format text; its groups hold the values.", None),
    Setting("separator", "Separator of the format csv.", ","),
    Setting("modbus_unit", "Unit identifier of Modbus.", 1),
    Setting("power_path", "Where the power is; what a path looks like goes by the format.", None),
    Setting("power_unit", "Unit of the power, a factor before it if need be (0.01 kW).", "W"),
    Setting("energy_path", "Where the energy counter is.", None),
    Setting("energy_unit", "Unit of the energy counter.", "Wh"),
    Setting("voltage_path", "Where the voltage is.", None),
    Setting("voltage_unit", "Unit of the voltage.", "V"),
    Setting("current_path", "Where the current is.", None),
    Setting("current_unit", "Unit of the current.", "A"),
    Setting("time_path", "Where a time or count is that changes with each new value of the device.", None),
    Setting("valid_path", "Where the device says whether its value is one (true, 1, ok).", None),
    Setting("no_data_value", "Number that stands for no value.", None),
    Setting("identity_request", "What is asked for the identity; None: the request itself.", None),
    Setting("model_path", "Where the model is, in the answer to the identity request.", None),
    Setting("serial_path", "Where the serial number is, in the same answer.", None),
    Setting("firmware_path", "Where the firmware version is, in the same answer.", None),
    Setting("mapping_source", "Where this mapping comes from: a manual, a page, a look at the device.", None),
)
"""Settings that a preset or a person fills in."""

_QUANTITIES = (
    ("power", units.POWER),
    ("voltage", units.VOLTAGE),
    ("current", units.CURRENT),
    ("energy", units.ENERGY),
)


@dataclass(frozen=True, slots=True)
class Value:
    """Where one value is, and what makes SI units of it."""

    path: str
    factor: float


@dataclass(frozen=True, slots=True)
class SocketMapping:
    """A checked mapping; a value that is not mapped is None."""

    form: str
    request: str
    pattern: str
    separator: str
    power: Value | None
    voltage: Value | None
    current: Value | None
    energy: Value | None
    time_path: str | None
    valid_path: str | None
    no_data_value: float | None
    counts_energy: bool

    @property
    def complete(self) -> bool:
        """Whether the value that readings are made of is mapped."""
        return (self.energy if self.counts_energy else self.power) is not None

    def sample(self, answer: bytes) -> Sample:
        """The values in an answer.

        Raises:
            NotThere: when a mapped value is missing.
            GarbageReply: when the answer, or a value, cannot be read.
        """
        find = finder(self.form, answer, self.pattern, self.separator)
        power, energy = self._number(find, self.power), self._number(find, self.energy)
        voltage, current = self._number(find, self.voltage), self._number(find, self.current)
        mark = None if self.time_path is None else str(find(self.time_path))
        if self.valid_path is not None and str(find(self.valid_path)).strip().lower() not in _TRUE_WORDS:
            return Sample(flag=Flag.NO_DATA, mark=mark)
        numbers = (power, voltage, current, energy)
        if any(value is not None and math.isinf(value) for value in numbers):
            power, voltage, current, energy = (_finite(value) for value in numbers)
            return Sample(power, voltage, current, energy, mark, Flag.OVERRANGE)
        missing = (energy if self.counts_energy else power) is None
        return Sample(power, voltage, current, energy, mark, Flag.NO_DATA if missing else Flag.GOOD)

    def _number(self, find: Find, value: Value | None) -> float | None:
        """A number in SI units, infinite where the device says that it is too large; None for no data."""
        if value is None:
            return None
        shown = find(value.path)
        if isinstance(shown, bool):
            raise GarbageReply(f"{value.path} is {shown}, not a number")
        if shown is None or str(shown).strip().lower() in _NO_WORDS:
            return None
        try:
            read = float(str(shown))
        except ValueError:
            raise GarbageReply(f"{value.path} is {str(shown)[:40]!r}, not a number") from None
        if math.isnan(read) or (self.no_data_value is not None and read == self.no_data_value):
            return None
        return read * value.factor


def mapping_of(settings: Mapping[str, Any]) -> SocketMapping:
    """The mapping that resolved settings describe.

    Raises:
        UsageError: for a unit, a pattern or a path that is none.
    """
    form = str(settings["format"])
    pattern = str(settings["pattern"] or "")
    separator = str(settings["separator"])
    if len(separator) != 1:
        raise UsageError(f"separator cannot be '{separator}': one character")
    paths = {name: placed(settings, f"{name}_path") for name, _ in _QUANTITIES}
    time_path, valid_path = placed(settings, "time_path"), placed(settings, "valid_path")
    for path in (*paths.values(), time_path, valid_path):
        if path is not None:
            _check_path(form, path, pattern)
    values = {
        name: None if (path := paths[name]) is None else Value(path, _factor(settings, name, known))
        for name, known in _QUANTITIES
    }
    no_data = settings["no_data_value"]
    wanted = [path for path in (*paths.values(), time_path, valid_path) if path is not None]
    return SocketMapping(
        form=form,
        request=_request(settings, form, wanted),
        pattern=pattern,
        separator=separator,
        power=values["power"],
        voltage=values["voltage"],
        current=values["current"],
        energy=values["energy"],
        time_path=time_path,
        valid_path=valid_path,
        no_data_value=None if no_data is None else float(no_data),
        counts_energy=settings["semantics"] == Semantics.ENERGY_COUNTER.value,
    )


def identity_request(settings: Mapping[str, Any], paths: list[str]) -> str:
    """What to ask for the identity, whose values are at ``paths``."""
    if settings["identity_request"] is not None:
        return placed(settings, "identity_request") or ""
    return _request(settings, str(settings["format"]), paths)


def placed(settings: Mapping[str, Any], name: str) -> str | None:
    """A setting with the number of the outlet put in: {outlet} counts from 1, {index} from 0."""
    text = settings[name]
    if text is None:
        return None
    outlet = int(settings["outlet"])
    return str(text).replace("{outlet}", str(outlet)).replace("{index}", str(outlet - 1))


def _factor(settings: Mapping[str, Any], name: str, known: Mapping[str, float]) -> float:
    return units.factor(settings[f"{name}_unit"], known, f"{name}_unit")


def _request(settings: Mapping[str, Any], form: str, paths: list[str]) -> str:
    """The request as the interface of this format wants it (see the transports)."""
    if form == "snmp":
        return " ".join(dict.fromkeys(paths))
    if form == "modbus":
        return " ".join([f"unit={settings['modbus_unit']}", *dict.fromkeys(paths)])
    return placed(settings, "request") or ""


def _check_path(form: str, path: str, pattern: str) -> None:
    if form == "json" and not path.startswith("/"):
        raise UsageError(f"'{path}' is no JSON Pointer: it begins with a slash, /Outputs/0/Load")
    if form == "snmp" and not re.fullmatch(r"\.?\d+(\.\d+)+", path):
        raise UsageError(f"'{path}' is no object identifier: write it in numbers, 1.3.6.1...")
    if form == "modbus":
        from netjoule_meters.transports.modbus import parse_register

        parse_register(path)
    if form == "text":
        _check_group(path, pattern)


def _check_group(path: str, pattern: str) -> None:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"pattern {pattern!r} is no regular expression: {error}") from error
    there = int(path) <= compiled.groups if path.isdecimal() else path in compiled.groupindex
    if not there:
        raise UsageError(f"pattern {pattern!r} has no group '{path}': write (...) or (?P<{path}>...)")


def _finite(value: float | None) -> float | None:
    return None if value is None or math.isinf(value) else value
