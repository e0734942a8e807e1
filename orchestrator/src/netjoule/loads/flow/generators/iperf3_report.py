# SPDX-License-Identifier: Apache-2.0
"""iperf3's JSON (``-J``) in the terms of the flow report: UDP, TCP, and DCCP of the fork that has it.

The client's report tells a test: it counts its own end interval by interval and has the other end's totals.
The server's intervals come from --get-server-output or from the server's own report. Streams of ``-P`` are
added up; ``--bidir`` is two flows. Its source is the reference: iperf_api.c, iperf_print_results; ``man
iperf3``. Older versions have no ``sum_sent`` and ``sum_received`` of UDP but one ``sum`` with the packets
that left and those lost. Pure; every reader of a part raises Unreadable, naming it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netjoule.core.jsontree import Node, Unreadable
from netjoule.loads.flow.generators import foreign

_SECOND = "_bidir_reverse"  # what the sums of the second direction of --bidir are called
_MOST_SECONDS = 1e6
_MOST_STREAMS = 10_000
_LATEST_S = 32_503_680_000  # the year 3000
_TCP_STATS = ("retransmits", "max_snd_cwnd", "max_rtt", "min_rtt", "mean_rtt")


@dataclass(frozen=True, slots=True)
class _Slice:
    """An interval of one end and direction, streams added up; seconds and bytes.

    `lost` is below 0 where more came late, of earlier intervals, than went missing.
    """

    start_s: float
    end_s: float
    size_bytes: int
    lost: int | None = None
    jitter_ms: float | None = None


@dataclass(frozen=True, slots=True)
class Totals:
    """What a direction moved in all; bytes, whole messages or not.

    Attributes:
        received_seconds: how long the receiver counted; its goodput is over them.
        transport_stats: the sender's.
    """

    seconds: float
    received_seconds: float
    sent_bytes: int
    received_bytes: int
    jitter_ms: float | None
    transport_stats: Mapping[str, int]


class IperfTest:
    """One test by its client's report and, where there is one, its server's.

    Attributes:
        asked_s: how long it was told to send; 0 where bytes or blocks ended it.
        asked_mbps: the rate of -b of all streams; None without a limit, or before it was told.
    """

    def __init__(self, client: Node, server: Node | None) -> None:
        self._client, self._server = client, server
        self._start, self._end = client.at("start"), client.at("end")
        asked = self._start.at("test_start")
        self.payload_bytes = asked.at("blksize").integer(1)
        self.streams = asked.at("num_streams").integer(1, _MOST_STREAMS)
        dccp = asked.get("dccp")
        self.is_dccp = dccp is not None and dccp.flag()
        self.transport = "dccp-kernel" if self.is_dccp else asked.at("protocol").text().lower()
        self._datagrams = self.transport == "udp"
        self.asked_s = asked.at("duration").number(most=_MOST_SECONDS)
        told = self._start.get("target_bitrate") or asked.get("target_bitrate")
        self.asked_mbps = told.number() * self.streams / 1e6 if told is not None else None
        self.reverse = asked.at("reverse").flag()
        self.bidirectional = any(self._end.get(f"{name}{_SECOND}") for name in ("sum", "sum_sent"))

    @property
    def began_s(self) -> float:
        """When it began, whole seconds since 1970 on the client's clock."""
        return self._start.at("timestamp", "timesecs").number(most=_LATEST_S)

    @property
    def ip_version(self) -> int:
        """4 or 6."""
        connected = self._start.get("connected")
        for connection in connected.items() if connected is not None else ():
            return 6 if ":" in connection.at("remote_host").text().removeprefix("::ffff:") else 4
        return 4

    def told_totals(self, *, second: bool = False) -> Totals:
        """What a direction moved, as the client was told of both ends; the `second` one of --bidir."""
        suffix = _SECOND if second else ""
        told = self._end.get(f"sum_sent{suffix}"), self._end.get(f"sum_received{suffix}")
        both = self._end.get(f"sum{suffix}")
        sent, got = (node or both for node in told)
        if sent is None or got is None:
            raise Unreadable(f"field end.sum_sent{suffix}", "it is missing")
        seconds = sent.at("seconds").number(1e-6, _MOST_SECONDS)
        received_seconds = got.at("seconds").number(1e-6, _MOST_SECONDS)
        if self._datagrams:
            packets = sent.at("packets").integer()
            arrived = (
                got.at("bytes").integer() // self.payload_bytes
                if told[1] is not None
                else packets - (both or got).at("lost_packets").integer(most=packets)
            )
            moved = (packets * self.payload_bytes, arrived * self.payload_bytes)
            return Totals(seconds, received_seconds, *moved, got.at("jitter_ms").number(), {})
        arrived = got.at("bytes").integer()
        # Each end's test ends by its own clock: what arrived had left, whatever the sender counted.
        left = max(arrived, sent.at("bytes").integer())
        retransmits = sent.get("retransmits")
        stats = {} if retransmits is None else {"retransmits": retransmits.integer()}
        return Totals(seconds, received_seconds, left, arrived, None, stats)

    def counted_totals(self, *, up: bool) -> Totals:
        """The same by what both ends counted in their intervals, all over the sender's time."""
        told = self.told_totals()
        return replace(
            told,
            received_seconds=told.seconds,
            sent_bytes=sum(part.size_bytes for part in self._slices(client=up, sends=True)),
            transport_stats=self._tcp_stats(client=up),
        )

    def both_ends(
        self,
        totals: Totals,
        *,
        up: bool,
        asked_messages: int,
        hosts: Mapping[str, str],
        boot_id: str,
        first_ns: int = 0,
    ) -> dict[str, Any]:
        """`sender`, `receiver` and `intervals` of the flow report.

        Args:
            totals: of this direction.
            up: whether the client sends.
            asked_messages: by rate and time; what was sent is the least that was scheduled.
            hosts: names of client and server.
            boot_id: of the clock that `first_ns`, when the first message left, is of.
        """
        sender = self._slices(client=up, sends=True)
        # Without the receiver's own report there are its totals only: one interval.
        receiver = self._slices(client=not up, sends=False) or [
            _Slice(0.0, totals.received_seconds, totals.received_bytes)
        ]
        mine = list(self._intervals("receiver", receiver, first_ns))
        names = (hosts["client"], hosts["server"]) if up else (hosts["server"], hosts["client"])
        cpu = [self._cpu(end, totals.seconds) for end in (("host", "remote") if up else ("remote", "host"))]
        sent = self._sent(totals, asked_messages, first_ns)
        got = self._received(totals, mine, sent["messages_sent"], first_ns, client=not up)
        return {
            "sender": {"host": names[0], "boot_id": boot_id} | sent | cpu[0],
            "receiver": {"host": names[1], "boot_id": boot_id} | got | cpu[1],
            "intervals": [*self._intervals("sender", sender, first_ns), *mine],
        }

    def path_mtu(self, *, up: bool) -> int | None:
        """MTU of the path as the sending end knows it, bytes; None where it does not tell."""
        report = self._report(client=up)
        streams = (
            (s for i in report.at("intervals").items() for s in i.at("streams").items()) if report else ()
        )
        return next((mtu.integer() for s in streams if (mtu := s.get("pmtu")) and mtu.value), None)

    def _sent(self, totals: Totals, asked_messages: int, first_ns: int) -> dict[str, Any]:
        sent = totals.sent_bytes // self.payload_bytes
        scheduled = max(sent, asked_messages)
        end_ns = first_ns + round(totals.seconds * 1e9)
        return {
            "start_ns": first_ns,
            "first_packet_ns": first_ns,
            "last_packet_ns": end_ns,
            "end_ns": end_ns,
            "messages_scheduled": scheduled,
            "messages_sent": sent,
            "messages_not_sent": scheduled - sent,
            "bytes_sent": totals.sent_bytes,
            "goodput_mbps": 8e-6 * totals.sent_bytes / totals.seconds,
            "transport_stats": dict(totals.transport_stats),
        }

    def _received(
        self,
        totals: Totals,
        intervals: Sequence[Mapping[str, Any]],
        sent: int,
        first_ns: int,
        *,
        client: bool,
    ) -> dict[str, Any]:
        received, received_bytes = (sum(i[what] for i in intervals) for what in ("messages", "bytes"))
        # What a stream had in flight when the test ended is no loss, and iperf3 counts none.
        lost = max(0, sent - received) if self._datagrams or self.is_dccp else None
        return {
            "first_packet_ns": first_ns if received else None,
            "last_packet_ns": max((i["end_ns"] for i in intervals if i["messages"]), default=None),
            "messages_received_unique": received,
            "messages_lost": lost,
            "messages_duplicate": 0,
            "messages_reordered": self._reordered(client=client),
            "bytes_received_unique": received_bytes,
            "goodput_mbps": 8e-6 * received_bytes / totals.received_seconds,
            "loss_ratio": lost / sent if lost is not None and sent else None,
            "jitter_ms": totals.jitter_ms,
            "one_way_delay_ms": None,
            "transport_stats": {},
        }

    def _report(self, *, client: bool) -> Node | None:
        return self._client if client else self._server

    def _slices(self, *, client: bool, sends: bool) -> list[_Slice]:
        """What an end counted itself, the omitted start left out; empty without its report."""
        report = self._report(client=client)
        slices: list[_Slice] = []
        restarted = False
        for entry in report.at("intervals").items() if report is not None else ():
            streams = [s for s in entry.at("streams").items() if _sends(s, unknown=sends) == sends]
            if not streams:
                continue
            if any(flag.flag() for s in streams if (flag := s.get("omitted")) is not None):
                restarted = True
                continue
            part = _slice(streams, lossy=self._datagrams and not sends)
            # After -O the clock begins anew, but the first start is told by the old one.
            slices.append(replace(part, start_s=0.0) if restarted and not slices else part)
        return slices

    def _intervals(self, end: str, slices: Sequence[_Slice], first_ns: int) -> Iterator[dict[str, Any]]:
        """Contiguous intervals; a message of a stream belongs to the one in which it was whole."""
        reached = [0, *itertools.accumulate(part.size_bytes for part in slices)]
        losses = _losses_that_stayed([part.lost for part in slices])
        for part, lost, before, after in zip(slices, losses, reached, reached[1:], strict=False):
            span_ns = (first_ns + round(part.start_s * 1e9), first_ns + round(part.end_s * 1e9))
            messages = after // self.payload_bytes - before // self.payload_bytes
            told = {"messages_lost": lost, "jitter_ms": part.jitter_ms}
            yield foreign.interval(end, span_ns, messages, part.size_bytes) | told

    def _cpu(self, whose: str, seconds: float) -> dict[str, Any]:
        """CPU time of an end's process in s; told as per cent of a core, of both directions together."""
        use = self._end.get("cpu_utilization_percent")
        if use is None or self.bidirectional:
            return dict(foreign.UNKNOWN_CPU)
        parts = {"cpu_s": "total", "cpu_user_s": "user", "cpu_system_s": "system"}
        return {name: use.at(f"{whose}_{theirs}").number() / 100 * seconds for name, theirs in parts.items()}

    def _reordered(self, *, client: bool) -> int | None:
        report = self._report(client=client)
        streams = report.at("end").get("streams") if report is not None else None
        if not self._datagrams or streams is None:
            return None if self._datagrams else 0
        counts = [s.at("udp") for s in streams.items() if not _sends(s.at("udp"), unknown=False)]
        return sum(c.at("out_of_order").integer() for c in counts if c.get("out_of_order") is not None)

    def _tcp_stats(self, *, client: bool) -> dict[str, int]:
        """What the sending end of a TCP test knows of its first stream."""
        report = self._report(client=client)
        if report is None or self.transport != "tcp":
            return {}
        stream = next(report.at("end", "streams").items()).at("sender")
        return {name: told.integer() for name in _TCP_STATS if (told := stream.get(name)) is not None}


def _sends(stream: Node, *, unknown: bool) -> bool:
    """Whether the reporting end sends a stream; `unknown` where it is not told (before 3.7)."""
    flag = stream.get("sender")
    return flag.flag() if flag is not None else unknown


def _slice(streams: Sequence[Node], *, lossy: bool) -> _Slice:
    lost, jitter_ms = None, None
    if lossy:
        lost = sum(s.at("lost_packets").integer(-(2**31)) for s in streams)
        jitter_ms = sum(s.at("jitter_ms").number() for s in streams) / len(streams)
    return _Slice(
        min(s.at("start").number(most=_MOST_SECONDS) for s in streams),
        max(s.at("end").number(most=_MOST_SECONDS) for s in streams),
        sum(s.at("bytes").integer() for s in streams),
        lost,
        jitter_ms,
    )


def _losses_that_stayed(told: Sequence[int | None]) -> list[int | None]:
    """Messages lost per interval, those that came after all taken from the intervals that had missed them.

    Args:
        told: iperf3's lost_packets of each interval; below 0 where more came late than went missing
            (iperf_udp.c, iperf_udp_recv). None where nothing is told.

    Returns:
        as many counts, none below 0, with the same sum where that is not below 0.
    """
    stayed = list(told)
    for index, lost in enumerate(stayed):
        late = 0 if lost is None else max(0, -lost)
        stayed[index] = None if lost is None else max(0, lost)
        for earlier in range(index - 1, -1, -1):
            taken = min(late, stayed[earlier] or 0)
            if taken:
                stayed[earlier] = (stayed[earlier] or 0) - taken
            late -= taken
            if not late:
                break
    return stayed
