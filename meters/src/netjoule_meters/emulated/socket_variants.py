# SPDX-License-Identifier: Apache-2.0
"""How each emulated networked socket is reached and read: its port, its resource, the adapter's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Variant:
    """How one variant of an emulated instrument is reached and read.

    Attributes:
        ports: as in ``registry.EmulatedModel``.
        resource: as in ``registry.EmulatedModel``.
        settings: settings with which the adapter reads it, emulated at its usual update interval.
    """

    ports: tuple[str, ...]
    resource: str
    settings: Mapping[str, Any] = field(default_factory=dict)


ONE_PAGE, _DATAGRAMS = ("tcp-once", "tcp"), ("udp",)


def _preset(name: str, ports: tuple[str, ...] = ONE_PAGE, resource: str = "http://{port}") -> Variant:
    # The mean over one second is shown one second late, for a second: its middle is 2 s back.
    return Variant(ports, resource, {"preset": name, "lag_s": 2.0})


SOCKETS = {
    **{name: _preset(name) for name in ("netio", "gude", "shelly1", "shelly2", "tasmota")},
    **{name: _preset("kasa", ONE_PAGE, "kasa:{port}") for name in ("kasa", "kasa_old")},
    **{name: _preset(name, _DATAGRAMS, "snmp:{port}") for name in ("apc", "apc_outlet")},
}


def _own(
    form: str, ports: tuple[str, ...] = ONE_PAGE, resource: str = "http://{port}", **mapping: Any
) -> Variant:
    """A format of ours; the mean over 30 s is shown 30 s late, for 30 s, so it ended 45 s back."""
    common = {"format": form, "semantics": "interval_mean", "lag_s": 45.0}
    return Variant(ports, resource, {**common, "mapping_source": "emulated, own format", **mapping})


_OWN_PATTERN = r"update (?P<update>\d+) power (?P<power>\S+) W voltage (?P<voltage>\S+) V"
_OWN_TEXT = {
    "pattern": _OWN_PATTERN,
    "power_path": "power",
    "voltage_path": "voltage",
    "time_path": "update",
}
ISOCKETS = {
    "json": _own(
        "json",
        request="/reading.json",
        power_path="/power_w",
        voltage_path="/voltage_v",
        energy_path="/energy_wh",
        time_path="/update",
    ),
    "csv": _own(
        "csv",
        request="/reading.csv",
        separator=";",
        power_path="power_w",
        voltage_path="voltage_v",
        time_path="update",
    ),
    "text": _own("text", ONE_PAGE, "http://{port}", request="/reading.txt", **_OWN_TEXT),
    "tcp_text": _own("text", ONE_PAGE, "text:{port}", request="READ", **_OWN_TEXT),
    "snmp": _own(
        "snmp",
        _DATAGRAMS,
        "snmp:{port}",
        power_path="1.3.6.1.4.1.32473.1.1.0",
        power_unit="mW",
        no_data_value=-1.0,
        voltage_path="1.3.6.1.4.1.32473.1.2.0",
        voltage_unit="0.1 V",
        time_path="1.3.6.1.4.1.32473.1.3.0",
    ),
    "modbus": _own(
        "modbus",
        ("tcp",),
        "modbus:{port}",
        power_path="input:0:float32",
        voltage_path="input:2:float32",
        time_path="input:4:uint16",
    ),
}
