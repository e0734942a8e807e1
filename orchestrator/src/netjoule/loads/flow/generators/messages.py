# SPDX-License-Identifier: Apache-2.0
"""The flow report of a generator that tells when single messages left and arrived. Pure.

For generators that write a log of their own (D-ITG, NetPerfMeter). They have no schedule to compare with,
so messages_scheduled is what rate, size and time ask for, at least what was sent. What they do not
tell stays empty: CPU time, counters of the transport, the path's MTU.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.loads.flow.generators import foreign
from netjoule.loads.flow.generators.base import INTERVAL_S, FlowSpec

_INTERVAL_NS = round(INTERVAL_S * 1e9)


@dataclass(frozen=True, slots=True)
class Clocks:
    """The wall clock that a generator's log is written in, against CLOCK_MONOTONIC.

    Attributes:
        offset_ns: monotonic minus wall.
        residual_ns: greatest error of it, from readings before and after the flow.
    """

    offset_ns: int
    residual_ns: int

    @classmethod
    def between(cls, before: tuple[int, int], after: tuple[int, int]) -> Clocks:
        """From two pairs (wall, monotonic), in ns, read around the flow."""
        first, last = before[1] - before[0], after[1] - after[0]
        return cls((first + last) // 2, abs(last - first) // 2 + 1000)


@dataclass(frozen=True, slots=True)
class Sent:
    """What left; times are CLOCK_MONOTONIC.

    Attributes:
        times_ns: of each message, rising; empty when only their number is known.
    """

    messages: int
    first_ns: int
    last_ns: int
    times_ns: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Arrival:
    """One message that arrived; `delay_ms` and the generator's own `number` when it tells them."""

    time_ns: int
    number: int | None = None
    delay_ms: float | None = None


def flow_report(
    spec: FlowSpec,
    sent: Sent,
    arrivals: Sequence[Arrival],
    *,
    generator: Mapping[str, str],
    hosts: Mapping[str, str],
    boot_id: str,
    residual_ns: int,
    duration_s: float,
    jitter_ms: float | None,
) -> dict[str, Any]:
    """The flow report.

    Args:
        spec: what was asked.
        sent: what left.
        arrivals: in order of arrival.
        generator: its name and version.
        hosts: names of client and server, on one clock.
        boot_id: of that clock.
        residual_ns: greatest error of all times.
        duration_s: how long the generator was told to send.
        jitter_ms: estimate of RFC 3550 at the end; None when unknown.
    """
    down = spec.direction == "down"
    firsts, duplicates, reordered = _first_copies(arrivals)
    lost = sent.messages - len(firsts)
    until_ns = sent.first_ns + round(duration_s * 1e9)
    came_ns = [a.time_ns for a in firsts]
    described = foreign.described(
        spec,
        generator=generator,
        flow_id=spec.run_id,
        duration_s=duration_s,
        nodelay=True if spec.transport == "tcp" else None,
    )
    return described | {
        "interval_s": INTERVAL_S,
        "clock_offset": {"offset_ns": 0, "residual_ns": residual_ns, "method": "same_boot"},
        "sender": _sender(spec, sent, duration_s)
        | {"host": hosts["server" if down else "client"], "boot_id": boot_id},
        "receiver": _receiver(spec, firsts, sent, duration_s)
        | {
            "host": hosts["client" if down else "server"],
            "boot_id": boot_id,
            "messages_duplicate": duplicates,
            "messages_reordered": reordered,
            "jitter_ms": jitter_ms,
        },
        "intervals": [
            *(_intervals("sender", spec, sent.times_ns, (sent.first_ns, until_ns)) if sent.times_ns else ()),
            *_intervals("receiver", spec, came_ns, (sent.first_ns, until_ns)),
        ],
        "reconciles": lost >= 0,
    }


def joint_jitter_ms(delays_ms: Sequence[float]) -> float | None:
    """Jitter of RFC 3550 6.4.1 over the delays of messages in order of arrival; None below two."""
    jitter = 0.0
    for before, after in itertools.pairwise(delays_ms):
        jitter += (abs(after - before) - jitter) / 16
    return jitter if len(delays_ms) > 1 else None


def _first_copies(arrivals: Sequence[Arrival]) -> tuple[list[Arrival], int, int]:
    """First copies in order of arrival, number of further copies, number of late first copies."""
    seen: set[int] = set()
    firsts, reordered, greatest = [], 0, -1
    for arrival in arrivals:
        if arrival.number is not None:
            if arrival.number in seen:
                continue
            seen.add(arrival.number)
            reordered += arrival.number < greatest
            greatest = max(greatest, arrival.number)
        firsts.append(arrival)
    return firsts, len(arrivals) - len(firsts), reordered


def _sender(spec: FlowSpec, sent: Sent, duration_s: float) -> dict[str, Any]:
    asked = math.floor(spec.offered_rate_mbps * 1e6 * duration_s / 8 / spec.payload_bytes)
    scheduled = max(sent.messages, asked)
    moved = sent.messages * spec.payload_bytes
    return {
        "start_ns": sent.first_ns,
        "first_packet_ns": sent.first_ns if sent.messages else None,
        "last_packet_ns": sent.last_ns if sent.messages else None,
        "end_ns": max(sent.last_ns, sent.first_ns + round(duration_s * 1e9)),
        "messages_scheduled": scheduled,
        "messages_sent": sent.messages,
        "messages_not_sent": scheduled - sent.messages,
        "bytes_sent": moved,
        "goodput_mbps": 8e-6 * moved / duration_s,
        **foreign.UNKNOWN_CPU,
        "transport_stats": {},
    }


def _receiver(spec: FlowSpec, firsts: Sequence[Arrival], sent: Sent, duration_s: float) -> dict[str, Any]:
    moved = len(firsts) * spec.payload_bytes
    lost = max(0, sent.messages - len(firsts))
    return {
        "first_packet_ns": firsts[0].time_ns if firsts else None,
        "last_packet_ns": firsts[-1].time_ns if firsts else None,
        "messages_received_unique": len(firsts),
        "messages_lost": lost,
        "bytes_received_unique": moved,
        "goodput_mbps": 8e-6 * moved / duration_s,
        "loss_ratio": lost / sent.messages if sent.messages else None,
        "one_way_delay_ms": _delays([a.delay_ms for a in firsts if a.delay_ms is not None]),
        **foreign.UNKNOWN_CPU,
        "transport_stats": {},
    }


def _delays(delays_ms: list[float]) -> dict[str, float] | None:
    if not delays_ms:
        return None
    ordered = sorted(delays_ms)
    at = {p: ordered[min(len(ordered) - 1, math.ceil(p / 100 * len(ordered)) - 1)] for p in (50, 95, 99)}
    return {
        "min": ordered[0],
        "mean": math.fsum(ordered) / len(ordered),
        "max": ordered[-1],
        **{f"p{p}": value for p, value in at.items()},
    }


def _intervals(
    end: str, spec: FlowSpec, times_ns: Sequence[int], span_ns: tuple[int, int]
) -> Iterator[dict[str, Any]]:
    """Contiguous intervals over the flow's span, and on to the last message of this end."""
    ordered = sorted(times_ns)
    start_ns, done = min([span_ns[0], *ordered[:1]]), 0
    while done < len(ordered) or start_ns < span_ns[1]:
        upto = bisect_left(ordered, start_ns + _INTERVAL_NS)
        messages, in_ns = upto - done, (start_ns, start_ns + _INTERVAL_NS)
        yield foreign.interval(end, in_ns, messages, messages * spec.payload_bytes)
        done = upto
        start_ns += _INTERVAL_NS
