# SPDX-License-Identifier: Apache-2.0
"""What a value of a testbed's factor comes to: parameters of presets, elements of paths. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule.core.errors import UsageError, did_you_mean
from netjoule.core.yamlfile import Document


def parameters(topology: Mapping[str, Any], factor: str, value: Any, where: str = "") -> Mapping[str, Any]:
    """Parameters of a factor's value: those written in its place, or of the preset that it names.

    Args:
        topology: its document.
        factor: its name.
        value: of a workload.
        where: it stands, for messages.

    Raises:
        UsageError: when the topology does not have that preset or an element of it.
    """
    presets = topology.get("presets", {}).get(factor, {})
    if not isinstance(value, Mapping) and value not in presets:
        raise UsageError(
            f"{topology['name']} has no preset '{value}' of {factor}{did_you_mean(str(value), presets)}",
            where=where,
            next_step=f"name one of its presets ({', '.join(presets) or 'it has none'}), or give parameters",
        )
    found: Mapping[str, Any] = value if isinstance(value, Mapping) else presets[value]
    if (fault := _fault(found, topology.get("elements", {}))) is not None:
        raise UsageError(fault, where=where)
    return found


def path_elements(topology: Mapping[str, Any], value: Any) -> list[dict[str, Any]]:
    """Elements of the path that a value of the factor asks for, in order from the access point.

    Raises:
        UsageError: as `parameters`.
    """
    told = dict(parameters(topology, "path", value))
    if "elements" in told:
        return [topology["elements"][name] for name in told["elements"]]
    if "rtt_ms" in told:
        told["delay_ms"] = told.pop("rtt_ms") / 2
    return [topology["link"].get("wired", {}) | told]


def check_paths(document: Document) -> None:
    """Hold paths to what the schema cannot say of them.

    Raises:
        UsageError: naming file, line and field of the first fault.
    """
    elements = document.value.get("elements", {})
    for name, path in document.value.get("presets", {}).get("path", {}).items():
        if (fault := _fault(path, elements)) is not None:
            raise document.refuse(("presets", "path", name), fault)


def _fault(path: Mapping[str, Any], elements: Mapping[str, Any]) -> str | None:
    """What is wrong with the parameters of a path."""
    named = path.get("elements", ())
    if named and len(path) > 1:
        return "elements take the place of a path's delay, rate and loss: give one or the other"
    unknown = [name for name in named if name not in elements]
    known = ", ".join(elements) or "it has none"
    return f"no element of the testbed is called '{unknown[0]}'; elements: {known}" if unknown else None
