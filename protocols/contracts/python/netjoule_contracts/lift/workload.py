# SPDX-License-Identifier: Apache-2.0
"""Workloads of schema 1, whose runs were flows and whose factors stood beside everything else. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule_contracts.lift.plan import FACTORS

_FACTORS = {"transports": "transport", **{name: name for name in (*FACTORS, "profile")}}
_SETTINGS = ("generator", "ip_version", "clients", "beside", "transport_options", "pacing_limits")
_PULSE = {"rate_mbps": "offered_rate_mbps"}
_NULL = "null"
_WRITTEN = {name: old for old, name in _FACTORS.items()}
_PACING = {"pacing": "mode", "window_us": "window_us", "gso": "gso"}

OLDER_FIELDS = (
    *("schema_version", "name", "description", *_FACTORS, "blocks", "timing", "limits"),
    *(*_SETTINGS, "load_pulses", "statistics", "device_form", "seed"),
)
"""Fields of a workload of schema 1."""


def is_older(workload: Mapping[str, Any]) -> bool:
    """Whether it is one of schema 1; one with `factors` is newer and says a wrong number."""
    return workload.get("schema_version") == 1 and "factors" not in workload


def newest_campaign(campaign: Mapping[str, Any]) -> Mapping[str, Any]:
    """A campaign.json with its workload in the newest shape."""
    workload = campaign.get("workload")
    if not isinstance(workload, Mapping):
        return campaign
    return {**campaign, "workload": newest_workload(workload)}


def newest_workload(workload: Mapping[str, Any]) -> Mapping[str, Any]:
    """A workload in the newest shape; what is wrong with it stays wrong, so that its contract says it."""
    if not is_older(workload):
        return workload
    found: dict[str, Any] = {**workload, "schema_version": 2, "load": "flow", "control": False}
    factors = {name: found.pop(old) for old, name in _FACTORS.items() if old in found}
    settings = {name: found.pop(name) for name in _SETTINGS if name in found}
    pulses = found.pop("load_pulses", None)
    if pulses is not None:
        found["sync_pulses"], settings["sync_pulse"] = True, _renamed(pulses, _PULSE)
    found["control"] = _without_control(factors)
    _spell_out_pacing(factors)
    if isinstance(found.get("statistics"), Mapping):
        found["statistics"] = _statistics(found["statistics"])
    return {**found, "factors": factors, "flow": settings}


def older_place(workload: Mapping[str, Any], place: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Where a field of the newest shape stands in a workload of schema 1."""
    found: tuple[Any, ...] = place
    match place:
        case ("factors", name, *rest) if name in _PACING and _names_pacing(workload):
            found = ("pacing", _PACING[str(name)], *rest)
        case ("factors", name, *rest):
            found = (_WRITTEN.get(str(name), name), *rest)
        case ("sync_pulses",) | ("flow", "sync_pulse"):
            found = ("load_pulses",)
        case ("flow", "sync_pulse", name, *rest):
            found = ("load_pulses", "rate_mbps" if name == "offered_rate_mbps" else name, *rest)
        case ("control",):
            found = ("transports",)
        case ("statistics", "contrasts", index, "arm"):
            found = ("statistics", "contrasts", index, "transport")
        case ("statistics", "contrasts", index, "at", *_):
            found = ("statistics", "contrasts", index, "payload_bytes")
        case ("factors" | "flow" | "load" | "arm", *rest):
            found = tuple(rest)
    return found


def _without_control(factors: dict[str, Any]) -> bool:
    """Take null, which is the control arm, out of the transports; whether it was there."""
    named = factors.get("transport")
    if not isinstance(named, list):
        return False
    # A bare null in a YAML list is the transport of that name.
    factors["transport"] = [one for one in named if one not in (None, _NULL)]
    return len(factors["transport"]) < len(named)


def _spell_out_pacing(factors: dict[str, Any]) -> None:
    """A mapping becomes the three factors that it stands for."""
    if _names_pacing(factors):
        factors |= _renamed(factors.pop("pacing"), {"mode": "pacing"})


def _names_pacing(fields: Mapping[str, Any]) -> bool:
    """Whether one mapping has the pacing whole."""
    return isinstance(fields.get("pacing"), Mapping) and not {"window_us", "gso"} & set(fields)


def _statistics(said: Mapping[str, Any]) -> dict[str, Any]:
    contrasts = said.get("contrasts")
    if not isinstance(contrasts, list):
        return dict(said)
    return {**said, "contrasts": [_contrast(one) if isinstance(one, Mapping) else one for one in contrasts]}


def _contrast(one: Mapping[str, Any]) -> dict[str, Any]:
    found = _renamed(one, {"transport": "arm"})
    size = found.pop("payload_bytes", None)
    return found if size is None else {**found, "at": {"payload_bytes": size}}


def _renamed(given: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(given, Mapping):
        return given
    return {names.get(name, name): value for name, value in given.items()}
