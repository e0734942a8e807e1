# SPDX-License-Identifier: Apache-2.0
"""What an outsider sees: a tap on the wire times every packet, whoever sent it.

Pacing certificates are the sender's own word. This bench checks it with a capture, and gives the same figure
for generators that tell none. The tap costs CPU on the sender's core, so these flows are not those of the
other tables: a second table says, without a tap, what ours and iperf3 3.18 cost at the window at which the
tap saw both equally late.
"""

from __future__ import annotations

import math
import shutil
import signal
import struct
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from netjoule_bench.benches.cpu import cost
from netjoule_bench.generators.contest import Arms, Contest
from netjoule_bench.generators.flow import Flow, Outcome, middle
from netjoule_bench.repeats import INTERVALS, interleaved, interval, median, shown
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import RECEIVER_DEVICE, RECEIVER_NETNS
from netjoule_bench.tables import Section, at_most, by_arm

PAYLOAD_BYTES, RATE_MBPS = 64, 30.0
WINDOWS_US = {False: (0, 50, 200, 400), True: (50, 200, 400)}
"""Those that the tap watches, by whether our sender hands the messages of one over as a train (GSO)."""
MOST_AT_EQUAL_P99 = 0.7
Seen = tuple[list[float], float | None]
"""How late each message of a flow was in us, rising, and the p99 that its own certificate says."""
_NANOSECOND_PCAP = 0xA1B23C4D
_FILE_HEADER, _PACKET_HEADER = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_ETHERNET_BYTES, _IP_UDP_BYTES = 14, 28


def sections(contest: Contest, seconds: float) -> Iterator[Section]:
    """How late everybody is, and what that costs ours and iperf3 3.18; nothing where there is no tcpdump."""
    if shutil.which("tcpdump") is None:
        return
    flow = Flow(PAYLOAD_BYTES, RATE_MBPS, seconds)
    arms: Arms = {}
    for gso, windows_us in WINDOWS_US.items():
        arms |= {_ours(us, gso=gso): _ours_run(contest, flow, us, gso=gso) for us in windows_us}
    arms |= contest.others(flow)
    taken = interleaved({name: partial(_seen, run, flow) for name, run in arms.items()}, contest.repeats)
    yield judged(taken).with_absent(contest.absent)
    yield priced(interleaved(_equally_late(contest, taken), contest.repeats))


def _equally_late(contest: Contest, taken: Mapping[str, Sequence[Seen]]) -> Arms:
    """Ours at the windows at which they are as late as iperf3 3.18, and that one; else nothing."""
    newer, flow = contest.newer, Flow(PAYLOAD_BYTES, RATE_MBPS, contest.seconds)
    if newer is None:
        return {}
    arms: Arms = {}
    for gso in WINDOWS_US:
        window_us = window_as_late_us(taken, newer.name, gso=gso)
        if window_us is not None:
            run = _ours_run(contest, flow, window_us, gso=gso)
            arms[_ours(window_us, gso=gso)] = partial(run, "--pacing", "absolute")
    return arms | {newer.name: partial(newer.run, flow)} if arms else {}


def _ours(window_us: int, *, gso: bool) -> str:
    return f"netjoule-traffic, window {window_us} us{', GSO' if gso else ''}"


def _ours_run(contest: Contest, flow: Flow, window_us: int, *, gso: bool) -> partial[Outcome]:
    options = ["--gso"] if gso else []
    return partial(contest.ours.run, flow, "--window-us", str(window_us), *options)


def window_as_late_us(taken: Mapping[str, Sequence[Seen]], newer: str, *, gso: bool) -> int | None:
    """The window of ours that is as late on the wire as ``newer``, between two of those tried.

    By the least p99 of the rounds: what stalls of the host add to a sender's own is not part of it. The
    widest where ``newer`` is later still, None where it is earlier than ours at the least one.
    """
    p99_us = {name: _least_p99(rounds) for name, rounds in taken.items()}
    theirs, known = p99_us[newer], [(us, p99_us[_ours(us, gso=gso)]) for us in WINDOWS_US[gso]]
    widest_us, latest = known[-1]
    if theirs is not None and latest is not None and theirs >= latest:
        return widest_us
    for (low_us, low), (high_us, high) in pairwise(known):
        if low is not None and high is not None and theirs is not None and low <= theirs < high:
            return low_us + int((high_us - low_us) * (theirs - low) / (high - low))
    return None


def priced(taken: Mapping[str, Sequence[Outcome]]) -> Section:
    """What ours cost, and last iperf3 3.18, where they are equally late; none: not judged. Pure."""
    what = "sender CPU per message against iperf3 3.18, both equally late on the wire"
    *ours, newer = taken or [""]
    held = [
        cost(f"{what}, {name.split(', ', 1)[1]}", taken[name], taken[newer], MOST_AT_EQUAL_P99)
        for name in ours
    ]
    return by_arm(
        "CPU per message where both are equally late on the wire, UDP 64 B at 30 Mb/s",
        taken,
        {
            "sender us/message": middle(lambda o: o.sender_us),
            "receiver us/message": middle(lambda o: o.receiver_us),
            "received pps": middle(lambda o: o.received_pps, ",.0f"),
        },
        note="No tap here. The window is the one at which the tap saw the p99 of iperf3 3.18, each "
        "sender's least of all rounds (stalls of the host only add to it): in a straight line between the "
        "windows of the table before, or the widest where iperf3 is later still. CPU of the whole process, "
        "start-up included.",
        verdicts=held or [at_most(what, None, MOST_AT_EQUAL_P99)],
    )


def judged(taken: Mapping[str, Sequence[Seen]]) -> Section:
    """The section from each round's errors and the certified p99; pure."""
    return by_arm(
        "Departure error as a tap on the wire sees it, UDP 64 B at 30 Mb/s",
        taken,
        {
            "p50 us": lambda rounds: shown(median([quantile(found, 0.5) for found, _ in rounds]), ".1f"),
            "p99 us": lambda rounds: shown(median([quantile(found, 0.99) for found, _ in rounds]), ".1f"),
            "within 50 us %": lambda rounds: interval([_in_time_percent(found) for found, _ in rounds]),
            "certified p99 us": lambda rounds: shown(median([certified for _, certified in rounds]), ".1f"),
        },
        note="Packet k against its place on the asked schedule, which begins where no packet is early; "
        "packets of one train leave together. The tap (tcpdump) disturbs the sender. " + INTERVALS,
    )


def _least_p99(rounds: Sequence[Seen]) -> float | None:
    """None where the tap was complete in no round."""
    p99s = (quantile(found, 0.99) for found, _ in rounds)
    return min((us for us in p99s if us is not None), default=None)


def _in_time_percent(errors_us: Sequence[float]) -> float | None:
    return 100 * sum(us <= 50 for us in errors_us) / len(errors_us) if errors_us else None


def errors_us(times_ns: Sequence[int], period_ns: float) -> list[float]:
    """How late each message is against a constant schedule, in us, rising; the least late one is in time."""
    late = [time_ns - index * period_ns for index, time_ns in enumerate(times_ns)]
    earliest = min(late, default=0.0)
    return sorted((value - earliest) * 1e-3 for value in late)


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """The least value that ``share`` of them do not exceed; None when there is none."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def message_times_ns(pcap: bytes, payload_bytes: int) -> Iterator[int]:
    """When each message passed, in ns: one time per message of ``payload_bytes``, repeated within a train.

    Packets of another length are not the flow's.

    Raises:
        ValueError: for a file that is not a capture in nanoseconds of this byte order.
    """
    magic = _FILE_HEADER.unpack_from(pcap)[0] if len(pcap) >= _FILE_HEADER.size else 0
    if magic != _NANOSECOND_PCAP:
        raise ValueError("not a capture with nanosecond times")
    at = _FILE_HEADER.size
    while at + _PACKET_HEADER.size <= len(pcap):
        seconds, nanoseconds, kept_bytes, _ = _PACKET_HEADER.unpack_from(pcap, at)
        ip_bytes = int.from_bytes(pcap[at + 32 : at + 34], "big")  # total length, behind both headers
        at += _PACKET_HEADER.size + kept_bytes
        messages, rest = divmod(ip_bytes - _IP_UDP_BYTES, payload_bytes)
        if rest == 0 and messages > 0:
            yield from [seconds * 10**9 + nanoseconds] * messages


def _seen(run: Callable[[], Outcome], flow: Flow) -> Seen:
    """Errors that the tap saw, none when it lost packets, and the certified p99."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "flow.pcap"
        watch = ["tcpdump", "-i", RECEIVER_DEVICE, "-Z", "root", "--time-stamp-precision=nano"]
        watch += ["-s", str(_ETHERNET_BYTES + _IP_UDP_BYTES), "-B", "65536", "-w", str(file), "udp"]
        with Running(RECEIVER_NETNS, watch) as tap:
            tap.wait_for_line("listening")
            outcome = run()
            tap.tell(signal.SIGINT)
            said = tap.finish(tolerate=True).text
        times_ns = list(message_times_ns(file.read_bytes(), flow.payload_bytes))
    complete = "\n0 packets dropped by kernel" in f"\n{said}"
    period_ns = 1e9 * flow.seconds / flow.messages
    return errors_us(times_ns, period_ns) if complete else [], outcome.departures.p99_us
