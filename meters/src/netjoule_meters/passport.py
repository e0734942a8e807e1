# SPDX-License-Identifier: Apache-2.0
"""The passport of a meter: identity, set-up and limits of error (contract ``meter_passport``)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Accuracy:
    """Limits of error of active power: ``reading_ratio * |P| + range_ratio * power range``.

    Both ratios are None when the limits are unknown; ``source`` then says why.
    """

    reading_ratio: float | None
    range_ratio: float | None
    source: str

    @property
    def status(self) -> str:
        """``known`` or ``unknown``."""
        return "unknown" if self.reading_ratio is None or self.range_ratio is None else "known"


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

    def document(self) -> dict[str, Any]:
        """The passport as the contract's JSON document."""
        identity = self.identification
        return {
            "schema_version": 1,
            "meter_id": self.meter_id,
            "node": self.node,
            "adapter": self.adapter,
            "make": identity.make,
            "model": identity.model,
            "serial": identity.serial,
            "firmware": identity.firmware,
            "identification": identity.text,
            "range": asdict(self.range),
            "crest_factor": self.crest_factor,
            "update_interval_s": self.update_interval_s,
            "lag_s": self.lag_s,
            "accuracy": {**asdict(self.accuracy), "status": self.accuracy.status},
            "calibration_date": self.calibration_date,
            "emulated": self.power_source == "modelled",
            "power_source": self.power_source,
            "device_model": self.device_model,
            "device_form": self.device_form,
        }
