# SPDX-License-Identifier: Apache-2.0
"""State of one interface: the text of `iw dev wlan0 info`; and the country of `iw reg get`."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class InterfaceState:
    """type: managed, AP ... frequency_mhz, width_mhz, centre_frequency_mhz: None while it has no channel."""

    name: str
    wiphy: int
    type: str
    ssid: str | None = None
    frequency_mhz: int | None = None
    width_mhz: int | None = None
    centre_frequency_mhz: int | None = None
    tx_power_dbm: float | None = None


_CHANNEL = re.compile(r"^\s*channel \d+ \((\d+)(?:\.\d+)? MHz\), width: (\d+) MHz.*?center1: (\d+)", re.M)


def parse_iw_dev_info(text: str) -> InterfaceState | None:
    """Read `iw dev X info`; None when the text describes no interface."""
    name, wiphy, kind = _word(text, "Interface"), _word(text, "wiphy"), _word(text, "type")
    if name is None or wiphy is None or kind is None:
        return None
    ssid, power = _word(text, "ssid"), _word(text, "txpower")
    channel = _CHANNEL.search(text)
    return InterfaceState(
        name=name,
        wiphy=int(wiphy),
        type=kind,
        ssid=ssid,
        frequency_mhz=int(channel[1]) if channel else None,
        width_mhz=int(channel[2]) if channel else None,
        centre_frequency_mhz=int(channel[3]) if channel else None,
        tx_power_dbm=float(power.removesuffix(" dBm")) if power else None,
    )


def _word(text: str, key: str) -> str | None:
    match = re.search(rf"(?m)^\s*{key} (.*)$", text)
    return match[1].strip() if match else None


def country(iw_reg_text: str, wiphy: int | None = None) -> str | None:
    """Country in force by `iw reg get`: the radio's own when it manages itself, else the global one.

    "00" is the world domain, in which no access point may start at 5 GHz. None when the text has no country.
    """
    blocks = dict(re.findall(r"(?m)^(global|phy#\d+)[^\n]*\ncountry (\w\w):", iw_reg_text))
    own = blocks.get(f"phy#{wiphy}") if wiphy is not None else None
    return own or blocks.get("global")


def country_of_interface(iw_reg_text: str, iw_dev_info: str) -> str | None:
    """`country` for the radio of an interface, by the text of `iw dev X info`."""
    state = parse_iw_dev_info(iw_dev_info)
    return country(iw_reg_text, state.wiphy if state else None)
