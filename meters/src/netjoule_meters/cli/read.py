# SPDX-License-Identifier: Apache-2.0
"""``read``: a few readings, or a live line with a sparkline."""

from __future__ import annotations

import json
import shutil
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from netjoule_meters.cli import options
from netjoule_meters.cli.open_meter import open_until_signal
from netjoule_meters.cli.sparkline import sparkline
from netjoule_meters.reading import Flag

if TYPE_CHECKING:
    from netjoule_meters.adapters.base import Meter
    from netjoule_meters.passport import MeasuringRange
    from netjoule_meters.reading import Reading

_DEFAULT_COUNT = 5
_HISTORY = 240
# Updates without a value that a new range may cost before the first reading is taken as it is.
_MOST_UNSETTLED = 5


def read_command(
    adapter_name: options.AdapterName = None,
    port: options.PortOption = None,
    setting: options.SettingOption = None,
    config: options.ConfigOption = None,
    meter_id: options.MeterIdOption = None,
    count: Annotated[
        int | None,
        typer.Option("--count", "-n", min=1, help="Readings to take [default: 5; --watch: no end]."),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="One live line with a sparkline, until Ctrl-C.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per reading.")] = False,
) -> None:
    """Read a meter a few times and print what it shows, or watch it.

    Example: netjoule-meters read wt210 --port /dev/ttyS0 --set voltage_range_v=300 --set current_range_a=0.5
    """
    named = options.chosen_meter(adapter_name, port, setting, config, meter_id)
    with open_until_signal(named) as (meter, stop):
        readings = _settled(meter.readings(stop))
        if watch and not as_json:
            _watch(meter, readings, count)
        else:
            _print(meter, readings, _DEFAULT_COUNT if count is None and not watch else count, as_json)


def _settled(readings: Iterable[Reading]) -> Iterator[Reading]:
    """Leave out the first readings while the instrument has none to give: the range was set a moment ago."""
    unsettled = 0
    for reading in readings:
        if reading.flag is Flag.NO_DATA and unsettled < _MOST_UNSETTLED:
            unsettled += 1
            continue
        unsettled = _MOST_UNSETTLED
        yield reading


def _print(meter: Meter, readings: Iterable[Reading], count: int | None, as_json: bool) -> None:
    if not as_json:
        typer.echo(_title(meter))
    for taken, reading in enumerate(readings, start=1):
        typer.echo(_json_line(reading) if as_json else _text_line(reading))
        sys.stdout.flush()
        if taken == count:
            return


def _title(meter: Meter) -> str:
    assert meter.identification is not None, "an open meter is identified"
    return f"{meter.identification.text} {range_text(meter.measuring_range)}"


def range_text(limits: MeasuringRange) -> str:
    """``on 30 W range``; an instrument without ranges has its own words."""
    return "without ranges" if limits.power_w is None else f"on {limits.power_w:g} W range"


def _json_line(reading: Reading) -> str:
    names = ("t_ns", "power_w", "voltage_v", "current_a", "energy_j")
    values = {name: getattr(reading, name) for name in names}
    return json.dumps({**values, "flag": reading.flag.value})


def _text_line(reading: Reading) -> str:
    cells = [(reading.power_w, "W"), (reading.voltage_v, "V"), (reading.current_a, "A")]
    if reading.energy_j is not None:
        cells.append((reading.energy_j, "J"))
    shown = "  ".join("-" if value is None else f"{value:.6g} {unit}" for value, unit in cells)
    return f"{shown}  {reading.flag.value}".rstrip()


def _watch(meter: Meter, readings: Iterable[Reading], count: int | None) -> None:
    """Rewrite one line on a terminal; elsewhere a line per reading, so that it can be piped."""
    typer.echo(_title(meter))
    live = sys.stdout.isatty()
    unicode = "utf" in (sys.stdout.encoding or "").lower()
    history: deque[float | None] = deque(maxlen=_HISTORY)
    for taken, reading in enumerate(readings, start=1):
        history.append(None if reading.flag else reading.power_w)
        columns = shutil.get_terminal_size().columns if live else 80
        line = watch_line(reading, list(history), columns, unicode=unicode)
        sys.stdout.write(f"\r\x1b[K{line}" if live else f"{line}\n")
        sys.stdout.flush()
        if taken == count:
            break
    if live:
        sys.stdout.write("\n")


def watch_line(
    reading: Reading, history: Sequence[float | None], columns: int, *, unicode: bool = True
) -> str:
    """One line of at most ``columns - 1`` characters: power, mean and spread of what is shown, sparkline."""
    known = [value for value in history if value is not None]
    power = "     -" if reading.power_w is None else f"{reading.power_w:.5g}"
    text = f"{power:>9} W"
    if known:
        text += f"  mean {sum(known) / len(known):.5g}  {min(known):.5g}..{max(known):.5g} W"
    text += f"  {reading.flag.value}" if reading.flag else ""
    room = columns - 1 - len(text) - 2
    return f"{text}  {sparkline(history, room, unicode=unicode)}" if room >= 4 else text[: columns - 1]
