# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``workload``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document, Part


class Workload(Document, frozen=True, kw_only=True):
    """What is asked: the cells of a campaign and how each run is timed."""

    contract: ClassVar[str] = "workload"
    # Version of this contract.
    schema_version: Literal[2]
    # Name of the workload; letters, digits, dot, dash, underscore.
    name: str
    # What it is for.
    description: str | None = None
    # What a run does, by its name in loads.json; its settings stand under its own name.
    load: str
    # Factor whose values are compared inside a mini-block; the load's own when absent.
    arm: str | None = None
    # Whether every mini-block has the load's control arm, too; when absent it has, where the load has one.
    control: bool | None = None
    # Values of each factor, one or a list; which there are, and their ranges, says factors.json. Every
    # combination but the arm's is a cell.
    factors: dict[str, Any]
    # Number of blocks; each holds every cell once.
    blocks: int
    # Lengths of the parts of a run.
    timing: Timing
    # Whether coded bursts of the load go before and after the campaign, from which each meter's lag is found.
    sync_pulses: bool | None = None
    # Form of device model that the question needs: in a testbed of modelled devices at least one meter must
    # read a model of it (the pacer needs cpu, because the other forms do not see a sender spin). No device is
    # asked when absent.
    device_form: Literal["constant", "linear", "cross_factor", "cpu"] | None = None
    # How arms are compared across the runs (docs/method/statistics.md), fixed before any of them.
    statistics: Statistics | None = None
    # Bounds of the campaign.
    limits: Limits | None = None
    # Seed of every random choice; drawn and recorded when absent.
    seed: int | None = None
    # Settings of the load flow.
    flow: dict[str, Any] | None = None
    # Settings of the load command.
    command: dict[str, Any] | None = None


class Timing(Part, frozen=True, kw_only=True):
    """Lengths of the parts of a run."""

    # Idle window between two runs, shared by both neighbours; 0 only of imported results, which have none.
    idle_s: float
    # Guard between the start of the next sender (sockets open, no packets) and the idle window.
    settle_s: float
    # From the first packet to the start of the measure window; at least 3 meter updates plus the meter's lag.
    # 0 of a load that runs until it is done: its window has no warm-up.
    warm_up_s: float
    # Measure window; of a load that runs until it is done, the least length of the work of a run, which is
    # repeated to fill it.
    measure_s: float
    # After the work ends, for tail energy and drain.
    tail_s: float
    # Longest wait for the end of the tail, where the radio log tells it; tail_s when absent.
    tail_max_s: float | None = None


class Statistics(Part, frozen=True, kw_only=True):
    """How arms are compared across the runs (docs/method/statistics.md), fixed before any of them."""

    # Level of all main comparisons together: the probability that any of its tests raises a false alarm. 0.05
    # when absent.
    alpha: float | None = None
    # The main comparisons; when absent the first six of: pairs of arms, those with the load's reference
    # first, each at every value of the factor that the load compares at, in the order of this workload.
    contrasts: tuple[Contrast, ...] | None = None
    # Ask whether the arms of each contrast are equivalent: whether a ratio of E_A beyond 1 + margin, either
    # way, can be ruled out. Not asked when absent.
    equivalence_margin_percent: float | None = None


class Contrast(Part, frozen=True, kw_only=True):
    """One contrast: the mean over the other factors of ln(E_A of arm / E_A of reference)."""

    # Arm of this workload; not the control arm.
    arm: str
    # Arm that it is compared with; not the control arm.
    reference: str
    # Value of the factor that the load compares at (of flow payload_bytes).
    at: dict[str, Any] | None = None


class Limits(Part, frozen=True, kw_only=True):
    """Bounds of the campaign."""

    # How often a mini-block may be tried in all before its invalid runs stay invalid.
    max_attempts: int | None = None
