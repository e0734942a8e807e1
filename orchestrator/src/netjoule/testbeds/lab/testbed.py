# SPDX-License-Identifier: Apache-2.0
"""The testbed of kinds guest and lab: hosts over SSH, their radios, meters where they are plugged in.

::

    controller --wired control network, SSH--> client, server, access point, meter host: a keeper each
    client ==== radio or cable of the test network ==== access point ==== server

The topology says what is there, `netjoule provision` has set it up; no host's configuration is changed here,
but that a server delays what it sends where the workload has paths.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from netjoule.core import programs
from netjoule.core.clock import SystemClock
from netjoule.core.errors import RunFailed
from netjoule.hosts.host import LocalHost, Process
from netjoule.hosts.ssh import SshHost
from netjoule.radio import AgentReader, RadioReader, agent_options
from netjoule.store.campaign import Campaign
from netjoule.store.session import Session
from netjoule.testbeds.base import LOGGER_READY_TIMEOUT_S, MeterPlace, Testbed, all_or_none
from netjoule.testbeds.lab import binaries
from netjoule.testbeds.lab.clocks import HostClock
from netjoule.testbeds.lab.control_network import control_number, needed_hosts, require_control_off_the_radio
from netjoule.testbeds.lab.host_facts import host_record, joined
from netjoule.testbeds.lab.host_locks import campaign_owner
from netjoule.testbeds.lab.meters import ControllerLogger, HostLogger
from netjoule.testbeds.lab.reservation import Reservation
from netjoule.testbeds.lab.server_path import NOT_IN_FORCE, ServerPath
from netjoule.topology.paths import asked_paths, in_force, is_path, path_host
from netjoule.topology.topology import Meter
from netjoule.workload.load import Condition, Load, Place

COLLECT_TIMEOUT_S = 60.0


@asynccontextmanager
async def open_lab(campaign: Campaign, session: Session, load: Load) -> AsyncIterator[LabTestbed]:
    """Reserve and lock a campaign's hosts, hand the testbed out, leave them as they were.

    Raises:
        UsageError: keys, control network or another campaign's lock stand in the way.
        HostLacks: a program is missing on a host.
        RunFailed: a host does not answer, or a part does not come up.
    """
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="netjoule-")))
        testbed = LabTestbed(campaign, session, load, folder, stack)
        await testbed.bring_up()
        yield testbed


class LabTestbed(Testbed):
    """The running testbed; made by `open_lab`."""

    def __init__(
        self, campaign: Campaign, session: Session, load: Load, folder: Path, stack: AsyncExitStack
    ) -> None:
        """`folder`: for files of this session; what is started is stopped when `stack` unwinds."""
        super().__init__(campaign, session, folder, stack)
        self._load = load
        self._owner = campaign_owner(campaign.path, campaign.created, campaign.seed)
        self._reservation = Reservation(self.topology, self.remark)
        needed = needed_hosts(self.topology, load.hosts)
        self._hosts = {name: self._host(name) for name in needed}
        self._clocks = {name: HostClock(host, session.origin_ns) for name, host in self._hosts.items()}
        self._loggers: list[ControllerLogger | HostLogger] = []
        self._agents: dict[str, tuple[str, ...]] = {}
        self._control: dict[str, str] = {}  # numbers, from bring_up on
        self._paths: dict[str, ServerPath] = {}  # by the host at their end, likewise

    def _host(self, name: str) -> SshHost:
        revive = partial(self._reservation.cycle, name)
        return SshHost(self.topology.host(name).ssh, self._owner, self.remark, revive=revive)

    # -- what the runner uses --------------------------------------------------------------------

    @property
    def roles(self) -> Mapping[str, tuple[SshHost, ...]]:
        """The hosts that take part, as the load asks for them."""
        named = self.topology.first_hosts(self._load.hosts)
        return {role: tuple(self._hosts[name] for name in names) for role, names in named.items()}

    @property
    def ends(self) -> Sequence[SshHost]:
        """The same, each once."""
        return list(dict.fromkeys(host for hosts in self.roles.values() for host in hosts))

    @property
    def place(self) -> Place:
        """The hosts that take part, and how the first client reaches those that are none."""
        ends = [self.topology.host(host.name) for host in self.ends]
        return Place(
            self.roles,
            self._control,
            {host.name: host.first_test_address for host in ends},
            {host.name: host.test_interface for host in ends if host.test_interface is not None},
        )

    @property
    def radio_readers(self) -> Sequence[RadioReader]:
        """The agent of every host with a radio."""
        return [
            AgentReader(name, self._hosts[name], argv, self._clocks[name].campaign_s)
            for name, argv in self._agents.items()
        ]

    async def apply(self, condition: Condition) -> Mapping[str, Any]:
        """Set the paths that the condition asks for. Raises RunFailed when one does not come into force."""
        document, asked = self.topology.document, condition.testbed
        paths = asked_paths(document, asked)
        for name, elements in paths.items():
            await self._paths[name].set(elements[0])
        return in_force(document, asked, paths)

    async def clock_rows(self, t_s: float) -> Sequence[dict[str, Any]]:
        """Every host's clock, measured now."""
        return await all_or_none([clock.look(t_s) for clock in self._clocks.values()])

    async def collect(self) -> None:
        """Fetch what other hosts have logged."""
        for logger in self._loggers:
            await logger.fetch()

    async def follow_meter(self, meter_id: str, rows_n: int) -> Process:
        """From where it is logged: what travels while power is read, of a load that asks."""
        for logger in self._loggers:
            if isinstance(logger, HostLogger) and logger.has(meter_id):
                return await logger.follow(meter_id, rows_n)
        return await super().follow_meter(meter_id, rows_n)

    async def returned(self) -> None:
        """Return when all hosts are in reach. Raises RunFailed when one is given up."""
        await asyncio.gather(*(host.wait_up() for host in self._hosts.values()))

    # -- up and down -----------------------------------------------------------------------------

    async def bring_up(self) -> None:
        """Connect, check and start every part; each is stopped in reverse when the stack unwinds."""
        self.stack.enter_context(self._reservation.held(self._owner.work))
        for host in self._hosts.values():
            await self._reservation.connect(host)
            self.stack.push_async_callback(host.close)
            self.watch_for(host.given_up())
        await self._check_control()
        await self._note_records()
        await self._provide_programs()
        await self.clock_rows(self.session.t_s(SystemClock().monotonic_ns()))
        await self._provide_agents()
        await self._take_paths()

    async def meter_places(self) -> Sequence[MeterPlace]:
        """The controller and every host that a meter's cable is plugged in."""
        return [await logger.place() for _, logger in self._new_loggers()]

    async def _check_control(self) -> None:
        clients = self.roles["client"]
        for host in self.ends:
            if host not in clients:
                self._control[host.name] = await control_number(self.topology, host.name, clients[0])
        for host in self._hosts.values():
            peers = self._control if host in clients else {}
            await require_control_off_the_radio(self.topology, host, peers)

    async def _provide_programs(self) -> None:
        """The load's programs on the hosts that take part, this project's in one version."""
        ends = self.ends
        for program in self._load.programs:
            version = await programs.version_of(program)
            found = await all_or_none([binaries.provide(host, version, program) for host in ends])
            for host, words in zip(ends, found, strict=True):
                self.versions[f"{program} on {host.name}"] = words
                self.remark(f"host {host.name} runs {program} {words}", event="program")
        for host in ends:
            await self._load.require_on(host)

    async def _note_records(self) -> None:
        """What provisioning wrote down of each host, into campaign.json; a change since then is told."""
        found = await all_or_none([host_record(host) for host in self._hosts.values()])
        records = {name: one for name, one in zip(self._hosts, found, strict=True) if one is not None}
        before = self.campaign.document.get("lab_hosts", [])
        entries, changes = joined(before, self.session.session, records)
        if entries:
            self.campaign.set_lab_hosts(entries)
        for change in changes:
            self.remark(change, event="host_changed")

    async def _provide_agents(self) -> None:
        from netjoule_radio.bundle import agent_zipapp

        for name, host in self._hosts.items():
            radio = self.topology.host(name).radio
            if radio is not None:
                place = await host.put_once(agent_zipapp(), "netjoule-radio", ".pyz")
                options = agent_options(radio.interface, radio.every_s, radio.reader)
                self._agents[name] = (*programs.HOST_PYTHON, place, *options)

    async def _take_paths(self) -> None:
        """Where the workload has paths, the interfaces of the servers at their ends."""
        client = self.topology.host(self.roles["client"][0].name).first_test_address
        for factor in filter(is_path, self.campaign.workload.factors):
            name = path_host(self.topology.document, factor)
            path = await ServerPath.taken(self._hosts[name], client)
            self.stack.push_async_callback(path.process.finish)
            self.watch(path.process, NOT_IN_FORCE, path.note)
            self._paths[name] = path

    async def start_meters(self) -> None:
        """One logger per host with meters, the controller included."""
        self.topology = self.campaign.topology
        self.stack.push_async_callback(self._collect_rest)  # when the loggers have ended
        for host, logger in self._new_loggers():
            server = await self._clock_server(host) if host is not None else ""
            process = await logger.start(server)
            self.stack.push_async_callback(process.stop)
            await self.log_with(process)
            self._loggers.append(logger)

    def _new_loggers(self) -> list[tuple[str | None, ControllerLogger | HostLogger]]:
        """By host; None is the controller."""
        meters: dict[str | None, list[Meter]] = {}
        for meter in self.topology.meters:
            meters.setdefault(meter.host, []).append(meter)
        return [(host, self._logger(host, theirs)) for host, theirs in meters.items()]

    def _logger(self, host: str | None, meters: list[Meter]) -> ControllerLogger | HostLogger:
        if host is None:
            return ControllerLogger(self.campaign, self.session, meters, self.folder)
        return HostLogger(self.campaign, self.session, meters, self._hosts[host])

    async def _clock_server(self, name: str) -> str:
        """HOST:PORT where that host can ask for the controller's clock."""
        address = self._hosts[name].controller_address
        listen = f"[{address}]:0" if ":" in address else f"{address}:0"
        argv = [programs.find("netjoule-meters"), "clock", "serve", "--listen", listen]
        process = await LocalHost("controller").start(argv, name="netjoule-meters clock serve")
        self.stack.push_async_callback(process.stop)
        ready = await process.expect("ready", LOGGER_READY_TIMEOUT_S)
        self.watch(process, "clock_unsure")
        return listen.removesuffix(":0") + f":{ready['port']}"

    async def _collect_rest(self) -> None:
        """The last rows, when the hosts still give them, which then forget theirs."""
        with contextlib.suppress(RunFailed, TimeoutError):
            async with asyncio.timeout(COLLECT_TIMEOUT_S):
                for logger in self._loggers:
                    await logger.fetch()
                    await logger.forget()
