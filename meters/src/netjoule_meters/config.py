# SPDX-License-Identifier: Apache-2.0
"""Which meters to read: the document ``meter_config`` as objects."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule_meters.errors import UsageError


@dataclass(frozen=True, slots=True)
class MeterConfig:
    """One meter of a topology; fields as in the contract ``meter_config``."""

    meter_id: str
    node: str
    adapter: str
    resource: str
    settings: dict[str, Any] = field(default_factory=dict)
    power_source: str = "measured"
    device_model: str | None = None
    device_form: str | None = None
    calibration_date: str | None = None
    calibration: str | None = None
    serial: str | None = None

    @property
    def may_stand_still(self) -> bool:
        """Whether a value that does not move is no defect: the power of a model may be constant for ever."""
        return self.power_source == "modelled"


def load_meter_configs(path: Path) -> list[MeterConfig]:
    """Read and check a configuration file.

    Raises:
        UsageError: when it cannot be read, does not fit the contract or names a meter twice.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"cannot read the meter configuration {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"the meter configuration {path} is not JSON: {error}") from error
    return meter_configs(document, where=str(path))


def meter_configs(document: Any, where: str = "meter configuration") -> list[MeterConfig]:
    """Check a configuration document; ``where`` names it in messages."""
    from netjoule_contracts import ContractError, validate

    try:
        validate("meter_config", document)
    except ContractError as error:
        raise UsageError(f"{where}: {error}") from error
    configs = [MeterConfig(**meter) for meter in document["meters"]]
    for what, values in (
        ("meter_id", [config.meter_id for config in configs]),
        ("resource", [_place(config) for config in configs]),
    ):
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise UsageError(f"{where}: {what} '{twice[0]}' is used by two meters; give each its own")
    return configs


_SHARED = ("http", "snmp", "modbus", "kasa")
"""Interfaces that several meters may use at once, each for another outlet."""


def _place(config: MeterConfig) -> str:
    """What only one meter can have: a port, or one outlet of a device on the network."""
    from netjoule_meters.transports import interface_of

    if interface_of(config.resource) not in _SHARED:
        return config.resource
    parts = (config.settings.get(name) for name in ("outlet", "power_path", "energy_path"))
    return " ".join((config.resource, *(str(part) for part in parts if part is not None)))
