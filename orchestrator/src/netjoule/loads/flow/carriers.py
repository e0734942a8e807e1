# SPDX-License-Identifier: Apache-2.0
"""Which of DCCP's carriers a host has: UDP (RFC 6773), raw IP (protocol 33), the kernel's socket.

netjoule-traffic knows; it is asked where the flows will run, because a sandbox gives an ordinary user
the right to raw sockets, and only its network namespace decides.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from netjoule.core import programs
from netjoule.core.errors import HostLacks
from netjoule.hosts import sandbox
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology import topology
from netjoule.topology.topology import Topology

QUESTION = ("carriers", "--json")
_TIMEOUT_S = 60
T = TypeVar("T")
_WORDS = {"raw": "DCCP over raw IP (protocol 33)", "kernel": "the kernel's DCCP"}


@dataclass(frozen=True, slots=True)
class Carrier:
    """One way for DCCP packets to travel; `reason` says why it is not available."""

    name: str
    available: bool
    reason: str


def needed(settings: FlowSettings) -> dict[str, str]:
    """Transports whose carrier not every host has, with that carrier."""
    found = {}
    for transport in settings.all_transports():
        if transport == "dccp-kernel":
            found[transport] = "kernel"
        elif settings.options_of(transport).get("carrier") == "raw":
            found[transport] = "raw"
    return found


def require(settings: FlowSettings, of: Topology) -> None:
    """Refuse a workload whose DCCP cannot travel here, before the first packet.

    Only where flows run here: what the controller of a lab has says nothing about the lab's hosts.

    Raises:
        HostLacks: naming transport, carrier and reason.
    """
    if needed(settings) and of.kind == topology.EMULATED:
        hold(settings, ask(in_sandbox=sandbox.inside() is None), where=f"workload {settings.name}")


def left_open(settings: FlowSettings, of: Topology) -> list[str]:
    """What only the hosts of a lab can tell, a sentence for each transport."""
    if of.kind == topology.EMULATED:
        return []
    ends = " and ".join(of.ends(settings.clients))
    return [
        f"{transport} needs {_WORDS[name]}: {ends} will be asked when the campaign begins"
        for transport, name in needed(settings).items()
    ]


def hold(settings: FlowSettings, carriers: Sequence[Carrier], *, where: str) -> None:
    """Refuse a workload whose DCCP cannot travel on a host with these carriers.

    Raises:
        HostLacks: naming transport, carrier and reason.
    """
    wanted = needed(settings)
    has = {carrier.name: carrier for carrier in carriers}
    for transport, name in wanted.items():
        carrier = has.get(name, Carrier(name, False, "netjoule-traffic does not know it"))
        if not carrier.available:
            # What follows a semicolon is advice to who types netjoule-traffic's options.
            reason = carrier.reason.partition(";")[0] or "not available"
            raise HostLacks(
                f"{transport} needs {_WORDS[name]}: {reason}",
                where=where,
                next_step="use transport dccp with carrier udp, which every host has",
            )


async def require_on(host: Any, settings: FlowSettings) -> None:
    """Refuse a workload whose DCCP cannot travel on a lab's host; asked only when it needs more than UDP.

    Raises:
        HostLacks: naming transport, carrier, reason and host.
    """
    if needed(settings):
        found = await told_by(host, QUESTION, parsed, "its DCCP carriers")
        hold(settings, found, where=f"host {host.name}")


async def told_by(host: Any, question: Sequence[str], parse: Callable[[str], list[T]], what: str) -> list[T]:
    """What netjoule-traffic on a lab's host (an `SshHost`) answers.

    Raises:
        HostLacks: when it does not; `what`: it is asked.
    """
    said = await host.ask([host.programs["netjoule-traffic"], *question])
    try:
        return parse(said.out)
    except (ValueError, KeyError, TypeError) as error:
        words = (said.err or said.out).strip().splitlines() or ["without an error message"]
        raise HostLacks(
            f"netjoule-traffic does not tell {what} ({words[-1]})", where=f"host {host.name}"
        ) from error


def ask(*, in_sandbox: bool = False) -> list[Carrier]:
    """The carriers as netjoule-traffic tells them.

    Args:
        in_sandbox: ask inside a sandbox like the one that an emulated campaign gets.

    Raises:
        HostLacks: when the program is missing, does not answer or cannot be asked there.
    """
    try:
        return parsed(answer(QUESTION, in_sandbox=in_sandbox))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise HostLacks(
            "netjoule-traffic does not tell its DCCP carriers", next_step="build it again with 'make setup'"
        ) from error


def answer(question: Sequence[str], *, in_sandbox: bool) -> str:
    """What netjoule-traffic prints when it is asked this.

    Raises HostLacks without the program; OSError or subprocess.SubprocessError when it does not answer.
    """
    argv = [programs.find("netjoule-traffic"), *question]
    if in_sandbox:
        inside = "import sys; from netjoule.hosts import sandbox; sys.exit(sandbox.run_inside(sys.argv[1:]))"
        argv = [*programs.PYTHON, "-c", inside, *argv]
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_TIMEOUT_S, check=True
    )
    return done.stdout


def parsed(text: str) -> list[Carrier]:
    """What `netjoule-traffic carriers --json` says. Raises ValueError, KeyError or TypeError."""
    return [
        Carrier(str(c["name"]), bool(c["available"]), str(c.get("reason") or "")) for c in json.loads(text)
    ]
