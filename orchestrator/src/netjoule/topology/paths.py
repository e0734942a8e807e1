# SPDX-License-Identifier: Apache-2.0
"""What a value of a testbed's factor comes to: parameters of presets, elements of paths. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError, did_you_mean
from netjoule.core.yamlfile import Document
from netjoule.topology.hosts import wired_hosts

OF_ELEMENTS = ("scaling", "bursts", "varying")
"""Factors that take the place of the field of their name, in each element of a path that has it."""
_PATH = "path"
_OF_LAB = {"delay_ms", "rate_mbps", "loss_ratio", "queue_packets", "queue_bytes"}
"""Fields of an element that the queues of a server's kernel can do."""


def parameters(topology: Mapping[str, Any], factor: str, value: Any, where: str = "") -> Mapping[str, Any]:
    """Parameters of a factor's value: those written in its place, or of the preset that it names.

    Presets are the topology's, and those that factors.json has for every testbed.

    Args:
        topology: its document.
        factor: its name.
        value: of a workload.
        where: it stands, for messages.

    Raises:
        UsageError: when the topology does not have that preset or an element of it.
    """
    kind = factor.partition(".")[0]
    everywhere = (contracts.factor(kind) or {}).get("presets", {})
    presets = everywhere | topology.get("presets", {}).get(kind, {})
    if not isinstance(value, Mapping) and value not in presets:
        raise UsageError(
            f"{topology['name']} has no preset '{value}' of {factor}{did_you_mean(str(value), presets)}",
            where=where,
            next_step=f"name one of its presets ({', '.join(presets) or 'it has none'}), or give parameters",
        )
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else presets[value]
    if (fault := _fault(found, topology)) is not None:
        raise UsageError(fault, where=where)
    return found


def is_path(factor: str) -> bool:
    """Whether a factor is a path: `path`, or `path.HOST`."""
    return factor.partition(".")[0] == _PATH


def path_host(topology: Mapping[str, Any], factor: str, where: str = "") -> str:
    """The host at the end of the path that a factor names: `path`, or `path.HOST` where there are several.

    Raises:
        UsageError: when no path is called so.
    """
    hosts = wired_hosts(topology["hosts"])
    names = {f"path.{host}": host for host in hosts} if len(hosts) > 1 else {"path": hosts[0]}
    if factor not in names:
        raise UsageError(
            f"{topology['name']} has no path that is called {factor}",
            where=where,
            next_step=f"name {' or '.join(names)}",
        )
    return names[factor]


def path_elements(topology: Mapping[str, Any], host: str, value: Any = None) -> list[dict[str, Any]]:
    """Elements of the path to a host, in order from the access point.

    Args:
        topology: its document.
        host: behind the access point.
        value: of the factor that asks for it; None for the testbed's own.

    Raises:
        UsageError: as `parameters`.
    """
    link = topology.get("link", {})
    own, told = _told(topology, host, value)
    if "elements" in told:
        return [topology["elements"][name] for name in told["elements"]]
    element = {name: one for name, one in {**own, **told}.items() if name not in ("elements", "access")}
    if "rtt_ms" in element:
        element["delay_ms"] = element.pop("rtt_ms") / 2
    return [link.get("wired", {}) | element]


def path_access(topology: Mapping[str, Any], host: str, value: Any = None) -> list[dict[str, Any]]:
    """Elements that the flows over the path to a host cross one by one, in order of the flows; none: [].

    Arguments and errors as `path_elements`.
    """
    return [topology["elements"][name] for name in _told(topology, host, value)[1].get("access", ())]


def _told(topology: Mapping[str, Any], host: str, value: Any) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Parameters of the testbed's own path to a host, and of the one that is asked for."""
    own = topology.get("link", {}).get("paths", {}).get(host, {})
    return own, own if value is None else parameters(topology, "path", value)


def asked_paths(
    topology: Mapping[str, Any], asked: Mapping[str, Any], where: str = ""
) -> dict[str, list[dict[str, Any]]]:
    """Elements of each path that factors of the testbed ask for, by the host at its end.

    Args:
        topology: its document.
        asked: value of each factor; those of `OF_ELEMENTS` are of all paths, and some of no path.
        where: they stand, for messages.

    Raises:
        UsageError: as `parameters` and `path_host`, and where a factor finds no element that has its field.
    """
    values = {path_host(topology, name, where): value for name, value in asked.items() if is_path(name)}
    fields = {name: parameters(topology, name, asked[name], where) for name in OF_ELEMENTS if name in asked}
    found, missing = {}, set(fields)
    for host in wired_hosts(topology["hosts"]):
        elements = path_elements(topology, host, values.get(host))
        there = fields.keys() & {name for element in elements for name in element}
        if host in values or there:
            missing -= there
            found[host] = [one | {name: fields[name] for name in fields.keys() & one} for one in elements]
    if missing:
        name = min(missing)
        raise UsageError(
            f"no path of {topology['name']} has an element with {name}",
            where=where,
            next_step=f"ask for a path that has one, or leave {name} out",
        )
    return found


def in_force(
    topology: Mapping[str, Any], asked: Mapping[str, Any], told: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """What of a testbed is in force, by the factors that ask for it.

    `told`: elements of each path by its host, as `asked_paths` gives them or the link says.
    """
    found: dict[str, Any] = {}
    for factor in asked:
        if factor in OF_ELEMENTS:
            found[factor] = {"elements": [one for each in told.values() for one in each if factor in one]}
        elif is_path(factor):
            host = path_host(topology, factor)
            found[factor] = {"elements": list(told[host])}
            if access := path_access(topology, host, asked[factor]):
                found[factor]["access"] = access
    return found


def check_paths(document: Document) -> None:
    """Hold paths to what the schema cannot say of them.

    Raises:
        UsageError: naming file, line and field of the first fault.
    """
    value = document.value
    hosts = wired_hosts(value["hosts"])
    for host in value.get("link", {}).get("paths", {}):
        if host not in hosts:
            what = f"no host behind the access point is called '{host}'; hosts: {', '.join(hosts)}"
            raise document.refuse(("link", "paths", host), what)
    for place in (("link", "paths"), ("presets", "path")):
        for name, path in value.get(place[0], {}).get(place[1], {}).items():
            if (fault := _fault(path, value)) is not None:
                raise document.refuse((*place, name), fault)


def _fault(path: Mapping[str, Any], topology: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters of a path."""
    elements = topology.get("elements", {})
    named, access = path.get("elements", ()), path.get("access", ())
    if access and topology["kind"] != "simulated":
        return "only on a testbed of kind simulated have flows an access of their own: leave access out"
    if access and not named:
        return "access lies before what flows share: give elements beside it"
    if named and path.keys() - {"elements", "access"}:
        return "elements take the place of a path's delay, rate and loss: give one or the other"
    unknown = [name for name in (*named, *access) if name not in elements]
    if unknown:
        known = ", ".join(elements) or "it has none"
        return f"no element of the testbed is called '{unknown[0]}'; elements: {known}"
    if topology["kind"] == "lab" and (
        len(named) > 1 or any(elements[name].keys() - _OF_LAB for name in named)
    ):
        return "a path of a lab is one element of delay, rate, loss and queue, on its server: name such a one"
    scaling = [name for name in access if "scaling" in elements[name]]
    return f"'{scaling[0]}' scales its rate: a router stands in elements, not in access" if scaling else None
