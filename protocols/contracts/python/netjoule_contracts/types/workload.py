# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``workload``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document, Part


class Workload(Document, frozen=True, kw_only=True):
    """What is asked: the cells of a campaign and how each run is timed."""

    contract: ClassVar[str] = "workload"
    # Version of this contract.
    schema_version: Literal[1]
    # Name of the workload; letters, digits, dot, dash, underscore.
    name: str
    # What it is for.
    description: str | None = None
    # Which program makes the flows; netjoule-traffic does every transport, iperf3 udp and tcp, iperf-dccp
    # only dccp-kernel, ditg and netperfmeter udp, tcp and dccp-kernel. The null floor is always
    # netjoule-traffic's.
    generator: Literal["netjoule-traffic", "iperf3", "iperf-dccp", "ditg", "netperfmeter"] | None = None
    # Transports of every cell; null builds, times and drops the schedule (the generator's floor).
    transports: tuple[str, ...]
    # Options of single transports, each only beside its transport; which there are says transports.json.
    transport_options: dict[str, Any] | None = None
    # Message sizes of the application.
    payload_bytes: tuple[int, ...]
    # Offered loads, payload bits only.
    offered_rate_mbps: tuple[float, ...]
    # What is sent instead of messages of one size at a constant rate: a profile by the contract profile, or
    # its name (profiles/NAME.json beside the workload or in the library) or file, for which campaigns keep
    # the profile itself. One schedule per mini-block, the same for all its transports and null. payload_bytes
    # is then its greatest message, offered_rate_mbps its mean rate, one of each.
    profile: str | dict[str, Any] | None = None
    # up: from the client to the server; down: the reverse; both: each flow up and one like it down at once.
    # Down and both go without null, which is the floor of a sending client.
    direction: Literal["up", "down", "both"] | None = None
    # Flows of the run's transport at once, at each client; each has the payload, rate and pacing of the cell,
    # so the load of a run is that many times its rate.
    parallel: int | None = None
    # Hosts with the role client that take part, the first ones of the topology; each has all flows of the
    # run.
    clients: int | None = None
    # Further flows of every run, side by side with the run's transport: what it shares the path with. In a
    # null run they go to null too.
    beside: tuple[Beside, ...] | None = None
    # IP version of the flows.
    ip_version: Literal[4, 6] | None = None
    # Number of blocks; each holds every cell once.
    blocks: int
    # Lengths of the parts of a run.
    timing: Timing
    # How messages are spread over time, or a list of such ways, each then a factor: absolute: sleep until
    # each message's own deadline; hybrid: sleep, and watch the clock for the last 50 us; spin: watch the
    # clock all the time; so_txtime: hand messages to the kernel ahead, each with its launch time (needs fq);
    # burst:N: groups of N, each when its last message is due. Equal for all transports and null in a
    # mini-block; generators other than netjoule-traffic have a pacer of their own. (A mapping of mode,
    # window_us and gso is how workloads said this before; it is read and means the same.)
    pacing: str | tuple[str, ...] | Pacing | None = None
    # Coalescing window of the pacer, or a list of such windows, each then a factor: a message may leave so
    # much late, so that neighbours due within the window of the first share a wake-up; 0 sends every message
    # at its own deadline.
    window_us: int | tuple[int, ...] | None = None
    # Whether messages that leave together go to the kernel as one segmentation-offload train, or both, then a
    # factor.
    gso: bool | tuple[bool, ...] | None = None
    # What the pacing certificate of every run must keep; a run that does not is invalid (pacing_uncertified).
    # Without it certificates are reported and not judged.
    pacing_limits: PacingLimits | None = None
    # Coded bursts before and after the campaign, from which each meter's lag is found; none when absent.
    load_pulses: LoadPulses | None = None
    # Form of device model that the question needs: in a testbed of modelled devices at least one meter must
    # read a model of it (the pacer needs cpu, because the other forms do not see a sender spin). No device is
    # asked when absent.
    device_form: Literal["constant", "linear", "cross_factor", "cpu"] | None = None
    # How transports are compared across the runs (docs/statistics.md), fixed before any of them.
    statistics: Statistics | None = None
    # Bounds of the campaign.
    limits: Limits | None = None
    # Seed of every random choice; drawn and recorded when absent.
    seed: int | None = None


class Beside(Part, frozen=True, kw_only=True):
    """One flow at each client."""

    # Transport; not null.
    transport: str
    # Message size; the cell's when absent.
    payload_bytes: int | None = None
    # Offered load; the cell's when absent.
    offered_rate_mbps: float | None = None


class Timing(Part, frozen=True, kw_only=True):
    """Lengths of the parts of a run."""

    # Idle window between two runs, shared by both neighbours; 0 only of imported results, which have none.
    idle_s: float
    # Guard between the start of the next sender (sockets open, no packets) and the idle window.
    settle_s: float
    # From the first packet to the start of the measure window; at least 3 meter updates plus the meter's lag.
    warm_up_s: float
    # Measure window.
    measure_s: float
    # After the flow stops, for tail energy and drain.
    tail_s: float


class Pacing(Part, frozen=True, kw_only=True):
    """How messages are spread over time, or a list of such ways, each then a factor: absolute: sleep until
    each message's own deadline; hybrid: sleep, and watch the clock for the last 50 us; spin: watch the
    clock all the time; so_txtime: hand messages to the kernel ahead, each with its launch time (needs fq);
    burst:N: groups of N, each when its last message is due. Equal for all transports and null in a
    mini-block; generators other than netjoule-traffic have a pacer of their own. (A mapping of mode,
    window_us and gso is how workloads said this before; it is read and means the same.)
    """

    # Way.
    mode: str
    # Coalescing window.
    window_us: int
    # Trains.
    gso: bool


class PacingLimits(Part, frozen=True, kw_only=True):
    """What the pacing certificate of every run must keep; a run that does not is invalid
    (pacing_uncertified). Without it certificates are reported and not judged.
    """

    # Greatest median error of a departure.
    max_error_p50_us: float | None = None
    # Greatest 99th percentile of the error.
    max_error_p99_us: float | None = None
    # Greatest 99.9th percentile of the error.
    max_error_p99_9_us: float | None = None
    # Greatest error of any departure.
    max_error_us: float | None = None
    # Least share of departures at most 5 us late.
    min_within_5us_ratio: float | None = None
    # Least share of departures at most 50 us late.
    min_within_50us_ratio: float | None = None
    # Least share of departures at most 500 us late.
    min_within_500us_ratio: float | None = None
    # Greatest share of departures that followed the one before without a wait.
    max_back_to_back_ratio: float | None = None
    # Most messages that may leave without a wait between them.
    max_train_messages: float | None = None
    # Least share of the schedule that is sent; what the transport held back counts as sent.
    min_achieved_ratio: float | None = None
    # Greatest share of a core that the sending process uses.
    max_cpu_ratio: float | None = None


class LoadPulses(Part, frozen=True, kw_only=True):
    """Coded bursts before and after the campaign, from which each meter's lag is found; none when absent."""

    # Rate of a burst; high enough to be seen in the power.
    rate_mbps: float
    # Message size of a burst.
    payload_bytes: int


class Statistics(Part, frozen=True, kw_only=True):
    """How transports are compared across the runs (docs/statistics.md), fixed before any of them."""

    # Level of all main comparisons together: the probability that any of its tests raises a false alarm. 0.05
    # when absent.
    alpha: float | None = None
    # The main comparisons; when absent the first six of: pairs of transports, those with udp first, each at
    # every size, in the order of this workload.
    contrasts: tuple[Contrast, ...] | None = None
    # Ask whether the transports of each contrast are equivalent: whether a ratio of E_A beyond 1 + margin,
    # either way, can be ruled out. Not asked when absent.
    equivalence_margin_percent: float | None = None


class Contrast(Part, frozen=True, kw_only=True):
    """One contrast: the mean over loads of ln(E_A of transport / E_A of reference) at one size."""

    # Transport of this workload; not null.
    transport: str
    # Transport that it is compared with; not null.
    reference: str
    # Message size, one of this workload's.
    payload_bytes: int


class Limits(Part, frozen=True, kw_only=True):
    """Bounds of the campaign."""

    # How often a mini-block may be tried in all before its invalid runs stay invalid.
    max_attempts: int | None = None
