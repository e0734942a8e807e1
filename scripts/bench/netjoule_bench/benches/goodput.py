# SPDX-License-Identifier: Apache-2.0
"""Goodput of one stream: TCP against iperf3, QUIC against the quiche crate driven by a minimal loop."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.flow import Flow
from netjoule_bench.generators.netjoule_traffic import NetjouleTraffic, built
from netjoule_bench.repeats import interleaved, median, ratio, shown
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import RECEIVER_ADDRESS, RECEIVER_NETNS, SENDER_NETNS, VETH
from netjoule_bench.tables import Section, at_least, by_arm

SATURATING_MBPS = 99_000.0
TCP_MESSAGE_BYTES = 128 << 10  # iperf3's default for TCP
QUIC_MESSAGE_BYTES = 1440
LEAST_TCP_RATIO, LEAST_QUIC_RATIO, LEAST_OFFLOAD_GAIN = 0.95, 0.9, 2.5
_OURS = "netjoule-traffic"
_QUIC_ARMS = ("netjoule-traffic, no offloads", "netjoule-traffic, GSO and GRO")
_LOOP_ARMS = ("quiche loop, no offloads", "quiche loop, GSO and GRO")


def tcp(contest: Contest) -> Section:
    """One row per generator."""
    asked = (TCP_MESSAGE_BYTES, contest.seconds)
    arms = {_OURS: partial(_goodput_mbps, contest.ours, "tcp", *asked)}
    arms |= {one.name: partial(one.tcp_goodput_mbps, *asked) for one in contest.iperf3s}
    return tcp_judged(interleaved(arms, contest.repeats), contest.reference)


def tcp_judged(taken: Mapping[str, Sequence[float]], reference: str) -> Section:
    """The section from the goodputs of all rounds in Mb/s; pure."""
    return by_arm(
        "TCP goodput, one stream, messages of 128 KiB",
        taken,
        {
            "goodput Mb/s": lambda rates: shown(median(rates), ",.0f"),
            "against iperf3": lambda rates: shown(ratio(rates, taken[reference])),
        },
        note="As the receiver counts it. D-ITG and NetPerfMeter send at most 64 KiB at once: no part.",
        verdicts=[
            at_least("TCP goodput against iperf3", ratio(taken[_OURS], taken[reference]), LEAST_TCP_RATIO)
        ],
    )


def quic(contest: Contest, repo: Path) -> Section:
    """Ours and the loop, without and with offloads."""
    loop = built(repo, "examples/quiche_loop")
    ours = partial(_goodput_mbps, contest.ours, "quic", QUIC_MESSAGE_BYTES, contest.seconds)
    minimal = partial(_loop_goodput_mbps, loop, contest.seconds)
    runs = (ours, partial(ours, "--gso"), minimal, partial(minimal, "--gso"))
    arms = dict(zip((*_QUIC_ARMS, *_LOOP_ARMS), runs, strict=True))
    return quic_judged(interleaved(arms, contest.repeats))


def quic_judged(taken: Mapping[str, Sequence[float]]) -> Section:
    """The section from the goodputs of all rounds in Mb/s; pure."""
    (plain, trains), (loop_plain, loop_trains) = _QUIC_ARMS, _LOOP_ARMS
    against = dict.fromkeys((plain, loop_plain), loop_plain)
    against |= dict.fromkeys((trains, loop_trains), loop_trains)
    gain = ratio(taken[trains], taken[plain])
    by_loop = {name: ratio(rates, taken[against[name]]) for name, rates in taken.items()}
    return Section(
        title="QUIC stream goodput, one connection, messages of 1440 B",
        columns=["driver", "goodput Mb/s", "against the loop"],
        rows=[[name, shown(median(rates), ",.0f"), shown(by_loop[name])] for name, rates in taken.items()],
        note="The loop (protocols/quic/examples/quiche_loop.rs) drives the same quiche with the same "
        "settings (CUBIC, quiche's pacing off, packets of 1472 bytes); it writes blocks and counts bytes.",
        verdicts=[
            at_least("QUIC goodput against the loop, no offloads", by_loop[plain], LEAST_QUIC_RATIO),
            at_least("QUIC goodput against the loop, GSO and GRO", by_loop[trains], LEAST_QUIC_RATIO),
            at_least("QUIC goodput, GSO and GRO against none", gain, LEAST_OFFLOAD_GAIN),
        ],
    )


def _goodput_mbps(
    ours: NetjouleTraffic, transport: str, message_bytes: int, seconds: float, *options: str
) -> float:
    flow = Flow(message_bytes, SATURATING_MBPS, seconds)
    return received_mbps(ours.report(VETH, transport, flow, *options))


def received_mbps(report: Mapping[str, Any]) -> float:
    """Payload rate at the receiver from its first to its last message."""
    receiver = report["receiver"]
    span_ns = float(receiver["last_packet_ns"] - receiver["first_packet_ns"])
    return 8e3 * float(receiver["bytes_received_unique"]) / span_ns


def _loop_goodput_mbps(loop: Path, seconds: float, *options: str) -> float:
    with Running(RECEIVER_NETNS, [str(loop), "serve", RECEIVER_ADDRESS, *options]) as server:
        listens_on = server.wait_for_line("listening").split()[-1]
        send = [str(loop), "send", listens_on, f"{seconds:g}", str(QUIC_MESSAGE_BYTES)]
        with Running(SENDER_NETNS, [*send, *options]) as client:
            client.finish()
        told = json.loads(server.finish().text.strip().splitlines()[-1])
    return float(told["goodput_mbps"])
