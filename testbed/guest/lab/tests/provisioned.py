# SPDX-License-Identifier: Apache-2.0
"""The radios as they came out of provisioning, by hostapd, wpa_supplicant and iw of the lab's hosts."""

from __future__ import annotations

from typing import Any

from guest_lab import GuestLab

from netjoule_radio.iw_dev import country_of_interface, parse_iw_dev_info
from netjoule_radio.iw_text import power_save
from netjoule_radio.link_state import key_values, streams_announced

RUN = "/run/netjoule"
INTERFACE = "wlan0"
HOSTAPD = ("hostapd_cli", "-p", f"{RUN}/hostapd", "-i", INTERFACE)
WPA = ("wpa_cli", "-p", f"{RUN}/wpa_supplicant", "-i", INTERFACE)
_MODES = {"4": "11n", "5": "11ac"}  # Wi-Fi generations


def radios(lab: GuestLab) -> dict[str, dict[str, Any]]:
    """Ask both ends; one entry for each host with a radio."""
    said = lab.ask("client", *WPA, "status")
    station = lab.ask("access_point", *HOSTAPD, "sta", key_values(said)["address"])
    saves = lab.ask("client", "iw", "dev", INTERFACE, "get", "power_save")
    return {
        "access_point": access_point(
            lab.ask("access_point", *HOSTAPD, "status"), *_by_iw(lab, "access_point")
        ),
        "client": client(said, station, saves, *_by_iw(lab, "client")),
    }


def access_point(status: str, iw_dev_info: str, iw_reg: str) -> dict[str, Any]:
    """What hostapd sends."""
    told = key_values(status)
    vht = told["ieee80211ac"] == "1"
    return _interface(iw_dev_info, iw_reg) | {
        "state": told["state"],
        "mode": "11ac" if vht else "11n" if told["ieee80211n"] == "1" else "none",
        "secondary_channel": int(told["secondary_channel"]),
        "streams": streams_announced(told, vht=vht),
        "stations": int(told["num_sta[0]"]),
    }


def client(status: str, station: str, saves: str, iw_dev_info: str, iw_reg: str) -> dict[str, Any]:
    """How the client is associated; its streams as hostapd heard them (station: of hostapd_cli sta)."""
    told = key_values(status)
    mode = _MODES.get(told["wifi_generation"], told["wifi_generation"])
    return _interface(iw_dev_info, iw_reg) | {
        "state": told["wpa_state"],
        "mode": mode,
        "streams": streams_announced(key_values(station), vht=mode == "11ac"),
        "key_management": told["key_mgmt"],
        "bssid": told["bssid"],
        "power_save": {True: "on", False: "off", None: "not told"}[power_save(saves)],
    }


def _by_iw(lab: GuestLab, host: str) -> tuple[str, str]:
    return lab.ask(host, "iw", "dev", INTERFACE, "info"), lab.ask(host, "iw", "reg", "get")


def _interface(iw_dev_info: str, iw_reg: str) -> dict[str, Any]:
    state = parse_iw_dev_info(iw_dev_info)
    assert state is not None, iw_dev_info
    return {
        "interface": state.name,
        "type": state.type,
        "ssid": state.ssid,
        "country": country_of_interface(iw_reg, iw_dev_info),
        "frequency_mhz": state.frequency_mhz,
        "width_mhz": state.width_mhz,
        "centre_frequency_mhz": state.centre_frequency_mhz,
        "tx_power_dbm": state.tx_power_dbm,
    }
