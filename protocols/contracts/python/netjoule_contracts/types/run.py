# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``run``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document


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
    radio_source: Literal["real", "link-model", "hwsim", "wired", "simulated", "unknown"]
    # What the testbed had in force, by its factors, as it told when it was set; absent of a workload that has
    # no factor of the testbed.
    in_force: dict[str, dict[str, Any]] | None = None
    # Windows in campaign time; null when the run did not reach them.
    windows: dict[str, Any]
    # The window that the work was done in; null when the run did not reach it.
    window: dict[str, Any] | None
    # Work done; null when the run did not come to it.
    work: dict[str, Any] | None
    # What else the load measured, by name; see loads.json.
    measures: dict[str, float | None]
    # The control run of the mini-block, and whether its power is this run's floor; null without one, and of a
    # control run itself.
    control: dict[str, Any] | None
    # What reading the radios took of their hosts' CPUs; absent when no reader tells it.
    reader_cpu: tuple[dict[str, Any], ...] | None = None
    # What the radios of the clients spent by the model of their states (factor access), which is no part of
    # what the meters read; absent where nothing models them. Steps of 0.1 s, those at an edge of a window
    # shared by time.
    radio_states: tuple[dict[str, Any], ...] | None = None
    # Start, RFC 3339.
    started_utc: str
    # Versions by program or package; null when absent.
    versions: dict[str, str | None]
    # done, invalid (see reasons) or failed (no usable flow).
    status: Literal["done", "invalid", "failed"]
    # Coded reasons, see reasons.json.
    reasons: tuple[dict[str, Any], ...]
