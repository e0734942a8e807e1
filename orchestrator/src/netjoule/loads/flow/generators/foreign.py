# SPDX-License-Identifier: Apache-2.0
"""What the flow reports of other programs than netjoule-traffic have in common. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from netjoule.loads.flow.generators.base import FlowSpec

UNKNOWN_CPU: dict[str, None] = {"cpu_s": None, "cpu_user_s": None, "cpu_system_s": None}
"""CPU time of an end whose program does not tell it."""
_IP_AND_UDP_BYTES = {4: 28, 6: 48}  # RFC 768, 791, 8200


def interval(end: str, span_ns: tuple[int, int], messages: int, size_bytes: int) -> dict[str, Any]:
    """An interval of a flow report, of which nothing more is told."""
    unknown = ("messages_lost", "messages_duplicate", "messages_reordered", "jitter_ms", "cpu_s")
    counted = {"end": end, "start_ns": span_ns[0], "end_ns": span_ns[1], "messages": messages}
    return counted | {"bytes": size_bytes} | dict.fromkeys(unknown)


def described(
    spec: FlowSpec,
    *,
    generator: Mapping[str, str],
    flow_id: str,
    duration_s: float,
    nodelay: bool | None,
    mtu_bytes: int | None = None,
) -> dict[str, Any]:
    """What a flow report says beside counts, times and intervals.

    How a stream is cut into packets nobody tells; a datagram goes out whole, as `plan` has seen to, and only
    UDP's headers have one size.

    Args:
        spec: what was asked.
        generator: its name and version.
        flow_id: its own name of the flow, or the run's.
        duration_s: how long it sent.
        nodelay: whether Nagle's algorithm was off; None where there is none, or it is not told.
        mtu_bytes: of the path; None where it is not told.
    """
    udp = spec.transport == "udp"
    return {
        "schema_version": 1,
        "kind": "flow_report",
        "generator": dict(generator),
        "flow_id": flow_id,
        "transport": spec.transport,
        "transport_options": dict(spec.options),
        "direction": spec.direction,
        "ip_version": spec.ip_version,
        "payload_bytes": spec.payload_bytes,
        "offered_rate_mbps": spec.offered_rate_mbps,
        "duration_s": duration_s,
        "seed": spec.seed,
        "pacing": {"mode": "other", "window_us": 0, "gso": False},
        "mtu_bytes": mtu_bytes,
        "nodelay": nodelay,
        "frames_per_message": None if spec.transport == "tcp" else 1.0,
        "mean_ip_packet_bytes": float(spec.payload_bytes + _IP_AND_UDP_BYTES[spec.ip_version])
        if udp
        else None,
        "packetisation_source": "computed" if udp else "unknown",
        "end_reason": "duration",
    }
