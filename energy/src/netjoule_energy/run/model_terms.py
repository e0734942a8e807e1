# SPDX-License-Identifier: Apache-2.0
"""What a model's own terms say about one run: a simulated run has no meter, and its power no error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec import UNSET

from netjoule_contracts.types.result import Node
from netjoule_energy.power.windows import EDGE_TOLERANCE_S, FloatArray, Window
from netjoule_energy.run.result import empty_floor
from netjoule_energy.uncertainty.budget import Throughput

_WITHOUT_METER: dict[str, Any] = {
    "power_source": "modelled",
    **dict.fromkeys(("p_i_before_w", "p_i_after_w", "u_delta_p_w", "u95_components", "grade")),
    **dict.fromkeys(("u95_energy_per_work_j", "upper_limit_energy_per_work_j")),
    "below_resolution": False,
    "extrapolated_ratio": 0.0,
    "hollow": False,
    "readings": 0,
    "effective_readings": 0.0,
    "floor": empty_floor(None, "no_null_run"),
}
"""What every node of a simulated run has: nothing was read, and no idle window was there."""


@dataclass(frozen=True, slots=True)
class ModelTerms:
    """Power of a node over a simulated run.

    Attributes:
        node: whose.
        model: name of the device model.
        form: of the model.
        p_i_w: power in the idle state, W.
        start_s: begins of steps in time order, campaign time.
        end_s: their ends.
        power_w: power during each, W.
    """

    node: str
    model: str
    form: str
    p_i_w: float
    start_s: FloatArray
    end_s: FloatArray
    power_w: FloatArray

    def energy_j(self, window: Window) -> float:
        """Return the integral of P over a window, J.

        Raises:
            ValueError: when the steps do not cover it.
        """
        lengths_s = np.minimum(self.end_s, window.end_s) - np.maximum(self.start_s, window.start_s)
        lengths_s = np.clip(lengths_s, 0.0, None)
        missing_s = window.length_s - float(lengths_s.sum())
        if abs(missing_s) > EDGE_TOLERANCE_S:
            told_s, whole = window.length_s - missing_s, f"{window.start_s:g} to {window.end_s:g} s"
            raise ValueError(f"the power of {self.node} is told for {told_s:g} s of {whole}")
        return float((lengths_s * self.power_w).sum())


def modelled_node(
    terms: ModelTerms, window: Window, tail: Window | None, rate: Throughput | None, radio_source: Any
) -> Node:
    """Return what a model's terms say of a run. rate: None leaves energy per work empty.

    Raises:
        ValueError: when they do not cover the window. A tail that they do not cover has no energy.
    """
    p_a_w = terms.energy_j(window) / window.length_s
    delta_w = p_a_w - terms.p_i_w
    reason = "nothing_received" if rate is None else "below_resolution" if delta_w < 0 else None
    tail_j = None
    if tail is not None and terms.end_s[-1] > tail.end_s - EDGE_TOLERANCE_S:
        tail_j = terms.energy_j(tail) - terms.p_i_w * tail.length_s
    return Node(
        meter_id=terms.node,
        node=terms.node,
        radio_source=radio_source,
        device_model=terms.model,
        device_form=terms.form,
        p_a_w=p_a_w,
        p_i_w=terms.p_i_w,
        delta_p_w=delta_w,
        e_d_j=delta_w * window.length_s,
        e_t_j=p_a_w * window.length_s,
        energy_per_work_j=None if reason is not None or rate is None else delta_w / rate.work_per_s,
        ea_reason=reason,
        coverage=1.0,
        tail_energy_j=tail_j,
        tail_s=UNSET if tail is None or tail_j is None else tail.length_s,
        **_WITHOUT_METER,
    )


def unpowered_node(node: str, radio_source: Any) -> Node:
    """Return a node of a simulated run whose power no model tells: its work and its measures hold."""
    figures = ("p_a_w", "p_i_w", "delta_p_w", "e_d_j", "e_t_j", "energy_per_work_j", "tail_energy_j")
    unknown: dict[str, Any] = dict.fromkeys(figures)
    return Node(
        meter_id=node,
        node=node,
        radio_source=radio_source,
        device_model=None,
        device_form=None,
        **unknown,
        ea_reason="no_power_logged",
        coverage=0.0,
        **_WITHOUT_METER,
    )
