# SPDX-License-Identifier: Apache-2.0
"""What chrony says about a host's wall clock (``chronyc -n tracking``, ``-n sourcestats``; man chronyc).

chrony disciplines CLOCK_REALTIME; the rows made here tell how far two disciplined hosts can be apart, not
where CLOCK_MONOTONIC is. A logger on another host maps its stamps by our own exchange (`clock_map`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from netjoule_meters.errors import UsageError

_UNITS_S = {
    "ns": 1e-9,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "h": 3600.0,
    "d": 86400.0,
    "y": 31556952.0,
}
_SPAN = re.compile(r"([+-]?\d+(?:\.\d+)?)([a-z]*)")


@dataclass(frozen=True, slots=True)
class Tracking:
    """State of one chronyd.

    Attributes:
        offset_s: the host's wall clock minus NTP time.
        greatest_error_s: bound on the error of NTP time there: root dispersion plus half the root delay.
        drift_ppm: residual frequency, after correction.
        skew_ppm: bound on its error.
        synchronised: whether it follows a source.
    """

    reference: str
    offset_s: float
    greatest_error_s: float
    drift_ppm: float
    skew_ppm: float
    synchronised: bool


@dataclass(frozen=True, slots=True)
class SourceStatistics:
    """One source as ``sourcestats`` shows it: spread of its samples (s), frequency and its bound (ppm)."""

    name: str
    samples: int
    span_s: float
    frequency_ppm: float
    skew_ppm: float
    spread_s: float


def parse_tracking(text: str) -> Tracking:
    """The answer of ``chronyc -n tracking``.

    Raises:
        UsageError: when it is none (chronyd does not run, another program answered).
    """
    fields = {}
    for line in text.splitlines():
        name, colon, value = line.partition(" : ")
        if colon:
            fields[name.strip()] = value.strip()
    try:
        words = fields["System time"].split()
        sign = {"slow": -1.0, "fast": 1.0}[words[2]]
        error_s = _first(fields["Root dispersion"]) + _first(fields["Root delay"]) / 2
        return Tracking(
            reference=fields["Reference ID"].split()[0],
            offset_s=sign * float(words[0]),
            greatest_error_s=error_s,
            drift_ppm=_first(fields["Residual freq"]),
            skew_ppm=_first(fields["Skew"]),
            synchronised=fields["Leap status"] != "Not synchronised",
        )
    except (KeyError, IndexError, ValueError) as error:
        raise UsageError(
            f"'chronyc -n tracking' said {text.strip()[:80]!r}: check that chronyd runs on that host"
        ) from error


def parse_sourcestats(text: str) -> list[SourceStatistics]:
    """The answer of ``chronyc -n sourcestats``, without its offsets (their sign is not documented).

    Raises:
        UsageError: when a line is none.
    """
    _, ruler, table = text.partition("===\n")
    if not ruler:
        raise UsageError(
            f"'chronyc -n sourcestats' said {text.strip()[:80]!r}: check that chronyd runs there"
        )
    found = []
    for line in table.splitlines():
        cells = line.split()
        if not cells:
            continue
        try:
            name, samples, _runs, span, frequency, skew, _offset, spread = cells
            found.append(
                SourceStatistics(
                    name, int(samples), _seconds(span), float(frequency), float(skew), _seconds(spread)
                )
            )
        except ValueError as error:
            raise UsageError(f"not a line of 'chronyc -n sourcestats': {line[:80]!r}") from error
    return found


def chrony_row(host: str, t_s: float, there: Tracking, here: Tracking) -> dict[str, Any]:
    """A row of clocks.csv: wall clock of ``host`` minus the controller's, both as their chronyd knows them.

    Raises:
        UsageError: when one of them follows no source.
    """
    for name, tracking in ((host, there), ("the controller", here)):
        if not tracking.synchronised:
            raise UsageError(f"chronyd on {name} follows no source: wait for it or name a reachable server")
    return {
        "t_s": round(t_s, 6),
        "host": host,
        "offset_s": round(there.offset_s - here.offset_s, 9),
        "drift_ppm": round(there.drift_ppm - here.drift_ppm, 4),
        "residual_s": round(there.greatest_error_s + here.greatest_error_s, 9),
        "method": "chrony",
    }


def _first(text: str) -> float:
    return float(text.split(maxsplit=1)[0])


def _seconds(text: str) -> float:
    match = _SPAN.fullmatch(text)
    if match is None or (match[2] or "s") not in _UNITS_S:
        raise ValueError(text)
    return float(match[1]) * _UNITS_S[match[2] or "s"]
