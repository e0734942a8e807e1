# SPDX-License-Identifier: Apache-2.0
"""A lab's place in labgrid, where its topology names one: reserved around what is done there, and its power.

labgrid-client is run as a program: labgrid replaces pyserial by one of its own, so it has an environment of
its own. Its coordinator is that of LG_COORDINATOR. labgrid comes on top: who has a host is decided by the
host's lock, and which netjoule of this machine has a place by a lock as each rig has one.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from getpass import getuser

from netjoule.core import programs
from netjoule.core.clock import SystemClock
from netjoule.core.errors import NetjouleError, RunFailed, UsageError
from netjoule.hosts.ssh import HostInUse, SshHost
from netjoule.testbeds import rig_lock
from netjoule.topology.topology import Topology

PROGRAM = "labgrid-client"
RETURN_S = 600.0
"""So long a host may take to come up after its power was cycled, as one that is out of reach."""
_RETRY_S = 1.0
_TIMEOUT_S = 120.0
_OF_USERS_TESTS = ("LG_ENV", "LG_STATE", "LG_INITIAL_STATE")
"""Variables by which labgrid-client would take other places than the one that it is told."""


class Reservation:
    """The place of a topology; without one nothing is reserved and no power cycled.

    Args:
        of: the topology, of one rig.
        tell: takes a sentence on what was done.
    """

    def __init__(self, of: Topology, tell: Callable[[str], None]) -> None:
        self._place = of.labgrid_place
        self._outlets = of.power_cycle
        self._tell = tell
        self._cycled_ns: dict[str, int] = {}
        self._began_ns = SystemClock().monotonic_ns()
        self._one_by_one = asyncio.Lock()

    @contextmanager
    def held(self, work: str) -> Iterator[None]:
        """Have the place while the body runs; blocks for some seconds.

        One that this user had acquired before stays so, except where a netjoule acquired it that was killed.

        Args:
            work: what it is had for, for who wants it too.

        Raises:
            HostInUse: another has it (`rig_busy`).
            HostLacks: without labgrid-client.
            RunFailed, UsageError: labgrid does not give it.
        """
        if self._place is None:
            yield
            return
        place = self._place
        programs.find(PROGRAM)
        lock = rig_lock.path_of(f"labgrid-{place}")
        with rig_lock.held(lock, work, 0.0, lambda who: _refuse(place, who)) as left_over:
            self._began_ns = SystemClock().monotonic_ns()
            mine = _acquire(place) or left_over
            try:
                yield
            finally:
                if mine:
                    self._release(place)

    def _release(self, place: str) -> None:
        """Give it back. That labgrid is gone by now takes no result along: it is told, and that is all."""
        try:
            _done(place, "release")
        except NetjouleError as error:
            self._tell(f"place {place} is not released: {error}")

    async def connect(self, host: SshHost) -> None:
        """Connect to a host; one that is dead has its power cycled where that is allowed, and is waited for.

        Raises:
            NetjouleError: see `SshHost.connect`.
        """
        try:
            return await host.connect()
        except RunFailed as error:
            if error.code != "host_unreachable" or not await self.cycle(host.name, self._began_ns):
                raise
        until_ns = SystemClock().monotonic_ns() + round(RETURN_S * 1e9)
        while True:
            await asyncio.sleep(_RETRY_S)
            try:
                return await host.connect()
            except RunFailed as error:
                if error.code != "host_unreachable" or SystemClock().monotonic_ns() > until_ns:
                    raise

    async def cycle(self, host: str, lost_ns: int) -> bool:
        """Have the power of a dead host cycled, once in an outage also where several hosts share an outlet.

        Args:
            host: its name.
            lost_ns: CLOCK_MONOTONIC since when it is dead.

        Returns:
            whether it is worth to wait for; False where the topology does not allow it, or labgrid fails.
        """
        outlet = self._outlets.get(host)
        if self._place is None or outlet is None:
            return False
        async with self._one_by_one:
            if self._cycled_ns.get(outlet, -1) >= lost_ns:
                return True
            self._tell(f"host {host} does not answer: labgrid cycles its power ({self._place}, {outlet})")
            try:
                await asyncio.to_thread(_done, self._place, "power", "--name", outlet, "cycle")
            except NetjouleError as error:
                self._tell(f"the power of host {host} is not cycled: {error}")
                return False
            self._cycled_ns[outlet] = SystemClock().monotonic_ns()
        return True


def _refuse(place: str, who: str) -> None:
    raise HostInUse(
        f"it is in use by {who}",
        where=f"place {place} of labgrid",
        next_step="wait for its end, or use another place",
        code="rig_busy",
    )


def _acquire(place: str) -> bool:
    """Acquire a place; False when this user has it already. Raises NetjouleError when it cannot be had."""
    said = _done(place, "show")
    name = re.search(r"^Place '(.*)':$", said, re.MULTILINE)
    if name is None or name[1] != place:  # labgrid takes a part of a name for it
        raise UsageError(
            "labgrid has no place of exactly this name",
            where=f"place {place} of labgrid",
            next_step=f"'{PROGRAM} places' lists them; correct reservation.labgrid in the topology",
        )
    holder = re.search(r"^ *acquired: (.*/.*)$", said, re.MULTILINE)
    if holder is None:
        _done(place, "acquire")
        return True
    if holder[1] != _identity():
        raise HostInUse(
            f"it is acquired by {holder[1]}",
            where=f"place {place} of labgrid",
            next_step=f"wait, or ask {holder[1]} to run '{PROGRAM} -p {place} release'",
            code="rig_busy",
        )
    return False


def _identity() -> str:
    """Who acquires, as labgrid-client finds it."""
    host = os.environ.get("LG_HOSTNAME", socket.gethostname())
    return f"{host}/{os.environ.get('LG_USERNAME') or getuser()}"


def _done(place: str, *words: str) -> str:
    """What labgrid-client says of something that it has done for a place.

    Raises:
        RunFailed: it did not.
        HostLacks: it is not there.
    """
    env: Mapping[str, str] = {k: v for k, v in os.environ.items() if k not in _OF_USERS_TESTS}
    where = f"place {place} of labgrid"
    try:
        # A session of its own: Ctrl-C between off and on would leave a host without power.
        argv = [programs.find(PROGRAM), "-p", place, *words]
        done = programs.said_by(argv, timeout=_TIMEOUT_S, env=env, start_new_session=True)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise RunFailed(f"{PROGRAM} {words[0]} failed: {error}", where=where) from error
    if done.returncode:
        said = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RunFailed(
            f"{PROGRAM} {words[0]} failed: {said[-1] if said else f'exit code {done.returncode}'}",
            where=where,
            next_step=f"'{PROGRAM} -p {place} show' tells more; LG_COORDINATOR names the coordinator",
        )
    return done.stdout
