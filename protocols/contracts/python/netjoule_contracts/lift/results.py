# SPDX-License-Identifier: Apache-2.0
"""Results of older versions: result.json in the shape of the newest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule_contracts import validate
from netjoule_contracts.flow_work import UNIT
from netjoule_contracts.lift.runs import FACTORS, NULL, is_first

Document = Mapping[str, Any]

_MEASURES = ("loss_ratio", "achieved_ratio", "wake_ups_per_message", "naps_per_message")
_RENAMED = {
    "ea_j_per_mbit": "energy_per_work_j",
    "u95_ea_j_per_mbit": "u95_energy_per_work_j",
    "ea_upper_limit_j_per_mbit": "upper_limit_energy_per_work_j",
    "ea_above_floor_j_per_mbit": "energy_per_work_above_floor_j",
    "u95_ea_above_floor_j_per_mbit": "u95_energy_per_work_above_floor_j",
}
"""Fields of version 1 that any unit of work has now; where it is Mb they stand beside them."""


def newest_result(result: Document) -> Document:
    """Return result.json in the shape of the newest version; it may be broken.

    Raises:
        ContractError: when an older one does not fit its own contract.
    """
    if is_first(result):
        validate("result_1", result)
    return lifted_result(result)


def lifted_result(result: Document) -> dict[str, Any]:
    """Return result.json in the shape of the newest version; it fits its own contract."""
    if not is_first(result):
        return dict(result)
    window = result["window"]
    kept = ("run_id", "valid", "reasons")
    several = result.get("flows")
    lifted = {
        "schema_version": 2,
        "load": "flow",
        "kind": "control" if result["transport"] == NULL else "work",
        "arm": result["transport"],
        "factors": {name: result[name] for name in FACTORS},
        "window": None if window is None else {"kind": "fixed", **window},
        "work": None if window is None else _work(result, window),
        "measures": {name: result.get(name) for name in _MEASURES},
        **{name: result[name] for name in kept},
        "nodes": [_node(node, window) for node in result["nodes"]],
    }
    if several:
        told = result["fairness"]
        lifted["parts"] = [_part(flow) for flow in several]
        lifted["fairness"] = {"jain_work": told["jain_goodput"], "jain_met": told["jain_demand_met"]}
    return lifted


def _work(result: Document, window: Document) -> dict[str, Any]:
    rate = result["t_a_mbps"]
    return {
        "quantity": None if rate is None else rate * _length_s(window),
        "unit": UNIT,
        "work_per_s": rate,
        "u95_work_per_s": result["u95_t_a_mbps"],
    }


def _length_s(window: Document) -> float:
    return float(window["t_end_s"]) - float(window["t_start_s"])


def _part(flow: Document) -> dict[str, Any]:
    return {
        "part": str(flow["flow"]),
        "node": flow["client"],
        "work_per_s": flow["goodput_mbps"],
        "met_ratio": flow["demand_met_ratio"],
        "measures": {name: flow.get(name) for name in _MEASURES},
    }


def _node(node: Document, window: Document | None) -> dict[str, Any]:
    power_w, delta_w = node["p_a_w"], node["delta_p_w"]
    length_s = None if window is None else _length_s(window)
    lifted = dict(node) | {new: node[old] for old, new in _RENAMED.items() if old in node}
    lifted["e_d_j"] = None if delta_w is None or length_s is None else delta_w * length_s
    lifted["e_t_j"] = None if power_w is None or length_s is None else power_w * length_s
    floor = node["floor"]
    lifted["floor"] = dict(floor) | {new: floor[old] for old, new in _RENAMED.items() if old in floor}
    if "t_a_mbps" in node:
        lifted["work_per_s"] = lifted.pop("t_a_mbps")
    return lifted
