# SPDX-License-Identifier: Apache-2.0
"""The interface between whatever knows a radio's state and radio/<node>.csv."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Protocol

from netjoule.radio.state_energy import StateStep


@dataclass(frozen=True)
class RadioRecord:
    """One look at a radio; None is a value that this way of asking does not tell.

    Counts and air times are those of the time since the previous record. Rates are those of the last frame
    sent, with `rx_` those of the last one received. `flag` names what is doubtful about the record, empty
    when nothing is. `state` is idle, or another of those between which the radio's power steps;
    `step` is what such a radio spent by its model, of which only the energy is a column.
    """

    t_s: float
    phy_rate_mbps: float | None = None
    mcs: int | None = None
    streams: int | None = None
    width_mhz: int | None = None
    guard_interval_ns: int | None = None
    rx_phy_rate_mbps: float | None = None
    rx_mcs: int | None = None
    rx_streams: int | None = None
    rx_width_mhz: int | None = None
    rx_guard_interval_ns: int | None = None
    rssi_dbm: float | None = None
    retries: int | None = None
    failed: int | None = None
    power_save: bool | None = None
    airtime_tx_s: float | None = None
    airtime_rx_s: float | None = None
    frames_tx: int | None = None
    frames_rx: int | None = None
    ppdus_tx: int | None = None
    ppdus_rx: int | None = None
    bssid: str | None = None
    station: str | None = None
    source: str | None = None
    reader_cpu_s: float | None = None
    flag: str = ""
    state: str | None = None
    step: StateStep | None = None

    @classmethod
    def of(cls, told: Mapping[str, Any], **own: Any) -> RadioRecord:
        """What a source tells under the same names, but for what it tells otherwise (`own`)."""
        same = {field.name for field in fields(cls)} & told.keys() - own.keys()
        return cls(**{name: told[name] for name in same}, **own)

    def as_row(self) -> dict[str, Any]:
        """The record as a row of radio/<node>.csv."""
        word = None if self.power_save is None else "on" if self.power_save else "off"
        row = asdict(replace(self, step=None)) | {"power_save": word}
        del row["step"]
        return row | {"state_energy_j": self.step and self.step.told["energy_j"]}


class RadioReader(Protocol):
    """A source of records about one node's radio."""

    node: str
    """The topology's name of the host whose radio this is."""

    async def open(self) -> None:
        """Start reading. Raises RunFailed when the source does not answer."""

    async def read(self) -> RadioRecord | None:
        """The next record, waiting for it without polling; None when the source has ended."""

    async def close(self) -> None:
        """Stop reading; may be called twice."""
