# SPDX-License-Identifier: Apache-2.0
"""What emulated networked sockets answer: a document for each preset, from what the device shows.

Fields, units and steps are those of the presets (``socket_presets`` of the adapter); identities are marked as
emulated. An outlet besides the metered one is there where the real device has one without a meter.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from netjoule_meters.emulated.plugs_and_pdus.http import Page
from netjoule_meters.emulated.plugs_and_pdus.measurement import DisplayedValues
from netjoule_meters.emulated.plugs_and_pdus.modbus import float_words

Site = Callable[[str, DisplayedValues], Page | None]
_MAC = "02000000E301"
_EPOCH = datetime(2020, 1, 1, tzinfo=UTC)
_ABSENT = -1
OWN_TREE = "1.3.6.1.4.1.32473.1"
"""The enterprise number that is kept for examples (RFC 5612)."""


def _json(document: Any) -> Page:
    return Page(json.dumps(document).encode())


def _step(value: float | None, step: float) -> float | None:
    """A value in steps of the display, with no more decimals than the step has."""
    if value is None:
        return None
    return round(round(value / step) * step, max(0, -math.floor(math.log10(step))))


def _whole(value: float | None, unit: float = 1.0) -> int | None:
    return None if value is None else round(value / unit)


def netio(target: str, shown: DisplayedValues) -> Page | None:
    """NETIO: netio.json, with a second output that does not meter."""
    if target != "/netio.json":
        return None
    agent = {"Model": "NETIO (emulated)", "Version": "0", "JSONVer": "2.1", "SerialNumber": _MAC}
    names = ("ID", "Name", "State", "Current", "PowerFactor", "Load", "Energy")
    metered = (1, "output_1", 1, _whole(shown.current_a, 1e-3), None, _whole(shown.power_w))
    outputs = [
        dict(zip(names, (*metered, _whole(shown.energy_j, 3600)), strict=True)),
        dict(zip(names, (2, "output_2", 1, None, None, None, None), strict=True)),
    ]
    measured = {"Voltage": _step(shown.voltage_v, 0.1)}
    return _json({"Agent": {**agent, "NumOutputs": 2}, "GlobalMeasure": measured, "Outputs": outputs})


def gude(target: str, shown: DisplayedValues) -> Page | None:
    """Gude: status.json with the sensor values."""
    if target != "/status.json?components=16384":
        return None
    values = (shown.voltage_v, shown.current_a, 50.0, 0.0, _step(shown.power_w, 0.1))
    return _json({"sensor_values": [{"type": 1, "num": 1, "values": [[{"v": value} for value in values]]}]})


def shelly1(target: str, shown: DisplayedValues) -> Page | None:
    """Shelly Gen1: /status and /shelly."""
    if target == "/shelly":
        return _json({"type": "SHPLG-S (emulated)", "mac": _MAC, "auth": False, "fw": "0"})
    if target != "/status":
        return None
    meter = {
        "power": _step(shown.power_w, 0.01) or 0.0,
        "is_valid": shown.power_w is not None,
        "total": _whole(shown.energy_j, 60.0),
    }
    return _json(
        {"relays": [{"ison": True}], "meters": [meter, {"power": 0.0, "is_valid": False, "total": 0}]}
    )


def shelly2(target: str, shown: DisplayedValues) -> Page | None:
    """Shelly Gen2: Switch.GetStatus and Shelly.GetDeviceInfo."""
    if target == "/rpc/Shelly.GetDeviceInfo":
        return _json({"id": "emulated", "mac": _MAC, "model": "SNPL (emulated)", "gen": 2, "ver": "0"})
    if target != "/rpc/Switch.GetStatus?id=0":
        return None
    return _json(
        {
            "id": 0,
            "output": True,
            "apower": _step(shown.power_w, 0.1),
            "voltage": _step(shown.voltage_v, 0.1),
            "current": _step(shown.current_a, 0.001),
            "aenergy": {"total": _step(shown.energy_j / 3600, 0.001)},
        }
    )


def tasmota(target: str, shown: DisplayedValues) -> Page | None:
    """Tasmota: Status 10 and Status 2; power without decimals, as delivered."""
    if target == "/cm?cmnd=Status%202":
        return _json({"StatusFWR": {"Version": "0 (emulated)"}})
    if target != "/cm?cmnd=Status%2010":
        return None
    time = (_EPOCH + timedelta(seconds=math.floor(shown.t_s))).strftime("%Y-%m-%dT%H:%M:%S")
    energy = {
        "Total": _step(shown.energy_j / 3.6e6, 0.001),
        "Power": _whole(shown.power_w),
        "Voltage": _whole(shown.voltage_v),
        "Current": _step(shown.current_a, 0.001),
    }
    return _json({"StatusSNS": {"Time": time, "ENERGY": energy}})


def kasa(request: Any, shown: DisplayedValues) -> Any:
    """Kasa, newer firmware: thousandths."""
    return _kasa(
        request,
        {
            "voltage_mv": _whole(shown.voltage_v, 1e-3),
            "current_ma": _whole(shown.current_a, 1e-3),
            "power_mw": _whole(shown.power_w, 1e-3),
            "total_wh": _whole(shown.energy_j, 3600),
        },
    )


def kasa_old(request: Any, shown: DisplayedValues) -> Any:
    """Kasa, older firmware: V, A, W, kWh."""
    return _kasa(
        request,
        {
            "voltage": _step(shown.voltage_v, 0.001),
            "current": _step(shown.current_a, 0.001),
            "power": _step(shown.power_w, 0.001),
            "total": _step(shown.energy_j / 3.6e6, 0.001),
        },
    )


def _kasa(request: Any, realtime: dict[str, Any]) -> Any:
    if isinstance(request, dict) and "get_realtime" in request.get("emeter", {}):
        return {"emeter": {"get_realtime": {**realtime, "err_code": 0}}}
    if isinstance(request, dict) and "get_sysinfo" in request.get("system", {}):
        identity = {"model": "HS110 (emulated)", "deviceId": _MAC, "sw_ver": "0", "err_code": 0}
        return {"system": {"get_sysinfo": identity}}
    return {"err_code": -1, "err_msg": "module not support"}


def _objects(values: dict[str, int | None], description: str) -> dict[str, int | str]:
    found: dict[str, int | str] = {"1.3.6.1.2.1.1.1.0": description}
    return {**found, **{name: _ABSENT if value is None else value for name, value in values.items()}}


def apc(shown: DisplayedValues) -> dict[str, int | str]:
    """APC rPDU2: power of the device in hundredths of a kilowatt."""
    power = _whole(shown.power_w, 10.0)
    return _objects({"1.3.6.1.4.1.318.1.1.26.4.3.1.5.1": power}, "APC rack PDU (emulated)")


def apc_outlet(shown: DisplayedValues) -> dict[str, int | str]:
    """APC rPDU2 metered by outlet: outlet 1 is metered, outlet 2 has no value."""
    table = "1.3.6.1.4.1.318.1.1.26.9.4.3.1"
    values = {
        f"{table}.6.1": _whole(shown.current_a, 0.1),
        f"{table}.7.1": _whole(shown.power_w),
        f"{table}.11.1": _whole(shown.energy_j, 3.6e5),
        f"{table}.6.2": None,
        f"{table}.7.2": None,
        f"{table}.11.2": None,
    }
    return _objects(values, "APC rack PDU (emulated)")


def own_json(target: str, shown: DisplayedValues) -> Page | None:
    """This program's own JSON."""
    if target != "/reading.json":
        return None
    return _json(
        {
            "note": "emulated, in a format of its own",
            "power_w": _step(shown.power_w, 0.1),
            "voltage_v": _step(shown.voltage_v, 0.1),
            "energy_wh": _step(shown.energy_j / 3600, 0.01),
            "update": shown.updates,
        }
    )


def own_csv(target: str, shown: DisplayedValues) -> Page | None:
    """This program's own CSV."""
    if target != "/reading.csv":
        return None
    values = (shown.updates, _text(shown.power_w), _text(shown.voltage_v))
    return Page(
        f"update;power_w;voltage_v\r\n{values[0]};{values[1]};{values[2]}\r\n".encode(), kind="text/csv"
    )


def own_text(target: str, shown: DisplayedValues) -> Page | None:
    """This program's own text page."""
    return Page(f"{own_line(shown)}\r\n".encode(), kind="text/plain") if target == "/reading.txt" else None


def own_line(shown: DisplayedValues) -> str:
    """This program's own line of text."""
    return f"update {shown.updates} power {_text(shown.power_w)} W voltage {_text(shown.voltage_v)} V"


def own_objects(shown: DisplayedValues) -> dict[str, int | str]:
    """This program's own objects: power in mW, voltage in 0.1 V, number of the update."""
    values = {
        f"{OWN_TREE}.1.0": _whole(_step(shown.power_w, 0.1), 1e-3),
        f"{OWN_TREE}.2.0": _whole(shown.voltage_v, 0.1),
        f"{OWN_TREE}.3.0": shown.updates,
    }
    return _objects(values, "socket (emulated)")


def own_words(shown: DisplayedValues) -> dict[int, int]:
    """This program's own input registers: power at 0 and voltage at 2 as float32, the update at 4."""
    power_w = math.nan if shown.power_w is None else shown.power_w
    voltage_v = math.nan if shown.voltage_v is None else shown.voltage_v
    return {**float_words(0, power_w), **float_words(2, voltage_v), 4: shown.updates & 0xFFFF}


def _text(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
