# SPDX-License-Identifier: Apache-2.0
"""Brings the emulated testbed up inside the sandbox and watches it until it goes down.

::

    clients ==== netjoule-link (802.11n air, paths) ==== server, proxy, …   test network, topology's addresses
    client  ---- veth ------------------------------- server, proxy, …   control network, off the "radio"
    netjoule-device | netjoule-meters emulate      per meter: watts from its client's air time and load
    netjoule-meters log                            reads all meters as it would read real ones

Every host with the role client is a namespace and a station of the link, whether or not a workload's flows
use it: its meters read it idle then. Every host behind the access point is a namespace at the end of a path
of its own. Two of these, and each client and each of these, have a veth of their own, for control.
Everything lives in the sandbox's namespaces; runtime files are in /run, which is a tmpfs there.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import tempfile
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import combinations, product
from pathlib import Path
from typing import Any

from netjoule.core import programs, secrets
from netjoule.core.clock import SystemClock
from netjoule.core.errors import HostLacks, RunFailed
from netjoule.hosts import sandbox
from netjoule.hosts.host import LocalHost, LocalProcess, NetnsHost
from netjoule.radio import LinkStatsReader, RadioReader
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import MeterPlace, Testbed, all_or_none, cancelled
from netjoule.testbeds.emulated import buffers
from netjoule.testbeds.emulated.config import (
    Spot,
    clients,
    device_model_entry,
    fault_requests,
    fault_socket,
    instrument_arguments,
    interfaces,
    link_config,
    meter_config,
    wired,
)
from netjoule.testbeds.emulated.device_control import change_model
from netjoule.testbeds.emulated.routers import RouterLog
from netjoule.topology.devices import device_models
from netjoule.topology.hosts import WIRED_ROLES
from netjoule.topology.paths import asked_paths, in_force, parameters
from netjoule.topology.topology import Meter
from netjoule.workload.load import Condition, Load, Place

READY_TIMEOUT_S = 30.0
CAUSE_TIMEOUT_S = 0.5
LINK_INTERVAL_S = 0.1  # netjoule-link reports, and so device models sample, ten times a second


@asynccontextmanager
async def open_emulated(campaign: Campaign, session: Session, _load: Load) -> AsyncIterator[EmulatedTestbed]:
    """Bring the testbed of a campaign up, hand it out, take it down.

    Raises:
        HostLacks: outside the sandbox, or when a program is missing.
        RunFailed: when a part does not come up.
    """
    if sandbox.inside() is None:
        raise HostLacks("the emulated testbed runs only inside its sandbox", next_step="use 'netjoule run'")
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="netjoule-", dir="/run"))
        testbed = EmulatedTestbed(campaign, session, Path(folder), stack)
        await testbed.bring_up()
        yield testbed


@dataclass(frozen=True)
class _Pipeline:
    """An emulated meter whose instrument is up; `models`: what its devices tell of themselves."""

    meter: Meter
    resource: str
    models: tuple[dict[str, Any], ...]


class EmulatedTestbed(Testbed):
    """The running testbed; made by `open_emulated`."""

    power_grain_s = LINK_INTERVAL_S
    cause_timeout_s = CAUSE_TIMEOUT_S  # what reads the link dies of its death

    def __init__(self, campaign: Campaign, session: Session, folder: Path, stack: AsyncExitStack) -> None:
        """Nothing is up yet."""
        super().__init__(campaign, session, folder, stack)
        self._wired_spots, self._client_spots = wired(self.topology), clients(self.topology)
        self._spots = (*self._client_spots, *self._wired_spots)
        self.hosts = {spot.host: NetnsHost(spot.host, spot.netns_file) for spot in self._spots}
        self.local = LocalHost("controller")
        self.stats_socket = self.folder / "link.sock"
        self._routers = RouterLog(self.stats_socket, session.origin_ns)
        self._models = device_models(self.topology, campaign.workload.factors.get("device", ()))
        self._pipelines: Sequence[_Pipeline] = ()
        self._link: LocalProcess | None = None
        self._said_by_link: asyncio.Queue[dict[str, Any]] = asyncio.Queue()

    # -- what the runner uses --------------------------------------------------------------------

    @property
    def place(self) -> Place:
        """All clients and all hosts behind the access point, by role."""
        roles = {role: self.topology.hosts_with(role) for role in ("client", *WIRED_ROLES)}
        return Place(
            {role: tuple(self.hosts[name] for name in names) for role, names in roles.items()},
            {spot.host: spot.control_ipv4 for spot in self._spots},
            {name: self.topology.host(name).first_test_address for name in self.hosts},
            interfaces(self.topology),
            routers=self._routers.rows,
        )

    @property
    def radio_readers(self) -> Sequence[RadioReader]:
        """Each client's station of the emulated link."""
        return [
            LinkStatsReader(spot.host, spot.host, self.stats_socket, self.session.origin_ns)
            for spot in self._client_spots
        ]

    async def apply(self, condition: Condition) -> Mapping[str, Any]:
        """Set paths and the clients' access networks, devices, buffers. Raises RunFailed when one refuses."""
        document, asked = self.topology.document, condition.testbed
        paths = asked_paths(document, asked)
        found = in_force(document, asked, {host: await self._set(host, paths[host]) for host in paths})
        if (network := asked.get("access")) is not None:
            access = dict(parameters(document, "access", network))
            for spot in self._client_spots:
                told = {"station": spot.host, "access": access}
                said = await self._tell(told, "access", f"the access of {spot.host}")
                found["access"] = said["access"]
        if (model := asked.get("device")) is not None:
            found["device"] = await self._change_devices(model)
        if (preset := asked.get("buffers")) is not None:
            sizes = buffers.tcp_rmem(preset, platform.release())
            for spot in self._client_spots:
                await _run("nsenter", f"--net={spot.netns_file}", "sysctl", "-qw", buffers.setting(sizes))
            found["buffers"] = buffers.told(preset, sizes)
        return found

    async def _change_devices(self, model: str) -> dict[str, Any]:
        """Have the clients' emulated meters read another device model; what they read then."""
        meters = [pipeline.meter for pipeline in self._pipelines]
        told = await all_or_none([change_model(self._control_of(meter), model) for meter in meters])
        kept = {"model": told[0]["name"], "form": told[0]["form"], "status": told[0]["status"]}
        return kept | {"meters": [meter.meter_id for meter in meters]}

    async def _set(self, host: str, elements: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Set the path to a host; its elements as the link tells them."""
        said = await self._tell({"host": host, "elements": elements}, "path", f"the path to {host}")
        return list(said["elements"])

    async def _tell(self, command: Mapping[str, Any], event: str, what: str) -> dict[str, Any]:
        """Give the link a command; its answer. Raises RunFailed when it does not say that it is set."""
        assert self._link is not None
        await self._link.write_line(json.dumps(command))
        try:
            said = await asyncio.wait_for(self._said_by_link.get(), READY_TIMEOUT_S)
        except TimeoutError:
            said = {"message": f"no answer within {READY_TIMEOUT_S:g} s"}
        if said.get("event") != event:
            raise RunFailed(f"netjoule-link did not set {what}: {said['message']}", code="not_in_force")
        return said

    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        """All hosts share the controller's kernel and so its clock."""
        same = {"t_s": t_s, "offset_s": 0.0, "drift_ppm": 0.0, "residual_s": 0.0, "method": "same_boot"}
        return [same | {"host": name} for name in self.hosts]

    # -- up and down -----------------------------------------------------------------------------

    async def bring_up(self) -> None:
        """Start every part; each is stopped in reverse when the stack unwinds."""
        if self.topology.cpus is not None:  # all parts inherit it
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: self.topology.cpus])
        await self._make_namespaces()
        await self._start_link()
        pipelines = await all_or_none([self._start_meter(m) for m in self.topology.meters if m.emulated])
        self.campaign.set_device_models(
            [device_model_entry(p.meter.meter_id, model) for p in pipelines for model in p.models]
        )
        self._pipelines = pipelines

    async def meter_places(self) -> Sequence[MeterPlace]:
        """All meters are here."""
        return [MeterPlace(self.local, str(self._write_meter_config()), self.topology.meters)]

    async def start_meters(self) -> None:
        """Start the logger, with the meters as campaign.json now has them, and the topology's faults."""
        self.topology = self.campaign.topology
        config = self._write_meter_config()
        argv = [programs.find("netjoule-meters"), "log", "--config", str(config)]
        argv += ["--out", str(self.campaign.path), f"--origin-ns={self.session.origin_ns}"]
        await self.log_with(await self._start(*argv))
        faults = [asyncio.ensure_future(self._inject(p.meter)) for p in self._pipelines if p.meter.faults]
        self.stack.push_async_callback(cancelled, faults)

    async def _make_namespaces(self) -> None:
        for spot in self._spots:
            await _run("ip", "netns", "add", spot.netns)
            self.stack.push_async_callback(_run, "ip", "netns", "delete", spot.netns)
            await _run("ip", "-n", spot.netns, "link", "set", "dev", "lo", "up")
        pairs = [*product(self._client_spots, self._wired_spots), *combinations(self._wired_spots, 2)]
        for number, (one, other) in enumerate(pairs):
            await _join(one, other, f"ctl{number}")

    async def _start_link(self) -> None:
        config = self.folder / "link.json"
        config.write_text(json.dumps(link_config(self.topology, self.stats_socket)), encoding="utf-8")
        self._link = link = await self._start(programs.find("netjoule-link"), "run", "--config", str(config))
        ready = await link.expect("ready", READY_TIMEOUT_S)
        self.versions["netjoule-link"] = ready.get("version")
        self.watch(link, "link_stopped", self._note_link)
        follows = asyncio.ensure_future(self._routers.follow())
        self.stack.push_async_callback(cancelled, [follows])

    def _note_link(self, line: bytes) -> None:
        said = json.loads(line)
        if said.get("event") in ("path", "access", "error"):
            self._said_by_link.put_nowait(said)

    async def _start_meter(self, meter: Meter) -> _Pipeline:
        """Start `netjoule-device | netjoule-meters emulate` for one meter."""
        link = self._port_of(meter)
        # One instrument for the whole campaign: its errors are drawn from the campaign's seed and its id.
        seed = self.campaign.seed ^ zlib.crc32(meter.meter_id.encode())
        arguments = instrument_arguments(meter, link, origin_ns=self.session.origin_ns, seed=seed)
        read_fd, write_fd = os.pipe()
        try:
            program = programs.find("netjoule-meters")
            instrument = await self._start(program, *arguments, stdin_fd=read_fd)
            device = await self._start(*self._device_arguments(meter), stdout_fd=write_fd)
        finally:
            os.close(read_fd)
            os.close(write_fd)
        ready = await instrument.expect("ready", READY_TIMEOUT_S)
        self.watch(device, "device_stopped")
        self.watch(instrument, "meter_stopped")
        told = [await self._device_model(name) for name in self._models[meter.meter_id]]
        return _Pipeline(meter, str(ready["resource"]), tuple(filter(None, told)))

    def _device_arguments(self, meter: Meter) -> list[str]:
        log = self.campaign.devices_dir / f"{meter.meter_id}.ndjson"
        log.parent.mkdir(exist_ok=True)
        argv = [programs.find("netjoule-device"), "--model", self._models[meter.meter_id][0]]
        argv += ["--station", meter.node, "--link-socket", str(self.stats_socket), "--log", str(log)]
        argv += ["--cpu-netns", str(self.hosts[meter.node].netns), "--control", str(self._control_of(meter))]
        return [*argv, f"--origin-ns={self.session.origin_ns}"]

    def _port_of(self, meter: Meter) -> Path:
        """Where a meter's pseudo-terminal is, when it has one."""
        return self.folder / f"{meter.meter_id}.tty"

    def _control_of(self, meter: Meter) -> Path:
        """Where a meter's device takes another model."""
        return self.folder / f"{meter.meter_id}.device"

    async def _inject(self, meter: Meter) -> None:
        """Ask a meter's instrument for the faults that the topology lists, each at its time."""
        from netjoule_meters.emulated.control import request_fault
        from netjoule_meters.errors import MeterError

        clock = SystemClock()
        up_ns = clock.monotonic_ns()
        for t_s, request in fault_requests(meter):
            await clock.sleep_until_ns(up_ns + round(t_s * 1e9))
            detail = f"{meter.meter_id}: {json.dumps(request)}"
            try:
                await asyncio.to_thread(request_fault, fault_socket(self._port_of(meter)), request)
            except MeterError as error:
                detail += f" was refused: {error}"
            self.remark(detail, "fault_asked")

    async def _device_model(self, name: str) -> dict[str, Any] | None:
        """A power model as the model's program tells it; None when it says nothing."""
        argv = [programs.find("netjoule-device"), "--model", name, "--describe"]
        process = await self.local.start(argv, name="netjoule-device --describe")
        try:
            line = await process.next_line()
        finally:
            await process.stop()
        return dict(json.loads(line)) if line else None

    def _write_meter_config(self) -> Path:
        """The configuration that the logger and a ranging pass read."""
        resources = {p.meter.meter_id: p.resource for p in self._pipelines}
        models = {p.meter.meter_id: p.models for p in self._pipelines}
        config = self.folder / "meters.json"
        document = secrets.into_environment(meter_config(self.topology, resources, models), os.environ)
        config.write_text(json.dumps(document), encoding="utf-8")
        return config

    async def _start(
        self, *argv: str, stdin_fd: int | None = None, stdout_fd: int | None = None
    ) -> LocalProcess:
        verb = [] if argv[1].startswith("-") else [argv[1]]
        name = " ".join([Path(argv[0]).name, *verb])
        process = await self.local.start(argv, name=name, stdin_fd=stdin_fd, stdout_fd=stdout_fd)
        # The radio and the instruments stand for hardware: on a host with few cores they must not wait
        # for the flows that they carry and measure.
        process.prefer()
        self.stack.push_async_callback(process.stop)
        return process


async def _join(one: Spot, other: Spot, ifname: str) -> None:
    """A veth between two hosts, each with its control addresses.

    Addresses go by pairs (peer) and not by a network, so that a host has its one address on every
    cable: no bridge is needed, which a kernel may lack, and no client hears another's control traffic.
    """
    veth = ("ip", "link", "add", ifname, "netns", one.netns, "type", "veth")
    await _run(*veth, "peer", "name", ifname, "netns", other.netns)
    # Up before its addresses: the kernel makes no route to an IPv6 peer when an interface comes up.
    for spot in (one, other):
        await _run("ip", "-n", spot.netns, "link", "set", "dev", ifname, "up")
    for near, far in ((one, other), (other, one)):
        address = ("ip", "-n", near.netns, "address", "add")
        await _run(*address, near.control_ipv4, "peer", far.control_ipv4, "dev", ifname)
        await _run(*address, near.control_ipv6, "peer", far.control_ipv6, "dev", ifname, "nodad")


async def _run(*argv: str) -> None:
    """Run one short command. Raises RunFailed with its words when it fails."""
    done = await asyncio.to_thread(programs.said_by, argv)
    if done.returncode:
        raise RunFailed(f"'{' '.join(argv)}' failed: {(done.stdout + done.stderr).strip()}")
