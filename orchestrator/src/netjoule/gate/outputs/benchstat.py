# SPDX-License-Identifier: Apache-2.0
"""Go's benchmark lines, one per block and arm, for golang.org/x/perf: ``benchstat -col arm FILE``.

Rig, workload, session and arm are configuration lines, which hold for the lines below them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from netjoule.core.safe_text import escaped
from netjoule.gate.outputs.findings import Verdict


def text(verdict: Verdict) -> str:
    """The file."""
    return "".join(f"{line}\n" for line in _lines(verdict))


def _lines(verdict: Verdict) -> Iterator[str]:
    unit = re.sub(r"\s", "_", escaped(verdict["unit"]))
    # A name begins with a capital; / = and - have meanings in it.
    workload = re.sub(r"\W", "_", verdict["workload"])
    name = f"Benchmark{workload[:1].upper()}{workload[1:]}"
    yield f"Unit {unit} better=lower"  # of every objective: throughput is told as time for the work
    yield f"rig: {escaped(verdict['rig'])}"
    yield f"workload: {escaped(verdict['workload'])}"
    for session in verdict["sessions"]:
        if session["role"] == "anchor":  # its arms are those of the first
            continue
        yield f"session: {session['role']}"
        for arm, values in session["values"].items():
            yield f"arm: {escaped(arm)}"
            yield from (f"{name} 1 {value!r} {unit}" for value in values)
