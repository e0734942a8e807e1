# SPDX-License-Identifier: Apache-2.0
"""Exercise 3: 64-byte messages through a station that moves 12,000 packets a second (preset seed-like)."""

from __future__ import annotations

from collections.abc import Iterator

from netjoule.coursework.cells import CannotTell, Cells
from netjoule.coursework.exercise import WITHIN, Exercise, always, mean_of
from netjoule.coursework.question import Answer, Number

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
    strays=_strays,
    told={
        "udp_goodput_mbps": (
            mean_of("udp", _SIZE, _HEAVY, _GOODPUT),
            "it is goodput_mbps in tables/ea_summary.csv, the row of meter client-cpu, udp, 64, 20",
        ),
        "udp_arrivals_pps": (
            _arrivals,
            "a message is 64 bytes of 8 bit each, a megabit 10^6 bit",
        ),
        "udp_loss_ratio": (
            mean_of("udp", _SIZE, _HEAVY, "loss_ratio", within=0.01),
            "it is loss_ratio of the same row, a ratio from 0 to 1",
        ),
        "dccp_not_sent_ratio": (
            lambda cells: Number(1 - cells.at("dccp", _SIZE, _HEAVY).mean("achieved_ratio"), WITHIN, 0.01),
            "achieved_ratio of dccp is sent over scheduled; what is held back is not lost",
        ),
        "dccp_loss_ratio": (
            mean_of("dccp", _SIZE, _HEAVY, "loss_ratio", within=_WITHIN_OF_LITTLE, least=0.0),
            "it is loss_ratio of client-cpu, dccp, 64, 20: lost over sent, not over asked",
        ),
        "cheaper_transport": (
            _cheaper,
            "compare ea_j_per_mbit_mean at client-cpu; of two without a clear difference either is right",
        ),
        "tcp_frames_per_message": (
            mean_of("tcp", _SIZE, _HEAVY, "frames_per_message", within=0.002),
            "it is frames_per_message of client-cpu, tcp, 64, 20: a mean, which need not be whole",
        ),
        "tcp_brings_more_because": (
            _why_more,
            "the cap is of packets; look at frames_per_message and mean_ip_packet_bytes of tcp and udp",
        ),
        "cap_is_measured": (
            always(False),
            "read what 'netjoule-link presets' says of it",
        ),
    },
)
