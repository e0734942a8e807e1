# SPDX-License-Identifier: Apache-2.0
"""``range``: find the fixed range for a load, before a campaign."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from netjoule_meters.cli import options
from netjoule_meters.cli.open_meter import open_until_signal


def range_command(
    adapter_name: options.AdapterName = None,
    port: options.PortOption = None,
    setting: options.SettingOption = None,
    config: options.ConfigOption = None,
    meter_id: options.MeterIdOption = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long to watch, in s; the heaviest load must fall in it.")
    ] = 20.0,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Watch a meter in autorange under the heaviest load; print the fixed range to set for a campaign.

    The range is the least one that holds the highest readings with 10 % head-room or more. The instrument is
    back in fixed ranges afterwards, also when Ctrl-C ends the pass early.

    Example: netjoule-meters range wt210 --port /dev/ttyUSB0 --seconds 30
    """
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.ranging import ranging_pass, widest

    clock = SystemClock()
    named = widest(options.chosen_meter(adapter_name, port, setting, config, meter_id))
    # A pass that is cut short must still bring the fixed ranges back, so no wait is called off.
    with open_until_signal(named, clock, call_off_waits=False) as (meter, stop):
        result = ranging_pass(meter, seconds, clock, stop)
    if as_json:
        typer.echo(json.dumps(result.document()))
        return
    typer.echo(
        f"highest of {result.readings} readings: {result.most_v:.5g} V, {result.most_a:.5g} A, "
        f"{result.most_w:.5g} W" + (f"; {result.over} were over a range on the way" if result.over else "")
    )
    typer.echo("settings: {" + ", ".join(f"{name}: {value}" for name, value in result.settings.items()) + "}")
