# SPDX-License-Identifier: Apache-2.0
"""What lines of a Hameg HM8115-2 say (its manual's list of commands, p. 18). Pure.

Two forms exist: ``U3=238.5E+0 I1=0.3E-3 W=0.02E+0`` with the values of voltage and current, and
``U3 I1 W=200.0E+0`` with the ranges alone. The manual prints examples with blanks after ``=``, with commas
between the fields and once with a decimal comma, and over-range as ``OF``; the IeS ISW8001, which seems to
be the same design, sends ``overflow``. All of these are read; anything else is not a reading.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from netjoule_meters.errors import GarbageReply

VOLTAGE_RANGES_V = {1: 50.0, 2: 150.0, 3: 500.0}
CURRENT_RANGES_A = {1: 0.16, 2: 1.6, 3: 16.0}
FLOW_CONTROL = b"\x11\x13"
"""XON and XOFF, which the instrument puts inside its lines as well."""

_NUMBER = r"[+-]?\d+(?:[.,]\d+)?E[+-]?\d{1,2}"
_FIELD = re.compile(
    rf"(?P<key>U[1-9]|I[1-9]|IX|[A-Z]{{1,4}})(?:\s*=\s*(?P<value>{_NUMBER}|OF|OVERFLOW))?(?=[\s,;]|$)[\s,;]*",
    re.IGNORECASE,
)
_FUNCTIONS = ("W", "WATT", "VAR", "VA", "VAMP", "PF", "PFAC")
_STATUS = re.compile(r"(?P<function>[A-Z]+)[\s,;]+U(?P<u>[1-3])[\s,;]+I(?P<i>[1-3])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Value:
    """A number, or None where the instrument says over-range."""

    number: float | None


@dataclass(frozen=True, slots=True)
class Measurement:
    """One line of values.

    Attributes:
        voltage_range: 1 to 3, see ``VOLTAGE_RANGES_V``.
        current_range: 1 to 3, see ``CURRENT_RANGES_A``.
        function: what the last field is, ``W`` for active power.
        value: the last field.
        voltage: voltage, V; None in the form without values.
        current: current, A; None in the form without values.
    """

    voltage_range: int
    current_range: int
    function: str
    value: Value
    voltage: Value | None
    current: Value | None

    @property
    def overrange(self) -> bool:
        """Whether any field says so."""
        fields = (self.value, self.voltage, self.current)
        return any(field is not None and field.number is None for field in fields)


@dataclass(frozen=True, slots=True)
class Status:
    """The answer to ``STATUS?``: function and ranges."""

    function: str
    voltage_range: int
    current_range: int


def parse_measurement(text: str) -> Measurement:
    """One line of values.

    Raises:
        GarbageReply: when it is not one.
    """
    fields = _fields(text)
    voltages = [(key, value) for key, value in fields if re.fullmatch(r"U\d", key)]
    currents = [(key, value) for key, value in fields if re.fullmatch(r"I[\dX]", key)]
    others = [(key, value) for key, value in fields if key in _FUNCTIONS]
    if (len(voltages), len(currents), len(others), len(fields)) != (1, 1, 1, 3):
        raise GarbageReply(f"{text[:60]!r} is not one voltage, one current and one measured value")
    function, value = others[0]
    if value is None:
        raise GarbageReply(f"{text[:60]!r} has no measured value")
    return Measurement(
        _range(voltages[0][0], VOLTAGE_RANGES_V),
        _range(currents[0][0], CURRENT_RANGES_A),
        function,
        value,
        voltages[0][1],
        currents[0][1],
    )


def parse_status(text: str) -> Status:
    """The answer to ``STATUS?``, for example ``WATT U3 I2``.

    Raises:
        GarbageReply: when it is not one.
    """
    found = _STATUS.fullmatch(text.strip())
    if found is None:
        raise GarbageReply(f"{text[:60]!r} is not a function and two ranges")
    return Status(found["function"].upper(), int(found["u"]), int(found["i"]))


def digit_w(voltage_range: int, current_range: int) -> float:
    """Weight of the last digit of active power, W.

    Read from the listed resolutions (1 mW to 1 W) by power range; which belongs to which is inferred.
    """
    power_w = VOLTAGE_RANGES_V[voltage_range] * CURRENT_RANGES_A[current_range]
    for limit_w, weight_w in ((8.5, 0.001), (85.0, 0.01), (850.0, 0.1)):
        if power_w <= limit_w:
            return weight_w
    return 1.0


def digit_v(voltage_range: int) -> float:
    """Weight of the last digit of voltage, V: four digits, 0.1 V on the 500 V range."""
    return 0.01 if voltage_range == 1 else 0.1


def digit_a(current_range: int) -> float:
    """Weight of the last digit of current, A: 0.1 mA, 1 mA, 10 mA."""
    return (0.0001, 0.001, 0.01)[current_range - 1]


def _fields(text: str) -> list[tuple[str, Value | None]]:
    fields: list[tuple[str, Value | None]] = []
    position, line = 0, text.strip()
    while position < len(line):
        found = _FIELD.match(line, position)
        if found is None:
            raise GarbageReply(f"{text[:60]!r} is not a line of values")
        fields.append((found["key"].upper(), _value(found["value"])))
        position = found.end()
    return fields


def _value(text: str | None) -> Value | None:
    if text is None:
        return None
    if text.upper() in ("OF", "OVERFLOW"):
        return Value(None)
    return Value(float(text.replace(",", ".")))


def _range(key: str, known: dict[int, float]) -> int:
    if not key[1:].isdigit() or int(key[1:]) not in known:
        raise GarbageReply(f"{key} is not a range of the HM8115-2")
    return int(key[1:])
