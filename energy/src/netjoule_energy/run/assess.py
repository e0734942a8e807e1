# SPDX-License-Identifier: Apache-2.0
"""From the raw figures of one run (and of its control run) to the result document, without any I/O."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from msgspec.structs import replace

from netjoule_contracts.types.result import Node, Reason, Result, Work
from netjoule_contracts.types.result import Window as ResultWindow
from netjoule_energy.power.windows import MeasuredSpan, Window, span_is_short
from netjoule_energy.run.model_terms import modelled_node, unpowered_node
from netjoule_energy.run.node_floor import ControlPower
from netjoule_energy.run.node_power import MeterInput, NodePower, node_power
from netjoule_energy.run.node_result import node_reasons, node_result, short_work, without_part
from netjoule_energy.run.parts import fairness, shares
from netjoule_energy.run.result import coded
from netjoule_energy.run.run_input import RunInput
from netjoule_energy.uncertainty.budget import Throughput, u95_throughput


def assess_run(
    source: RunInput, control: RunInput | None, rng: np.random.Generator, invalidating: Collection[str]
) -> Result:
    """Return the result of one run.

    control: the control run of the same mini-block, None without one. invalidating: codes that make a run
    invalid.
    """
    measure = source.measure
    reasons = [coded(str(r["code"]), str(r["detail"])) for r in source.run["reasons"]]
    if measure is None:
        reasons = reasons or [coded("interrupted", "the run has no measure window")]
        return _result(source, None, None, reasons=reasons, nodes=[], invalidating=invalidating)
    span = source.span(measure)
    reasons += _span_reasons(source, measure, span)
    of_control = _control_power(control, invalidating)
    rate = source.throughput(span)
    u95_rate = None if rate is None or source.is_simulated else u95_throughput(rate, rng)
    nodes = []
    for terms in source.modelled:
        own = source.throughput_of_node(span, terms.node, rate)
        node = modelled_node(terms, span.window, source.window("tail"), own, source.run["radio_source"])
        nodes.append(_with_own_part(source, node, own, rate))
    if source.is_simulated and not nodes:
        nodes.append(unpowered_node(source.parts[0].entry["node"], source.run["radio_source"]))
    for meter in source.meters:
        power = _power(source, meter, span.window)
        own = source.throughput_of_node(span, meter.node, rate)
        node = node_result(source, meter, power, own, of_control=of_control, rng=rng)
        node = _with_own_part(source, node, own, rate)
        nodes.append(node)
        reasons += [*power.reasons, *node_reasons(node), *short_work(meter, power)]
    if any(node.floor.floor_w is not None for node in nodes) and not source.is_control:
        warnings = source.run["control"]["warnings"]
        reasons += [coded(str(r["code"]), str(r["detail"])) for r in warnings]
    return _result(source, span, u95_rate, reasons=reasons, nodes=nodes, invalidating=invalidating)


def _with_own_part(source: RunInput, node: Node, own: Throughput | None, whole: Throughput | None) -> Node:
    """A node that has not all of the work says which part it has."""
    if own is not whole:
        node = replace(node, work_per_s=0.0 if own is None else own.work_per_s)
    return without_part(node) if node.node in source.idle_clients else node


def _result(
    source: RunInput,
    span: MeasuredSpan | None,
    u95_rate: float | None,
    *,
    reasons: list[Reason],
    nodes: list[Node],
    invalidating: Collection[str],
) -> Result:
    run = source.run
    # What invalidates comes first: settling writes it into run.json, and what is computed anew is the same.
    kept = tuple(sorted(dict.fromkeys(reasons), key=lambda reason: reason.code not in invalidating))
    parts = source.several
    several = shares(parts, span.window, counted=source.counted) if parts and span else ()
    return Result(
        schema_version=2,
        run_id=run["run_id"],
        load=run["load"],
        kind=run["kind"],
        arm=run["arm"],
        factors=run["factors"],
        window=None if span is None else _window(source, span.window),
        work=None if span is None else _work(source, span, u95_rate),
        measures=run["measures"],
        radio_states=tuple(run.get("radio_states", ())) or None,
        valid=run["status"] == "done" and not any(reason.code in invalidating for reason in kept),
        reasons=kept,
        nodes=tuple(nodes),
        parts=several or None,
        fairness=fairness(several) if several else None,
    )


def _window(source: RunInput, window: Window) -> ResultWindow:
    kind = source.run["window"]["kind"]
    return ResultWindow(kind=kind, t_start_s=window.start_s, t_end_s=window.end_s)


def _work(source: RunInput, span: MeasuredSpan, u95_rate: float | None) -> Work | None:
    work = source.run["work"]
    if work is None:
        return None
    told = {"quantity": span.work, "work_per_s": span.work_per_s, "u95_work_per_s": u95_rate}
    return Work(unit=work["unit"], **told)


def _power(source: RunInput, meter: MeterInput, window: Window) -> NodePower:
    tail_max_s = (source.run["window"] or {}).get("tail_max_s")
    others = {name: source.window(name) for name in ("idle_before", "idle_after", "tail")}
    return node_power(meter, window, others, until_done=source.until_done, tail_max_s=tail_max_s)


def _span_reasons(source: RunInput, measure: Window, span: MeasuredSpan) -> list[Reason]:
    if source.is_control and not source.counted:
        detail = f"{source.run['arm']} is the generator floor of its mini-block"
        return [coded("null_has_no_throughput", detail)]
    if not span.work:
        return [coded("nothing_received", "no work was done in the measure window")]
    if not source.until_done and span_is_short(measure, span.window, source.intervals):
        detail = f"intervals of the work cover {span.window.length_s:.3f} s of {measure.length_s:.3f} s"
        return [coded("flow_short", detail)]
    return []


def _control_power(control: RunInput | None, invalidating: Collection[str]) -> ControlPower | None:
    if control is None:
        return None
    measure = control.measure
    nodes = {}
    if measure is not None:
        nodes = {meter.meter_id: _power(control, meter, measure) for meter in control.meters}
    codes = {reason["code"] for reason in control.run["reasons"]}
    codes |= {reason.code for power in nodes.values() for reason in power.reasons}
    valid = control.run["status"] == "done" and measure is not None and not codes & set(invalidating)
    rate = None if measure is None else control.span(measure).work_per_s
    return ControlPower(nodes, valid, rate if control.until_done else None)
