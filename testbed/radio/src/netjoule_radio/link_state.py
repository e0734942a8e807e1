# SPDX-License-Identifier: Apache-2.0
"""Does the running network agree with the plan? Reads hostapd_cli, wpa_cli and iw; gives remedies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule_radio.iw_dev import country_of_interface, parse_iw_dev_info

_POWER_TOLERANCE_DB = 0.5  # drivers round to half a dB


def key_values(text: str) -> dict[str, str]:
    """Lines `key=value` of hostapd_cli status or wpa_cli status; the last of a repeated key."""
    return dict(line.split("=", 1) for line in text.splitlines() if "=" in line)


def _as_printed(ssid: object) -> str:
    """An SSID as status shows it: quotes, backslashes and octets beyond ASCII escaped (wpa_ssid_txt)."""
    special = {ord('"'): '\\"', ord("\\"): "\\\\"}
    octets = str(ssid).encode()
    return "".join(special.get(o) or (chr(o) if 32 <= o < 127 else f"\\x{o:02x}") for o in octets)


def access_point_differences(
    plan: Mapping[str, Any], wifi: Mapping[str, Any], hostapd_status: str, iw_dev_info: str, iw_reg: str
) -> list[str]:
    """One sentence for each difference between plan and running access point; none when it is as planned."""
    status = key_values(hostapd_status)
    if status.get("state") != "ENABLED":
        state = status.get("state", "no answer")
        return [f"hostapd is not sending (state: {state}); its log says why, see radio_log_file"]
    found = _wrong(status, "freq", str(plan["frequency_mhz"]), _SWAPPED)
    found += _wrong(status, "secondary_channel", str(plan["secondary_channel"]), _SWAPPED)
    found += _wrong(
        status, "ieee80211n", "1", "hostapd turned 802.11n off: is WMM on, and is the cipher CCMP?"
    )
    found += _wrong(
        status, "ieee80211ac", str(int(plan["vht"])), "hostapd's 802.11ac differs; provision again"
    )
    found += _wrong(
        status, "ssid[0]", _as_printed(wifi["ssid"]), "another hostapd runs on this radio; end it"
    )
    if plan["vht"] and plan["width_mhz"] >= 80:
        found += _wrong(status, "vht_oper_centr_freq_seg0_idx", str(plan["centre_channel"]), _SWAPPED)
    return (
        found
        + _stream_differences(plan, wifi, status)
        + _interface_differences(plan, wifi, iw_dev_info, "AP")
        + country_differences(wifi, iw_dev_info, iw_reg)
    )


def _stream_differences(
    plan: Mapping[str, Any], wifi: Mapping[str, Any], status: Mapping[str, str]
) -> list[str]:
    """Fewer spatial streams announced than wanted; more are held back by the rate masks of both ends."""
    wanted, found = (
        _stream_limit(wifi) or int(plan["streams"]),
        streams_announced(status, vht=bool(plan["vht"])),
    )
    if found >= wanted:
        return []
    return [
        f"hostapd announces {found} spatial streams, wanted {wanted}; are all antennas of the radio in use "
        "(`iw phy`, Configured Antennas)? Set them by `iw phy NAME set antenna all`, or lower rates.streams"
    ]


def _stream_limit(wifi: Mapping[str, Any]) -> int:
    """rates.streams of the topology; 0 where the radio's own number is wanted."""
    rates = wifi.get("rates", "automatic")
    return int(rates.get("streams") or 0) if isinstance(rates, Mapping) else 0


def streams_announced(status: Mapping[str, str], *, vht: bool) -> int:
    """Spatial streams by hostapd_cli: its own of status, a client's of sta.

    HT: an octet of the MCS bitmask per stream; VHT: two bits of the map per stream, 3 is none (802.11).
    """
    if vht:
        mcs_map = int(status.get("rx_vht_mcs_map", "ffff"), 16)
        return sum(mcs_map >> 2 * stream & 3 != 3 for stream in range(8))
    return sum(octet != 0 for octet in bytes.fromhex(status.get("ht_mcs_bitmask", ""))[:4])


_SWAPPED = (
    "hostapd may swap primary and secondary channel or stay at 20 MHz beside a neighbour's network; choose "
    "another channel, or the neighbour's primary as yours"
)


def client_differences(  # noqa: PLR0917  a filter of Ansible takes its arguments in order
    plan: Mapping[str, Any],
    wifi: Mapping[str, Any],
    wpa_status: str,
    iw_dev_info: str,
    iw_power_save: str,
    iw_reg: str,
) -> list[str]:
    """Sentences, one for each difference between plan and running client; empty when it is as planned."""
    status = key_values(wpa_status)
    if status.get("wpa_state") != "COMPLETED":
        return [
            f"the client is not associated (wpa_state: {status.get('wpa_state', 'no answer')}); is the "
            "access point up "
            "and in reach, and is the passphrase the same? Its log says more, see radio_log_file"
        ]
    found = _wrong(
        status, "ssid", _as_printed(wifi["ssid"]), "another wpa_supplicant runs on this radio; end it"
    )
    found += _key_management(wifi, status) + _generation(plan, status) + _antenna_differences(plan, wifi)
    wanted = "on" if wifi.get("power_save", "off") in ("on", True) else "off"
    if f"Power save: {wanted}" not in iw_power_save:
        found.append(
            f"power save is not {wanted}: the driver may refuse it; set power_save in the topology to "
            "what it does"
        )
    return (
        found
        + _interface_differences(plan, wifi, iw_dev_info, "managed")
        + country_differences(wifi, iw_dev_info, iw_reg)
    )


def _antenna_differences(plan: Mapping[str, Any], wifi: Mapping[str, Any]) -> list[str]:
    """Fewer spatial streams than the client's antennas can do.

    wpa_supplicant does not tell what it announced. It is what the driver says in `iw phy`, and drivers lower
    that with the antennas in use; where the topology limits streams itself, the plan compares both.
    """
    has, used, streams = int(plan["antennas"]), int(plan["antennas_used"]), int(plan["streams"])
    limit = _stream_limit(wifi)
    if not used or used >= has or (limit and limit <= streams):
        return []
    return [
        f"the client's radio uses {used} of its {has} antennas (`iw phy`, Configured Antennas) and announces "
        f"{streams} spatial streams; use all of them by `iw phy NAME set antenna all` while its interface is "
        "down, or write the streams that you mean into rates.streams"
    ]


def _generation(plan: Mapping[str, Any], status: Mapping[str, str]) -> list[str]:
    """HT (4) or VHT (5) of this association; wpa_supplicant tells it where the driver does."""
    wanted, found = "5" if plan["vht"] else "4", status.get("wifi_generation", "")
    if found in ("", wanted):
        return []
    mode = "802.11ac" if plan["vht"] else "802.11n"
    return [
        f"the client is associated by Wi-Fi {found}, wanted {wanted} ({mode}); "
        "is another access point using this SSID, or does the client's driver lack the mode?"
    ]


def _key_management(wifi: Mapping[str, Any], status: Mapping[str, str]) -> list[str]:
    known = {
        "wpa2": ("WPA2-PSK", "WPA-PSK"),
        "sae": ("SAE",),
        "sae-transition": ("SAE", "WPA2-PSK"),
        "open": ("NONE",),
    }
    found = status.get("key_mgmt", "nothing")
    if found in known[wifi["security"]]:
        return []
    return [f"key management is {found}, wanted {wifi['security']}; is another access point using this SSID?"]


def country_differences(wifi: Mapping[str, Any], iw_dev_info: str, iw_reg: str) -> list[str]:
    """Whether the regulatory domain in force is the wanted country."""
    found = country_of_interface(iw_reg, iw_dev_info)
    if found == wifi["country"]:
        return []
    return [
        f"regulatory domain is {found}, wanted {wifi['country']}: install wireless-regdb (the kernel needs "
        "regulatory.db and regulatory.db.p7s in /lib/firmware, then reload cfg80211 or reboot); a radio "
        "that manages itself, and an access point that announces another country, override it"
    ]


def _interface_differences(
    plan: Mapping[str, Any], wifi: Mapping[str, Any], iw_dev_info: str, kind: str
) -> list[str]:
    state = parse_iw_dev_info(iw_dev_info)
    if state is None:
        return ["`iw dev` no longer shows the interface; was the radio unplugged?"]
    found = []
    if state.type != kind:
        found.append(f"{state.name} is of type {state.type}, wanted {kind}; end what else uses the radio")
    if (state.width_mhz, state.centre_frequency_mhz) != (plan["width_mhz"], plan["centre_frequency_mhz"]):
        found.append(
            f"{state.name} is {state.width_mhz} MHz wide around {state.centre_frequency_mhz} MHz, wanted "
            f"{plan['width_mhz']} around {plan['centre_frequency_mhz']}; {_SWAPPED}"
        )
    wanted = wifi.get("tx_power_dbm")
    if wanted is not None and (
        state.tx_power_dbm is None or abs(state.tx_power_dbm - float(wanted)) > _POWER_TOLERANCE_DB
    ):
        found.append(
            f"{state.name} sends at {state.tx_power_dbm} dBm, wanted {wanted}; set tx_power_dbm to what "
            "it can do"
        )
    return found


def _wrong(status: Mapping[str, str], key: str, wanted: str, remedy: str) -> list[str]:
    found = status.get(key)
    return [] if found == wanted else [f"{key} is {found}, wanted {wanted}; {remedy}"]
