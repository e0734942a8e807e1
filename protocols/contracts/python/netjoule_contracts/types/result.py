# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``result``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from msgspec import UNSET, UnsetType

from netjoule_contracts.documents import Document, Part


class Result(Document, frozen=True, kw_only=True):
    """Per-run numbers of one run, at every meter; computed by netjoule_energy alone."""

    contract: ClassVar[str] = "result"
    # Version of this contract.
    schema_version: Literal[2]
    # Name of the run.
    run_id: str
    # Load, see loads/.
    load: str
    # work; control: the load's control arm, whose power is the floor of its mini-block; warm_up: not counted.
    kind: Literal["work", "control", "warm_up"]
    # What the mini-block compares: this run's arm.
    arm: str
    # The run's cell: each factor but the arm, by name.
    factors: dict[str, float | str | bool | None]
    # Effective window. fixed: the longest span of whole intervals of the work in windows.measure, of several
    # parts where all have one, cut at every edge of any. until_done: the window of run.json.
    window: Window | None
    # Work in the window, all parts together; null without a window.
    work: Work | None
    # What else the load measured; held to the contract result_<load>.
    measures: dict[str, float | None]
    # What the radios of the clients spent by the model of their states (factor access), which is no part of
    # what the meters read; absent where nothing models them. Steps of 0.1 s, those at an edge of a window
    # shared by time.
    radio_states: tuple[dict[str, Any], ...] | None = None
    # Parts of the work when there are several; absent for one.
    parts: tuple[ResultPart, ...] | None = None
    # How evenly the parts shared the window; absent for one.
    fairness: Fairness | None = None
    # No reason invalidates the run.
    valid: bool
    # Coded reasons, see reasons.json; not all of them invalidate.
    reasons: tuple[Reason, ...]
    # One entry per meter, in the order of campaign.json; empty when the run reached no measure window.
    nodes: tuple[Node, ...]


class Window(Part, frozen=True, kw_only=True):
    """Effective window. fixed: the longest span of whole intervals of the work in windows.measure, of
    several parts where all have one, cut at every edge of any. until_done: the window of run.json.
    """

    # fixed: work goes on over both edges, and what counts stands in intervals.csv; until_done: from the first
    # request to the end of the last, all of the work.
    kind: Literal["fixed", "until_done"]
    # Start, campaign time.
    t_start_s: float
    # End, campaign time.
    t_end_s: float


class Work(Part, frozen=True, kw_only=True):
    """Work in the window, all parts together; null without a window."""

    # Work, in its unit; null where none is counted.
    quantity: float | None
    # Unit of the work, e.g. Mb.
    unit: str
    # Work over the window's length; of Mb this is T_A in Mb/s.
    work_per_s: float | None
    # 95 % half-width of work_per_s.
    u95_work_per_s: float | None


class ResultPart(Part, frozen=True, kw_only=True):
    """One part in the window."""

    # Name of the part.
    part: str
    # Host whose power it moved besides that of hosts that serve all.
    node: str
    # Its work in the window over the window's length; null where none is counted.
    work_per_s: float | None
    # work_per_s over what was asked.
    met_ratio: float | None
    # What else is known of it, by name; held to the contract result_<load>.
    measures: dict[str, float | None]


class Fairness(Part, frozen=True, kw_only=True):
    """How evenly the parts shared the window; absent for one."""

    # Jain's fairness index of work_per_s (DEC-TR-301): 1 when all are equal, 1/parts when one has everything;
    # null when none is counted or nothing was done.
    jain_work: float | None
    # The same of met_ratio.
    jain_met: float | None


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
    radio_source: Literal["real", "link-model", "hwsim", "wired", "simulated", "unknown"]
    # Work per second that energy per work of this node refers to: of a host that is a client alone that of
    # its own parts, elsewhere of all. Absent where it is the run's.
    work_per_s: float | UnsetType | None = UNSET
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
    # Integral of P - P_I over the window: delta_p_w times its length.
    e_d_j: float | None
    # Integral of P over the window: idle energy and e_d_j.
    e_t_j: float | None
    # delta_p_w over work per second, J per unit of work; null with ea_reason.
    energy_per_work_j: float | None
    # 95 % half-width of energy_per_work_j; for a negative difference that of the empty one.
    u95_energy_per_work_j: float | None
    # One-sided 95 % upper limit of energy_per_work_j; only when below_resolution.
    upper_limit_energy_per_work_j: float | None
    # E_A = (P_A - P_I) / T_A, where the work is in Mb, as all fields in J/Mb; null with ea_reason.
    ea_j_per_mbit: float | UnsetType | None = UNSET
    # Code of reasons.json that leaves energy_per_work_j empty; null when it is given. A negative difference
    # gives below_resolution.
    ea_reason: str | None
    # 95 % half-width of E_A; for a negative difference that of the empty E_A.
    u95_ea_j_per_mbit: float | UnsetType | None = UNSET
    # One-sided 95 % upper limit of E_A; only when below_resolution.
    ea_upper_limit_j_per_mbit: float | UnsetType | None = UNSET
    # 95 % half-width of energy_per_work_j from each component alone.
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
    # Integral of P - P_I over the tail; null when it is not covered.
    tail_energy_j: float | None
    # Length of the tail, where the window is until_done.
    tail_s: float | UnsetType | None = UNSET
    # The tail reached its greatest length before the radio was idle.
    tail_cut: bool | None = None
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
    # 95 % half-width of energy_per_work_j from each term of the meter's specification alone, by the names of
    # the passport's accuracy.terms; gain and offset of u95_components hold them all. Null when the passport
    # lists no terms.
    specification: dict[str, float] | UnsetType | None = UNSET
    # Energy over the updates of the window by the log and by the instrument's own integrator; null without
    # one.
    integrator: Integrator | UnsetType | None = UNSET
    # Floor of the mini-block at this meter, from its control run.
    floor: Floor


class U95Components(Part, frozen=True, kw_only=True):
    """95 % half-width of energy_per_work_j from each component alone."""

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
    # What an edge of the window may miscount of the work, and the residual of its clock.
    t_a: float
    # Readings that lie on an edge of a window until done, shared by time.
    straddle: float | None = None


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
    """Floor of the mini-block at this meter, from its control run."""

    # The null run of the mini-block; null without one.
    run_id: str | None
    # Mean power of the null run over its measure window as the meter read it, with that run's idle power in
    # it. Not to be taken from p_a_w: idle power moves between the runs. E_A above floor is (delta_p_w -
    # floor_w) / t_a_mbps.
    p_null_w: float | None
    # Generator floor P_null - P_I, with the null run's own idle power. Of a window until done: the control
    # run's energy for the same work, over this window's length.
    floor_w: float | None
    # 95 % half-width of floor_w.
    u95_floor_w: float | None
    # Energy per work above the floor: (delta_p_w - floor_w) over work per second. Null with reason, or with
    # ea_reason.
    energy_per_work_above_floor_j: float | None
    # 95 % half-width of energy_per_work_above_floor_j by the Monte Carlo of u95: gain, range error of idle
    # power and a shared idle window are common to both runs.
    u95_energy_per_work_above_floor_j: float | None
    # E_A above the floor, where the work is in Mb: (P_A - P_null) / T_A, both powers above the idle power of
    # their own run.
    ea_above_floor_j_per_mbit: float | UnsetType | None = UNSET
    # 95 % half-width of ea_above_floor_j_per_mbit by the Monte Carlo of u95: gain, range error of idle power
    # and a shared idle window are common to both runs.
    u95_ea_above_floor_j_per_mbit: float | UnsetType | None = UNSET
    # Code of reasons.json that leaves the floor empty; null when it is given.
    reason: str | None
