# SPDX-License-Identifier: Apache-2.0
"""Who has a lab's hosts: nothing is done there, and nothing is compared, while another campaign runs.

A campaign holds the locks of its hosts while it runs (`SshHost.connect`). What touches hosts otherwise does
so inside `held`.
"""

from __future__ import annotations

import asyncio
import os
import platform
import secrets
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from netjoule.core.errors import HostLacks, NetjouleError, UsageError
from netjoule.hosts.ssh import HostInUse, Owner, SshHost
from netjoule.store.session import rfc3339
from netjoule.testbeds.lab.reservation import Reservation
from netjoule.topology.topology import Topology

ORPHAN_S = 150.0
"""A command that was killed leaves the hosts' locks for so long; a living one is heard every 60 s."""


def campaign_owner(path: Path, created: datetime, seed: int) -> Owner:
    """The owner that all sessions of a campaign are, and no other campaign."""
    return _owner(f"{rfc3339(created)} {seed}", f"campaign {path.resolve()}")


def command_owner(command: str, topology: Topology) -> Owner:
    """The owner that one command is, such as 'netjoule provision'."""
    return _owner(secrets.token_hex(8), f"'{command}' with {topology.name}", orphan_s=ORPHAN_S)


@contextmanager
def held(
    topology: Topology,
    hosts: Sequence[str],
    owner: Owner,
    *,
    all_needed: bool,
    tell: Callable[[str], None] = lambda _: None,
) -> Iterator[None]:
    """Have the locks of hosts, and their place in labgrid, while the body runs, which may take its time.

    Args:
        topology: of kind lab or guest.
        hosts: their names.
        owner: who takes them.
        all_needed: whether a host that cannot be used is an error here. Otherwise it is left out, because the
            body tells of it better: ansible-playbook does.
        tell: takes a sentence on what else was done, such as a host whose power was cycled.

    Raises:
        HostInUse: another campaign or command has one of them.
        NetjouleError: see `SshHost.connect`.
    """
    loop = asyncio.new_event_loop()
    # A thread: the connections have to live while the body blocks.
    thread = threading.Thread(target=loop.run_forever, name="locks of the hosts", daemon=True)
    thread.start()
    taken: list[SshHost] = []
    reservation = Reservation(topology, tell)
    try:
        with reservation.held(owner.work):
            try:
                taking = _take(topology, hosts, owner, taken, reservation, all_needed=all_needed)
                _finish(asyncio.run_coroutine_threadsafe(taking, loop))
                yield
            finally:
                _finish(asyncio.run_coroutine_threadsafe(_give_back(taken), loop))
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def undisturbed(verb: str, of: Topology, limit: str | None = None) -> AbstractContextManager[None]:
    """The hosts that a playbook logs in to, kept from campaigns.

    Args:
        verb: of the command.
        of: topology of the hosts.
        limit: only hosts of this role, or this host.

    Raises:
        HostInUse: when one has them.
    """
    hosts = [
        name
        for name in of.hosts
        if limit in (None, name, *of.host(name).roles) and of.host(name).roles != ("controller",)
    ]
    return held(of, hosts, command_owner(f"netjoule {verb}", of), all_needed=False)


def _finish(work: Future[None]) -> None:
    """Wait for work of the loop; Ctrl-C ends it."""
    try:
        work.result()
    except BaseException:
        work.cancel()
        raise


async def _take(
    topology: Topology,
    names: Sequence[str],
    owner: Owner,
    taken: list[SshHost],
    reservation: Reservation,
    *,
    all_needed: bool,
) -> None:
    async def take(name: str) -> None:
        host = SshHost(topology.host(name).ssh, owner, lambda _remark: None)
        await (reservation.connect(host) if all_needed else host.connect())
        taken.append(host)

    results = await asyncio.gather(*map(take, names), return_exceptions=True)
    problems = [problem for problem in results if problem is not None]
    # That a host is in use is told first: it is no fault, and the others' may come from it.
    for problem in sorted(problems, key=lambda found: not isinstance(found, HostInUse)):
        if all_needed or isinstance(problem, HostInUse) or not _keeps_everybody_out(problem):
            raise problem


def _keeps_everybody_out(problem: BaseException) -> bool:
    """Whether a host cannot be used by anybody from here, Ansible included."""
    if isinstance(problem, (UsageError, HostLacks)):
        return True
    return isinstance(problem, NetjouleError) and problem.code == "host_unreachable"


async def _give_back(taken: Sequence[SshHost]) -> None:
    await asyncio.gather(*(host.close() for host in taken))


def _owner(identity: str, work: str, **more: float) -> Owner:
    controller = f"{platform.node() or socket.gethostname()} (process {os.getpid()})"
    return Owner(identity, work, controller, rfc3339(datetime.now(UTC)), **more)
