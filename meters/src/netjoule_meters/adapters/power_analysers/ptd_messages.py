# SPDX-License-Identifier: Apache-2.0
"""The lines of SPEC's PTDaemon: samples, ranges, identity, uncertainty. Pure.

PTDaemon's own protocol document is for SPEC's members. What is known here was read in two public clients,
MLCommons' power-dev and the harness of SPEC's benchmarks, and in logs that they keep.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from netjoule_meters.errors import GarbageReply

GREETING = "Hello, PTDaemon here!"
_DAY_S = 86_400.0
_CLOCK_TIME = re.compile(r"(\d{1,2}):(\d{2}):(\d{2}(?:\.\d+)?)$")
_ALWAYS_THERE = frozenset({"Watts", "Volts", "Amps", "PF"})
_LAST = re.compile(r"Last (\d+) samples?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PtdSample:
    """One line of samples: PTDaemon's own time as text and as s of its day; values, NaN where none.

    Attributes:
        missing: why there is no power, or None when there is.
    """

    time_text: str
    time_of_day_s: float
    power_w: float | None
    voltage_v: float | None
    current_a: float | None
    missing: str | None


@dataclass(frozen=True, slots=True)
class PtdIdentity:
    """The answer to ``Identify``."""

    driver: str
    interval_s: float | None
    version: str | None
    mode: str
    can_set_range: bool


@dataclass(frozen=True, slots=True)
class PtdRanges:
    """The answer to ``RR``; None where PTDaemon does not know."""

    current_auto: bool | None
    current_a: float | None
    voltage_auto: bool | None
    voltage_v: float | None


@dataclass(frozen=True, slots=True)
class PtdUncertainty:
    """The answer to ``Uncertainty`` since ``Go``: ratios, and samples over 1 % and of unknown uncertainty."""

    average_ratio: float
    samples: int
    over_limit: int
    unknown: int


def sample_count(line: str) -> int | None:
    """N of ``Last N samples``; None for another line."""
    found = _LAST.match(line)
    return int(found[1]) if found else None


def parse_sample(line: str) -> PtdSample:
    """``Time,28-12-2020 15:21:14.682,Watts,22.95,Volts,228.57,Amps,0.20643,PF,0.4864,Mark,x``.

    The first of several channels counts (the sum). Day and month come in either order, so only the time of
    day is taken. -1 stands for an error and -2 for a missed sample.

    Raises:
        GarbageReply: when it is not such a line.
    """
    fields = [field.strip() for field in line.split(",")]
    clock = _CLOCK_TIME.search(fields[1]) if len(fields) >= 4 and fields[0] == "Time" else None
    if clock is None:
        raise GarbageReply(f"{line[:60]!r} is not a sample of PTDaemon")
    values: dict[str, str] = {}
    for key, value in zip(fields[2::2], fields[3::2], strict=False):
        values.setdefault(key, value)
    if not values.keys() >= _ALWAYS_THERE:  # a cut-off number would still be a number
        raise GarbageReply(f"{line[:60]!r} is not a whole sample of PTDaemon")
    power_w, missing = _power(values["Watts"])
    return PtdSample(
        fields[1],
        int(clock[1]) * 3600 + int(clock[2]) * 60 + float(clock[3]),
        power_w,
        _positive(values.get("Volts")),
        _positive(values.get("Amps")),
        missing,
    )


def age_s(older: PtdSample, newest: PtdSample) -> float:
    """How long before ``newest`` a sample was taken, s, by PTDaemon's own clock, also over midnight."""
    return (newest.time_of_day_s - older.time_of_day_s) % _DAY_S


def parse_identity(text: str) -> PtdIdentity:
    """Driver, interval in ms, six abilities, accepted, version, system, mode, two abilities, channels.

    Raises:
        GarbageReply: when it is not an answer to ``Identify``.
    """
    fields = [field.strip() for field in text.split(",")]
    named = {key: value for key, equals, value in (field.partition("=") for field in fields) if equals}
    if len(fields) < 3 or "version" not in named:
        raise GarbageReply(f"{text[:60]!r} is not PTDaemon's identification")
    interval_s = float(fields[1]) / 1e3 if re.fullmatch(r"\d+(\.\d+)?", fields[1]) else None
    mode_at = next((index for index, field in enumerate(fields) if field.startswith("mode=")), None)
    can_set = mode_at is None or fields[mode_at + 2 : mode_at + 3] != ["0"]
    driver = fields[0].removesuffix("-na")
    return PtdIdentity(
        driver, interval_s or None, named["version"] or None, named.get("mode", "power"), can_set
    )


def parse_ranges(text: str) -> PtdRanges:
    """``Ranges,<A auto>,<A>,<V auto>,<V>``; -1 stands for unknown.

    Raises:
        GarbageReply: when it is not such a line.
    """
    fields = text.split(",")
    try:
        current_auto, current_a, voltage_auto, voltage_v = (float(field) for field in fields[1:5])
    except ValueError:
        raise GarbageReply(f"{text[:60]!r} is not PTDaemon's ranges") from None
    return PtdRanges(_switch(current_auto), _range(current_a), _switch(voltage_auto), _range(voltage_v))


def parse_uncertainty(text: str) -> PtdUncertainty | None:
    """``Uncertainty,<average>,<least>,<most>,<samples>,<over>,<valid>,<unknown>``; None for another line.

    Raises:
        GarbageReply: when it is not such a line.
    """
    fields = text.split(",")
    if fields[0] != "Uncertainty":
        return None
    try:
        average, samples, over, unknown = (float(fields[index]) for index in (1, 4, 5, 7))
    except (ValueError, IndexError):
        raise GarbageReply(f"{text[:60]!r} is not PTDaemon's uncertainty") from None
    return PtdUncertainty(average, int(samples), int(over), int(unknown))


def _power(text: str) -> tuple[float | None, str | None]:
    """Watts and why there are none."""
    try:
        power_w = float(text)
    except ValueError:
        raise GarbageReply(f"{text[:40]!r} is not a number of watts") from None
    if power_w in (-1.0, -2.0):
        return None, "an error of the analyser" if power_w == -1.0 else "a missed sample"
    if not math.isfinite(power_w):
        return None, f"'{text}' in place of watts"
    return power_w, None


def _positive(text: str | None) -> float | None:
    """A voltage or current; None for none, an error (-1) or NaN."""
    try:
        value = float(text or "nan")
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _switch(value: float) -> bool | None:
    return None if value < 0 else value > 0


def _range(value: float) -> float | None:
    return value if value > 0 else None
