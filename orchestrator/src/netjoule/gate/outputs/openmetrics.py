# SPDX-License-Identifier: Apache-2.0
"""OpenMetrics text, in base units: for node_exporter's textfile collector and GitLab's metrics report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from netjoule.core.safe_text import escaped
from netjoule.gate.outputs import findings
from netjoule.gate.outputs.findings import Verdict

if TYPE_CHECKING:
    from prometheus_client.core import Metric

VERDICTS = ("pass", "fail", "inconclusive", "skipped")
_BASE_UNITS = {
    "J/Mb": ("joules_per_bit", 1e-6),
    "s/Mb": ("seconds_per_bit", 1e-6),
    "us/message": ("seconds_per_message", 1e-6),
    "J": ("joules", 1.0),
    "s": ("seconds", 1.0),
    "ms": ("seconds", 1e-3),
}
"""Name and factor by unit; an arm's mean in another unit carries that as a label."""


def text(verdict: Verdict) -> str:
    """The exposition; its last line is ``# EOF``."""
    from prometheus_client.openmetrics.exposition import generate_latest

    return bytes(generate_latest(_Collected(verdict))).decode()  # type: ignore[no-untyped-call]


class _Collected:
    """What prometheus-client calls a registry."""

    def __init__(self, verdict: Verdict) -> None:
        self._verdict = verdict

    def collect(self) -> Iterator[Metric]:
        labels = {name: escaped(str(self._verdict[name])) for name in ("rig", "workload", "objective")}
        yield from _decision(self._verdict, labels)
        yield from _ratios(self._verdict, labels)
        yield from _arms(self._verdict, labels)


def _decision(verdict: Verdict, labels: Mapping[str, str]) -> Iterator[Metric]:
    """The verdict, what it was asked by, and when."""
    from prometheus_client.core import InfoMetricFamily, StateSetMetricFamily

    states = StateSetMetricFamily("netjoule_gate_verdict", "What the gate decided", labels=list(labels))
    states.add_metric(list(labels.values()), {name: name == verdict["verdict"] for name in VERDICTS})
    yield states
    about = {
        "id": verdict["id"],
        "kind": verdict["kind"],
        "power_source": verdict["power_source"],
        "workload_version": verdict["workload_version"],
        "kernel": verdict["fingerprint"]["kernel"],
        "cpu_model": verdict["fingerprint"]["cpu_model"],
        "reason": verdict["reason"]["code"] if verdict["reason"] else "",
    }
    info = InfoMetricFamily("netjoule_gate", "What the gate was of", labels=list(labels))
    info.add_metric(list(labels.values()), {name: escaped(value) for name, value in about.items()})
    yield info
    for name in ("margin", "tolerance"):
        yield _gauge(
            f"netjoule_gate_{name}_ratio", f"The {name}", "ratio", labels, verdict[f"{name}_percent"] / 100
        )
    finished = datetime.fromisoformat(verdict["finished_utc"]).timestamp()
    yield _gauge(
        "netjoule_gate_finished_timestamp_seconds", "When it was decided", "seconds", labels, finished
    )
    session = findings.deciding(verdict)
    if session:
        blocks = float(findings.blocks(session))
        yield _gauge("netjoule_gate_blocks", "Blocks that count in the last look", "", labels, blocks)


def _ratios(verdict: Verdict, labels: Mapping[str, str]) -> Iterator[Metric]:
    """Head over base with its bounds, of the decision and of each cell."""
    for end, words in (("", ""), ("_low", ", lower bound"), ("_high", ", upper bound")):
        name = f"netjoule_gate{end}_ratio"
        if verdict[f"ratio{end}"] is not None:
            yield _gauge(name, f"Head over base{words}", "ratio", labels, verdict[f"ratio{end}"])
        for field, unit, what in (
            (f"ratio{end}", "ratio", "Head over base"),
            (f"difference{end}_w", "watts", "Head minus base in power"),
        ):
            of_cells = [
                ({**labels, "cell": findings.cell_name(cell)}, float(cell[field]))
                for cell in findings.cells(verdict)
                if cell[field] is not None
            ]
            if of_cells:
                yield _family(f"netjoule_gate_cell{end}_{unit}", f"{what} of a cell{words}", unit, of_cells)


def _arms(verdict: Verdict, labels: Mapping[str, str]) -> Iterator[Metric]:
    """The mean over blocks of each arm."""
    session = findings.deciding(verdict)
    unit, factor = _BASE_UNITS.get(verdict["unit"], ("", 1.0))
    label = {} if unit else {"unit": escaped(verdict["unit"])}
    means = [
        ({**labels, **label, "arm": escaped(arm)}, factor * math.fsum(values) / len(values))
        for arm, values in (session["values"] if session else {}).items()
        if values
    ]
    if means:
        name = f"netjoule_gate_arm_{unit or 'mean'}"
        yield _family(name, "Mean over blocks of an arm, of the objective", unit, means)


def _gauge(name: str, words: str, unit: str, labels: Mapping[str, str], value: float) -> Metric:
    return _family(name, words, unit, [(labels, value)])


def _family(name: str, words: str, unit: str, samples: Sequence[tuple[Mapping[str, str], float]]) -> Metric:
    """A gauge whose samples have the same labels."""
    from prometheus_client.core import GaugeMetricFamily

    family = GaugeMetricFamily(name, words, labels=list(samples[0][0]), unit=unit)
    for labels, value in samples:
        family.add_metric(list(labels.values()), value)
    return family
