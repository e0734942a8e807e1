# SPDX-License-Identifier: Apache-2.0
"""What netjoule_meters says of a topology's meter before any line to it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netjoule.errors import UsageError
from netjoule.topology import Meter, Topology

if TYPE_CHECKING:
    import netjoule_meters

__all__ = ["check_meters", "instrument_of"]


def instrument_of(meter: Meter) -> netjoule_meters.Meter:
    """The adapter with its settings; range, accuracy and lag follow from them alone.

    Raises:
        UsageError: for an adapter or a setting that does not exist.
    """
    from netjoule_meters import MeterError, adapter
    from netjoule_meters.clock import SystemClock

    no_transport: Any = None
    try:
        return adapter(meter.adapter)(no_transport, meter.settings, clock=SystemClock())
    except MeterError as error:
        raise UsageError(str(error), where=f"topology, meter {meter.meter_id}") from error


def check_meters(topology: Topology) -> None:
    """Refuse adapters and settings that netjoule_meters does not have.

    Raises:
        UsageError: naming the meter.
    """
    for meter in topology.meters:
        instrument_of(meter)
