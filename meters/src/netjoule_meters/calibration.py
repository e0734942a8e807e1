# SPDX-License-Identifier: Apache-2.0
"""What a meter shows against what is there: points, the line through them, and limits of error (contract
``calibration``).

Model: ``shown = gain * true + offset``. One point gives the gain alone. The line through several points is
weighted by their uncertainties (JCGM 100, H.3); the reference's own relative error is common to all points
and does not shrink with their number. Readings are never corrected: a campaign keeps what the meter showed,
and the limits say how far that may be from the truth.
"""

from __future__ import annotations

import hashlib
import json
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any

from netjoule_meters.errors import UsageError
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange

LEAST_READINGS = 10
VALID_DAYS = 366
_LEAST_SPAN = 1.2
"""Points whose greatest power is under so many times the least one cannot tell gain and offset apart."""


@dataclass(frozen=True, slots=True)
class Point:
    """One known power and what the meter made of it, W; uncertainties are 95 %."""

    true_w: float
    u95_true_w: float
    shown_w: float
    u95_shown_w: float
    readings: int


@dataclass(frozen=True, slots=True)
class Line:
    """``shown = gain * true + offset_w``; ``residual_w`` is the largest distance of a point from it."""

    gain: float
    u95_gain: float
    offset_w: float
    u95_offset_w: float
    residual_w: float


@dataclass(frozen=True, slots=True)
class Limits:
    """|shown - true| <= reading_ratio * |P| + range_ratio * power range, between two powers."""

    reading_ratio: float
    range_ratio: float
    least_w: float
    most_w: float


def point(true_w: float, u95_true_w: float, shown_w: Sequence[float]) -> Point:
    """A point from readings taken under one known power.

    Raises:
        UsageError: for fewer than ten readings or a power that is no load.
    """
    if len(shown_w) < LEAST_READINGS:
        raise UsageError(
            f"too few readings for a calibration point ({len(shown_w)}): take at least {LEAST_READINGS}, "
            "with a longer --seconds"
        )
    if not (true_w > 0 and u95_true_w > 0):
        raise UsageError("a calibration point needs a known power and its uncertainty, both above 0 W")
    u95_shown_w = 2 * statistics.stdev(shown_w) / math.sqrt(len(shown_w))
    return Point(true_w, u95_true_w, statistics.fmean(shown_w), u95_shown_w, len(shown_w))


def fit(points: Sequence[Point]) -> Line:
    """The line through the points; with one point, or with points close together, the gain alone."""
    powers = [p.true_w for p in points]
    common = max(p.u95_true_w / p.true_w for p in points)
    if max(powers) < _LEAST_SPAN * min(powers):
        return _gain_only(points, common)
    weights = [1 / max(_own_u95_w(p), 1e-9 * p.true_w) ** 2 for p in points]
    total = sum(weights)
    mean_true = sum(w * p.true_w for w, p in zip(weights, points, strict=True)) / total
    mean_shown = sum(w * p.shown_w for w, p in zip(weights, points, strict=True)) / total
    spread = sum(w * (p.true_w - mean_true) ** 2 for w, p in zip(weights, points, strict=True))
    pairs = zip(weights, points, strict=True)
    gain = sum(w * (p.true_w - mean_true) * (p.shown_w - mean_shown) for w, p in pairs) / spread
    offset_w = mean_shown - gain * mean_true
    residual_w = max(abs(p.shown_w - gain * p.true_w - offset_w) for p in points)
    u95_offset_w = math.sqrt(1 / total + mean_true**2 / spread)
    return Line(gain, math.hypot(1 / math.sqrt(spread), gain * common), offset_w, u95_offset_w, residual_w)


def _own_u95_w(p: Point) -> float:
    """What is a point's own: the meter's noise, and the part of the reference's that is told per point."""
    return math.hypot(p.u95_shown_w, p.u95_true_w)


def _gain_only(points: Sequence[Point], common: float) -> Line:
    gains = [p.shown_w / p.true_w for p in points]
    gain = statistics.fmean(gains)
    u95_gain = math.hypot(max(p.u95_shown_w / p.true_w for p in points), gain * common)
    residual_w = max(abs(p.shown_w - gain * p.true_w) for p in points)
    return Line(gain, u95_gain, 0.0, 0.0, residual_w)


def limits(line: Line, points: Sequence[Point], range_w: float | None) -> Limits:
    """How far an uncorrected reading may be from the truth between the least and the greatest point.

    Without a range the constant part is counted against the least power of the points.
    """
    least_w, most_w = min(p.true_w for p in points), max(p.true_w for p in points)
    reading = abs(line.gain - 1) + line.u95_gain
    constant_w = abs(line.offset_w) + line.u95_offset_w + line.residual_w
    if range_w is None:
        return Limits(reading + constant_w / least_w, 0.0, least_w, most_w)
    return Limits(reading, constant_w / range_w, least_w, most_w)


@dataclass(frozen=True, slots=True)
class Instrument:
    """The instrument that was calibrated, as its settings and answers name it."""

    adapter: str
    identification: Identification
    range: MeasuringRange
    settings: Mapping[str, Any]
    quantity: str
    power_source: str


@dataclass(frozen=True, slots=True)
class Reference:
    """What it was compared with: ``known_load`` or ``reference_meter``, and where its uncertainty is from."""

    method: str
    text: str
    source: str


def document(
    instrument: Instrument, reference: Reference, points: Sequence[Point], day: date
) -> dict[str, Any]:
    """The calibration document (contract ``calibration``)."""
    line = fit(points)
    identity = asdict(instrument.identification)
    return {
        "schema_version": 1,
        "kind": "calibration",
        "date": day.isoformat(),
        "adapter": instrument.adapter,
        "identification": identity.pop("text"),
        **identity,
        "power_source": instrument.power_source,
        "quantity": instrument.quantity,
        "range": asdict(instrument.range),
        "settings": dict(instrument.settings),
        "reference": asdict(reference),
        "points": [asdict(p) for p in points],
        "line": asdict(line),
        "limits": asdict(limits(line, points, instrument.range.power_w)),
    }


@dataclass(frozen=True, slots=True)
class Calibration:
    """A calibration document as a passport cites it."""

    name: str
    sha256: str
    content: Mapping[str, Any]

    def citation(self) -> dict[str, Any]:
        """What the passport keeps of it."""
        content = self.content
        return {
            "document": self.name,
            "sha256": self.sha256,
            "date": content["date"],
            "method": content["reference"]["method"],
            "reference": content["reference"]["text"],
            "points": len(content["points"]),
            "least_w": content["limits"]["least_w"],
            "most_w": content["limits"]["most_w"],
        }

    def accuracy(self, today: date) -> Accuracy:
        """Limits of error of an uncorrected reading; unknown unless the document is of the last year."""
        content = self.content
        age = (today - date.fromisoformat(content["date"])).days
        what = f"calibration {self.name} of {content['date']} against {content['reference']['text']}"
        if age < 0:
            return Accuracy(None, None, f"unknown: {what} lies in the future")
        if age > VALID_DAYS:
            return Accuracy(None, None, f"unknown: {what} is older than a year")
        found = content["limits"]
        source = f"{what}, {found['least_w']:g} to {found['most_w']:g} W"
        return Accuracy(found["reading_ratio"], found["range_ratio"], source)

    def require(self, adapter: str, identification: Identification, limits: MeasuringRange) -> None:
        """Refuse a document of another instrument or of another range.

        Raises:
            UsageError: naming the first difference.
        """
        here = {
            "adapter": adapter,
            "model": identification.model,
            "serial": identification.serial,
            "range": asdict(limits),
        }
        for name, value in here.items():
            if self.content[name] != value:
                raise UsageError(
                    f"calibration {self.name} is for {name} {self.content[name]}, this meter has {value}: "
                    "name the document of this instrument in this range, or calibrate it"
                )


def load(path: Path) -> Calibration:
    """Read a calibration document.

    Raises:
        UsageError: when it cannot be read or does not fit its contract.
    """
    from netjoule_contracts import ContractError, validate

    try:
        data = path.read_bytes()
        content = json.loads(data)
        validate("calibration", content)
    except OSError as error:
        raise UsageError(f"cannot read the calibration {path}: {error.strerror}") from error
    except (ValueError, ContractError) as error:
        raise UsageError(f"{path} is not a calibration document: {error}") from error
    return Calibration(path.name, hashlib.sha256(data).hexdigest(), content)


def points_of(content: Mapping[str, Any]) -> list[Point]:
    """The points of a document, to add another one."""
    return [Point(**entry) for entry in content["points"]]
