# SPDX-License-Identifier: Apache-2.0
"""From the raw figures of one run (and of its null run) to the result document, without any I/O."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from netjoule_energy.extrapolation import extrapolated_ratio, is_hollow
from netjoule_energy.floor import GREATEST_FLOOR_RATIO, FlowPart, floor_ratio
from netjoule_energy.grade import Grade, grade_of
from netjoule_energy.node_floor import NullPower, empty_floor, node_floor
from netjoule_energy.node_power import MeterInput, NodePower, node_power
from netjoule_energy.result import TOOK_NO_PART, FloorResult, NodeResult, Reason, Result
from netjoule_energy.several_flows import (
    FlowInput,
    edge_bytes,
    fairness,
    flows_of_node,
    shares,
    size_within,
    summed,
)
from netjoule_energy.throughput import (
    MEGABITS_PER_BYTE,
    achieved_ratio,
    bookkeeping_defects,
    goodput_mbps,
    loss_ratio,
)
from netjoule_energy.uncertainty import (
    RESOLUTION_FACTOR,
    TIMEBASE_RATIO,
    Spread,
    Throughput,
    specification_u95,
    spread,
    u95_throughput_mbps,
)
from netjoule_energy.wake_ups import naps_per_message, wake_ups_per_message, wake_ups_warning
from netjoule_energy.windows import Intervals, MeasuredSpan, Window, measured_span, span_is_short

NULL_TRANSPORT = "null"
RADIO_WITHOUT_AIR_TIME = "hwsim"
APPARENT_POWER = "apparent_power"
_ROUNDING_RATIO = 1e-12


@dataclass(frozen=True, slots=True)
class RunInput:
    """Everything one run left behind: run.json, flow.json ({} when missing), receiver intervals, meters.

    flows: of a run with several; intervals are then those of all receivers, joined. idle_clients: hosts with
    the role client that have no flow in this run.
    """

    run: dict[str, Any]
    flow: dict[str, Any]
    intervals: Intervals
    meters: tuple[MeterInput, ...]
    flows: tuple[FlowInput, ...] = ()
    idle_clients: frozenset[str] = frozenset()

    @property
    def parts(self) -> tuple[FlowPart, ...]:
        """Each flow by itself: run.json as if it were the run's only one, and its report."""
        if not self.flows:
            return ((self.run, self.flow),)
        return tuple(({**self.run, **flow.asked}, flow.report) for flow in self.flows)

    def window(self, name: str) -> Window | None:
        """Return a window of run.json, None when the run did not reach it."""
        found = self.run["windows"].get(name)
        return None if found is None else Window(float(found["t_start_s"]), float(found["t_end_s"]))

    @property
    def counts(self) -> dict[str, Any]:
        """The report of its only flow, or counts of several as those of one."""
        return summed(flow.report for flow in self.flows) if self.flows else self.flow

    @property
    def is_null(self) -> bool:
        """Whether the run has no receiver by design."""
        return bool(self.run["transport"] == NULL_TRANSPORT)


def assess_run(
    source: RunInput, null: RunInput | None, rng: np.random.Generator, invalidating: Collection[str]
) -> Result:
    """Return the result of one run.

    null: the null run of the same mini-block, None without one. invalidating: codes that make a run invalid.
    """
    measure = source.window("measure")
    reasons = [Reason(str(r["code"]), str(r["detail"])) for r in source.run["reasons"]]
    reasons += _flow_reasons(source)
    if measure is None:
        reasons = reasons or [Reason("interrupted", "the run has no measure window")]
        return _result(source, None, None, reasons=reasons, nodes=[], invalidating=invalidating)
    span = MeasuredSpan(measure, None) if source.is_null else measured_span(measure, source.intervals)
    reasons += _span_reasons(source, measure, span)
    null_power = _null_power(null, invalidating)
    rate = _throughput(source, span)
    u95_t_a = None if rate is None else u95_throughput_mbps(rate, rng)
    nodes = []
    for meter in source.meters:
        power = node_power(meter, span.window, _windows(source))
        own = _node_throughput(source, span, meter.node, rate)
        node = _node(source, meter, power, own, null=null_power, rng=rng)
        if own is not rate:
            node = replace(node, t_a_mbps=0.0 if own is None else own.t_a_mbps)
        if meter.node in source.idle_clients:
            node = _without_flow(node)
        nodes.append(node)
        reasons += [*power.reasons, *_node_reasons(node)]
    if null is not None and any(node.floor.floor_w is not None for node in nodes):
        reasons += wake_ups_warning(source.counts, null.counts, str(null.run["run_id"]))
    return _result(source, span, u95_t_a, reasons=reasons, nodes=nodes, invalidating=invalidating)


def _result(
    source: RunInput,
    span: MeasuredSpan | None,
    u95_t_a: float | None,
    *,
    reasons: list[Reason],
    nodes: list[NodeResult],
    invalidating: Collection[str],
) -> Result:
    run = source.run
    # What invalidates comes first: settling writes it into run.json, and what is computed anew is the same.
    kept = tuple(sorted(dict.fromkeys(reasons), key=lambda reason: reason.code not in invalidating))
    counts = source.counts
    several = shares(source.flows, span.window, received=not source.is_null) if source.flows and span else ()
    window = None if span is None else {"t_start_s": span.window.start_s, "t_end_s": span.window.end_s}
    return Result(
        run_id=run["run_id"],
        transport=run["transport"],
        payload_bytes=run["payload_bytes"],
        offered_rate_mbps=run["offered_rate_mbps"],
        direction=run["direction"],
        window=window,
        t_a_mbps=None if span is None else goodput_mbps(span),
        u95_t_a_mbps=u95_t_a,
        loss_ratio=loss_ratio(counts),
        achieved_ratio=achieved_ratio(counts),
        wake_ups_per_message=wake_ups_per_message(counts),
        naps_per_message=naps_per_message(counts),
        valid=run["status"] == "done" and not any(reason.code in invalidating for reason in kept),
        reasons=kept,
        nodes=tuple(nodes),
        flows=several,
        fairness=fairness(several) if several else None,
    )


def _windows(source: RunInput) -> dict[str, Window | None]:
    return {name: source.window(name) for name in ("idle_before", "idle_after", "tail")}


def _flow_reasons(source: RunInput) -> list[Reason]:
    found: list[Reason] = []
    for run, flow in source.parts:
        named = f"flow {run['flow']}: " if source.flows else ""
        if not flow:
            missing = Reason("generator_failed", f"{named}the run has no flow report")
            found += [] if source.run["reasons"] else [missing]
            continue
        found += [Reason("bookkeeping_mismatch", f"{named}{defect}") for defect in bookkeeping_defects(flow)]
    return found


def _span_reasons(source: RunInput, measure: Window, span: MeasuredSpan) -> list[Reason]:
    if source.is_null:
        return [Reason("null_has_no_throughput", "null is the generator floor of its mini-block")]
    if not span.size_bytes:
        return [Reason("nothing_received", "no payload arrived in the measure window")]
    if span_is_short(measure, span.window, source.intervals):
        detail = f"receiver intervals cover {span.window.length_s:.3f} s of {measure.length_s:.3f} s"
        return [Reason("flow_short", detail)]
    return []


def _throughput(source: RunInput, span: MeasuredSpan) -> Throughput | None:
    t_a_mbps = goodput_mbps(span)
    if not t_a_mbps or not span.size_bytes:
        return None
    at_edge = edge_bytes(source.flows) if source.flows else float(source.run["payload_bytes"])
    return Throughput(
        t_a_mbps=t_a_mbps,
        message_ratio=at_edge / span.size_bytes,
        clock_ratio=_residual_ns(source) * 1e-9 / span.window.length_s,
        timebase_ratio=TIMEBASE_RATIO,
    )


def _residual_ns(source: RunInput) -> float:
    """The greatest residual of any flow's clock offset."""
    offsets = [flow.get("clock_offset") or {} for _, flow in source.parts]
    return max(abs(float(offset.get("residual_ns") or 0)) for offset in offsets)


def _node_throughput(
    source: RunInput, span: MeasuredSpan, node: str, whole: Throughput | None
) -> Throughput | None:
    """T_A that E_A of a node refers to: on a client that of its own flows, if any, elsewhere the run's."""
    if node in source.idle_clients:
        return None
    own = flows_of_node(source.flows, node)
    if whole is None or len(own) == len(source.flows):
        return whole
    size_bytes = sum(size_within(flow.intervals, span.window) for flow in own)
    if size_bytes <= 0:
        return None
    return replace(
        whole,
        t_a_mbps=MEGABITS_PER_BYTE * size_bytes / span.window.length_s,
        message_ratio=edge_bytes(own) / size_bytes,
    )


def _null_power(null: RunInput | None, invalidating: Collection[str]) -> NullPower | None:
    if null is None:
        return None
    measure = null.window("measure")
    nodes = {}
    if measure is not None:
        nodes = {meter.meter_id: node_power(meter, measure, _windows(null)) for meter in null.meters}
    codes = {reason["code"] for reason in null.run["reasons"]} | {r.code for r in _flow_reasons(null)}
    codes |= {reason.code for power in nodes.values() for reason in power.reasons}
    return NullPower(
        run=null.run,
        parts=null.parts,
        nodes=nodes,
        valid=null.run["status"] == "done" and measure is not None and not codes & set(invalidating),
    )


def _node(
    source: RunInput,
    meter: MeterInput,
    power: NodePower,
    rate: Throughput | None,
    *,
    null: NullPower | None,
    rng: np.random.Generator,
) -> NodeResult:
    without_air_time = source.run["radio_source"] == RADIO_WITHOUT_AIR_TIME
    priced = None if without_air_time else rate
    found = Spread(0.0, None, None, None)
    if power.budget is not None:
        found = spread(power.budget, meter.accuracy, rate, rng)
    delta_w = power.delta_w
    known_u = None if power.budget is None else found.u_delta_w
    unseen = _unseen(power, found)
    below = unseen or _is_below(delta_w, known_u)
    reason = _ea_reason(source, power, rate, unseen) if meter.logged else "no_power_logged"
    ea = delta_w / priced.t_a_mbps if reason is None and delta_w is not None and priced is not None else None
    told = priced is not None and not unseen
    u95 = found.u95_ea if told else None
    outside = None if meter.device is None else extrapolated_ratio(meter.device, power.active.window)
    grade = _grade(meter, power, 0.0 if unseen and priced is not None else ea, u95, below)
    return NodeResult(
        meter_id=meter.meter_id,
        node=meter.node,
        power_source=meter.power_source,
        radio_source=source.run["radio_source"],
        device_model=meter.device_model,
        device_form=meter.device_form,
        p_a_w=power.active.mean_w,
        p_i_w=None if power.idle is None else power.idle.at_middle_w,
        p_i_before_w=None if power.before is None else power.before.mean_w,
        p_i_after_w=None if power.after is None else power.after.mean_w,
        delta_p_w=delta_w,
        u_delta_p_w=known_u,
        ea_j_per_mbit=ea,
        ea_reason=reason,
        u95_ea_j_per_mbit=u95,
        ea_upper_limit_j_per_mbit=found.ea_upper if below and told else None,
        u95_components=found.u95_by_component if told else None,
        below_resolution=below,
        extrapolated_ratio=outside,
        hollow=is_hollow(outside),
        coverage=power.active.coverage,
        readings=power.active.readings,
        effective_readings=power.effective_readings,
        tail_energy_j=power.tail_energy_j,
        grade=grade.letter,
        grade_limits=grade.limits,
        semantics=meter.readings.semantics,
        quantity=meter.quantity,
        lag_s=meter.readings.lag_s,
        lag_source="passport" if meter.u_lag_s is None else "alignment",
        specification=_specification(meter, delta_w, priced),
        integrator=power.integrator,
        floor=_floor(source, meter, power, priced, null=null, rng=rng),
    )


def _without_flow(node: NodeResult) -> NodeResult:
    """Of a client without a flow: its power stays, and there is nothing that it could have been the price of.

    That its meter saw no difference is no shortcoming of the meter.
    """
    return replace(
        node,
        ea_reason=TOOK_NO_PART,
        below_resolution=False,
        grade=None,
        grade_limits=(),
        floor=empty_floor(node.floor.run_id, TOOK_NO_PART),
    )


def _is_below(delta_w: float | None, u_w: float | None) -> bool:
    if delta_w is None:
        return False
    return delta_w < 0 or (u_w is not None and delta_w < RESOLUTION_FACTOR * u_w)


def _unseen(power: NodePower, found: Spread) -> bool:
    """Whether the meter saw no difference and nothing says how great an unseen one may be.

    Readings that are equal in all windows, of a meter whose least step and accuracy are unknown: 0 J/Mb
    without an uncertainty would be the tightest of all results, and the least founded.
    """
    if power.delta_w is None or power.budget is None or power.active.mean_w is None:
        return False
    least_w = _ROUNDING_RATIO * abs(power.active.mean_w)
    return abs(power.delta_w) <= least_w and found.u_delta_w <= least_w


def _grade(meter: MeterInput, power: NodePower, ea: float | None, u95: float | None, below: bool) -> Grade:
    return grade_of(
        ea,
        u95,
        accuracy_known=meter.accuracy.known,
        below_resolution=below,
        readings=power.active.readings,
        apparent_power=meter.quantity == APPARENT_POWER,
        accuracy_provisional=meter.accuracy.provisional,
    )


def _specification(
    meter: MeterInput, delta_w: float | None, rate: Throughput | None
) -> dict[str, float] | None:
    accuracy = meter.accuracy
    if not accuracy.known or not accuracy.terms or delta_w is None or rate is None:
        return None
    return specification_u95(accuracy.terms, delta_w, rate.t_a_mbps, zeroed=accuracy.zeroed)


def _ea_reason(source: RunInput, power: NodePower, rate: Throughput | None, unseen: bool) -> str | None:
    """Return the code that leaves E_A empty, or None when there is one."""
    if source.is_null:
        return "null_has_no_throughput"
    if source.run["radio_source"] == RADIO_WITHOUT_AIR_TIME:
        return "radio_without_air_time"
    if rate is None:
        return "nothing_received"
    if power.idle is None:
        return "idle_missing"
    if power.delta_w is None:
        return "meter_gap"
    return "below_resolution" if power.delta_w < 0 or unseen else None


def _node_reasons(node: NodeResult) -> list[Reason]:
    reasons = []
    if node.ea_reason == TOOK_NO_PART:
        reasons.append(Reason(TOOK_NO_PART, f"meter {node.meter_id}: {node.node} has no flow in this run"))
    if node.ea_reason == "radio_without_air_time":
        reasons.append(Reason(node.ea_reason, f"radio_source is {node.radio_source}"))
    if node.below_resolution and node.ea_reason != "null_has_no_throughput":
        detail = f"meter {node.meter_id}: P_A - P_I is {node.delta_p_w:z.4f} W, u {node.u_delta_p_w:.4f} W"
        reasons.append(Reason("below_resolution", detail))
    if node.quantity == APPARENT_POWER:
        detail = f"meter {node.meter_id}: current times a nominal voltage, not active power"
        reasons.append(Reason("apparent_power", detail))
    if node.hollow and node.extrapolated_ratio is not None:
        detail = f"meter {node.meter_id}: {100 * node.extrapolated_ratio:.1f} % of the window is extrapolated"
        reasons.append(Reason("extrapolated_model", detail))
    return [*reasons, *_floor_warning(node)]


def _floor_warning(node: NodeResult) -> list[Reason]:
    """Warn where much of E_A is the generator's own; a difference below resolution has no shares."""
    floor_w, delta_w = node.floor.floor_w, node.delta_p_w
    share = floor_ratio(floor_w, delta_w)
    if share is None or share <= GREATEST_FLOOR_RATIO or node.below_resolution:
        return []
    found = f"the floor of {floor_w:.4f} W is {100 * share:.0f} % of P_A - P_I, {delta_w:.4f} W"
    return [Reason("floor_large", f"meter {node.meter_id}: {found}")]


def _floor(
    source: RunInput,
    meter: MeterInput,
    power: NodePower,
    rate: Throughput | None,
    *,
    null: NullPower | None,
    rng: np.random.Generator,
) -> FloorResult:
    if source.is_null:
        return empty_floor(source.run["run_id"], "null_has_no_throughput")
    return node_floor(source.parts, meter, power, rate, null=null, rng=rng)
