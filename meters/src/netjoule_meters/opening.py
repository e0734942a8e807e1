# SPDX-License-Identifier: Apache-2.0
"""From a configuration to a meter on its port."""

from __future__ import annotations

from collections.abc import Callable

from netjoule_meters.adapters import adapter
from netjoule_meters.adapters.base import Meter
from netjoule_meters.adapters.settings import resolve
from netjoule_meters.clock import Clock, SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.transports.serial_port import SerialPort


def build_meter(config: MeterConfig, *, clock: Clock, notify: Callable[[str], None] | None = None) -> Meter:
    """The adapter that ``config`` names, on its port, not yet connected.

    Raises:
        UsageError: for an unknown adapter or setting.
    """
    kind = adapter(config.adapter)
    settings = resolve(kind.all_settings(), config.settings, kind.name)
    interface = {setting.name: settings[setting.name] for setting in kind.interface_settings}
    transport = SerialPort(config.resource, clock=clock, **interface)
    return kind(transport, config.settings, clock=clock, notify=notify)


def open_meter(config: MeterConfig, *, clock: Clock | None = None) -> Meter:
    """A connected, identified and set-up meter, ready for ``read``.

    Raises:
        MeterError: in one sentence with the next step.
    """
    meter = build_meter(config, clock=clock or SystemClock())
    meter.open()
    return meter
