# SPDX-License-Identifier: Apache-2.0
"""Bencher Metric Format: JSON of benchmarks, their measures, and of each a value with its bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

from netjoule.core.safe_text import escaped
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Verdict

Metric = dict[str, float]


def text(verdict: Verdict) -> str:
    """The document: the decision by the workload's name, each cell, and the mean of each arm."""
    workload, objective = escaped(verdict["workload"]), verdict["objective"]
    found: dict[str, dict[str, Metric]] = {}
    _add(found, workload, f"{objective} ratio", _metric(verdict, "ratio{}"))
    for cell in findings.cells(verdict):
        name = f"{workload}/{findings.cell_name(cell)}"
        if cell["method"] == "p_a_difference":
            _add(found, name, "power difference (W)", _metric(cell, "difference{}_w"))
        else:
            _add(found, name, f"{objective} ratio", _metric(cell, "ratio{}"))
    session = findings.deciding(verdict)
    for arm, values in (session["values"] if session else {}).items():
        mean = {"value": math.fsum(values) / len(values)} if values else {}
        _add(found, f"{workload}/{escaped(arm)}", f"{objective} ({escaped(verdict['unit'])})", mean)
    return json.dumps(found, ensure_ascii=False, allow_nan=False, indent=1) + "\n"


def _add(found: dict[str, dict[str, Metric]], benchmark: str, measure: str, metric: Metric) -> None:
    if metric:
        found.setdefault(benchmark, {})[measure] = metric


def _metric(part: Mapping[str, Any], field: str) -> Metric:
    """A value and its bounds, as far as there are some; nothing without a value."""
    named = {"value": "", "lower_value": "_low", "upper_value": "_high"}
    found = {name: part[field.format(end)] for name, end in named.items()}
    return {} if found["value"] is None else {k: v for k, v in found.items() if v is not None}
