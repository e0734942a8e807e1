# SPDX-License-Identifier: Apache-2.0
"""What hosts and path of a testbed can carry of a workload's flows, each message unfragmented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import UsageError
from netjoule.loads.flow import transports
from netjoule.loads.flow.settings import NULL, FlowSettings
from netjoule.topology.lab import LAB
from netjoule.topology.paths import is_path
from netjoule.topology.topology import Topology
from netjoule.workload.workload import Workload

# Sequence number and send time that every message carries inside its size.
_LEAST_PAYLOAD = 16


def greatest_payload(
    transport: str, ip_version: int, mtu_bytes: int, options: Mapping[str, Any] | None = None
) -> int | None:
    """Greatest message in bytes that goes out in one unfragmented packet; None when a stream splits it.

    ``null`` has the limit of udp, whose schedule it stands for.

    Args:
        options: of the transport, as the workload has them; one that is not told counts as the worst.
    """
    return transports.greatest_message(
        "udp" if transport == NULL else transport, ip_version, mtu_bytes, options or {}
    )


def require_fit(settings: FlowSettings, topology: Topology) -> None:
    """Refuse what this testbed cannot carry.

    Args:
        settings: of the workload.
        topology: of the testbed.

    Raises:
        UsageError: for a size over a transport's limit, a floor where there is none, or hosts and addresses
            that are not there.
    """
    where = f"workload {settings.name}"
    for direction in settings.directions:
        if direction != "up" and NULL in settings.transports:
            raise UsageError(
                f"null is the floor of a sending client, and with direction {direction} the server sends",
                where=f"{where}, field control",
                next_step="write control: false, or use direction: up",
            )
    _check_clients(where, settings, topology)
    _check_family(where, settings, topology)
    for transport in settings.transports:
        _check_sizes(where, settings, transport, settings.payload_bytes, topology.mtu_bytes)
    for other in settings.beside:
        sizes = settings.payload_bytes if other.payload_bytes is None else (other.payload_bytes,)
        _check_sizes(where, settings, other.transport, sizes, topology.mtu_bytes)


def require_whole_path(workload: Workload, topology: Topology) -> None:
    """Refuse a path of a lab, whose server delays only what it sends. Raises UsageError naming the field."""
    for name in filter(is_path, workload.factors):
        if topology.kind == LAB:
            raise UsageError(
                "a lab's server delays what it sends, and flows may go the other way",
                where=f"workload {workload.name}, field factors.{name}",
                next_step="leave it out, or use a testbed of kind emulated",
            )


def _check_clients(where: str, settings: FlowSettings, topology: Topology) -> None:
    there = len(topology.hosts_with("client"))
    if settings.clients > there:
        raise UsageError(
            f"the workload needs {settings.clients} clients, and {topology.name} has {there}",
            where=f"{where}, field flow.clients",
            next_step="give more hosts the role client, or ask for fewer",
        )


def _check_family(where: str, settings: FlowSettings, topology: Topology) -> None:
    family = f"ipv{settings.ip_version}"
    for host in (*topology.hosts_with("client")[: settings.clients], topology.host_with("server")):
        if family not in topology.hosts[host].get("test_addresses", {}):
            raise UsageError(
                f"the workload uses IPv{settings.ip_version}, and host {host} has no {family} address",
                where=f"topology {topology.name}, field hosts.{host}.test_addresses",
                next_step=f"add {family}, or change ip_version of {where}",
            )


def _check_sizes(
    where: str, settings: FlowSettings, transport: str, sizes: Sequence[int], mtu_bytes: int
) -> None:
    options = settings.options_of(transport)
    sent = settings.variant_of(transport).transport
    greatest = greatest_payload(sent, settings.ip_version, mtu_bytes, options)
    named = transport
    if options:
        named += f" ({', '.join(f'{name} {value}' for name, value in options.items())})"
    for payload in sizes:
        if greatest is not None and payload > greatest:
            raise UsageError(
                f"{named} over IPv{settings.ip_version}, MTU {mtu_bytes}, carries {greatest} bytes"
                f" of payload at most unfragmented, not {payload}",
                where=f"{where}, field factors.payload_bytes",
                next_step=f"use at most {greatest}, or leave {transport} out",
            )
        if payload < _LEAST_PAYLOAD:
            raise UsageError(
                f"a message holds a header of {_LEAST_PAYLOAD} bytes, so {payload} is too small",
                where=f"{where}, field factors.payload_bytes",
                next_step=f"use at least {_LEAST_PAYLOAD}",
            )
