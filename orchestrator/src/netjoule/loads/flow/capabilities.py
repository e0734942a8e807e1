# SPDX-License-Identifier: Apache-2.0
"""Which of the transports that need something of the kernel a host has.

netjoule-traffic knows; it is asked where the flows will run, as for DCCP's carriers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.core.errors import HostLacks
from netjoule.hosts import sandbox
from netjoule.loads.flow import carriers, transports
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology import topology
from netjoule.topology.topology import Topology

QUESTION = ("transports", "--json")


@dataclass(frozen=True, slots=True)
class TransportSupport:
    """A transport on a host; `reason` says why it cannot be used there."""

    name: str
    available: bool
    reason: str


def needed(settings: FlowSettings) -> list[str]:
    """Transports of a workload that a host may lack; those whose carrier is asked for are left to that."""
    asked = carriers.needed(settings)
    return [t for t in settings.all_transports() if t in transports.host_dependent() and t not in asked]


def require(settings: FlowSettings, of: Topology) -> None:
    """Refuse a workload whose transports this host lacks, before the first packet.

    Only where flows run here: what the controller of a lab has says nothing about the lab's hosts.

    Raises:
        HostLacks: naming transport and reason.
    """
    if needed(settings) and of.kind == topology.EMULATED:
        hold(settings, ask(in_sandbox=sandbox.inside() is None), where=f"workload {settings.name}")


def left_open(settings: FlowSettings, of: Topology) -> list[str]:
    """What only the hosts of a lab can tell, a sentence for each transport."""
    if of.kind == topology.EMULATED:
        return []
    ends = " and ".join(of.ends(settings.clients))
    return [
        f"{name} needs {transports.label(name)} in the kernel: {ends} will be asked when the campaign begins"
        for name in needed(settings)
    ]


def hold(settings: FlowSettings, found: Sequence[TransportSupport], *, where: str) -> None:
    """Refuse a workload with a transport that a host lacks.

    Raises:
        HostLacks: naming transport and reason.
    """
    has = {support.name: support for support in found}
    for name in needed(settings):
        support = has.get(name, TransportSupport(name, False, "netjoule-traffic does not know it"))
        if not support.available:
            raise HostLacks(
                f"transport {name} cannot be used: {support.reason or 'not available'}",
                where=where,
                next_step=f"give the host what is missing, or leave {name} out of the workload",
            )


async def require_on(host: Any, settings: FlowSettings) -> None:
    """Refuse a workload with a transport that a lab's host lacks; asked only when one may be lacking.

    Raises:
        HostLacks: naming transport, reason and host.
    """
    if needed(settings):
        found = await carriers.told_by(host, QUESTION, parsed, "its transports")
        hold(settings, found, where=f"host {host.name}")


def ask(*, in_sandbox: bool = False) -> list[TransportSupport]:
    """The transports as netjoule-traffic tells them.

    Args:
        in_sandbox: ask inside a sandbox like the one that an emulated campaign gets.

    Raises:
        HostLacks: when the program is missing, does not answer or cannot be asked there.
    """
    try:
        return parsed(carriers.answer(QUESTION, in_sandbox=in_sandbox))
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        raise HostLacks(
            "netjoule-traffic does not tell its transports", next_step="build it again with 'make setup'"
        ) from error


def parsed(text: str) -> list[TransportSupport]:
    """What `netjoule-traffic transports --json` says. Raises ValueError, KeyError or TypeError."""
    return [
        TransportSupport(str(one["name"]), bool(one["available"]), str(one.get("reason") or ""))
        for one in json.loads(text)
    ]
