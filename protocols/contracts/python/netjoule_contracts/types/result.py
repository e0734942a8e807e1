# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``result``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import ClassVar, Literal

from msgspec import UNSET, UnsetType

from netjoule_contracts.documents import Document, Part

__all__ = ["Fairness", "Floor", "Flow", "Integrator", "Node", "Reason", "Result", "U95Components", "Window"]


class Result(Document, frozen=True, kw_only=True):
    """Per-run numbers of one run, at every meter; computed by netjoule_energy alone."""

    contract: ClassVar[str] = "result"
    # Version of this contract.
    schema_version: Literal[1]
    # Name of the run.
    run_id: str
    # Transport.
    transport: str
    # Message size.
    payload_bytes: int
    # Offered load, payload bits.
    offered_rate_mbps: float
    # Direction.
    direction: Literal["up", "down", "both"]
    # Effective measure window: the longest span of whole receiver intervals in windows.measure; of several
    # flows where all have one, cut at every edge of any.
    window: Window | None
    # Payload of first copies that arrived in the window over its length, of all flows of the run; null
    # without a receiver.
    t_a_mbps: float | None
    # 95 % half-width of t_a_mbps.
    u95_t_a_mbps: float | None
    # Lost over sent messages of the run's flows.
    loss_ratio: float | None
    # Messages sent over messages scheduled.
    achieved_ratio: float | None
    # Sleeps of the senders of all flows that ended, over messages scheduled; null where the generator does
    # not tell.
    wake_ups_per_message: float | UnsetType | None = UNSET
    # Those of them that came before the departure, over messages scheduled; null where the generator does not
    # tell.
    naps_per_message: float | UnsetType | None = UNSET
    # Flows of the run when there are several; t_a_mbps is of all of them. Absent for one flow.
    flows: tuple[Flow, ...] | None = None
    # How evenly the flows shared the window; absent for one flow.
    fairness: Fairness | None = None
    # No reason invalidates the run.
    valid: bool
    # Coded reasons, see reasons.json; not all of them invalidate.
    reasons: tuple[Reason, ...]
    # One entry per meter, in the order of campaign.json; empty when the run reached no measure window.
    nodes: tuple[Node, ...]


class Window(Part, frozen=True, kw_only=True):
    """Effective measure window: the longest span of whole receiver intervals in windows.measure; of
    several flows where all have one, cut at every edge of any.
    """

    # Start, campaign time.
    t_start_s: float
    # End, campaign time.
    t_end_s: float


class Flow(Part, frozen=True, kw_only=True):
    """One flow in the window."""

    # Number of the flow, from 1; flow 1 is the one that flow.json is of, the others are in flows/.
    flow: int
    # Client, a host of the topology.
    client: str
    # Transport.
    transport: str
    # Direction.
    direction: Literal["up", "down"]
    # Message size.
    payload_bytes: int
    # Offered load of this flow, payload bits.
    offered_rate_mbps: float
    # Payload of first copies of this flow that arrived in the window over its length; null without a
    # receiver.
    goodput_mbps: float | None
    # goodput_mbps over offered_rate_mbps.
    demand_met_ratio: float | None
    # Lost over sent messages.
    loss_ratio: float | None
    # Messages sent over messages scheduled.
    achieved_ratio: float | None
    # Sleeps of the sender that ended, over messages scheduled; null where the generator does not tell.
    wake_ups_per_message: float | UnsetType | None = UNSET
    # Those of them that came before the departure, over messages scheduled; null where the generator does not
    # tell.
    naps_per_message: float | UnsetType | None = UNSET


class Fairness(Part, frozen=True, kw_only=True):
    """How evenly the flows shared the window; absent for one flow."""

    # Jain's fairness index of the flows' goodputs (DEC-TR-301): 1 when all are equal, 1/flows when one has
    # everything; null without receivers or when nothing arrived.
    jain_goodput: float | None
    # The same of goodput over offered load.
    jain_demand_met: float | None


class Reason(Part, frozen=True, kw_only=True):
    """One reason."""

    # Code.
    code: str
    # What was seen, in words.
    detail: str


class Node(Part, frozen=True, kw_only=True):
    """One meter."""

    # Meter.
    meter_id: str
    # Whose power it is, a host of the topology.
    node: str
    # measured on a device, or modelled; unknown where no power was logged (imported results).
    power_source: Literal["measured", "modelled", "unknown"]
    # Where the radio figures come from; unknown only of imported results.
    radio_source: Literal["real", "link-model", "hwsim", "wired", "unknown"]
    # T_A that E_A of this node refers to: on a client that of its own flows, elsewhere of all. Absent where
    # it is the run's.
    t_a_mbps: float | UnsetType | None = UNSET
    # Device model; null on a real device.
    device_model: str | None
    # Form of the device model; null on a real device.
    device_form: str | None
    # Mean power over the effective measure window.
    p_a_w: float | None
    # Idle power at the middle of the window, interpolated.
    p_i_w: float | None
    # Mean power over idle_before.
    p_i_before_w: float | None
    # Mean power over idle_after.
    p_i_after_w: float | None
    # p_a_w minus p_i_w; negative when the run drew less than idle.
    delta_p_w: float | None
    # Standard uncertainty of delta_p_w.
    u_delta_p_w: float | None
    # E_A = (P_A - P_I) / T_A; null with ea_reason.
    ea_j_per_mbit: float | None
    # Code of reasons.json that leaves E_A empty; null when it is given. A negative difference gives
    # below_resolution.
    ea_reason: str | None
    # 95 % half-width of E_A; for a negative difference that of the empty E_A.
    u95_ea_j_per_mbit: float | None
    # One-sided 95 % upper limit of E_A; only when below_resolution.
    ea_upper_limit_j_per_mbit: float | None
    # 95 % half-width of E_A from each component alone.
    u95_components: U95Components | None
    # delta_p_w is under three times u_delta_p_w.
    below_resolution: bool
    # Share of the window that the device model answered outside its validity; null on a real device.
    extrapolated_ratio: float | None
    # extrapolated_ratio is over 0.05: drawn hollow, left out of envelope, tests and fits.
    hollow: bool
    # Share of the measure window that usable readings cover.
    coverage: float | None
    # Usable readings that touch the measure window.
    readings: int
    # Independent readings that they are worth.
    effective_readings: float
    # Integral of P - P_I over the tail window; null when it is not covered.
    tail_energy_j: float | None
    # How far the meter's reading carries; null without E_A.
    grade: Literal["A", "B", "C", "below_resolution"] | None
    # What stands against a better grade. wide: u95 is over 5 % of E_A; few_readings: under 10 in the window.
    grade_limits: (
        tuple[
            Literal["accuracy_unknown", "accuracy_provisional", "apparent_power", "few_readings", "wide"], ...
        ]
        | None
    ) = None
    # What a reading stands for, as in the meter's passport.
    semantics: Literal["interval_mean", "instantaneous", "energy_counter"] | None = None
    # Which power the watts are, as in the meter's passport. Apparent power is at most grade C.
    quantity: Literal["active_power", "apparent_power"] | None = None
    # Lag by which the readings were set in time.
    lag_s: float | None = None
    # Whether a sync pulse told the lag or the passport.
    lag_source: Literal["passport", "alignment"] | None = None
    # 95 % half-width of E_A from each term of the meter's specification alone, by the names of the passport's
    # accuracy.terms; gain and offset of u95_components hold them all. Null when the passport lists no terms.
    specification: dict[str, float] | UnsetType | None = UNSET
    # Energy over the updates of the window by the log and by the instrument's own integrator; null without
    # one.
    integrator: Integrator | UnsetType | None = UNSET
    # Generator floor of the mini-block at this meter: the same schedule sent to transport null, built, timed
    # and dropped.
    floor: Floor


class U95Components(Part, frozen=True, kw_only=True):
    """95 % half-width of E_A from each component alone."""

    # Reading part of the meter's specification, common to P_A and P_I.
    gain: float
    # Range part of the specification, independent between P_A and P_I.
    offset: float
    # What the least step of the meter's readings hides.
    resolution: float | None = None
    # Rate error of the clock that the window's length is taken from.
    timebase: float | None = None
    # Scatter of the readings, over the distribution of their autocorrelation.
    noise: float
    # Window edges within one update interval, or within the uncertainty of a measured lag.
    edges: float
    # Idle power leaving the straight line between the idle windows.
    idle_drift: float
    # One message at each edge and the residual of the receiver's clock.
    t_a: float


class Integrator(Part, frozen=True, kw_only=True):
    """Energy over the updates of the window by the log and by the instrument's own integrator; null
    without one.
    """

    # Sum of the logged readings.
    logged_j: float
    # Difference of the integrator's counts.
    counted_j: float
    # 95 % uncertainty of their difference.
    u95_j: float
    # The difference is within it.
    agrees: bool


class Floor(Part, frozen=True, kw_only=True):
    """Generator floor of the mini-block at this meter: the same schedule sent to transport null, built,
    timed and dropped.
    """

    # The null run of the mini-block; null without one.
    run_id: str | None
    # Mean power of the null run over its measure window as the meter read it, with that run's idle power in
    # it. Not to be taken from p_a_w: idle power moves between the runs. E_A above floor is (delta_p_w -
    # floor_w) / t_a_mbps.
    p_null_w: float | None
    # Generator floor P_null - P_I, with the null run's own idle power.
    floor_w: float | None
    # 95 % half-width of floor_w.
    u95_floor_w: float | None
    # E_A above the floor, (P_A - P_null) / T_A, both powers above the idle power of their own run: (delta_p_w
    # - floor_w) / T_A. Null with reason, or with ea_reason when the run has no E_A.
    ea_above_floor_j_per_mbit: float | None
    # 95 % half-width of ea_above_floor_j_per_mbit by the Monte Carlo of u95: gain, range error of idle power
    # and a shared idle window are common to both runs.
    u95_ea_above_floor_j_per_mbit: float | None
    # Code of reasons.json that leaves the floor empty; null when it is given.
    reason: str | None
