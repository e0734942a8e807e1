# SPDX-License-Identifier: Apache-2.0
"""Units in which networked sockets state their values, as factors to SI units; ``0.01 kW`` is one, too."""

from __future__ import annotations

import math
from collections.abc import Mapping

from netjoule_meters.errors import UsageError

POWER = {"W": 1.0, "mW": 1e-3, "uW": 1e-6, "kW": 1e3, "VA": 1.0, "mVA": 1e-3, "kVA": 1e3}
ENERGY = {
    "J": 1.0,
    "mJ": 1e-3,
    "uJ": 1e-6,
    "kJ": 1e3,
    "Ws": 1.0,
    "Wmin": 60.0,
    "Wh": 3.6e3,
    "mWh": 3.6,
    "kWh": 3.6e6,
}
VOLTAGE = {"V": 1.0, "mV": 1e-3, "kV": 1e3}
CURRENT = {"A": 1.0, "mA": 1e-3}


def factor(text: object, units: Mapping[str, float], setting: str) -> float:
    """What to multiply a value in ``text`` by: a unit of ``units``, or a number and a unit.

    Raises:
        UsageError: naming ``setting`` and the units there are.
    """
    words = str(text).split()
    scale = 1.0
    if len(words) == 2:
        try:
            scale = float(words[0])
        except ValueError:
            scale = math.nan
    if not words or len(words) > 2 or words[-1] not in units or not math.isfinite(scale) or scale == 0:
        raise UsageError(
            f"{setting} cannot be '{text}': write one of {', '.join(units)}, with a factor before it "
            "where the value has one (0.01 kW)"
        )
    return scale * units[words[-1]]
