# SPDX-License-Identifier: Apache-2.0
"""Verdicts of the rig `bench`, as its history takes them; what is given replaces fields."""

from __future__ import annotations

from typing import Any

import verdict_documents as documents

FINGERPRINT = {
    "kernel": "6.1.0-30-amd64",
    "cpu_model": "Example CPU @ 2.0 GHz",
    "meters": ["client: Yokogawa WT210, 1 A"],
}
RATIO = {"ratio": 1.01, "ratio_low": 0.99, "ratio_high": 1.029}
NO_RATIO = dict.fromkeys(("ratio", "ratio_low", "ratio_high"))


def verdict(**changed: Any) -> dict[str, Any]:
    """One of a gate that passed."""
    own = {
        "id": "gate-1",
        "rig": "bench",
        "fingerprint": FINGERPRINT,
        "power_source": "measured",
        "workload": "gate",
        "workload_version": "0123456789ab",
        "arms": [arm("base", "a" * 64), arm("head", "b" * 64)],
        **RATIO,
        "sessions": [session()],
    }
    return documents.verdict("pass", **own | changed)


def arm(name: str, sha256: str) -> dict[str, Any]:
    return {"name": name, "kind": "git", "text": f"refs/{name}", "commit": None, "sha256": sha256}


def session(**changed: Any) -> dict[str, Any]:
    """The first, decided at its second look."""
    cells = [
        documents.cell(cell={"transport": "udp", "payload_bytes": 64}),
        documents.cell("left_out", cell={"transport": "udp", "payload_bytes": 1400}),
    ]
    own = {"cells": cells, "head_over_reference": 1.5, **RATIO}
    return documents.session("first", "pass", **own | changed)


def failed(**changed: Any) -> dict[str, Any]:
    """A regression of 5 %, or a false alarm."""
    return verdict(**{"verdict": "fail", "exit_code": 1, "words": "A regression of 5 %."} | changed)


def pilot(**changed: Any) -> dict[str, Any]:
    """One that finds the rig fit."""
    found = {"log_ratio_sd": 0.015, "half_width_percent": 0.9, "blocks": 12, "reference_log_sd": 0.011}
    own = {
        "kind": "pilot",
        "pilot": {**found, "ranking": []},
        "arms": [arm("base", "a" * 64), arm("head", "c" * 64)],
        "same_arms": True,
        "sessions": [session(role="pilot")],
    }
    return verdict(**own | changed)
