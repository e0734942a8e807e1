# SPDX-License-Identifier: Apache-2.0
"""The section ``gate`` of a workload names arms and blocks that the workload has. How it decides is R's."""

from __future__ import annotations

from collections.abc import Sequence

from netjoule.core.yamlfile import Document


def check(document: Document, arms: Sequence[str]) -> None:
    """Refuse a gate over arms that the workload does not have, or with looks that its blocks do not reach.

    Args:
        document: a workload that fits its schema.
        arms: of it, without the control arm.

    Raises:
        UsageError: naming the field.
    """
    gate, blocks = document.value.get("gate"), document.value["blocks"]
    if gate is None:
        return
    named = [field for field in ("head", "base", "anchor", "reference") if field in gate]
    for field in named:
        if gate[field] not in arms:
            what = f"{gate[field]} is not an arm of this workload that does work"
            raise document.refuse(("gate", field), what, f"name one of {', '.join(arms)}")
    if gate["head"] == gate["base"]:
        raise document.refuse(("gate", "base"), f"{gate['head']} is compared with itself")
    if gate["tolerance_percent"] >= gate["margin_percent"]:
        what = f"{gate['tolerance_percent']:g} % is not under the margin of {gate['margin_percent']:g} %"
        raise document.refuse(("gate", "tolerance_percent"), what)
    if list(gate["looks"]) != sorted(gate["looks"]) or gate["looks"][-1] != blocks:
        what = f"{', '.join(map(str, gate['looks']))} do not rise to the {blocks} blocks of the workload"
        raise document.refuse(("gate", "looks"), what, f"let the last be {blocks}")
    if ("reference_log_sd" in gate) != ("pilot_blocks" in gate):
        raise document.refuse(
            ("gate",), "reference_log_sd and pilot_blocks belong together", "give both or none"
        )
