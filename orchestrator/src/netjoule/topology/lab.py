# SPDX-License-Identifier: Apache-2.0
"""What a topology of kind guest or lab must say: the radio network, interfaces, the control network."""

from __future__ import annotations

from typing import Any

from netjoule.core.yamlfile import Document
from netjoule.topology.hosts import ROLES, reached_at
from netjoule.topology.network import check_network, check_way_in
from netjoule_radio.settings import read_settings

LAB = "lab"
# Ansible keeps them for itself; the roles are its groups.
_WORDS_OF_ANSIBLE = ("all", "ungrouped", "localhost")
_TAKES_PART = ("client", "access_point", "server")
_NEEDED = {
    "country": "add the two letters of the country whose radio rules hold, such as DE",
    "mode": "add 'mode: 11n' or 'mode: 11ac'",
    "width_mhz": "add 'width_mhz: 40', or 20, 80, 160",
    "channel": "add 'channel: 36', or another one",
    "security": "add 'security: wpa2', or open, sae, sae-transition",
}
# Of the form that every security accepts; what the reference means is checked where it is resolved.
_STAND_IN = "passphrase-is-a-reference"


def check_lab(document: Document) -> None:
    """Hold a topology of real hosts to the rules between its fields.

    Raises:
        UsageError: naming file, line and field of the first fault.
    """
    _check_names(document)
    _check_controller(document)
    _check_ways_in(document)
    if "wifi" in document.value:
        _check_wifi(document)
    _check_radios(document)
    _check_cables(document)
    _check_reservation(document)
    check_network(document)


def _check_names(document: Document) -> None:
    """No host's name means something else to `--limit`; a client called client is what it says."""
    for name, host in document.value["hosts"].items():
        if name in _WORDS_OF_ANSIBLE:
            raise document.refuse(
                ("hosts", name), f"{name} is a reserved name in Ansible", "name the host otherwise"
            )
        if name in ROLES and name not in host["roles"]:
            raise document.refuse(
                ("hosts", name),
                f"{name} is a role, which this host does not have",
                f"name the host otherwise, or add {name} to its roles",
            )


def _check_controller(document: Document) -> None:
    """The controller takes part in no flow; its own instruments are those of meters without a host.

    What flows and reads is reached over SSH, its clock and its lock included.
    """
    hosts: dict[str, Any] = document.value["hosts"]
    for name, host in hosts.items():
        if "controller" not in host["roles"]:
            continue
        taking_part = [role for role in host["roles"] if role in _TAKES_PART]
        if taking_part or "radio" in host:
            what = taking_part[0] if taking_part else "host with a test radio"
            raise document.refuse(
                ("hosts", name, "roles"),
                f"the controller is no {what}: campaigns reach theirs over SSH",
                "use another machine; or leave out controller, and let this one be reached over SSH as well",
            )
    for index, meter in enumerate(document.value["meters"]):
        plugged_in = hosts.get(meter.get("host", ""), {"roles": ()})
        if "controller" in plugged_in["roles"]:
            raise document.refuse(
                ("meters", index, "host"), "a meter on the controller has no host", "leave host out"
            )


def _check_ways_in(document: Document) -> None:
    """Each host has a control address (lab), and an sshd of its own."""
    reached: dict[tuple[str, int], str] = {}
    for name, host in document.value["hosts"].items():
        if document.value["kind"] == LAB:
            step = "add the host's name or address on the wired control network"
            document.need(("hosts", name), "control_address", step)
        check_way_in(document, ("hosts", name, "control_address"), host.get("control_address"))
        check_way_in(document, ("hosts", name, "ssh", "address"), host.get("ssh", {}).get("address"))
        address, port = reached_at(host)
        if address is not None and (address, port) in reached:
            raise document.refuse(
                ("hosts", name),
                f"{name} and {reached[address, port]} are both reached at {address}, port {port}",
                "describe one machine as one host with several roles",
            )
        if address is not None:
            reached[address, port] = name


def _check_wifi(document: Document) -> None:
    wifi: dict[str, Any] = document.value["wifi"]
    for field, remedy in _NEEDED.items():
        document.need(("wifi",), field, remedy)
    if wifi["security"] == "open" and "passphrase" in wifi:
        raise document.refuse(("wifi", "passphrase"), "an open network has no passphrase", "leave it out")
    if wifi["security"] != "open":
        document.need(("wifi",), "passphrase", "add one by reference, such as env:WIFI_PASSPHRASE")
    _, faults = read_settings(wifi | {"passphrase": _STAND_IN})
    for fault in faults:
        field, _, sentence = fault.partition(": ")
        raise document.refuse(tuple(field.split(".")), sentence)


def _check_radios(document: Document) -> None:
    has_wifi = "wifi" in document.value
    for name, host in document.value["hosts"].items():
        place = ("hosts", name)
        roles = set(host["roles"])
        if has_wifi and {"client", "access_point"} & roles:
            role = "client" if "client" in roles else "access_point"
            document.need(place, "radio", "add 'radio: {interface: wlan0}'", f", which a {role} has")
        if "radio" in host and {"client", "access_point"} <= roles:
            raise document.refuse(
                (*place, "roles"),
                "a radio is either a client of the network or its access point",
                "use a host for each",
            )
        if "radio" in host and not has_wifi:
            raise document.refuse(
                (*place, "radio"),
                "there is a radio and no section wifi that describes its network",
                "add wifi, or leave the radio out",
            )
        if "addresses" in host.get("radio", {}) and "access_point" not in roles:
            raise document.refuse(
                (*place, "radio", "addresses"),
                "only an access point's radio has addresses of its own",
                "give a client test_addresses",
            )


def _check_cables(document: Document) -> None:
    bridging = document.value.get("wifi", {}).get("forwarding") == "bridging"
    for name, host in document.value["hosts"].items():
        place, wired, radio = ("hosts", name), host.get("wired", {}), host.get("radio", {})
        if wired and wired["interface"] == radio.get("interface"):
            raise document.refuse(
                (*place, "wired", "interface"), "cable and radio are one interface", "name the cable's own"
            )
        if not bridging or "access_point" not in host["roles"]:
            continue
        step = "add 'wired: {interface: NAME}', or use forwarding: routing"
        document.need(place, "wired", step, ", which forwarding: bridging joins with the radio")
        if wired.get("addresses"):
            raise document.refuse(
                (*place, "wired", "addresses"),
                "a cable in a bridge has no addresses of its own",
                "move them to radio.addresses, which the bridge gets",
            )


def _check_reservation(document: Document) -> None:
    hosts: dict[str, Any] = document.value["hosts"]
    reached = [name for name, host in hosts.items() if "controller" not in host["roles"]]
    for name in document.value.get("reservation", {}).get("power_cycle", {}):
        if name not in reached:
            raise document.refuse(
                ("reservation", "power_cycle", name),
                f"no host that is reached over SSH is called '{name}'; hosts: {', '.join(reached)}",
            )
