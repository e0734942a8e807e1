# SPDX-License-Identifier: Apache-2.0
"""Wanted network x this radio -> what hostapd, wpa_supplicant and iw are told; or why not, with remedy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from netjoule_radio.channels import (
    availability_check_s,
    band_of,
    block,
    centre_channel,
    centre_frequency_mhz,
    dfs_channels,
    frequency_mhz,
    secondary,
)
from netjoule_radio.hostapd_caps import ht_capab, vht_capab
from netjoule_radio.iw_dev import parse_iw_dev_info
from netjoule_radio.iw_phy import BandCapabilities, Ht, PhyCapabilities, parse_iw_phy
from netjoule_radio.rate_mask import bitrate_words
from netjoule_radio.settings import WifiSettings, read_settings

_CHWIDTH = {20: 0, 40: 0, 80: 1, 160: 2}  # hostapd.conf, vht_oper_chwidth


@dataclass(frozen=True)
class RadioPlan:
    """What one radio shall do; without secrets. problems: sentences; with any of them the rest is not to be
    used.

    bitrate_words: arguments of `iw dev X set bitrates`, empty: no limit. start_within_s: how long an access
    point may take until it sends (radar check included). scan_frequencies_mhz: where a client looks for the
    network. antennas, antennas_used: as the driver tells, 0 when it does not.
    """

    problems: list[str]
    radio: str = ""
    hw_mode: str = ""
    frequency_mhz: int = 0
    width_mhz: int = 0
    secondary_channel: int = 0
    centre_channel: int = 0
    centre_frequency_mhz: int = 0
    vht: bool = False
    vht_oper_chwidth: int = 0
    ht_capab: str = ""
    vht_capab: str = ""
    radar_duty: bool = False
    start_within_s: int = 0
    streams: int = 0
    antennas: int = 0
    antennas_used: int = 0
    bitrate_words: list[str] = field(default_factory=list)
    scan_frequencies_mhz: list[int] = field(default_factory=list)


def access_point_plan_dict(wifi: Mapping[str, Any], iw_phy: str, iw_dev_info: str) -> dict[str, Any]:
    """`plan_of` an access point as plain data, for templates."""
    return asdict(plan_of("AP", wifi, iw_phy, iw_dev_info))


def client_plan_dict(wifi: Mapping[str, Any], iw_phy: str, iw_dev_info: str) -> dict[str, Any]:
    """`plan_of` a client as plain data, for templates."""
    return asdict(plan_of("managed", wifi, iw_phy, iw_dev_info))


def plan_of(role: str, wifi: Mapping[str, Any], iw_phy: str, iw_dev_info: str) -> RadioPlan:
    """Plan of an access point (role AP) or a client (managed).

    iw_phy: text of `iw phy`; iw_dev_info: of `iw dev X info` of its interface.
    """
    settings, problems = read_settings(wifi)
    radio, missing = _radio_of(iw_phy, iw_dev_info)
    if settings is None or radio is None or problems:
        return RadioPlan(problems + missing)
    band = band_of(settings.channel)
    has = radio.bands.get(band)
    if has is None:
        bands = " and ".join(sorted(radio.bands)) or "no band known here"
        return RadioPlan(
            [f"{radio.name} has no {band} GHz (it has {bands}); choose another channel or radio"]
        )
    problems = _role_problems(settings, radio, role) + _band_problems(settings, radio, has)
    problems += _channel_problems(settings, has, sends=role == "AP") + _rate_problems(settings, radio, has)
    return RadioPlan(problems) if problems else _made(settings, radio, has)


def _made(wifi: WifiSettings, radio: PhyCapabilities, has: BandCapabilities) -> RadioPlan:
    band, side = band_of(wifi.channel), secondary(wifi.channel, wifi.width_mhz)
    vht, short = wifi.mode == "11ac", wifi.rates.guard_interval != "long"
    streams = has.vht_rx_streams if vht else has.ht_rx_streams
    return RadioPlan(
        problems=[],
        radio=radio.name,
        hw_mode="a" if band == "5" else "g",
        frequency_mhz=frequency_mhz(wifi.channel),
        width_mhz=wifi.width_mhz,
        secondary_channel=side,
        centre_channel=centre_channel(wifi.channel, wifi.width_mhz),
        centre_frequency_mhz=centre_frequency_mhz(wifi.channel, wifi.width_mhz),
        vht=vht,
        vht_oper_chwidth=_CHWIDTH[wifi.width_mhz],
        ht_capab=ht_capab(has, band=band, secondary=side, short_guard=short),
        vht_capab=vht_capab(has, width_mhz=wifi.width_mhz, short_guard=short) if vht else "",
        radar_duty=bool(dfs_channels(wifi.channel, wifi.width_mhz)),
        start_within_s=15 + availability_check_s(wifi.channel, wifi.width_mhz),
        streams=streams,
        antennas=radio.antennas,
        antennas_used=radio.antennas_used,
        bitrate_words=bitrate_words(wifi, ht_streams=has.ht_rx_streams, vht_streams=has.vht_rx_streams),
        # The access point may swap primary and secondary for a neighbour's sake: the client looks on both.
        scan_frequencies_mhz=[frequency_mhz(c) for c in block(wifi.channel, min(wifi.width_mhz, 40))],
    )


def _radio_of(iw_phy: str, iw_dev_info: str) -> tuple[PhyCapabilities | None, list[str]]:
    interface = parse_iw_dev_info(iw_dev_info)
    if interface is None:
        return None, [
            "`iw dev` shows no such interface; correct the host's radio.interface (`iw dev` lists them)"
        ]
    radio = next((r for r in parse_iw_phy(iw_phy) if r.index == interface.wiphy), None)
    if radio is None:
        return None, [
            f"`iw phy` does not show radio {interface.wiphy} of {interface.name}; is its driver loaded?"
        ]
    return radio, []


def _role_problems(wifi: WifiSettings, radio: PhyCapabilities, role: str) -> list[str]:
    problems = []
    if role not in radio.modes:
        can = ", ".join(sorted(radio.modes)) or "none"
        problems.append(f"{radio.name} cannot be {role} (its modes: {can}); use another radio or driver")
    if wifi.security.startswith("sae") and not radio.protects_management_frames:
        problems.append(f"{radio.name} cannot protect management frames, which SAE needs; use security: wpa2")
    if wifi.security == "sae" and role == "managed" and not radio.sae_in_driver_or_kernel:
        problems.append(f"{radio.name} has no SAE; use security: wpa2 or another radio for the client")
    return problems


def _band_problems(wifi: WifiSettings, radio: PhyCapabilities, has: BandCapabilities) -> list[str]:
    if has.ht_capab is None:
        return [f"{radio.name} has no 802.11n; use another radio"]
    if wifi.mode == "11ac" and has.vht_capab is None:
        return [f"{radio.name} has no 802.11ac; use mode: 11n with at most 40 MHz, or another radio"]
    if wifi.width_mhz not in has.widths_mhz or (wifi.width_mhz > 20 and not has.ht_capab & Ht.WIDTH_40):
        widths = ", ".join(map(str, has.widths_mhz))
        return [f"{radio.name} has no {wifi.width_mhz} MHz here (it has {widths}); use a smaller width_mhz"]
    return []


def _channel_problems(wifi: WifiSettings, has: BandCapabilities, *, sends: bool) -> list[str]:
    """What the regulatory domain in force says about each channel of the block."""
    problems, least_dbm = [], float("inf")
    for number in block(wifi.channel, wifi.width_mhz):
        state = has.channel(number)
        if state is None or state.disabled:
            problems.append(
                f"channel {number} is not allowed in {wifi.country} or not in the radio; choose another "
                "(`iw phy` lists them), and see that wireless-regdb is installed"
            )
            continue
        least_dbm = min(least_dbm, state.max_power_dbm or 0)
        if sends and state.no_ir and not state.radar:
            problems.append(
                f"channel {number} is NO-IR (no radio may send there first, so no access point starts): the "
                f"radio follows another regulatory domain than {wifi.country}, or {wifi.country} keeps it "
                "so; see `iw reg get`, install wireless-regdb (regulatory.db and regulatory.db.p7s), or "
                "choose another channel"
            )
        if sends and state.radar and not wifi.dfs:
            problems.append(
                f"channel {number} has radar duty in {wifi.country}; choose another or set dfs: true"
            )
    if wifi.tx_power_dbm is not None and wifi.tx_power_dbm > least_dbm:
        problems.append(
            f"tx_power_dbm: {wifi.tx_power_dbm:g} is above the {least_dbm:g} dBm allowed; lower it"
        )
    return problems


def _rate_problems(wifi: WifiSettings, radio: PhyCapabilities, has: BandCapabilities) -> list[str]:
    rates, problems = wifi.rates, []
    if rates.automatic:
        return []
    if not radio.sets_bitrate_mask:
        problems.append(
            f"{radio.name} cannot fix rates (no set_tx_bitrate_mask); use rates: automatic or another radio"
        )
    streams = has.ht_rx_streams if wifi.mode == "11n" else has.vht_rx_streams
    wanted = max([rates.streams or 1, *(1 + m // 8 for m in rates.mcs if wifi.mode == "11n")])
    if wanted > streams:
        problems.append(f"rates: {wanted} streams wanted, {radio.name} has {streams}; lower streams or MCS")
    if rates.guard_interval == "short" and not _short_guard(wifi, has):
        problems.append(
            f"{radio.name} has no short guard interval at {wifi.width_mhz} MHz; use guard_interval: long"
        )
    return problems


def _short_guard(wifi: WifiSettings, has: BandCapabilities) -> bool:
    ht, vht = has.ht_capab or 0, has.vht_capab or 0
    return bool({20: ht & 1 << 5, 40: ht & 1 << 6, 80: vht & 1 << 5, 160: vht & 1 << 6}[wifi.width_mhz])
