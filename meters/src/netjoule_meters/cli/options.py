# SPDX-License-Identifier: Apache-2.0
"""Options that several verbs share, and how what was typed becomes a meter's configuration."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from netjoule_meters.errors import UsageError

if TYPE_CHECKING:
    from netjoule_meters.config import MeterConfig

AdapterName = Annotated[str | None, typer.Argument(metavar="ADAPTER", help="For example wt210.")]
PortOption = Annotated[
    str | None, typer.Option(help="Where the meter is: a serial port or an address.", metavar="RESOURCE")
]
SettingOption = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, NAME=VALUE; may be given again.")
]
ConfigOption = Annotated[
    Path | None, typer.Option(help="Take the meter from this meter_config instead.", metavar="FILE")
]
MeterIdOption = Annotated[
    str | None, typer.Option("--meter-id", help="Which meter of --config [default: the first].")
]
Origin = Annotated[
    int | None, typer.Option(help="CLOCK_MONOTONIC in ns at campaign time 0 (default: now).", metavar="N")
]


def name_and_value(text: str) -> tuple[str, Any]:
    """``NAME=VALUE`` in two parts; the value is JSON where it is that, else text.

    Raises:
        UsageError: when there is no equals sign.
    """
    name, equals, value = text.partition("=")
    if not equals:
        raise UsageError(f"--set takes NAME=VALUE, not '{text}'")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def host_and_port(text: str, option: str) -> tuple[str, int]:
    """``HOST:PORT`` in its parts.

    Raises:
        UsageError: naming the option when it is not that.
    """
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"{option} takes HOST:PORT, for example 127.0.0.1:8888, not '{text}'")
    return host, int(port)


def settings_of(texts: Sequence[str] | None) -> dict[str, Any]:
    """All ``--set`` options as settings."""
    return dict(map(name_and_value, texts or []))


def chosen_meter(
    adapter_name: str | None,
    port: str | None,
    setting: Sequence[str] | None,
    config: Path | None,
    meter_id: str | None = None,
) -> MeterConfig:
    """The meter that a command line names, by adapter and port or out of a configuration.

    Raises:
        UsageError: when it names none.
    """
    from netjoule_meters.config import MeterConfig, load_meter_configs

    if config is not None:
        return _by_id(load_meter_configs(config), meter_id, config)
    if adapter_name is None or port is None:
        raise UsageError("name an adapter and its --port, or a --config file")
    return MeterConfig(meter_id or "meter", "host", adapter_name, port, settings_of(setting))


def _by_id(configs: Sequence[MeterConfig], meter_id: str | None, path: Path) -> MeterConfig:
    if meter_id is None:
        return configs[0]
    for config in configs:
        if config.meter_id == meter_id:
            return config
    known = ", ".join(config.meter_id for config in configs)
    raise UsageError(f"{path} has no meter '{meter_id}': it has {known}")
