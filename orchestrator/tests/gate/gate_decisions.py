# SPDX-License-Identifier: Apache-2.0
"""Events of R, and verdicts, made by hand."""

from __future__ import annotations

from typing import Any


def decision(verdict: str = "pass", ratio: float | None = 1.002, **changes: Any) -> dict[str, Any]:
    """The event ``gate_decision`` of a session of 9 blocks."""
    bounds = (None, None) if ratio is None else (ratio - 0.012, ratio + 0.012)
    look = {
        "blocks_planned": 9,
        "blocks": 9,
        "information": 0.9,
        "critical_value": 1.7,
        "log_ratio_mean": 0.0,
        "log_ratio_sd": 0.02,
        "ratio": ratio,
        "ratio_low": bounds[0],
        "ratio_high": bounds[1],
        "verdict": verdict,
    }
    return {
        "event": "gate_decision",
        "decided": verdict,
        "words": "words",
        "blocks_max": 10,
        "looks": [look],
        "verdict": verdict,
        "ratio": ratio,
        "ratio_low": bounds[0],
        "ratio_high": bounds[1],
        "cells": [],
        "reference_log_sd": 0.01,
        "head_over_reference": 1.1,
        "values": {"base": [1.0], "head": [1.0]},
    } | changes


def pilot(half_width_percent: float | None = 1.2, **changes: Any) -> dict[str, Any]:
    """The event ``gate_pilot`` of two builds of one source."""
    return (
        decision()
        | {
            "event": "gate_pilot",
            "log_ratio_sd": 0.02,
            "half_width_percent": half_width_percent,
            "contains_0": True,
            "narrow_enough": half_width_percent is not None and half_width_percent <= 1.5,
            "blocks": 12,
            "ranking": [],
        }
        | changes
    )


def about(kind: str = "gate", **changes: Any) -> dict[str, Any]:
    """What is known of a verdict before anything ran."""
    return {
        "kind": kind,
        "id": "gate-1",
        "created_utc": "2026-01-02T03:04:05Z",
        "finished_utc": "2026-01-02T03:24:05Z",
        "rig": "rig-a",
        "fingerprint": {"kernel": "6.1", "cpu_model": "cpu", "meters": ["m0: YOKOGAWA WT210, 1 A"]},
        "power_source": "modelled",
        "workload": "gate",
        "workload_version": "0123456789ab",
        "objective": "energy",
        "unit": "J/Mb",
        "margin_percent": 3.0,
        "tolerance_percent": 1.0,
        "arms": [],
        "same_arms": False,
        "versions": {"netjoule": "0"},
    } | changes
