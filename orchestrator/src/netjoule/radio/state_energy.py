# SPDX-License-Identifier: Apache-2.0
"""What radios whose states are modelled spent in the windows of a run. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.design.timeline import Span


@dataclass(frozen=True, slots=True)
class StateStep:
    """What a radio did in a step of campaign time, seconds; `told`: `access` of the contract link_stats."""

    t_start_s: float
    t_end_s: float
    told: Mapping[str, Any]


def entry(node: str, steps: Sequence[StateStep], spans: Mapping[str, Span | None]) -> dict[str, Any] | None:
    """A radio's entry in `radio_states` of run.json; None where no step lies in a window.

    Args:
        node: whose radio it is.
        steps: of it, in order of time. One that straddles an edge of a window is shared by time.
        spans: the windows, by name; None of one that the run does not have.
    """
    windows = {name: None if span is None else _spent(steps, span) for name, span in spans.items()}
    if not any(windows.values()):
        return None
    return {"node": node, "power_source": "modelled", **windows}


def _spent(steps: Sequence[StateStep], span: Span) -> dict[str, Any] | None:
    """Time and energy by state in a window, all states' energy, and what waited; None of no time."""
    states: dict[str, dict[str, float]] = {}
    held_packets = held_s = 0.0
    for step in steps:
        inside_s = min(step.t_end_s, span.t_end_s) - max(step.t_start_s, span.t_start_s)
        if inside_s <= 0:
            continue
        share = inside_s / (step.t_end_s - step.t_start_s)
        held_packets += share * step.told["held_packets"]
        held_s += share * step.told["held_s"]
        for state, told in step.told["states"].items():
            sums = states.setdefault(state, {"time_s": 0.0, "energy_j": 0.0})
            for name in sums:
                sums[name] += share * told[name]
    if not states:
        return None
    energy_j = sum(told["energy_j"] for told in states.values())
    return {"energy_j": energy_j, "states": states, "held_packets": held_packets, "held_s": held_s}
