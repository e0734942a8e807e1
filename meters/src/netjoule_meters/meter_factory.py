# SPDX-License-Identifier: Apache-2.0
"""From a configuration to a meter on its port."""

from __future__ import annotations

from collections.abc import Callable

from netjoule_meters.adapters import adapter
from netjoule_meters.adapters.base import Meter
from netjoule_meters.clock import Clock, SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import UsageError
from netjoule_meters.ranging import require_fixed
from netjoule_meters.settings import resolve
from netjoule_meters.transports import connect


def build_meter(config: MeterConfig, *, clock: Clock, notify: Callable[[str], None] | None = None) -> Meter:
    """The adapter that ``config`` names, on its port, not yet connected.

    Raises:
        UsageError: for an unknown adapter or setting.
    """
    kind = adapter(config.adapter)
    require_fixed(config.adapter, config.settings)
    settings = resolve(kind.all_settings(), config.settings, kind.name)
    _check_kinds(config)
    connection = connect(config.resource, kind.interfaces, settings, clock=clock)
    return kind(connection, config.settings, clock=clock, notify=notify)


def _check_kinds(config: MeterConfig) -> None:
    """Hold the values of settings to the contract, whoever wrote them: a file, a command line, a program.

    Raises:
        UsageError: naming the first that is of the wrong kind.
    """
    from netjoule_contracts import document_defects

    told = {name: value for name, value in config.settings.items() if value is not None}
    meter = {"meter_id": "m", "node": "n", "adapter": config.adapter, "resource": "r"}
    for defect in document_defects(
        "meter_config", {"schema_version": 1, "meters": [{**meter, "settings": told}]}
    ):
        setting = defect.rpartition("settings.")[2]
        raise UsageError(f"{config.adapter}: setting {setting}; 'netjoule-meters list' says what it takes")


def open_meter(config: MeterConfig, *, clock: Clock | None = None) -> Meter:
    """A connected, identified and set-up meter, ready for ``read``.

    Raises:
        MeterError: in one sentence with the next step.
    """
    meter = build_meter(config, clock=clock or SystemClock())
    meter.open()
    return meter
