# SPDX-License-Identifier: Apache-2.0
"""Which message sizes a transport can carry unfragmented."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import UsageError
from netjoule.design.run_table import require_few_runs
from netjoule.design.timeline import MeterPace, check_timing
from netjoule.topology.topology import Topology
from netjoule.workload import transports
from netjoule.workload.workload import Workload

__all__ = ["check_workload", "greatest_payload"]

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
        "udp" if transport == "null" else transport, ip_version, mtu_bytes, options or {}
    )


def check_workload(workload: Workload, topology: Topology) -> None:
    """Refuse what this path cannot carry.

    Raises:
        UsageError: for a size over a transport's limit, a floor where there is none, windows too short
            for the meters, or more runs than a campaign has.
    """
    if workload.direction != "up" and "null" in workload.transports:
        raise UsageError(
            "null is the floor of a sending client,"
            f" and with direction {workload.direction} the server sends",
            where=f"workload {workload.name}, field transports",
            next_step='leave "null" out, or use direction: up',
        )
    require_few_runs(workload)
    _check_clients(workload, topology)
    _check_family(workload, topology)
    for transport in workload.transports:
        _check_sizes(workload, transport, workload.payload_bytes, topology.mtu_bytes)
    for other in workload.beside:
        sizes = workload.payload_bytes if other.payload_bytes is None else (other.payload_bytes,)
        _check_sizes(workload, other.transport, sizes, topology.mtu_bytes)
    # An instrument publishes one update late; its passport tells the exact lag once it answers.
    paces = [
        MeterPace(meter.meter_id, meter.update_interval_s, meter.update_interval_s)
        for meter in topology.meters
        if meter.update_interval_s is not None
    ]
    check_timing(workload.timing, paces)


def _check_clients(workload: Workload, topology: Topology) -> None:
    there = len(topology.hosts_with("client"))
    if workload.clients > there:
        raise UsageError(
            f"the workload needs {workload.clients} clients, and {topology.name} has {there}",
            where=f"workload {workload.name}, field clients",
            next_step="give more hosts the role client, or ask for fewer",
        )


def _check_family(workload: Workload, topology: Topology) -> None:
    family = f"ipv{workload.ip_version}"
    for name in (*topology.hosts_with("client")[: workload.clients], topology.host_with("server")):
        if family not in topology.hosts[name].get("test_addresses", {}):
            raise UsageError(
                f"the workload uses IPv{workload.ip_version}, and host {name} has no {family} address",
                where=f"topology {topology.name}, field hosts.{name}.test_addresses",
                next_step=f"add {family}, or change ip_version of workload {workload.name}",
            )


def _check_sizes(workload: Workload, transport: str, sizes: Sequence[int], mtu_bytes: int) -> None:
    options = workload.options_of(transport)
    greatest = greatest_payload(transport, workload.ip_version, mtu_bytes, options)
    named = transport
    if options:
        named += f" ({', '.join(f'{name} {value}' for name, value in options.items())})"
    for payload in sizes:
        if greatest is not None and payload > greatest:
            raise UsageError(
                f"{named} over IPv{workload.ip_version}, MTU {mtu_bytes}, carries {greatest} bytes"
                f" of payload at most unfragmented, not {payload}",
                where=f"workload {workload.name}, field payload_bytes",
                next_step=f"use at most {greatest}, or leave {transport} out",
            )
        if payload < _LEAST_PAYLOAD:
            raise UsageError(
                f"a message holds a header of {_LEAST_PAYLOAD} bytes, so {payload} is too small",
                where=f"workload {workload.name}, field payload_bytes",
                next_step=f"use at least {_LEAST_PAYLOAD}",
            )
