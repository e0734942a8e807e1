# SPDX-License-Identifier: Apache-2.0
"""The meters' logger where the instruments are plugged in, and the way of its tables to the controller.

On the controller it writes into the campaign's folder. On another host it writes there, with the controller's
clock, and `fetch` carries the new rows here in the pauses between runs: nothing travels while power is read,
unless the load asks for a meter's readings meanwhile (`follow`).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from netjoule.core import programs, secrets
from netjoule.core.clock import boot_id
from netjoule.core.errors import RunFailed, file_errors
from netjoule.hosts.host import LocalHost, Process
from netjoule.hosts.ssh import SshHost
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import MeterPlace, follow_table
from netjoule.testbeds.emulated.config import meter_config
from netjoule.topology.topology import Meter

_NAME = "netjoule-meters log"


def config_of(campaign: Campaign, meters: Sequence[Meter]) -> dict[str, Any]:
    """meter_config of some meters of a campaign."""
    ids = {meter.meter_id for meter in meters}
    whole = meter_config(campaign.topology, {}, {})
    return {**whole, "meters": [m for m in whole["meters"] if m["meter_id"] in ids]}


class ControllerLogger:
    """Meters on the controller."""

    def __init__(self, campaign: Campaign, session: Session, meters: Sequence[Meter], folder: Path) -> None:
        """`folder`: for files of this session."""
        self._campaign, self._session = campaign, session
        self._meters = meters
        self._folder = folder

    async def place(self) -> MeterPlace:
        """Where a ranging pass finds these meters."""
        return MeterPlace(LocalHost("controller"), str(self._write_config()), self._meters)

    async def start(self, clock_server: str) -> Process:
        """Start the logger. Raises NetjouleError when it does not get ready."""
        argv = [programs.find("netjoule-meters"), "log", "--config", str(self._write_config())]
        argv += ["--out", str(self._campaign.path), f"--origin-ns={self._session.origin_ns}"]
        return await LocalHost("controller").start(argv, name=_NAME)

    def _write_config(self) -> Path:
        document = secrets.into_environment(config_of(self._campaign, self._meters), os.environ)
        path = self._folder / "meters.json"
        with file_errors("write", path):
            path.write_text(json.dumps(document), encoding="utf-8")
        return path

    async def fetch(self) -> None:
        """Its tables are here."""

    async def forget(self) -> None:
        """They stay here."""


class HostLogger:
    """Meters on another host."""

    def __init__(self, campaign: Campaign, session: Session, meters: Sequence[Meter], host: SshHost) -> None:
        """Not started yet."""
        self._campaign, self._session = campaign, session
        self._meters = meters
        self._host = host
        self._fetched: dict[str, int] = {}  # bytes of the host's table that are here, or were brought there
        self._folder = PurePosixPath()

    async def place(self) -> MeterPlace:
        """Where a ranging pass finds these meters. Raises RunFailed when the host takes no file."""
        config, environment = await self._write_config()
        return MeterPlace(self._host, config, self._meters, environment)

    async def start(self, clock_server: str) -> Process:
        """Start the logger; `clock_server` (HOST:PORT) is the controller's. Raises NetjouleError."""
        config, environment = await self._write_config()
        for meter in self._meters:
            await self._begin_table(meter.meter_id)
        argv = ["netjoule-meters", "log", "--config", config, "--out", str(self._folder)]
        argv.append(f"--origin-ns={self._session.origin_ns}")
        if self._host.boot_id != boot_id():
            argv += ["--clock-server", clock_server]
        return await self._host.start(argv, name=_NAME, env=environment)

    async def _write_config(self) -> tuple[str, dict[str, str]]:
        """The configuration's path there, and the secrets that it refers to."""
        session = f"{self._campaign.name}-{self._campaign.seed:x}-{self._session.session}"
        self._folder = await self._host.folder(f"campaign-{session}")
        environment: dict[str, str] = {}
        document = secrets.into_environment(await self._config(), environment, every_form=True)
        place = self._folder / "meters.json"
        await self._host.put(json.dumps(document).encode(), place)
        return str(place), environment

    async def fetch(self) -> None:
        """Bring whole new rows here. Raises RunFailed when the host does not give them."""
        for meter_id, begun in self._fetched.items():
            reader = await self._host.start(
                ["tail", "-c", f"+{begun + 1}", str(self._table(meter_id))], name=f"tail of {meter_id}.csv"
            )
            rows = []
            while line := await reader.next_line():
                if line.endswith(b"\n"):  # the last one may be half written
                    rows.append(line)
            if await reader.wait():
                raise RunFailed(
                    f"its readings of {meter_id} cannot be fetched: {reader.said()}",
                    where=f"host {self._host.name}",
                    code="meter_stopped",
                )
            self._campaign.append_meter_lines(meter_id, rows)
            self._fetched[meter_id] = begun + sum(map(len, rows))

    def has(self, meter_id: str) -> bool:
        """Whether it logs this meter."""
        return meter_id in self._fetched

    async def follow(self, meter_id: str, rows_n: int) -> Process:
        """`Testbed.follow_meter` of one of its meters."""
        return await follow_table(self._host, self._table(meter_id), rows_n)

    async def forget(self) -> None:
        """Remove what was fetched from the host. Raises RunFailed when it is out of reach."""
        await self._host.ask(["rm", "-r", str(self._folder)])

    async def _begin_table(self, meter_id: str) -> None:
        """Give the host the first and the last row of an earlier session, so that it goes on from there."""
        local = self._campaign.meters_dir / f"{meter_id}.csv"
        lines = local.read_bytes().splitlines(keepends=True) if local.exists() else []
        known = lines if len(lines) < 2 else [lines[0], lines[-1]]
        if known:
            await self._host.put(b"".join(known), self._table(meter_id))
        self._fetched[meter_id] = sum(map(len, known))

    async def _config(self) -> Mapping[str, Any]:
        document = config_of(self._campaign, self._meters)
        for meter in document["meters"]:
            if meter["calibration"] is not None:
                data = Path(meter["calibration"]).read_bytes()
                meter["calibration"] = await self._host.put_once(data, "calibration", ".json")
        return document

    def _table(self, meter_id: str) -> PurePosixPath:
        return self._folder / "meters" / f"{meter_id}.csv"
