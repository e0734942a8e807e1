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
    radio_source: Literal["real", "link-model", "hwsim", "wired", "unknown"]
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
    # Device models behind the emulated meters, as netjoule-device described them when the first session
    # began; absent without such meters.
    device_models: tuple[DeviceModel, ...] | None = None
    # Coded bursts that were sent, oldest first; absent when the workload has none.
    load_pulses: tuple[LoadPulse, ...] | None = None
    # Lags of meters as sync pulses told them. The last entry of a meter with confidence 0.9 or more takes the
    # place of its passport's lag_s.
    alignment: tuple[Alignment, ...] | None = None
    # Where an imported campaign comes from; absent where netjoule ran the flows itself.
    imported: Imported | None = None
    # Sessions in which the campaign ran.
    sessions: tuple[Session, ...]


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
    # Frequency governors of its CPUs; empty where the kernel has none.
    governor: str
    # Kernel settings that provisioning made.
    sysctls: dict[str, str | int]
    # Offloads by test interface, as ethtool names them: on or off.
    offloads: dict[str, dict[str, str]]


class DeviceModel(Part, frozen=True, kw_only=True):
    """The model of one meter."""

    # Meter.
    meter_id: str
    # Name of the model.
    name: str
    # Form of the model.
    form: Literal["constant", "linear", "cross_factor", "cpu"]
    # What its values rest on, as the model says it.
    status: str
    # Where its values come from.
    source: str
    # Parameters by name; each name ends in its unit.
    parameters: dict[str, float]
    # Standard uncertainty over value by parameter; null where the source states none.
    relative_uncertainty: dict[str, float | None]
    # Power of sending over the PHY rate at the model's transmit power, rising in rate; of form cross_factor
    # only.
    rho_tx: tuple[Rho, ...] | None = None
    # Power of receiving over the PHY rate, rising in rate; of form cross_factor only.
    rho_rx: tuple[Rho, ...] | None = None


class Rho(Part, frozen=True, kw_only=True):
    """One point."""

    # PHY rate.
    phy_rate_mbps: float
    # Power added by sending all the time.
    rho_w: float
    # Standard uncertainty over value; null where none is stated.
    relative_uncertainty: float | None


class LoadPulse(Part, frozen=True, kw_only=True):
    """One pulse."""

    # Campaign time of the first bit, by the first packets of its bursts.
    t_start_s: float
    # Length of a bit.
    bit_s: float
    # Bits: 1 is a burst, 0 silence.
    code: str


class Alignment(Part, frozen=True, kw_only=True):
    """One meter."""

    # Meter.
    meter_id: str
    # From the end of what a reading stands for to the moment at which it is logged; negative when the
    # logger's clock is behind.
    lag_s: float
    # Standard uncertainty of lag_s.
    u_lag_s: float
    # Probability that the pulses are in the power trace and the lag is within half a bit of lag_s.
    confidence: float
    # How it was found.
    method: Literal["normalised_correlation"]
    # Sync pulses that were looked for.
    pulses: tuple[Pulse, ...]


class Pulse(Part, frozen=True, kw_only=True):
    """One coded load."""

    # First edge, campaign time.
    t_start_s: float
    # Length of one bit.
    bit_s: float
    # Bits, 1 where the load was on.
    code: str
    # Height that was found in the power trace; null when no readings lay there.
    amplitude_w: float | None


class Imported(Part, frozen=True, kw_only=True):
    """Where an imported campaign comes from; absent where netjoule ran the flows itself."""

    # Program that made the flows.
    generator: Literal["iperf3", "iperf-dccp", "ditg", "netperfmeter"]
    # Its versions, as the files tell them or as told by who imported them; empty when unknown.
    generator_versions: tuple[str, ...]
    # Files that were read.
    files: tuple[File, ...]


class File(Part, frozen=True, kw_only=True):
    """One file."""

    # Its name, without the folder.
    file: str
    # Size.
    size_bytes: int
    # SHA-256 of the file as it was read.
    sha256: str
    # What it was read as.
    format: Literal[
        "iperf3-json", "ditg-text", "netperfmeter-scalars", "netperfmeter-vectors", "netperfmeter-config"
    ]
    # Version of the generator that wrote it; null when unknown.
    generator_version: str | None
    # System that it was written on, as the file tells it, without the host's name; null when it does not.
    system: str | None
    # Runs that it tells of.
    runs: tuple[str, ...]


class Session(Part, frozen=True, kw_only=True):
    """One session."""

    # Number, from 1.
    session: int
    # Boot of the controller.
    boot_id: str
    # CLOCK_MONOTONIC at campaign time 0; negative after a reboot of a long campaign.
    monotonic_origin_ns: int
    # Campaign time at its start.
    t_start_s: float
    # Start, RFC 3339.
    started_utc: str
    # Campaign time at its end; null while running or when killed.
    t_end_s: float | None
    # End, RFC 3339.
    ended_utc: str | None
    # How it ended.
    end: Literal["running", "complete", "stopped", "failed", "killed"]
