# SPDX-License-Identifier: Apache-2.0
"""Verdict documents of every kind, held to their contract."""

from __future__ import annotations

from typing import Any

import netjoule_contracts as contracts

HOSTILE = "a|b\n::error::x]]>\x1b[31m`&<\"'%0A,@all \x00\ud800\u202e\\|#1 *b* $x$ ![i](u)"
"""A name with what each format, a terminal and a reader could take for something else."""
RATIO = {"pass": (1.001, 0.99, 1.012), "fail": (1.049, 1.021, 1.078), "inconclusive": (1.01, 0.98, 1.05)}
REASONS = {"inconclusive": "blocks_used_up", "skipped": "rig_noisy"}
EXIT_CODES = {"pass": 0, "fail": 1, "inconclusive": 4, "skipped": 4}


def ratios(verdict: str) -> dict[str, float | None]:
    return dict(zip(("ratio", "ratio_low", "ratio_high"), RATIO.get(verdict, (None,) * 3), strict=True))


def cell(verdict: str = "no_clear_difference", ratio: float = 1.0, **other: Any) -> dict[str, Any]:
    """A cell; left out ones and those in watts have no ratio."""
    method = other.pop("method", "left_out" if verdict == "left_out" else "ratio")
    known = method == "ratio"
    return {
        "cell": {"payload_bytes": 64, "offered_rate_mbps": 30},
        "method": method,
        "blocks": 8,
        "ratio": ratio if known else None,
        "ratio_low": ratio - 0.02 if known else None,
        "ratio_high": ratio + 0.02 if known else None,
        "difference_w": 0.012 if method == "p_a_difference" else None,
        "difference_low_w": -0.001 if method == "p_a_difference" else None,
        "difference_high_w": 0.025 if method == "p_a_difference" else None,
        "p_holm": 0.04 if known else None,
        "verdict": verdict,
        "reason": "below the meter's resolution" if verdict == "left_out" else "",
        **other,
    }


def cells() -> list[dict[str, Any]]:
    """One of each kind, in a workload's order."""
    return [
        cell("no_clear_difference", cell={"payload_bytes": 64}),
        cell("more", 1.06, cell={"payload_bytes": 300}),
        cell("more", 1.2, cell={"payload_bytes": 1440}),
        cell("less", 0.9, cell={"payload_bytes": 1000, "gso": True}),
        cell("left_out", cell={"payload_bytes": 1200}),
        cell(method="p_a_difference", cell={"payload_bytes": 1300}),
        cell(blocks=0, ratio_low=None, ratio_high=None, cell={"payload_bytes": 1400}),
    ]


def look(verdict: str, blocks: int) -> dict[str, Any]:
    return {
        "blocks_planned": blocks,
        "blocks": blocks,
        "information": blocks / 11,
        "critical_value": 2.0,
        "log_ratio_mean": 0.001,
        "log_ratio_sd": 0.02,
        **ratios(verdict),
        "verdict": verdict,
    }


def session(role: str, verdict: str, /, **other: Any) -> dict[str, Any]:
    return {
        "role": role,
        "campaign": f"session-{2 if role == 'confirming' else 1}",
        "blocks_max": 11,
        "looks": [look("continue", 4), look(verdict, 8)],
        "verdict": verdict,
        **ratios(verdict),
        "cells": cells(),
        "reference_log_sd": 0.01,
        "head_over_reference": 1.2,
        "values": {"base": [0.02, 0.021, 0.019, 0.02], "head": [0.021, 0.022, 0.02, 0.021]},
        **other,
    }


def verdict(kind: str = "pass", /, **other: Any) -> dict[str, Any]:
    """A verdict document: pass, fail (with its confirming session), inconclusive or skipped (without one)."""
    roles = {"fail": ("first", "confirming"), "skipped": ()}.get(kind, ("first",))
    arm = {"kind": "git", "sha256": "0" * 64}
    document = {
        "schema_version": 1,
        "kind": "gate",
        "id": "gate-20261126T203000Z",
        "created_utc": "2026-11-26T20:30:00Z",
        "finished_utc": "2026-11-26T20:41:30.5Z",
        "rig": "emulated",
        "fingerprint": {"kernel": "6.18.5", "cpu_model": "CPU @ 3 GHz", "meters": ["client: WT210, 1 A"]},
        "power_source": "modelled",
        "workload": "gate-64",
        "workload_version": "0123456789ab",
        "objective": "energy",
        "unit": "J/Mb",
        "margin_percent": 3,
        "tolerance_percent": 1,
        "same_arms": False,
        "arms": [
            {**arm, "name": "base", "text": "main", "commit": "1" * 40},
            {**arm, "name": "head", "text": "HEAD", "commit": "2" * 40},
        ],
        "verdict": kind,
        "exit_code": EXIT_CODES[kind],
        "reason": {"code": REASONS[kind], "detail": "why"} if kind in REASONS else None,
        **ratios(kind),
        "words": f"{kind}: one sentence",
        "sessions": [session(role, kind) for role in roles],
        "anchor": None,
        "pilot": None,
        "versions": {"netjoule": "0.1.0", "r": None},
        **other,
    }
    contracts.validate("gate_verdict", document)
    return document


def anchor(kind: str) -> dict[str, Any]:
    return {"verdict": kind, **ratios(kind), "words": f"against v1: {kind}"}


def ranked(
    cell: dict[str, Any], measure_s: float | None, sd: float, blocks: int | None, seconds: float | None
) -> dict[str, Any]:
    needed = {"blocks_needed": blocks, "seconds_needed": seconds}
    return {"cell": cell, "measure_s": measure_s, "log_ratio_sd": sd, **needed}


def pilot() -> dict[str, Any]:
    """Of a pilot that found its rig fit."""
    ranking = [
        ranked({"payload_bytes": 64}, 10, 0.021, 11, 900),
        ranked({"payload_bytes": 64}, 2.5, 0.055, 71, 1200),
        ranked({"payload_bytes": 1440}, None, 0.3, None, None),
    ]
    found = {"log_ratio_sd": 0.02, "half_width_percent": 1.2, "blocks": 12, "reference_log_sd": 0.01}
    return verdict("pass", sessions=[session("pilot", "pass")], pilot={**found, "ranking": ranking}) | {
        "kind": "pilot"
    }


def hostile() -> dict[str, Any]:
    """A regression in which every text that others choose is `HOSTILE`."""
    arm = {"kind": "directory", "text": HOSTILE, "commit": None, "sha256": None}
    failed = session("first", "fail", values={HOSTILE: [1.0, 2.0]})
    failed["cells"] = [
        cell("more", 1.1, cell={HOSTILE: HOSTILE}, reason=HOSTILE),
        cell("left_out", cell={HOSTILE: "2"}, reason=HOSTILE),
    ]
    return verdict(
        "fail",
        rig=HOSTILE,
        workload=HOSTILE,
        unit=HOSTILE,
        words=HOSTILE,
        fingerprint={"kernel": HOSTILE, "cpu_model": HOSTILE, "meters": [HOSTILE]},
        arms=[{**arm, "name": "base" + HOSTILE}, {**arm, "name": "head"}],
        anchor={**anchor("fail"), "words": HOSTILE},
        versions={HOSTILE: HOSTILE},
        sessions=[failed],
    )


def of_many_cells(number: int) -> dict[str, Any]:
    """A regression with so many cells, every tenth of which costs more."""
    found = session("confirming", "fail")
    found["cells"] = [
        cell("more" if n % 10 == 0 else "no_clear_difference", 1.1 + n * 1e-6, cell={"payload_bytes": n})
        for n in range(number)
    ]
    return verdict("fail", sessions=[found])
