# SPDX-License-Identifier: Apache-2.0
"""The adapters there are. A new one is a class beside these and a line in this table."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from netjoule_meters.errors import UsageError

if TYPE_CHECKING:
    from netjoule_meters.adapters.base import Meter

_ADAPTERS = {
    "hm8115": "netjoule_meters.adapters.power_analysers.hm8115:HM8115",
    "cc128": "netjoule_meters.adapters.energy_monitors.cc128:CC128",
    "wt210": "netjoule_meters.adapters.power_analysers.wt210:WT210",
    "wt310": "netjoule_meters.adapters.power_analysers.wt310:WT310",
    "isockets": "netjoule_meters.adapters.plugs_and_pdus.networked_socket:ISockets",
    "socket": "netjoule_meters.adapters.plugs_and_pdus.networked_socket:NetworkedSocket",
    "ptd": "netjoule_meters.adapters.power_analysers.ptd:Ptd",
    "rapl": "netjoule_meters.adapters.host_sensors.rapl:Rapl",
    "hwmon": "netjoule_meters.adapters.host_sensors.hwmon:Hwmon",
    "battery": "netjoule_meters.adapters.host_sensors.battery:Battery",
    "joulescope": "netjoule_meters.adapters.power_analysers.joulescope:JoulescopeMeter",
}


def adapter_names() -> list[str]:
    """Names that ``adapter`` knows."""
    return sorted(_ADAPTERS)


def adapter(name: str) -> type[Meter]:
    """The adapter class called ``name``.

    Raises:
        UsageError: when there is none.
    """
    if name not in _ADAPTERS:
        raise UsageError(f"no adapter '{name}': this build has {', '.join(adapter_names())}")
    module, _, attribute = _ADAPTERS[name].partition(":")
    found: type[Meter] = getattr(importlib.import_module(module), attribute)
    return found
