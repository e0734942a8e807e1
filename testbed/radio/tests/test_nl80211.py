# SPDX-License-Identifier: Apache-2.0
"""Answers of the kernel as two versions of pyroute2 decode them."""

import json
import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from golden_sentences import raises
from recorded_tools import recorded

from netjoule_radio import nl80211
from netjoule_radio.nl80211 import Nl80211Source, parse_snapshot, rate, station
from netjoule_radio.snapshot import NO_RATE, Rate
from netjoule_radio.source import InterfaceGone, ReadFailed, SourceMissing


def answers(name: str) -> dict[str, Any]:
    return dict(json.loads(recorded(f"pyroute2-{name}-access-point.json")))


@pytest.mark.skipif(sys.byteorder != "little", reason="the recording is of a little-endian host")
def test_debian_12s_pyroute2_leaves_rates_as_bytes() -> None:
    told = answers("0.7.2")
    snapshot = parse_snapshot(told["interface"][0], told["power_save"], told["stations"])
    assert (snapshot.role, snapshot.bssid, snapshot.power_save) == (
        "access_point",
        "02:00:00:00:00:00",
        False,
    )
    first, second = snapshot.stations
    assert first.tx == Rate(6.0, None, None, 20, 800)
    assert (second.tx, second.rssi_dbm) == (Rate(14.4, 0, 2, 20, 400), -27.0)
    assert (second.retries, second.failed, second.connected_s) == (0, 0, 157)
    assert second.associated_at_s is None  # not known to this version


def test_a_later_pyroute2_decodes_them() -> None:
    told = answers("0.9.7")
    snapshot = parse_snapshot(told["interface"][0], told["power_save"], told["stations"])
    (own,) = snapshot.stations
    assert own.tx == own.rx == Rate(6.0, None, None, 20, 800)
    assert (own.connected_s, own.associated_at_s) == (422, 36.99681095)


def decoded(**fields: Any) -> dict[str, Any]:
    return {
        "attrs": [(f"NL80211_RATE_INFO_{name.removeprefix('W')}", value) for name, value in fields.items()]
    }


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        (decoded(BITRATE32=2160, BITRATE=2160, MCS=13, W40_MHZ_WIDTH=True), Rate(216.0, 13, 2, 40, 800)),
        (
            decoded(BITRATE32=2160, MCS=13, W40_MHZ_WIDTH=True, SHORT_GI=True),
            Rate(216.0, 13, 2, 40, 400, "rate_mismatch"),
        ),
        (
            decoded(BITRATE32=8667, BITRATE=8667, VHT_MCS=9, VHT_NSS=2, W80_MHZ_WIDTH=True, SHORT_GI=True),
            Rate(866.7, 9, 2, 80, 400),
        ),
        (decoded(BITRATE=0, BITRATE32=17333, VHT_MCS=9, VHT_NSS=2, W80P80_MHZ_WIDTH=True, SHORT_GI=True),
         Rate(1733.3, 9, 2, 160, 400)),
        (
            decoded(BITRATE32=12009, HE_MCS=11, HE_NSS=2, HE_GI=1, HE_DCM=0, W80_MHZ_WIDTH=True),
            Rate(1200.9, 11, 2, 80, 1600, "rate_unchecked"),
        ),
        (
            decoded(BITRATE32=57647, EHT_MCS=13, EHT_NSS=2, EHT_GI=0, W320_MHZ_WIDTH=True),
            Rate(5764.7, 13, 2, 320, 800, "rate_unchecked"),
        ),
        (decoded(BITRATE32=270, W10_MHZ_WIDTH=True), Rate(27.0, None, None, 10, 800, "rate_unchecked")),
        (decoded(MCS=3), Rate(None, 3, 1, 20, 800, "rate_unknown")),
        (None, NO_RATE),
        ("", NO_RATE),
        ("ff:00:05:00:3c", NO_RATE),  # cut off
    ],
)  # fmt: skip
def test_rates(fields: Any, told: Rate) -> None:
    assert rate(fields) == told


def test_an_answer_without_figures_is_a_station_without_figures() -> None:
    own = station({"attrs": [("NL80211_ATTR_MAC", "02:00:00:00:01:00")]})
    assert (own.station, own.tx, own.rssi_dbm, own.retries) == ("02:00:00:00:01:00", NO_RATE, None, None)


def test_a_multi_link_devices_signal_of_0_dbm_is_none() -> None:
    """Made: the kernel tells it of the device, whose links have the signals."""
    info = {"attrs": [("NL80211_STA_INFO_SIGNAL", 0)]}
    assert station({"attrs": [("NL80211_ATTR_STA_INFO", info)]}).rssi_dbm is None


GET_STATION = 17


class NoDevice(Exception):
    code = 19


class Kernel:
    """Stands for pyroute2's IW."""

    prid = 32

    def __init__(self) -> None:
        self.told = answers("0.9.7")
        self.failure: Exception | None = None
        self.no_power_save = False
        self.associated: Any = None  # entry of the list of networks
        self.station: list[Any] = []  # answer about one station
        self.closed = False

    def get_interface_by_ifindex(self, _index: int) -> Any:
        if self.failure:
            raise self.failure
        return self.told["interface"]

    def get_stations(self, _index: int) -> Any:
        return iter(self.told["stations"])

    def get_associated_bss(self, _index: int) -> Any:
        return self.associated

    def nlm_request(self, message: Any, **_: Any) -> Any:
        if message["cmd"] == GET_STATION:
            assert message["attrs"][1] == ["NL80211_ATTR_MAC", "02:00:00:00:09:00"]
            return self.station
        if self.no_power_save:
            raise OSError("not supported")
        return self.told["power_save"]

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    it = Kernel()
    root, netlink, nl = (ModuleType(f"pyroute2{tail}") for tail in ("", ".netlink", ".netlink.nl80211"))
    vars(root).update(IW=lambda: it, __version__="0.9.7")
    vars(netlink).update(NLM_F_REQUEST=1)
    names = {"NL80211_CMD_GET_POWER_SAVE": 62, "NL80211_CMD_GET_STATION": GET_STATION}
    vars(nl).update(nl80211cmd=dict, NL80211_NAMES=names)
    for module in (root, netlink, nl):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(nl80211, "socket", SimpleNamespace(if_nametoindex=lambda _name: 2))
    return it


def test_the_source_asks_the_kernel(kernel: Kernel) -> None:
    source = Nl80211Source("wlan0")
    assert source.snapshot().power_save is False
    kernel.no_power_save = True
    assert source.snapshot().power_save is None
    source.close()
    assert kernel.closed


def test_a_client_whose_driver_lists_no_stations_is_still_associated(kernel: Kernel) -> None:
    """Made: rtl8723bs and its like answer GET_STATION's dump with nothing."""
    address = "02:00:00:00:09:00"
    attributes = [(n, 2 if n.endswith("IFTYPE") else v) for n, v in kernel.told["interface"][0]["attrs"]]
    kernel.told |= {"stations": [], "interface": [{"attrs": attributes}]}
    source = Nl80211Source("wlan0")
    assert source.snapshot().bssid is None  # it is not associated
    kernel.associated = {"attrs": [("NL80211_ATTR_BSS", {"attrs": [("NL80211_BSS_BSSID", address)]})]}
    (own,) = source.snapshot().stations
    assert (own.station, own.tx) == (address, NO_RATE)
    info = {"attrs": [("NL80211_STA_INFO_SIGNAL", -40)]}
    kernel.station = [{"attrs": [("NL80211_ATTR_MAC", address), ("NL80211_ATTR_STA_INFO", info)]}]
    snapshot = source.snapshot()
    assert (snapshot.bssid, snapshot.stations[0].rssi_dbm) == (address, -40.0)


def test_an_access_point_without_clients_is_not_asked_for_its_own(kernel: Kernel) -> None:
    kernel.told |= {"stations": []}
    kernel.associated = {"attrs": [("NL80211_ATTR_BSS", {"attrs": [("NL80211_BSS_BSSID", "x")]})]}
    assert Nl80211Source("wlan0").snapshot().stations == ()


def test_an_interface_that_is_gone_is_told_so(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    source = Nl80211Source("wlan0")
    kernel.failure = NoDevice("No such device")
    with raises(InterfaceGone):
        source.snapshot()
    kernel.failure = OSError("out of memory")
    with raises(ReadFailed):
        source.snapshot()

    def unknown(_name: str) -> int:
        raise OSError

    monkeypatch.setattr(nl80211, "socket", SimpleNamespace(if_nametoindex=unknown))
    with raises(InterfaceGone):
        source.snapshot()


def test_without_pyroute2_or_nl80211_it_says_so(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_family() -> None:
        raise OSError("no such family")

    monkeypatch.setattr(sys.modules["pyroute2"], "IW", no_family)
    with raises(SourceMissing):
        Nl80211Source("wlan0")
    monkeypatch.setitem(sys.modules, "pyroute2.netlink.nl80211", None)
    with raises(SourceMissing):
        Nl80211Source("wlan0")
