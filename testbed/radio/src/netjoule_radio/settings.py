# SPDX-License-Identifier: Apache-2.0
"""The wanted radio network, as the topology's `wifi` says it, checked; faults are sentences with remedies.

The passphrase is checked here and never kept: nothing made from these settings can show it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from netjoule_radio.channels import (
    ChannelError,
    availability_check_s,
    band_of,
    block,
    channels_without_dfs,
    dfs_channels,
)
from netjoule_radio.rates import HT_STREAMS, VHT_STREAMS, PhyMode, is_standard

Mode = Literal["11n", "11ac"]
Security = Literal["open", "wpa2", "sae", "sae-transition"]
Guard = Literal["long", "short"]

_WIDTHS = {"11n": (20, 40), "11ac": (20, 40, 80, 160)}
# hostapd reads these as the start of an option behind the password (hostapd.conf, sae_password).
_SAE_OPTIONS = ("|mac=", "|vlanid=", "|id=", "|pk=")


@dataclass(frozen=True)
class RateLimits:
    """Rates that the radios may send at. mcs: HT indices 0-31 with 11n, 0-9 with 11ac; empty: all.

    streams: 11n: at most so many; 11ac: exactly so many when mcs is given, else at most. None: all the
    radio has.
    """

    mcs: tuple[int, ...] = ()
    guard_interval: Guard | None = None
    streams: int | None = None

    @property
    def automatic(self) -> bool:
        """No limit at all: rate control is free."""
        return not self.mcs and self.guard_interval is None and self.streams is None


@dataclass(frozen=True)
class WifiSettings:
    """The network. dfs: accept channels with radar duty. tx_power_dbm: None leaves the radio's own."""

    ssid: str
    country: str
    mode: Mode
    width_mhz: int
    channel: int
    security: Security
    dfs: bool = False
    rates: RateLimits = field(default_factory=RateLimits)
    power_save: bool = False
    tx_power_dbm: float | None = None


def read_settings(wifi: Mapping[str, Any]) -> tuple[WifiSettings | None, list[str]]:
    """Settings from the dictionary `netjoule_wifi` (None when it cannot be read at all), and every fault."""
    faults: list[str] = []
    missing = [
        key for key in ("ssid", "country", "mode", "width_mhz", "channel", "security") if key not in wifi
    ]
    if missing:
        return None, [f"wifi: {', '.join(missing)} missing; give it in the topology's wifi section"]
    mode = _choice(wifi, "mode", get_args(Mode), faults)
    security = _choice(wifi, "security", get_args(Security), faults)
    width, channel = _whole(wifi, "width_mhz", faults), _whole(wifi, "channel", faults)
    rates = _rates(wifi.get("rates", "automatic"), faults)
    if mode is None or security is None or width is None or channel is None or rates is None:
        return None, faults
    settings = WifiSettings(
        ssid=str(wifi["ssid"]),
        country=str(wifi["country"]),
        mode=mode,
        width_mhz=width,
        channel=channel,
        security=security,
        dfs=wifi.get("dfs", False) is True,
        rates=rates,
        # YAML 1.1 reads a bare on as true.
        power_save=wifi.get("power_save", "off") in ("on", True),
        tx_power_dbm=None if wifi.get("tx_power_dbm") is None else float(wifi["tx_power_dbm"]),
    )
    faults += (
        _network_faults(settings)
        + passphrase_faults(security, wifi.get("passphrase"))
        + _rate_faults(settings)
    )
    return settings, faults


def _choice(wifi: Mapping[str, Any], key: str, allowed: tuple[Any, ...], faults: list[str]) -> Any:
    if wifi[key] in allowed:
        return wifi[key]
    faults.append(f"wifi.{key}: {wifi[key]!r} is not known; use {' or '.join(allowed)}")
    return None


def _whole(wifi: Mapping[str, Any], key: str, faults: list[str]) -> int | None:
    try:
        return int(wifi[key])
    except (TypeError, ValueError):
        faults.append(f"wifi.{key}: {wifi[key]!r} is not a whole number; use one, such as 36 or 40")
        return None


def _rates(rates: Any, faults: list[str]) -> RateLimits | None:
    if rates == "automatic":
        return RateLimits()
    shape = "wifi.rates: use `automatic` or {mcs: [10], guard_interval: long, streams: 2}"
    if not isinstance(rates, Mapping) or set(rates) - {"mcs", "guard_interval", "streams"}:
        faults.append(f"{shape}; found {rates!r}")
        return None
    mcs, guard, streams = rates.get("mcs") or [], rates.get("guard_interval"), rates.get("streams")
    indices_ok = not isinstance(mcs, str) and all(isinstance(m, int) for m in mcs)
    if not indices_ok or guard not in (None, "long", "short") or not isinstance(streams, int | None):
        faults.append(f"{shape}; found {dict(rates)!r}")
        return None
    return RateLimits(tuple(sorted(set(mcs))), guard, streams)


def _network_faults(wifi: WifiSettings) -> list[str]:
    faults = []
    if not 1 <= len(wifi.ssid.encode()) <= 32 or not wifi.ssid.isprintable():
        faults.append(
            f"wifi.ssid: {wifi.ssid!r} is not 1 to 32 printable octets; choose a shorter or plainer name"
        )
    if not re.fullmatch(r"[A-Z]{2}", wifi.country):
        faults.append(
            f"wifi.country: {wifi.country!r} is not a country; use its two capital letters, such as DE or US"
        )
    if wifi.width_mhz not in _WIDTHS[wifi.mode]:
        widths = ", ".join(map(str, _WIDTHS[wifi.mode]))
        faults.append(
            f"wifi.width_mhz: {wifi.mode} has no {wifi.width_mhz} MHz; use one of {widths}, or another mode"
        )
    try:
        block(wifi.channel, wifi.width_mhz)
    except ChannelError as error:
        return [*faults, f"wifi.channel: {error}"]
    if wifi.mode == "11ac" and band_of(wifi.channel) != "5":
        faults.append(
            f"wifi.channel: 802.11ac exists at 5 GHz only, not on channel {wifi.channel}; use 36, or mode 11n"
        )
    return faults + _radar_faults(wifi)


def _radar_faults(wifi: WifiSettings) -> list[str]:
    radar = dfs_channels(wifi.channel, wifi.width_mhz)
    if not radar or wifi.dfs:
        return []
    free = ", ".join(map(str, channels_without_dfs(wifi.width_mhz)))
    wait = availability_check_s(wifi.channel, wifi.width_mhz)
    remedy = f"use one of {free}, or set dfs: true" if free else "use 80 MHz or less, or set dfs: true"
    return [
        f"wifi.channel: {wifi.channel} at {wifi.width_mhz} MHz shares {', '.join(map(str, radar))} with "
        f"radar: the access point listens {wait} s before it sends and leaves when it hears one, which ends "
        f"a campaign; {remedy}"
    ]


def passphrase_faults(security: Security, passphrase: Any) -> list[str]:
    """What is wrong with a passphrase, without showing any of it."""
    if security == "open":
        return []
    remedy = "correct the value behind the reference in the topology's wifi.passphrase"
    if not isinstance(passphrase, str) or not passphrase:
        return [f"wifi.passphrase: {security} needs one; {remedy}"]
    if not passphrase.isascii() or not passphrase.isprintable():
        return [
            f"wifi.passphrase: has characters outside printable ASCII, which radios read differently; "
            f"{remedy}"
        ]
    if security != "sae" and not 8 <= len(passphrase) <= 63:
        return [f"wifi.passphrase: WPA2 takes 8 to 63 characters, this one has {len(passphrase)}; {remedy}"]
    if security != "wpa2" and any(option in passphrase for option in _SAE_OPTIONS):
        return [f"wifi.passphrase: hostapd takes {', '.join(_SAE_OPTIONS)} in it for options; {remedy}"]
    return []


def _rate_faults(wifi: WifiSettings) -> list[str]:
    rates, faults = wifi.rates, []
    most, highest = (HT_STREAMS, 31) if wifi.mode == "11n" else (VHT_STREAMS, 9)
    if rates.streams is not None and not 1 <= rates.streams <= most:
        return [f"wifi.rates.streams: {rates.streams} is not in 1-{most} of {wifi.mode}; use 1 or 2"]
    beyond = [m for m in rates.mcs if not 0 <= m <= highest]
    if beyond:
        return [f"wifi.rates.mcs: {beyond} is not in 0-{highest} of {wifi.mode}; use indices of that range"]
    if wifi.mode == "11n" and rates.streams is not None:
        above = [m for m in rates.mcs if m >= 8 * rates.streams]
        streams = f"{rates.streams} stream{'' if rates.streams == 1 else 's'}"
        if above:
            faults.append(f"wifi.rates.mcs: {above} needs more than {streams}; raise streams, or lower MCS")
    if wifi.mode == "11ac" and rates.streams is not None and wifi.width_mhz in _WIDTHS["11ac"]:
        modes = (PhyMode("vht", m, rates.streams, wifi.width_mhz) for m in rates.mcs)
        faults += [
            f"wifi.rates.mcs: 802.11ac has no {m}; use a lower MCS" for m in modes if not is_standard(m)
        ]
    return faults
