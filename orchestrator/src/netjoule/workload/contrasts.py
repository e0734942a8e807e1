# SPDX-License-Identifier: Apache-2.0
"""The contrasts that a workload names are contrasts of that workload. Which are tested, and how, is R's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.yamlfile import Document
from netjoule.workload.cell import value_name


def name_arms(document: Document) -> None:
    """Contrasts whose arms are numbers or truth values have their names, as arms have; nothing is checked."""
    statistics: Any = document.value.get("statistics")
    asked = statistics.get("contrasts") if isinstance(statistics, dict) else None
    if isinstance(asked, list):
        named = [
            {k: value_name(v) if isinstance(v, bool | int | float) else v for k, v in one.items()}
            if isinstance(one, dict)
            else one
            for one in asked
        ]
        document.value["statistics"] = statistics | {"contrasts": named}


def check(document: Document, arms: Sequence[str]) -> None:
    """Refuse a contrast with an arm or a value that the workload does not have, or named twice.

    Args:
        document: a workload that fits its schema.
        arms: of it, without the control arm.

    Raises:
        UsageError: naming the field.
    """
    value = document.value
    factor = contracts.loads()[value["load"]]["compared_at"]
    wanted = set() if factor in (None, value["arm"]) else {factor}
    seen: set[tuple[Any, ...]] = set()
    for index, one in enumerate(value.get("statistics", {}).get("contrasts", [])):
        place = ("statistics", "contrasts", index)
        for field in ("arm", "reference"):
            if one[field] not in arms:
                what = f"{one[field]} is not an arm of this workload that does work"
                raise document.refuse((*place, field), what, f"name two of {', '.join(arms)}")
        if one["arm"] == one["reference"]:
            raise document.refuse((*place, "reference"), f"{one['arm']} is compared with itself")
        at = one.get("at", {})
        if set(at) != wanted:
            what = f"at names {', '.join(at) or 'nothing'}"
            raise document.refuse((*place, "at"), what, f"name {', '.join(wanted) or 'no factor'}")
        for name in wanted:
            if at[name] not in value["factors"][name]:
                shown = ", ".join(map(str, value["factors"][name]))
                what = f"{name} {at[name]} is not in this workload"
                raise document.refuse((*place, "at", name), what, f"name one of {shown}")
        key = (*sorted((one["arm"], one["reference"])), *at.values())
        if key in seen:
            raise document.refuse(place, "the same two arms stand twice")
        seen.add(key)
