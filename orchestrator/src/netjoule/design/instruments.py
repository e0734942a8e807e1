# SPDX-License-Identifier: Apache-2.0
"""What netjoule_meters says of a topology's meter before any line to it is opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from netjoule.core.errors import UsageError
from netjoule.design.timeline import MeterPace
from netjoule.topology.topology import Meter

if TYPE_CHECKING:
    import netjoule_meters


def instrument_of(meter: Meter) -> netjoule_meters.Meter:
    """The adapter with its settings; range, accuracy and lag follow from them alone.

    A range that is left to a ranging pass (`auto`) counts as the widest one.

    Raises:
        UsageError: for an adapter or a setting that does not exist.
    """
    from netjoule_meters import MeterError, adapter
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.ranging import AUTO, widest

    no_transport: Any = None
    try:
        wide = widest(_config(meter)).settings
        settings = {name: wide[name] if value == AUTO else value for name, value in meter.settings.items()}
        return adapter(meter.adapter)(no_transport, settings, clock=SystemClock())
    except MeterError as error:
        raise UsageError(str(error), where=f"topology, meter {meter.meter_id}") from error


def _config(meter: Meter) -> netjoule_meters.MeterConfig:
    from netjoule_meters import MeterConfig

    return MeterConfig(meter.meter_id, meter.node, meter.adapter, meter.resource, dict(meter.settings))


def wants_ranging(meter: Meter) -> bool:
    """Whether a range of this meter is `auto`: found by a ranging pass before the first mini-block."""
    from netjoule_meters.ranging import wants_ranging as wants

    return wants(_config(meter))


def pace_of(meter: Meter) -> MeterPace:
    """How often a topology's meter updates and how late it is, before it is asked."""
    instrument = instrument_of(meter)
    return MeterPace(meter.meter_id, instrument.update_interval_s, instrument.lag_s)
