# SPDX-License-Identifier: Apache-2.0
"""Numbers of a simulated run, from what the simulation told: nothing is read, and nothing is drawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from netjoule_energy.campaign.compute import hold
from netjoule_energy.campaign.files import invalidating_codes
from netjoule_energy.campaign.run_files import by_part
from netjoule_energy.power.windows import EDGE_TOLERANCE_S
from netjoule_energy.run.assess import assess_run
from netjoule_energy.run.model_terms import ModelTerms
from netjoule_energy.run.result import document_of
from netjoule_energy.run.run_input import run_input


def simulated_result(
    run: dict[str, Any], intervals: Iterable[Mapping[str, Any]], power: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return the result of a simulated run, held to its contracts.

    Args:
        run: its run.json.
        intervals: rows of its intervals.csv.
        power: of each node whose power the model tells: node, model, form, p_i_w (W) and steps, a list of
            [t_start_s, t_end_s, power_w] in time order.

    Raises:
        ValueError: when the power of a node is not told once, in steps that follow one another and cover the
            window.
        ContractError: naming every field of the result that does not fit.
    """
    parts = by_part(Path(f"the intervals of {run['run_id']}"), [dict(row) for row in intervals])
    terms = tuple(map(_terms, power))
    if len({one.node for one in terms}) < len(terms):
        raise ValueError("the power of a node is told twice")
    source = replace(run_input(run, parts, ()), modelled=terms)
    document = document_of(assess_run(source, None, np.random.default_rng(0), invalidating_codes()))
    hold(document)
    return document


def _terms(told: Mapping[str, Any]) -> ModelTerms:
    start_s, end_s, power_w = np.array(told["steps"], dtype=np.float64).reshape(-1, 3).T
    steady = np.all(np.isfinite(power_w)) and np.all(power_w >= 0) and np.all(end_s > start_s)
    if not start_s.size or not steady or np.any(np.abs(start_s[1:] - end_s[:-1]) > EDGE_TOLERANCE_S):
        raise ValueError(
            f"the power of {told['node']} is not told in steps of 0 W or more that follow one another"
        )
    model, form = str(told["model"]), str(told["form"])
    return ModelTerms(str(told["node"]), model, form, float(told["p_i_w"]), start_s, end_s, power_w)
