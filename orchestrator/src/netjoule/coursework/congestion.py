# SPDX-License-Identifier: Apache-2.0
"""Exercise 3: 64-byte messages through a station that moves 12,000 packets a second (preset seed-like)."""

from __future__ import annotations

from collections.abc import Iterator

from netjoule.coursework.cells import CannotTell, Cells
from netjoule.coursework.exercise import WITHIN, Exercise, always, mean_of
from netjoule.coursework.question import Answer, Number, Question

_SIZE, _LIGHT, _HEAVY = 64, 3.0, 20.0
_CAP_PPS = 12_000
CAP_MBPS = _CAP_PPS * 8e-6 * _SIZE
"""What the preset's cap comes to with one 64-byte message a packet, Mb/s: 6.144."""
_EA, _GOODPUT = "ea_j_per_mbit", "goodput_mbps"
_NEAR = 0.05
_WITHIN_OF_LITTLE = 0.001
"""How far a share of some thousandths may lie from the campaign's own: the second digit of it wrong."""


def _arrivals(cells: Cells) -> Number:
    return Number(cells.at("udp", _SIZE, _HEAVY).mean(_GOODPUT) * 1e6 / (8 * _SIZE), WITHIN)


def _cheaper(cells: Cells) -> frozenset[Answer]:
    """The cheaper of the two, or both without a clear difference."""
    udp, dccp = (cells.at(name, _SIZE, _HEAVY) for name in ("udp", "dccp"))
    right: set[Answer] = (
        {"udp"} if cells.dearer(dccp, udp) else {"dccp"} if cells.dearer(udp, dccp) else {"udp", "dccp"}
    )
    return frozenset(right)


def _why_more(cells: Cells) -> frozenset[Answer]:
    tcp, udp = (cells.at(name, _SIZE, _HEAVY).mean(_GOODPUT) for name in ("tcp", "udp"))
    if tcp < 1.2 * udp:
        raise CannotTell("TCP does not reach a higher goodput than UDP at 20 Mb/s")
    return frozenset({"messages_share_packets"})


def _strays(cells: Cells) -> Iterator[str]:
    at_cap, light = cells.at("udp", _SIZE, _HEAVY), cells.at("udp", _SIZE, _LIGHT)
    found = at_cap.mean(_GOODPUT)
    if abs(found / CAP_MBPS - 1) > _NEAR:
        yield f"{at_cap} brings {found:.3g} Mb/s, and the link's cap is {CAP_MBPS:.3g} Mb/s"
    if light.mean(_GOODPUT) < (1 - _NEAR) * _LIGHT:
        yield f"{light} brings {light.mean(_GOODPUT):.3g} Mb/s, far below the cap"
    dccp = cells.at("dccp", _SIZE, _HEAVY)
    if dccp.mean(_GOODPUT) > (1 + _NEAR) * CAP_MBPS:
        yield f"{dccp} brings more than the link's cap of {CAP_MBPS:.3g} Mb/s"


CONGESTION = Exercise(
    name="congestion",
    title="Congestion control at 64 bytes",
    workload="coursework-congestion",
    testbed="testbed/topologies/seed-like.yaml",
    preset="seed-like",
    transports=frozenset({"udp", "dccp", "tcp"}),
    payload_bytes=frozenset({_SIZE}),
    offered_rate_mbps=frozenset({_LIGHT, 12.0, _HEAVY}),
    strays=_strays,
    questions=(
        Question(
            "udp_goodput_mbps",
            "What goodput does UDP reach at 20 Mb/s offered?",
            "it is goodput_mbps in tables/ea_summary.csv, the row of meter client-cpu, udp, 64, 20",
            mean_of("udp", _SIZE, _HEAVY, _GOODPUT),
            unit="Mb/s",
        ),
        Question(
            "udp_arrivals_pps",
            "How many of its messages is that a second?",
            "a message is 64 bytes of 8 bit each, a megabit 10^6 bit",
            _arrivals,
            unit="1/s",
        ),
        Question(
            "udp_loss_ratio",
            "What share of the messages that UDP sends at 20 Mb/s is lost?",
            "it is loss_ratio of the same row, a ratio from 0 to 1",
            mean_of("udp", _SIZE, _HEAVY, "loss_ratio", within=0.01),
        ),
        Question(
            "dccp_not_sent_ratio",
            "What share of the messages asked of DCCP at 20 Mb/s is never sent?",
            "achieved_ratio of dccp is sent over scheduled; what is held back is not lost",
            lambda cells: Number(1 - cells.at("dccp", _SIZE, _HEAVY).mean("achieved_ratio"), WITHIN, 0.01),
        ),
        Question(
            "dccp_loss_ratio",
            "What share of the messages that DCCP sends there is lost?",
            "it is loss_ratio of client-cpu, dccp, 64, 20: lost over sent, not over asked",
            mean_of("dccp", _SIZE, _HEAVY, "loss_ratio", within=_WITHIN_OF_LITTLE, least=0.0),
        ),
        Question(
            "cheaper_transport",
            "Which of UDP and DCCP takes less energy per megabit that arrives at 20 Mb/s offered?",
            "compare ea_j_per_mbit_mean at client-cpu; of two without a clear difference either is right",
            _cheaper,
            choices=("udp", "dccp"),
        ),
        Question(
            "tcp_frames_per_message",
            "How many packets does TCP send for one message at 20 Mb/s?",
            "it is frames_per_message of client-cpu, tcp, 64, 20: a mean, which need not be whole",
            mean_of("tcp", _SIZE, _HEAVY, "frames_per_message", within=0.002),
        ),
        Question(
            "tcp_brings_more_because",
            "Why does TCP reach a higher goodput than UDP through the same cap?",
            "the cap is of packets; look at frames_per_message and mean_ip_packet_bytes of tcp and udp",
            _why_more,
            choices=("messages_share_packets", "lost_packets_are_repeated", "the_cap_is_not_for_tcp"),
        ),
        Question(
            "cap_is_measured",
            "Were the 12,000 packets a second of seed-like measured on the hosts of the study?",
            "read what 'netjoule-link presets' says of it",
            always(False),
            choices=(True, False),
        ),
    ),
)
