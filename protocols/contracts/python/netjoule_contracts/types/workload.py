# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``workload``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document


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
    # Whether every mini-block has the load's control arm, too; when absent it has, where the load has one and
    # works for a fixed time.
    control: bool | None = None
    # Values of each factor, one or a list; which there are, and their ranges, says factors.json. Every
    # combination but the arm's is a cell.
    factors: dict[str, Any]
    # Combinations that are no cells: each names values of some factors, one or a list, and leaves out the
    # cells that have one of them of every factor it names. The arm is no part of it.
    exclude: tuple[dict[str, Any], ...] | None = None
    # Number of blocks; each holds every cell once.
    blocks: int
    # Lengths of the parts of a run.
    timing: dict[str, Any]
    # Whether coded bursts of the load go before and after the campaign, from which each meter's lag is found.
    sync_pulses: bool | None = None
    # Form of device model that the question needs: in a testbed of modelled devices at least one meter must
    # read a model of it (the pacer needs cpu, because the other forms do not see a sender spin). No device is
    # asked when absent.
    device_form: Literal["constant", "linear", "cross_factor", "cpu", "phone", "connections"] | None = None
    # How arms are compared across the runs (docs/method/statistics.md), fixed before any of them.
    statistics: dict[str, Any] | None = None
    # How a gate decides over two arms of this workload, fixed before any run: the campaign ends at the first
    # look that decides.
    gate: dict[str, Any] | None = None
    # Bounds of the campaign.
    limits: dict[str, Any] | None = None
    # Seed of every random choice; drawn and recorded when absent.
    seed: int | None = None
    # Settings of the load flow.
    flow: dict[str, Any] | None = None
    # Settings of the load transfer.
    transfer: dict[str, Any] | None = None
    # Settings of the load command.
    command: dict[str, Any] | None = None
