# SPDX-License-Identifier: Apache-2.0
"""Filters of the roles for hosts, on what ethtool 6.1, iproute2 6.1 and chrony 4.3 say."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest
from golden_sentences import same_sentence
from render import ANSIBLE


def filters() -> dict[str, Any]:
    path = ANSIBLE / "plugins/filter/netjoule_host.py"
    spec = importlib.util.spec_from_file_location("netjoule_host", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FilterModule().filters()


FEATURES = """Features for eth0:
rx-checksumming: on
tx-checksumming: on
\ttx-checksum-ipv4: off [fixed]
tcp-segmentation-offload: off
\ttx-tcp-segmentation: off
generic-receive-offload: on
large-receive-offload: off [fixed]
rx-vlan-offload: on
"""


def test_offloads_that_move_packet_rates() -> None:
    assert filters()["netjoule_offloads"](FEATURES) == {
        "rx-checksumming": "on",
        "tx-checksumming": "on",
        "tcp-segmentation-offload": "off",
        "generic-receive-offload": "on",
        "large-receive-offload": "off",
    }
    assert filters()["netjoule_offloads"]("") == {}


@pytest.mark.parametrize(
    ("said", "interface"),
    [
        ('[{"dst":"10.0.0.1","dev":"wlan0","prefsrc":"10.0.0.2","flags":[],"uid":0}]', "wlan0"),
        ("", ""),
        ("[]", ""),
    ],
)
def test_interface_of_a_route(said: str, interface: str) -> None:
    assert filters()["netjoule_route_interface"](said) == interface


SYNCHRONISED = (
    "C0000203,192.0.2.3,11,1790000000.1,{offset},1e-06,2e-06,-12.345,0.001,0.05,0.0002,0.0001,4.0,Normal"
)
NEVER = "00000000,,0,0.0,0.0,0.0,0.0,0.000,0.000,0.000,1.0,1.0,0.0,Not synchronised"


@pytest.mark.parametrize(
    ("tracking", "problems"),
    [
        (SYNCHRONISED.format(offset="-0.000004"), 0),
        (SYNCHRONISED.format(offset="0.000999"), 0),
        (SYNCHRONISED.format(offset="-0.0021"), 1),
        (NEVER, 1),
        ("506 Cannot talk to daemon", 1),
        ("", 1),
    ],
)
def test_clock(tracking: str, problems: int) -> None:
    found = filters()["netjoule_clock_problems"](tracking, 0.001)
    assert len(found) == problems
    for sentence in found:
        same_sentence(sentence)


WLAN, CABLE = '[{"dst":"192.0.2.9","dev":"wlan0"}]', '[{"dst":"192.0.2.9","dev":"eth0"}]'


@pytest.mark.parametrize(
    ("routes", "problems"),
    [
        (f"tower 192.0.2.9 {CABLE}\ntower unknown \n192.0.2.1 192.0.2.1 {CABLE}\n192.0.2.1 unknown \n", 0),
        (f"tower 192.0.2.9 {WLAN}\ntower unknown \n", 1),
        # A name with two addresses, one of them on the test; a link-local address names its interface.
        (f"tower 192.0.2.9 {CABLE}\ntower fd77::9 {WLAN}\ntower unknown \n", 1),
        ("tower fe80::9%wlan0 \ntower unknown \n", 1),
        ("tower unknown \n", 1),
        ("tower 192.0.2.9 \ntower unknown \n", 1),
        ("", 1),
    ],
)
def test_control_traffic(routes: str, problems: int) -> None:
    found = filters()["netjoule_control_problems"](routes, "laptop", ["tower"], ["wlan0", "eth1"])
    assert len(found) == problems
    for sentence in found:
        same_sentence(sentence)


ADDRESSES = (
    '[{"ifname":"wlan0","addr_info":[{"family":"inet","local":"169.254.7.8","prefixlen":16}]},'
    '{"ifname":"eth1","addr_info":[{"family":"inet","local":"10.78.0.1","prefixlen":24},'
    '{"family":"inet","local":"192.0.2.77","prefixlen":24,"dynamic":true}]}]'
)
HOST = f"""@ machine
6.1.0-1-amd64 x86_64
@ = 0
@ cpu_model
model name	: AMD EPYC 7B13
@ = 0
@ addresses
{ADDRESSES}
@ = 0
@ kernel
net.core.rmem_max = 212992
@ = 0
@ kernel
cat: /proc/sys/net/none: No such file or directory
@ = 1
@ governor
powersave
performance
powersave
@ = 0
@ networkmanager
Error: NetworkManager is not running.
@ = 8
@ units
fstrim.timer loaded active waiting Discard unused blocks once a week
@ = 0
@ networkd
  1 lo    loopback carrier  unmanaged
  3 wlan0 wlan     no-carrier configuring
@ = 0
"""
WANTED = {
    "interfaces": ["wlan0", "eth1"],
    "sysctls": {"net.core.rmem_max": 4194304},
    "governor": "performance",
    "units": ["fstrim.timer", "apt-daily.timer"],
    "wired_interface": "eth1",
    "wired_addresses": ["10.78.0.1/24", "fd78::1/64"],
}


def test_a_host_that_is_not_as_wanted() -> None:
    found = filters()["netjoule_host_found"](HOST)
    assert (found["machine"], found["kernel"]) == ("x86_64", "6.1.0-1-amd64")
    assert found["cpu_model"] == "AMD EPYC 7B13"
    assert "networkmanager" not in found
    told = filters()["netjoule_host_differences"](found, WANTED)
    assert {aspect: len(sentences) for aspect, sentences in told.items()} == {
        "interfaces": 3,
        "kernel": 3,
        "units": 1,
        "wired": 1,
    }
    for sentences in told.values():
        same_sentence(". ".join(sentences))
    assert filters()["netjoule_sysctls_missing"](found, WANTED["sysctls"]) == ["net.core.rmem_max=4194304"]


def test_a_reading_that_failed_is_no_good_sign() -> None:
    nmcli = "@ networkmanager\nError: broken\n@ = 1\n"
    told = filters()["netjoule_host_differences"](filters()["netjoule_host_found"](nmcli), WANTED)
    assert len(told["interfaces"]) == 2
    same_sentence(". ".join(told["interfaces"]))
