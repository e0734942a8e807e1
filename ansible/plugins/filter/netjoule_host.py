# SPDX-License-Identifier: Apache-2.0
"""Filters of the roles for hosts: readers of what a host says of itself, ethtool and chronyc."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

# What decides whether packets are cut, joined or summed by the card or by the CPU.
_OFFLOADS = (
    "rx-checksumming",
    "tx-checksumming",
    "scatter-gather",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
    "large-receive-offload",
    "tx-udp-segmentation",
    "rx-udp-gro-forwarding",
)
# chronyc -c tracking: reference, its address, stratum, time of the last update, correction, ... (chronyc(1)).
_TRACKING_FIELDS = 14
_STRATUM, _CORRECTION, _LEAP = 2, 4, 13
# nmcli(1): NetworkManager is installed and does not run.
_NO_NETWORKMANAGER = 8
# networkctl(1) list: index, link, type, operational state, setup.
_NETWORKCTL_FIELDS = 5


def _offloads(features: str) -> dict[str, str]:
    """`on` or `off` by name, from `ethtool --show-features`; empty for an interface that has none to tell."""
    pairs = (line.strip().partition(": ") for line in features.splitlines())
    found = {name: words.split()[0] for name, _, words in pairs if words}
    return {name: found[name] for name in _OFFLOADS if name in found}


def _route_interface(ip_json: str) -> str:
    """The interface in the answer of `ip -json route get`; empty without a route."""
    routes = json.loads(ip_json or "[]")
    return str(routes[0].get("dev", "")) if routes else ""


def _control_problems(
    routes: str, host: str, peers: Sequence[str], test_interfaces: Sequence[str]
) -> list[str]:
    """Why control traffic is or may be on the test, from lines of peer, address and `ip -json route get`.

    Args:
        routes: for each peer a line with each of its addresses, and one with the address "unknown".
        host: whose routes these are.
        peers: who has to be among them.
        test_interfaces: interfaces that belong to the test.
    """
    ways: dict[str, list[str]] = {peer: [] for peer in peers}
    for line in routes.splitlines():
        peer, address, answer = [*line.split(" ", 2), ""][:3]
        found = ways.setdefault(peer, [])
        if address != "unknown":
            found.append(address.partition("%")[2] or _route_interface(answer))
    problems = []
    for peer, interfaces in ways.items():
        problems += [
            f"Control traffic between {host} and {peer} uses {interface}, an interface of the test: its "
            "packets would be measured too, and a wrong setting would lock you out. Give both a "
            "control_address on a network of its own (a second cable), or correct the interfaces in "
            "the topology."
            for interface in sorted(set(interfaces) & set(test_interfaces))
        ]
        if not any(interfaces):
            why = "has no route to it" if interfaces else "does not know that name (`getent ahosts`)"
            problems.append(
                f"Which way control traffic takes between {host} and {peer} is unknown: {host} {why}. "
                "Correct control_address in the topology, or name and route on the host."
            )
    return problems


def _answers(text: str) -> Iterator[tuple[str, int, list[str]]]:
    """Name, exit code and lines of each answer in what tasks/read.yml of base_host prints."""
    name, lines = "", []
    for line in text.splitlines():
        if line.startswith("@ = "):
            yield name, int(line[4:]), lines
        elif line.startswith("@ "):
            name, lines = line[2:], []
        else:
            lines.append(line)


def _host_found(text: str) -> dict[str, Any]:
    """What tasks/read.yml of base_host read: a fault for each answer that failed, no key for who is away."""
    found: dict[str, Any] = {
        "cpu_model": "unknown",
        "sysctls": {},
        "governors": [],
        "units": [],
        "stopped": [],
        "faults": {},
    }
    for name, code, lines in _answers(text):
        if code != 0:
            if name != "governor" and (name, code) != ("networkmanager", _NO_NETWORKMANAGER):
                found["faults"][name] = f"{name} could not be read: {' '.join(lines) or 'nothing was said'}"
            continue
        words = [line.split() for line in lines]
        match name:
            case "machine":
                found["kernel"], found["machine"] = words[0]
            case "cpu_model":
                found["cpu_model"] = lines[0].partition(":")[2].strip()
            case "addresses":
                found["interfaces"] = {link["ifname"]: link["addr_info"] for link in json.loads(lines[0])}
            case "kernel":
                found["sysctls"] |= dict(line.split(" = ", 1) for line in lines)
            case "governor":
                found["governors"] = sorted(set(lines))
            case "units" | "stopped":
                found[name] = [word[0] for word in words if word]
            case "networkmanager":
                found[name] = dict(line.split(":", 1) for line in lines if ":" in line)
            case "networkd":
                found[name] = {word[1]: word[-1] for word in words if len(word) == _NETWORKCTL_FIELDS}
    if "interfaces" not in found:
        found["faults"].setdefault("addresses", "addresses could not be read: nothing was said")
    return found


def _sysctls_missing(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """name=value of each setting of the kernel that is another."""
    return [f"{name}={value}" for name, value in wanted.items() if found["sysctls"].get(name) != str(value)]


def _host_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> dict[str, list[str]]:
    """Sentences with remedies by aspect (interfaces, kernel, units, wired); none when all is well."""
    faults = found["faults"]
    return {
        "interfaces": [faults[name] for name in ("networkmanager", "networkd", "addresses") if name in faults]
        + [sentence for name in wanted["interfaces"] for sentence in _managed(found, name)],
        "kernel": [faults[name] for name in ("kernel",) if name in faults]
        + _kernel_differences(found, wanted),
        "units": [faults[name] for name in ("units",) if name in faults]
        + [
            f"{unit} runs, which wakes up by itself or uses the test radio: provision again"
            for unit in found["units"]
            if unit in wanted["units"]
        ],
        "wired": _wired_differences(found, wanted),
    }


def _managed(found: Mapping[str, Any], interface: str) -> list[str]:
    sentences = []
    state = found.get("networkmanager", {}).get(interface, "unmanaged")
    if state != "unmanaged":
        sentences.append(
            f"NetworkManager manages {interface} (state {state}) and would scan and roam by itself: "
            f"provision again; if it stays so, `nmcli device set {interface} managed no`"
        )
    state = found.get("networkd", {}).get(interface, "unmanaged")
    if state != "unmanaged":
        sentences.append(
            f"systemd-networkd manages {interface} (setup {state}): provision again; if it stays so, see "
            f"`networkctl status {interface}`"
        )
    given = [
        address["local"]
        for address in found.get("interfaces", {}).get(interface, ())
        if address["family"] == "inet" and (address.get("dynamic") or address["local"].startswith("169.254."))
    ]
    if given:
        sentences.append(
            f"a DHCP client (dhcpcd, dhclient) gave {interface} the address {', '.join(given)}: provision "
            "again; if it stays so, take the interface out of that client's configuration"
        )
    return sentences


def _kernel_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    sentences = [
        f"{name} is {found['sysctls'].get(name, 'not there')}, wanted {value}: provision again, as a reboot "
        "takes these settings away"
        for name, value in wanted["sysctls"].items()
        if found["sysctls"].get(name) != str(value)
    ]
    if wanted["governor"] and found["governors"] != [wanted["governor"]]:
        sentences.append(
            f"the governor is {' and '.join(found['governors']) or 'not there'}, wanted "
            f"{wanted['governor']}: provision again, and end what else sets it "
            "(power-profiles-daemon, tlp, tuned)"
        )
    return sentences


def _wired_differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    interface = wanted["wired_interface"]
    there = {f"{a['local']}/{a['prefixlen']}" for a in found.get("interfaces", {}).get(interface, ())}
    missing = [address for address in wanted["wired_addresses"] if address not in there]
    if not missing:
        return []
    return [
        f"{interface} lacks {', '.join(missing)}: provision again, as a reboot, or another program that "
        "manages the interface, takes addresses away"
    ]


def _clock_problems(tracking: str, most_offset_s: float) -> list[str]:
    """Why a clock cannot be trusted, from `chronyc -c tracking`; empty when it can.

    Args:
        tracking: the line that chronyc prints.
        most_offset_s: seconds that it may be off its source.
    """
    fields = next(csv.reader([tracking.strip()]), [])
    if len(fields) != _TRACKING_FIELDS:
        return ["chronyd does not answer: provision again, and see `chronyc tracking`"]
    if fields[_LEAP] == "Not synchronised" or fields[_STRATUM] == "0":
        return [
            "the clock follows no source: is its server up and reached (UDP port 123)? See `chronyc sources`"
        ]
    offset_s = abs(float(fields[_CORRECTION]))
    if offset_s <= most_offset_s:
        return []
    return [
        f"the clock is {offset_s * 1e3:.3f} ms off, {most_offset_s * 1e3:g} ms are allowed: wait, chrony is "
        "still slewing it (`chronyc makestep` jumps, outside a campaign), or raise clock_sync_most_offset_s"
    ]


class FilterModule:
    """What templates and tasks may call."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Filters by name."""
        return {
            "netjoule_clock_problems": _clock_problems,
            "netjoule_control_problems": _control_problems,
            "netjoule_host_differences": _host_differences,
            "netjoule_host_found": _host_found,
            "netjoule_offloads": _offloads,
            "netjoule_route_interface": _route_interface,
            "netjoule_sysctls_missing": _sysctls_missing,
        }
