# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``run``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document, Part


class Run(Document, frozen=True, kw_only=True):
    """One run: its cell, its windows in campaign time, its work and how it ended."""

    contract: ClassVar[str] = "run"
    # Version of this contract.
    schema_version: Literal[2]
    # Name of the run, e.g. b01m003-udp-a1; nobody parses it.
    run_id: str
    # Name of the campaign.
    campaign: str
    # Load, see loads/.
    load: str
    # work; control: the load's control arm, whose power is the floor of its mini-block; warm_up: not counted.
    kind: Literal["work", "control", "warm_up"]
    # What the mini-block compares: this run's arm.
    arm: str
    # The run's cell: each factor but the arm, by name.
    factors: dict[str, float | str | bool | None]
    # Block, from 1.
    block: int
    # Mini-block, from 1, unique in the campaign.
    mini_block: int
    # Attempt of the mini-block, from 1.
    attempt: int
    # Position inside the mini-block, from 1.
    order: int
    # Seed of the run.
    seed: int
    # The first host of each role that the load needs, by its name in the topology.
    hosts: dict[str, str]
    # Where the radio figures come from; unknown only of imported results.
    radio_source: Literal["real", "link-model", "hwsim", "wired", "unknown"]
    # What the testbed had in force, by its factors, as it told when it was set; absent of a workload that has
    # no factor of the testbed.
    in_force: dict[str, dict[str, Any]] | None = None
    # Windows in campaign time; null when the run did not reach them.
    windows: Windows
    # The window that the work was done in; null when the run did not reach it.
    window: RunWindow | None
    # Work done; null when the run did not come to it.
    work: Work | None
    # What else the load measured, by name; see loads.json.
    measures: dict[str, float | None]
    # The control run of the mini-block, and whether its power is this run's floor; null without one, and of a
    # control run itself.
    control: Control | None
    # What reading the radios took of their hosts' CPUs; absent when no reader tells it.
    reader_cpu: tuple[ReaderCpu, ...] | None = None
    # Start, RFC 3339.
    started_utc: str
    # Versions by program or package; null when absent.
    versions: dict[str, str | None]
    # done, invalid (see reasons) or failed (no usable flow).
    status: Literal["done", "invalid", "failed"]
    # Coded reasons, see reasons.json.
    reasons: tuple[Warning, ...]


class Windows(Part, frozen=True, kw_only=True):
    """Windows in campaign time; null when the run did not reach them."""

    # Idle before, shared with the previous run.
    idle_before: Window | None
    # First packet to measure.
    warm_up: Window | None
    # Measure window.
    measure: Window | None
    # After the flow stopped.
    tail: Window | None
    # Idle after, shared with the next run.
    idle_after: Window | None


class Window(Part, frozen=True, kw_only=True):
    """One of Windows."""

    # Start, campaign time.
    t_start_s: float
    # End, campaign time.
    t_end_s: float


class RunWindow(Part, frozen=True, kw_only=True):
    """The window that the work was done in; null when the run did not reach it."""

    # fixed: work goes on over both edges, and what counts stands in intervals.csv; until_done: from the first
    # request to the end of the last, all of the work.
    kind: Literal["fixed", "until_done"]
    # Start, campaign time.
    t_start_s: float
    # End, campaign time.
    t_end_s: float
    # Limit of the error of the clock that the work was counted by, at each edge.
    clock_limit_s: float
    # Greatest length of the tail behind a window until done; absent where the plan's tail is taken.
    tail_max_s: float | None = None


class Work(Part, frozen=True, kw_only=True):
    """Work done; null when the run did not come to it."""

    # Work in all, in its unit; null where none is counted, as in a control run.
    quantity: float | None
    # Unit of the work, e.g. Mb.
    unit: str
    # Standard uncertainty of the work counted in the window, all parts together.
    u: float
    # Whether the load's books balance; where not, reasons say so.
    reconciles: bool
    # How often the unit of work was done back to back in the window.
    repeat: int | None = None
    # What the work is made of.
    parts: tuple[WorkPart, ...]


class WorkPart(Part, frozen=True, kw_only=True):
    """One part."""

    # Name of the part, as in intervals.csv.
    part: str
    # Host whose power it moved besides that of hosts that serve all.
    node: str
    # Start of the part's work, campaign time; absent where it is not known.
    t_start_s: float | None = None
    # Work of the part in all; null where none is counted.
    quantity: float | None
    # Standard uncertainty of the work counted between two edges.
    u: float
    # Work per second that was asked for; null where none was.
    asked_per_s: float | None
    # What else is known of it, by name.
    measures: dict[str, float | None]


class Control(Part, frozen=True, kw_only=True):
    """The control run of the mini-block, and whether its power is this run's floor; null without one, and
    of a control run itself.
    """

    # The control run.
    run_id: str
    # Whether both did the same work but for what the floor leaves out.
    comparable: bool
    # Code that makes them incomparable; null when they are not.
    reason: str | None
    # Coded warnings that hold where the floor is used.
    warnings: tuple[Warning, ...]


class Warning(Part, frozen=True, kw_only=True):
    """One reason."""

    # Code.
    code: str
    # What was seen, in words.
    detail: str


class ReaderCpu(Part, frozen=True, kw_only=True):
    """One reader."""

    # Host of the radio.
    node: str
    # CPU seconds per second in both idle windows.
    idle_cores: float
    # CPU seconds per second in the measure window.
    measure_cores: float
