# SPDX-License-Identifier: Apache-2.0
"""Power meters beside an experiment.

``transports`` carry bytes, ``adapters`` give them meaning, ``emulated`` holds instruments that are
programs, ``logger`` writes readings to disk. The public names below are imported on first use, so that a
command which needs one room does not pay for the others.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_meters.adapters import adapter, adapter_names
    from netjoule_meters.adapters.base import Meter
    from netjoule_meters.config import MeterConfig, load_meter_configs
    from netjoule_meters.errors import MeterError
    from netjoule_meters.meter_factory import open_meter
    from netjoule_meters.passport import Accuracy, Passport
    from netjoule_meters.reading import Flag, Reading

_HOMES = {
    "adapters": ("adapter", "adapter_names"),
    "adapters.base": ("Meter",),
    "config": ("MeterConfig", "load_meter_configs"),
    "errors": ("MeterError",),
    "meter_factory": ("open_meter",),
    "passport": ("Accuracy", "Passport"),
    "reading": ("Flag", "Reading"),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
