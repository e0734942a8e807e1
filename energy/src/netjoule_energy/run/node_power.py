# SPDX-License-Identifier: Apache-2.0
"""Active and idle power of one run at one meter, with everything that makes the run invalid there."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from netjoule_contracts.types.result import Integrator, Reason
from netjoule_energy.power.extrapolation import DeviceSamples
from netjoule_energy.power.idle import Idle, has_drifted, interpolate
from netjoule_energy.power.integrator import check_integrator
from netjoule_energy.power.readings import Readings, WindowMean, mean_power
from netjoule_energy.power.resolution import half_widths_w
from netjoule_energy.power.until_done import RadioStates, Tail, straddle_half_widths_w, tail_of
from netjoule_energy.power.windows import Window
from netjoule_energy.run.result import coded
from netjoule_energy.uncertainty.budget import Accuracy, PowerBudget, PowerTerm, power_budget, power_term
from netjoule_energy.uncertainty.noise import Scatter, estimate

UNKNOWN_POWER = "unknown"
"""power_source of imported results, beside whose flows no power was logged."""


@dataclass(frozen=True, slots=True)
class MeterInput:
    """One meter of the campaign around one run. `device` is None for a meter on a real device.

    quantity: active_power or apparent_power. u_lag_s: standard uncertainty in s of a lag that a sync pulse
    gave; None for the lag of the passport. step: least step of the readings, W (of a counter J), 0 when
    nothing is known of one. states: of the radio at its node, None where no log tells them.
    """

    meter_id: str
    node: str
    power_source: str
    device_model: str | None
    device_form: str | None
    accuracy: Accuracy
    readings: Readings
    device: DeviceSamples | None
    quantity: str = "active_power"
    u_lag_s: float | None = None
    step: float = 0.0
    states: RadioStates | None = None

    @property
    def logged(self) -> bool:
        """Whether there is a power log at all."""
        return self.power_source != UNKNOWN_POWER

    @property
    def edge_shift_s(self) -> float:
        """Limit of the error with which readings are placed in time, s."""
        if self.u_lag_s is None:
            return self.readings.update_interval_s / 2
        return math.sqrt(3) * self.u_lag_s


@dataclass(frozen=True, slots=True)
class NodePower:
    """Means of the windows of one run at one meter; `idle` and `budget` are None where a mean is missing."""

    active: WindowMean
    before: WindowMean | None
    after: WindowMean | None
    idle: Idle | None
    budget: PowerBudget | None
    effective_readings: float
    tail_energy_j: float | None
    integrator: Integrator | None
    reasons: tuple[Reason, ...]
    tail: Tail | None = None

    @property
    def delta_w(self) -> float | None:
        """P_A - P_I in W."""
        if self.active.mean_w is None or self.idle is None:
            return None
        return self.active.mean_w - self.idle.at_middle_w


def node_power(
    meter: MeterInput,
    measure: Window,
    windows: Mapping[str, Window | None],
    *,
    until_done: bool = False,
    tail_max_s: float | None = None,
) -> NodePower:
    """Return the power of one run at one meter.

    measure: the effective measure window; until_done: it holds all of the work. windows: idle_before,
    idle_after and tail of run.json, None where the run did not reach them. tail_max_s: greatest length of a
    tail that the radio's states end.
    """
    active = mean_power(meter.readings, measure)
    if not meter.logged:
        reason = coded("no_power_logged", "the imported files hold no power")
        return NodePower(active, None, None, None, None, 0.0, None, None, (reason,))
    before = _mean_or_none(meter.readings, windows.get("idle_before"))
    after = _mean_or_none(meter.readings, windows.get("idle_after"))
    reasons = [
        *_window_reasons(meter.meter_id, "measure", active),
        *_idle_reasons(meter.meter_id, "idle_before", before),
        *_idle_reasons(meter.meter_id, "idle_after", after),
    ]
    own_scatter = estimate([active.values_w])
    straddle = straddle_half_widths_w(meter.readings, measure) if until_done else ()
    idle, budget = _idle_and_budget(meter, active, before, after, straddle)
    if idle is not None and has_drifted(idle.line, idle.u_difference_w):
        reasons.append(_drift(meter.meter_id, idle.line))
    line = None if idle is None else idle.line
    planned = windows.get("tail")
    tail = None if planned is None or not until_done else tail_of(planned, meter.states, tail_max_s)
    integrator = check_integrator(meter.readings, measure)
    if integrator is not None and not integrator.agrees:
        reasons.append(_integrator_reason(meter.meter_id, integrator))
    return NodePower(
        active=active,
        before=before,
        after=after,
        idle=line,
        budget=budget,
        effective_readings=own_scatter.effective_readings(active.weights_s),
        tail_energy_j=_tail_energy_j(meter.readings, tail, planned, line),
        integrator=integrator,
        reasons=tuple(reasons),
        tail=tail,
    )


@dataclass(frozen=True, slots=True)
class _IdleLine:
    """Idle power and the standard uncertainty in W of its change over the run."""

    line: Idle
    u_difference_w: float


def _idle_and_budget(
    meter: MeterInput,
    active: WindowMean,
    before: WindowMean | None,
    after: WindowMean | None,
    straddle_half_widths_w: tuple[float, ...] = (),
) -> tuple[_IdleLine | None, PowerBudget | None]:
    if before is None or after is None or before.mean_w is None or after.mean_w is None:
        return None, None
    own_scatter, idle_scatter = estimate([active.values_w]), estimate([before.values_w, after.values_w])
    if not idle_scatter.known:
        idle_scatter = own_scatter
    before_term, after_term = (_term(meter, mean, idle_scatter) for mean in (before, after))
    u_difference_w = math.hypot(before_term.noise.u_w, after_term.noise.u_w)
    line = interpolate(before.mean_w, before.window, after.mean_w, after.window, active.window)
    idle = _IdleLine(line, u_difference_w)
    if active.mean_w is None:
        return idle, None
    active_term = _term(meter, active, own_scatter if own_scatter.known else idle_scatter)
    active_term = replace(active_term, straddle_half_widths_w=straddle_half_widths_w)
    return idle, power_budget(active_term, before_term, after_term, line, u_difference_w)


def _term(meter: MeterInput, mean: WindowMean, scatter: Scatter) -> PowerTerm:
    return power_term(mean, scatter, meter.edge_shift_s, half_widths_w(meter.readings, mean, meter.step))


def _tail_energy_j(
    readings: Readings, tail: Tail | None, planned: Window | None, idle: Idle | None
) -> float | None:
    if tail is None:
        return tail_energy_j(readings, planned, idle)
    return 0.0 if tail.window is None else tail_energy_j(readings, tail.window, idle)


def tail_energy_j(readings: Readings, tail: Window | None, idle: Idle | None) -> float | None:
    """Return the integral of P - P_I over the tail window in J; None when it is not covered."""
    if tail is None or idle is None:
        return None
    mean = mean_power(readings, tail)
    if mean.mean_w is None or not mean.covered:
        return None
    return (mean.mean_w - idle.at_middle_w) * tail.length_s


def _mean_or_none(readings: Readings, window: Window | None) -> WindowMean | None:
    return None if window is None else mean_power(readings, window)


def _idle_reasons(meter_id: str, name: str, mean: WindowMean | None) -> list[Reason]:
    if mean is None:
        return [coded("idle_missing", f"meter {meter_id}: the run has no window {name}")]
    reasons = _window_reasons(meter_id, name, mean)
    if mean.mean_w is None:
        reasons.append(coded("idle_missing", f"meter {meter_id}: no usable reading in {name}"))
    return reasons


def _window_reasons(meter_id: str, name: str, mean: WindowMean) -> list[Reason]:
    where = f"meter {meter_id}, {name} {mean.window.start_s:.3f}-{mean.window.end_s:.3f} s"
    reasons = []
    if not mean.covered:
        reasons.append(coded("meter_gap", f"{where}: readings cover {100 * mean.coverage:.1f} %"))
    if mean.overrange:
        reasons.append(coded("meter_overrange", f"{where}: a reading is out of range"))
    return reasons


def _integrator_reason(meter_id: str, check: Integrator) -> Reason:
    found = f"the log says {check.logged_j:.4f} J, the integrator {check.counted_j:.4f} J"
    return coded("integrator_disagrees", f"meter {meter_id}: {found}, u95 {check.u95_j:.4f} J")


def _drift(meter_id: str, idle: Idle) -> Reason:
    change = f"idle went from {idle.before_w:.4f} W to {idle.after_w:.4f} W over the run"
    return coded("idle_drift", f"meter {meter_id}: {change}")
