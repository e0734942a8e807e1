# SPDX-License-Identifier: Apache-2.0
"""Rigs of a topology: each a topology of its own, and no two of them in each other's way.

A rig (one client, access point, server and meters that can measure alone) is what it changes of the topology:
a merge patch (RFC 7396), in which meters stand by their meter_id. So hosts and meters are called the same on
all rigs, and a run's documents look the same whichever rig had it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from netjoule.core.yamlfile import Document
from netjoule.topology.checks import EMULATED, SIMULATED
from netjoule.topology.hosts import reached_at
from netjoule_radio import channels

Place = tuple[str | int, ...]

FIRST = "rig1"
"""What the one rig of a topology that describes no others is called."""
_OF_ALL = ("rigs", "rig")


@dataclass(frozen=True, slots=True)
class Span:
    """Air that a network takes: a room, and frequencies in MHz."""

    room: str
    low_mhz: float
    high_mhz: float

    def overlaps(self, other: Span) -> bool:
        """Whether two networks hear each other."""
        return self.room == other.room and self.low_mhz < other.high_mhz and other.low_mhz < self.high_mhz


def document_of(document: Document, rig: str) -> Document:
    """The topology of a rig, with places in the file that it came from.

    Args:
        document: a topology that fits its schema.
        rig: name of one of its `rigs`; without them any name, of a rig that is as the topology says.
    """
    patch: Mapping[str, Any] = document.value.get("rigs", {}).get(rig, {})
    base = {name: part for name, part in document.value.items() if name not in _OF_ALL}
    meters = {meter["meter_id"]: meter for meter in base["meters"]}
    merged = _merged(base | {"meters": meters}, patch)
    merged["meters"] = [{"meter_id": name} | meter for name, meter in merged["meters"].items()]
    ids = [meter["meter_id"] for meter in merged["meters"]]

    def written(place: Place) -> Place:
        by_name = (ids[int(place[1])], *place[2:]) if place[0] == "meters" and place[1:] else place[1:]
        own = ("rigs", rig, place[0], *by_name)
        return own if own in document.lines or place not in document.lines else place

    return Document(
        document.source, merged | {"rig": rig}, document.lines, lambda at: written(at) if at else ()
    )


def check_rigs(document: Document, rigs: Mapping[str, Document]) -> None:
    """Refuse rigs that cannot measure at once, with a host, a meter or air time in common, or not the same.

    Args:
        document: of the topology.
        rigs: their own documents, by name.

    Raises:
        UsageError: naming both rigs, and what they share or differ in.
    """
    for (one, first), (other, second) in combinations(rigs.items(), 2):
        nodes, others = (
            {meter["meter_id"]: meter["node"] for meter in rig.value["meters"]} for rig in (first, second)
        )
        if nodes != others:
            what = f"rigs {one} and {other} do not have the same meters on the same hosts"
            raise document.refuse(("rigs", other), what, "change what meters are, not which there are")
        for shared, remedy in _shared(first.value, second.value):
            raise document.refuse(("rigs", other), f"rigs {one} and {other} share {shared}", remedy)


def _shared(one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What two rigs have in common, with what to do about it."""
    if one["kind"] not in (EMULATED, SIMULATED):  # its hosts and its air are made anew for each rig
        there = _hosts(one)
        for place, name in _hosts(other).items():
            if place in there:
                what = f"the host at {place[0]}, port {place[1]} (hosts.{there[place]} and hosts.{name})"
                yield (
                    what,
                    "give each rig hosts of its own: change control_address, or ssh.address and ssh.port",
                )
        first, second = _air(one), _air(other)
        if first and second and first.overlaps(second):
            yield (
                f"air time: channel {_channel(one)} and channel {_channel(other)} overlap{_in(first.room)}",
                "change wifi.channel of one; or room, where neither hears the other",
            )
    places = [rig.get("reservation", {}).get("labgrid") for rig in (one, other)]
    if places[0] is not None and places[0] == places[1]:
        yield (
            f"the place {places[0]} of labgrid",
            "give each rig a place of its own: change reservation.labgrid",
        )
    read = _meters(one)
    for instrument, name in _meters(other).items():
        if instrument in read:
            what = f"the meter at {instrument[-1]} (meters.{read[instrument]} and meters.{name})"
            yield what, "give each rig meters of its own: change resource"


def _hosts(topology: Mapping[str, Any]) -> dict[tuple[str | None, int], str]:
    """Hosts by where they are reached; the controller is every rig's."""
    return {
        reached_at(host): name
        for name, host in topology["hosts"].items()
        if "controller" not in host["roles"] and reached_at(host)[0]
    }


def _meters(topology: Mapping[str, Any]) -> dict[tuple[object, ...], str]:
    """Real meters by what they are plugged into and their resource there."""
    hosts = topology["hosts"]
    return {
        (reached_at(hosts[meter["host"]]) if "host" in meter else None, meter["resource"]): meter["meter_id"]
        for meter in topology["meters"]
        if meter["resource"] != EMULATED
    }


def _air(topology: Mapping[str, Any]) -> Span | None:
    """The air that the rig's network takes; None without one."""
    if "wifi" not in topology:
        return None
    taken = channels.block(topology["wifi"]["channel"], topology["wifi"]["width_mhz"])
    low, high = channels.frequency_mhz(taken[0]), channels.frequency_mhz(taken[-1])
    return Span(topology.get("room", ""), low - 10, high + 10)  # each channel is 20 MHz wide


def _channel(topology: Mapping[str, Any]) -> str:
    return f"{topology['wifi']['channel']} ({topology['wifi']['width_mhz']} MHz)"


def _in(room: str) -> str:
    return f" in room {room}" if room else ""


def _merged(value: Any, patch: Any) -> Any:
    """A JSON merge patch applied (RFC 7396 section 2): null takes a member away."""
    if not isinstance(patch, Mapping):
        return patch
    members = dict(value) if isinstance(value, Mapping) else {}
    for name, change in patch.items():
        if change is None:
            members.pop(name, None)
        else:
            members[name] = _merged(members.get(name), change)
    return members
