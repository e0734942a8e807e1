# SPDX-License-Identifier: Apache-2.0
"""The passport of a meter: identity, set-up and limits of error (contract ``meter_passport``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from datetime import date
from typing import Any


@dataclass(frozen=True, slots=True)
class AccuracyTerm:
    """One term of a specification (``power_factor``, ``calibration_age`` ...): parts of reading and range."""

    term: str
    reading_ratio: float
    range_ratio: float


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Limits of error of active power: ``reading_ratio * |P| + range_ratio * power range``.

    Both ratios are None when the limits are unknown; ``source`` then says why. ``terms`` add up to them.
    """

    reading_ratio: float | None
    range_ratio: float | None
    source: str
    terms: tuple[AccuracyTerm, ...] = ()

    @classmethod
    def of_terms(cls, terms: Iterable[AccuracyTerm], source: str) -> Accuracy:
        """The sum of ``terms``; those that are zero are left out."""
        kept = tuple(term for term in terms if term.reading_ratio or term.range_ratio)
        reading_ratio = sum(term.reading_ratio for term in kept)
        range_ratio = sum(term.range_ratio for term in kept)
        return cls(round(reading_ratio, 9), round(range_ratio, 9), source, kept)

    @property
    def status(self) -> str:
        """``known`` or ``unknown``."""
        return "unknown" if self.reading_ratio is None or self.range_ratio is None else "known"

    def document(self) -> dict[str, Any]:
        """The part ``accuracy`` of a passport."""
        terms = [asdict(term) for term in self.terms]
        return {**asdict(self), "terms": terms, "status": self.status}


def specified(
    at_age: Callable[[float], Accuracy], power_source: str, calibration_date: str | None, today: date
) -> Accuracy:
    """Limits of a specification by the time since calibration, in days.

    What shows a modelled power does not age: it is an instrument drawn within the 12-month limits.
    """
    if power_source == "modelled":
        limits = at_age(365.0)
        return replace(limits, source=f"emulated instrument drawn within: {limits.source}")
    if calibration_date is None:
        return Accuracy(None, None, "unknown: no calibration date in the configuration")
    return at_age((today - date.fromisoformat(calibration_date)).days)


@dataclass(frozen=True, slots=True)
class Identification:
    """What an instrument says it is; ``text`` is its answer as sent."""

    text: str
    make: str
    model: str
    serial: str | None = None
    firmware: str | None = None


@dataclass(frozen=True, slots=True)
class MeasuringRange:
    """Fixed range in V, A and W (product); None where an instrument has none."""

    voltage_v: float | None
    current_a: float | None
    power_w: float | None


@dataclass(frozen=True, slots=True)
class Passport:
    """Everything a result must know about the meter behind it."""

    meter_id: str
    node: str
    adapter: str
    identification: Identification
    range: MeasuringRange
    crest_factor: float | None
    update_interval_s: float
    lag_s: float
    accuracy: Accuracy
    calibration_date: str | None
    power_source: str
    device_model: str | None
    device_form: str | None
    semantics: str = "interval_mean"
    quantity: str = "active_power"
    counter_modulus_j: float | None = None
    mapping_source: str | None = None
    provisional: tuple[str, ...] = ()
    calibration: dict[str, Any] | None = None
    resolution: float | None = None

    def document(self) -> dict[str, Any]:
        """The passport as the contract's JSON document."""
        identity = asdict(self.identification)
        return {
            "schema_version": 1,
            **asdict(self),
            "identification": identity.pop("text"),
            **identity,
            "accuracy": self.accuracy.document(),
            "emulated": self.power_source == "modelled",
            "provisional": list(self.provisional),
        }
