# SPDX-License-Identifier: Apache-2.0
"""Whole result.json documents of which a test cares for a few fields."""

import json
from pathlib import Path
from typing import Any

_GOLDEN = Path(__file__).parents[2] / "results/golden/guest-hwsim/runs/b01m001-udp-a1/result.json"


def result_document(*nodes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A result that fits its contract: a golden one with other fields, a node for each change of its own."""
    document: dict[str, Any] = json.loads(_GOLDEN.read_text())
    (node,) = document["nodes"]
    return document | {"nodes": [_changed(node, one) for one in nodes], "reasons": []} | changes


def _changed(node: dict[str, Any], change: dict[str, Any]) -> dict[str, Any]:
    return node | change | {"floor": node["floor"] | change.get("floor", {})}
