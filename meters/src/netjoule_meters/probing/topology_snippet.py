# SPDX-License-Identifier: Apache-2.0
"""The lines of a topology for instruments that were found, ready to paste. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from netjoule_meters.adapters import adapter
from netjoule_meters.probing.identification import FoundInstrument
from netjoule_meters.ranging import AUTO, range_settings
from netjoule_meters.settings import REQUIRED

_CHANGE = "CHANGE-ME"


def topology_snippet(found: Sequence[FoundInstrument], node: str = "client") -> str:
    """``meters:`` of a topology file with one entry per instrument that an adapter reads.

    Ranges are left to a ranging pass (``auto``); any other value that only a person knows says CHANGE-ME.
    """
    known = [one for one in found if one.adapter is not None]
    if not known:
        return ""
    ids = _ids(known, node)
    lines = ["meters:"]
    for meter_id, one in zip(ids, known, strict=True):
        lines += _entry(meter_id, node, one)
    return "\n".join(lines) + "\n"


def _entry(meter_id: str, node: str, one: FoundInstrument) -> list[str]:
    name = str(one.adapter)
    settings = ", ".join(f"{key}: {_yaml(value)}" for key, value in _settings(name, one.settings).items())
    return [
        f"  - meter_id: {meter_id}  # says {_comment(one.text)}",
        f"    node: {node}",
        f"    adapter: {name}",
        f"    resource: {_yaml(one.resource)}",
        f"    settings: {{{settings}}}",
        "    calibration_date: null  # day of the last calibration; null makes the accuracy unknown",
    ]


def _settings(name: str, found: Mapping[str, Any]) -> dict[str, Any]:
    """What was found out, ranges left to a ranging pass, and what a person must fill in."""
    kind = adapter(name)
    ranges = {setting.name for setting in range_settings(kind)}
    settings = dict(found)
    for setting in kind.settings_declared:
        if setting.default is REQUIRED and setting.name not in settings:
            settings[setting.name] = AUTO if setting.name in ranges else _CHANGE
    return settings


def _ids(found: Sequence[FoundInstrument], node: str) -> list[str]:
    """One id per instrument, unique."""
    ids: list[str] = []
    for one in found:
        wanted = re.sub(r"[^A-Za-z0-9_.-]", "-", f"{node}-{one.adapter}")[:60]
        place = 1
        while (unique := wanted if place == 1 else f"{wanted}-{place}") in ids:
            place += 1
        ids.append(unique)
    return ids


def _yaml(value: Any) -> str:
    """A scalar of YAML: JSON is YAML, and a plain word needs no quotes."""
    if isinstance(value, str) and re.fullmatch(r"[A-Za-z/][A-Za-z0-9/_.-]*", value):
        return value
    return json.dumps(value)


def _comment(text: str) -> str:
    """Text of an instrument, safe behind a #."""
    return re.sub(r"[^\x20-\x7e]", "?", text)[:80]
