# SPDX-License-Identifier: Apache-2.0
"""The contrasts that a workload names are contrasts of that workload. Which are tested, and how, is R's."""

from __future__ import annotations

from typing import Any

from netjoule.core.yamlfile import Document

__all__ = ["check"]


def check(document: Document) -> None:
    """Refuse a contrast with a transport or a size that the workload does not send, or named twice.

    Args:
        document: a workload that fits its schema.

    Raises:
        UsageError: naming the field.
    """
    value = document.value
    seen: set[tuple[Any, ...]] = set()
    for index, one in enumerate(value.get("statistics", {}).get("contrasts", [])):
        place = ("statistics", "contrasts", index)
        for field in ("transport", "reference"):
            name = one[field]
            if name == "null" or name not in value["transports"]:
                raise document.refuse(
                    (*place, field),
                    f"{name} is not a transport of this workload that sends",
                    "name two of its transports, not null",
                )
        if one["transport"] == one["reference"]:
            raise document.refuse((*place, "reference"), f"{one['transport']} is compared with itself")
        if one["payload_bytes"] not in value["payload_bytes"]:
            sizes = ", ".join(map(str, value["payload_bytes"]))
            raise document.refuse(
                (*place, "payload_bytes"),
                f"{one['payload_bytes']} bytes are not sent by this workload",
                f"name one of {sizes}",
            )
        key = (*sorted((one["transport"], one["reference"])), one["payload_bytes"])
        if key in seen:
            raise document.refuse(place, "the same two transports at the same size stand twice")
        seen.add(key)
