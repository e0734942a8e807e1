# SPDX-License-Identifier: Apache-2.0
"""Verdicts as a gate and a pilot of the rig `bench` would write them."""

from __future__ import annotations

from typing import Any

FINGERPRINT = {
    "kernel": "6.1.0-30-amd64",
    "cpu_model": "Example CPU @ 2.0 GHz",
    "meters": ["client: Yokogawa WT210, 1 A"],
}
RATIO = {"ratio": 1.01, "ratio_low": 0.99, "ratio_high": 1.029}
NO_RATIO = dict.fromkeys(RATIO)


def verdict(**changed: Any) -> dict[str, Any]:
    """One of a gate that passed; what is given replaces its fields."""
    document = {
        "schema_version": 1,
        "kind": "gate",
        "id": "gate-1",
        "created_utc": "2026-11-26T20:00:00Z",
        "finished_utc": "2026-11-26T20:30:00Z",
        "rig": "bench",
        "fingerprint": FINGERPRINT,
        "power_source": "measured",
        "workload": "gate",
        "workload_version": "0123456789ab",
        "objective": "energy",
        "unit": "J/Mb",
        "margin_percent": 3,
        "tolerance_percent": 1,
        "arms": [arm("base", "a" * 64), arm("head", "b" * 64)],
        "same_arms": False,
        "verdict": "pass",
        "exit_code": 0,
        "reason": None,
        **RATIO,
        "words": "No regression: the head takes 1 % more, at most 2.9 %.",
        "sessions": [session()],
        "anchor": None,
        "pilot": None,
        "versions": {"netjoule": "0.1.0"},
    }
    return document | changed


def arm(name: str, sha256: str | None, commit: str | None = None) -> dict[str, Any]:
    return {"name": name, "kind": "git", "text": f"refs/{name}", "commit": commit, "sha256": sha256}


def session(**changed: Any) -> dict[str, Any]:
    """The first, decided at its second look."""
    document = {
        "role": "first",
        "campaign": "session-1",
        "blocks_max": 11,
        "looks": [look(4, "continue"), look(5, "pass")],
        "verdict": "pass",
        **RATIO,
        "cells": [
            cell(64),
            cell(1400, method="left_out", **NO_RATIO, verdict="left_out", reason="resolution"),
        ],
        "reference_log_sd": 0.012,
        "head_over_reference": 1.5,
        "values": {"base": [1.0, 1.1], "head": [1.02, 1.1]},
    }
    return document | changed


def look(blocks: int, says: str) -> dict[str, Any]:
    return {
        "blocks_planned": blocks,
        "blocks": blocks,
        "information": blocks / 11,
        "critical_value": 2.8,
        "log_ratio_mean": 0.01,
        "log_ratio_sd": 0.02 + blocks / 1000,
        **RATIO,
        "verdict": says,
    }


def cell(payload_bytes: int, **changed: Any) -> dict[str, Any]:
    document = {
        "cell": {"transport": "udp", "payload_bytes": payload_bytes},
        "method": "ratio",
        "blocks": 5,
        **RATIO,
        "difference_w": None,
        "difference_low_w": None,
        "difference_high_w": None,
        "p_holm": 0.4,
        "verdict": "no_clear_difference",
        "reason": "",
    }
    return document | changed


def failed(**changed: Any) -> dict[str, Any]:
    """A regression of 5 %, or a false alarm."""
    return verdict(**({"verdict": "fail", "exit_code": 1, "words": "A regression of 5 %."} | changed))


def pilot(**changed: Any) -> dict[str, Any]:
    """One that finds the rig fit."""
    found = {
        "log_ratio_sd": 0.015,
        "half_width_percent": 0.9,
        "blocks": 12,
        "reference_log_sd": 0.011,
        "ranking": [],
    }
    arms = [arm("base", "a" * 64), arm("head", "c" * 64)]
    return verdict(
        **(
            {
                "kind": "pilot",
                "pilot": found,
                "arms": arms,
                "same_arms": True,
                "sessions": [session(role="pilot")],
            }
            | changed
        )
    )
