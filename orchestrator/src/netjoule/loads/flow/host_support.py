# SPDX-License-Identifier: Apache-2.0
"""What not every host has of a workload's transports: DCCP's carriers, and protocols of the kernel.

netjoule-traffic knows; it is asked where the flows will run, because a sandbox gives an ordinary user
the right to raw sockets, and only its network namespace decides.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks
from netjoule.hosts import sandbox
from netjoule.loads.flow import transports
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology import topology
from netjoule.topology.topology import Topology

_TIMEOUT_S = 60
_UNREADABLE = (ValueError, KeyError, TypeError)
_CARRIERS = {"raw": "DCCP over raw IP (protocol 33)", "kernel": "the kernel's DCCP"}


@dataclass(frozen=True, slots=True)
class Support:
    """Something of a host; `reason` says why it is not available there."""

    name: str
    available: bool
    reason: str


@dataclass
class Question:
    """What netjoule-traffic is asked about a host.

    Attributes:
        verb: of netjoule-traffic.
        about: what it tells then.
        needed: transports of a workload that need some of it, with its name there.
        words: what a transport needs, by that name.
        lacking: the sentence about a transport that a host lacks it for, with `{needs}` or without.
        remedy: what to do then.
        only_reason: whether what follows a semicolon of a reason is for who types netjoule-traffic's options.
    """

    verb: str
    about: str
    needed: Callable[[FlowSettings], Mapping[str, str]]
    words: Callable[[str], str]
    lacking: str
    remedy: str
    only_reason: bool = False

    def require(self, settings: FlowSettings, of: Topology) -> None:
        """Refuse a workload whose transports this host lacks, before the first packet.

        Only where flows run here: what the controller of a lab has says nothing about the lab's hosts.

        Raises:
            HostLacks: naming transport and reason.
        """
        if self.needed(settings) and of.kind == topology.EMULATED:
            found = self.ask(in_sandbox=sandbox.inside() is None)
            self._hold(settings, found, where=f"workload {settings.name}")

    def left_open(self, settings: FlowSettings, of: Topology) -> list[str]:
        """What only the hosts of a lab can tell, a sentence for each transport."""
        if of.kind == topology.EMULATED:
            return []
        ends = " and ".join(of.ends(settings.clients))
        return [
            f"{transport} needs {self.words(name)}: {ends} will be asked when the campaign begins"
            for transport, name in self.needed(settings).items()
        ]

    async def require_on(self, host: Any, settings: FlowSettings) -> None:
        """Refuse a workload whose transports a lab's host (an `SshHost`) lacks; asked only where one may.

        Raises:
            HostLacks: naming transport, reason and host, or when netjoule-traffic there does not answer.
        """
        if not self.needed(settings):
            return
        where = f"host {host.name}"
        said = await host.ask([host.programs["netjoule-traffic"], self.verb, "--json"])
        try:
            found = _parsed(said.out)
        except _UNREADABLE as error:
            words = (said.err or said.out).strip().splitlines() or ["without an error message"]
            what = f"netjoule-traffic does not tell {self.about} ({words[-1]})"
            raise HostLacks(what, where=where) from error
        self._hold(settings, found, where=where)

    def ask(self, *, in_sandbox: bool = False) -> list[Support]:
        """What netjoule-traffic tells of this host.

        Args:
            in_sandbox: ask inside a sandbox like the one that an emulated campaign gets.

        Raises:
            HostLacks: when the program is missing, does not answer or cannot be asked there.
        """
        try:
            return _parsed(_answer([self.verb, "--json"], in_sandbox=in_sandbox))
        except (OSError, subprocess.SubprocessError, *_UNREADABLE) as error:
            raise HostLacks(
                f"netjoule-traffic does not tell {self.about}", next_step="build it again with 'make setup'"
            ) from error

    def _hold(self, settings: FlowSettings, found: Sequence[Support], *, where: str) -> None:
        has = {one.name: one for one in found}
        for transport, name in self.needed(settings).items():
            one = has.get(name, Support(name, False, "netjoule-traffic does not know it"))
            if not one.available:
                reason = one.reason.partition(";")[0] if self.only_reason else one.reason
                what = self.lacking.format(transport=transport, needs=self.words(name))
                raise HostLacks(
                    f"{what}: {reason or 'not available'}",
                    where=where,
                    next_step=self.remedy.format(transport=transport),
                )


def _answer(question: Sequence[str], *, in_sandbox: bool) -> str:
    """What netjoule-traffic prints when it is asked this.

    Raises HostLacks without the program; OSError or subprocess.SubprocessError when it does not answer.
    """
    argv = [programs.find("netjoule-traffic"), *question]
    if in_sandbox:
        inside = "import sys; from netjoule.hosts import sandbox; sys.exit(sandbox.run_inside(sys.argv[1:]))"
        argv = [*programs.PYTHON, "-c", inside, *argv]
    done = programs.said_by(argv, timeout=_TIMEOUT_S)
    done.check_returncode()
    return done.stdout


def _parsed(text: str) -> list[Support]:
    return [
        Support(str(one["name"]), bool(one["available"]), str(one.get("reason") or ""))
        for one in json.loads(text)
    ]


def _carriers(settings: FlowSettings) -> dict[str, str]:
    """Transports whose carrier of DCCP not every host has, with that carrier."""
    variants = map(settings.variant_of, settings.all_transports())
    found = {
        one.transport: "kernel" if one.transport == "dccp-kernel" else one.options.get("carrier")
        for one in variants
    }
    return {transport: str(carrier) for transport, carrier in found.items() if carrier in _CARRIERS}


def _of_kernel(settings: FlowSettings) -> dict[str, str]:
    """Transports that a kernel may lack; those whose carrier is asked for are left to that."""
    asked = _carriers(settings)
    dependent = transports.which("host_dependent")
    named = (settings.variant_of(name).transport for name in settings.all_transports())
    return {name: name for name in named if name in dependent and name not in asked}


CARRIERS = Question(
    verb="carriers",
    about="its DCCP carriers",
    needed=_carriers,
    words=lambda name: _CARRIERS[name],
    lacking="{transport} needs {needs}",
    remedy="use transport dccp with carrier udp, which every host has",
    only_reason=True,
)
"""Ways for DCCP packets to travel: UDP (RFC 6773), raw IP (protocol 33), the kernel's socket."""
TRANSPORTS = Question(
    verb="transports",
    about="its transports",
    needed=_of_kernel,
    words=lambda name: f"{transports.label(name)} in the kernel",
    lacking="transport {transport} cannot be used",
    remedy="give the host what is missing, or leave {transport} out of the workload",
)
"""Transports that need something of the kernel."""
