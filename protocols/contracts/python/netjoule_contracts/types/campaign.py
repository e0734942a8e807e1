# SPDX-License-Identifier: Apache-2.0
"""Types of the contract ``campaign``. Generated from its schema by scripts/contract_types.py."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from netjoule_contracts.documents import Document, Part
from netjoule_contracts.types.topology import Topology
from netjoule_contracts.types.workload import Workload


class Campaign(Document, frozen=True, kw_only=True):
    """What a campaign was: effective inputs, versions, seed, host, meters and sessions."""

    contract: ClassVar[str] = "campaign"
    # Version of this contract.
    schema_version: Literal[1]
    # Document kind.
    kind: Literal["campaign"]
    # Name of the campaign.
    campaign: str
    # Creation, RFC 3339.
    created_utc: str
    # created: nothing ran yet; running: a session writes; interrupted: it stopped before the plan was done;
    # complete.
    status: Literal["created", "running", "interrupted", "complete"]
    # Seed of plan and statistics.
    seed: int
    # Effective workload, defaults filled in.
    workload: Workload
    # Effective topology; secrets stay references.
    topology: Topology
    # Where the radio figures come from; unknown only of imported results.
    radio_source: Literal["real", "link-model", "hwsim", "wired", "simulated", "unknown"]
    # Versions by program or package; null when absent. commit: git describe of the checkout, only when it is
    # one.
    versions: dict[str, str | None]
    # Fingerprint of the controller, of imported results of the host that imported them; no host name.
    host: Host
    # Hosts of a lab as 'netjoule provision' recorded them; a host that was found changed in a later session
    # has another entry. Absent where none has a record.
    lab_hosts: tuple[LabHost, ...] | None = None
    # Passports of the meters as they answered; empty until the first session.
    meters: tuple[dict[str, Any], ...]
    # Of a folder under blocks/ only: which block of a campaign on rigs it is. The rig is that of the
    # topology.
    block: dict[str, Any] | None = None
    # Device models behind the emulated meters, as netjoule-device described them when the first session
    # began: one of each meter, or all values of the factor device for each meter that it changes; absent
    # without such meters.
    device_models: tuple[dict[str, Any], ...] | None = None
    # Coded bursts that were sent, oldest first; absent when the workload has none.
    load_pulses: tuple[dict[str, Any], ...] | None = None
    # Lags of meters as sync pulses told them. The last entry of a meter with confidence 0.9 or more takes the
    # place of its passport's lag_s.
    alignment: tuple[dict[str, Any], ...] | None = None
    # Where an imported campaign comes from; absent where netjoule ran the flows itself.
    imported: Imported | None = None
    # Sessions in which the campaign ran.
    sessions: tuple[dict[str, Any], ...]


class Host(Part, frozen=True, kw_only=True):
    """Fingerprint of the controller, of imported results of the host that imported them; no host name."""

    # Kernel release.
    kernel: str
    # Architecture.
    machine: str
    # Distribution.
    distribution: str
    # CPU model.
    cpu_model: str
    # CPUs online.
    cpu_cores: int
    # Memory.
    memory_bytes: int


class LabHost(Part, frozen=True, kw_only=True):
    """One host."""

    # The topology's name of it.
    host: str
    # Session in which it was first found so.
    session: int
    # Kernel release.
    kernel: str
    # Architecture.
    machine: str
    # CPU model; on arm64, whose kernels name none, the board. Absent where an earlier netjoule provisioned
    # the host.
    cpu_model: str | None = None
    # Frequency governors of its CPUs; empty where the kernel has none.
    governor: str
    # Kernel settings that provisioning made.
    sysctls: dict[str, str | int]
    # Offloads by test interface, as ethtool names them: on or off.
    offloads: dict[str, dict[str, str]]


class Imported(Part, frozen=True, kw_only=True):
    """Where an imported campaign comes from; absent where netjoule ran the flows itself."""

    # Program that made the flows.
    generator: Literal["iperf3", "iperf-dccp", "ditg", "netperfmeter"]
    # Its versions, as the files tell them or as told by who imported them; empty when unknown.
    generator_versions: tuple[str, ...]
    # Files that were read.
    files: tuple[dict[str, Any], ...]
