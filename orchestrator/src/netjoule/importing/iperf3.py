# SPDX-License-Identifier: Apache-2.0
"""iperf3's JSON (``-J``) as flows: UDP, TCP, and DCCP of the fork that has it.

The client's report tells a test: it counts its own end interval by interval and has the other end's totals.
The server's intervals come from --get-server-output, or from the server's own report when that is imported
too (both name the test by its cookie). Streams of ``-P`` are added up; ``--bidir`` is two flows. Its source
is the reference: iperf_api.c, iperf_print_results; ``man iperf3``. Older versions have no ``sum_sent`` and
``sum_received`` of UDP but one ``sum`` with the packets that left and those lost. Pure.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from netjoule.core.reason import Reason
from netjoule.importing.flows import (
    CLIENT,
    SERVER,
    UNKNOWN_OFFSET,
    FileRead,
    Found,
    ImportedFlow,
    Options,
    rate_of,
    spec_of,
)
from netjoule.importing.jsontree import Node, Unreadable, documents
from netjoule.importing.sources import Source
from netjoule.loads.flow.generators import FlowSpec, foreign
from netjoule.loads.flow.generators.iperf3 import losses_that_stayed

__all__ = ["read"]

FORMAT = "iperf3-json"
_FLOW_ID = re.compile("[A-Za-z0-9-]{1,64}")  # as flow_report.schema.json has it
_SECOND = "_bidir_reverse"  # what the sums of the second direction of --bidir are called
_MOST_SECONDS = 1e6
_MOST_STREAMS = 10_000
_LATEST_S = 32_503_680_000  # the year 3000


def read(sources: Sequence[Source], options: Options) -> Found:
    """The flows of all tests in some files.

    Raises InvalidData for a file that the user named and that cannot be used.
    """
    found = Found()
    clients: list[tuple[Source, Node]] = []
    servers: dict[str, tuple[Source, Node]] = {}
    for source in sources:
        with found.reading(source):
            reports = [Node(value) for _, value in documents(source.text)]
            _require_report(source, reports)
            first = reports[0].at("start")
            found.files.append(FileRead(source, FORMAT, _version(first), _system(first)))
            for report in reports:
                if report.at("start").get("accepted_connection") is None:
                    clients.append((source, report))
                else:
                    servers[_cookie(report)] = (source, report)
    for source, report in clients:
        with found.reading(source):
            other = servers.pop(_cookie(report), None)
            found.flows += list(_flows(source, report, other, options))
    for source, _ in servers.values():
        with found.reading(source):
            raise source.refuse(
                "it is a server's report of a test, which has zeros for what its client did",
                next_step="import the client's report of the same test, with this one or by itself",
            )
    return found


def _require_report(source: Source, reports: Sequence[Node]) -> None:
    """Refuse JSON that iperf3 did not write with -J."""
    if reports and isinstance(reports[0].value, dict) and "event" in reports[0].value:
        raise source.refuse("it holds lines of --json-stream, of which netjoule reads only the report of -J")
    if not reports or any(not isinstance(r.value, dict) or "start" not in r.value for r in reports):
        raise source.refuse("it is no report of iperf3: a JSON object with 'start', 'intervals' and 'end'")


def _flows(
    source: Source, report: Node, server: tuple[Source, Node] | None, options: Options
) -> Iterator[ImportedFlow]:
    """The one or two directions of a test."""
    failed = report.get("error")
    if failed is not None:
        raise source.refuse(f"its test failed: {' '.join(failed.text().split())}")
    end = report.get("end")
    if end is None or not end.value:
        raise source.refuse("its test did not run to its end")
    inside = report.get("server_output_json")
    other = inside if inside is not None else server[1] if server is not None else None
    sources = (source,) if server is None or inside is not None else (source, server[0])
    test = _Test(source, report, other, options)
    for second in (False, True) if test.bidirectional else (False,):
        yield test.flow(second=second, sources=sources)


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
class _Totals:
    """What a direction moved in all, as the client was told of both ends; bytes, whole messages or not."""

    seconds: float
    received_seconds: float
    sent_bytes: int
    received_bytes: int
    jitter_ms: float | None
    retransmits: int | None


class _Test:
    """One test by its client's report and, where there is one, its server's."""

    def __init__(self, source: Source, client: Node, server: Node | None, options: Options) -> None:
        self._source, self._client, self._server, self._options = source, client, server, options
        self._start, self._end = client.at("start"), client.at("end")
        asked = self._start.at("test_start")
        self._size = asked.at("blksize").integer(1)
        self._streams = asked.at("num_streams").integer(1, _MOST_STREAMS)
        dccp = asked.get("dccp")
        self._is_dccp = dccp is not None and dccp.flag()
        self._protocol = "dccp-kernel" if self._is_dccp else asked.at("protocol").text().lower()
        self._datagrams = self._protocol == "udp"
        # What a stream had in flight when the test ended is no loss, and iperf3 counts none.
        self._loses = self._datagrams or self._is_dccp
        self._asked_s = asked.at("duration").number(most=_MOST_SECONDS)
        self._reverse = asked.at("reverse").flag()
        self._version = _version(self._start) or options.generator_version
        self.bidirectional = any(self._end.get(f"{name}{_SECOND}") for name in ("sum", "sum_sent"))

    def flow(self, *, second: bool, sources: tuple[Source, ...]) -> ImportedFlow:
        """One direction; the second one of --bidir is the server's."""
        up = not self._reverse and not second
        totals = self._totals(_SECOND if second else "")
        sender = self._slices(CLIENT if up else SERVER, sends=True)
        receiver = self._slices(SERVER if up else CLIENT, sends=False)
        # Without the receiver's own report there are its totals only: one interval.
        receiver = receiver or [_Slice(0.0, totals.received_seconds, totals.received_bytes)]
        rate = rate_of(self._asked_mbps(), 8e-6 * totals.sent_bytes / totals.seconds, self._options)
        spec = spec_of(
            self._source,
            generator="iperf-dccp" if self._is_dccp else "iperf3",
            transport=self._protocol,
            payload_bytes=self._size,
            rate=rate,
            duration_s=self._asked_s or totals.seconds,
            direction="up" if up else "down",
            ip_version=self._ip_version(),
        )
        intervals = [*self._intervals("sender", sender), *self._intervals("receiver", receiver)]
        asked = math.floor(rate.mbps * 1e6 * totals.seconds / 8 / self._size) if rate.note is None else 0
        report = self._described(spec) | self._ends(totals, intervals, asked, up=up)
        report["interval_s"] = receiver[0].end_s - receiver[0].start_s
        report["intervals"] = intervals
        report["reconciles"] = report["receiver"]["bytes_received_unique"] <= totals.sent_bytes
        return ImportedFlow(
            generator=report["generator"]["name"],
            version=self._version,
            began_s=self._start.at("timestamp", "timesecs").number(most=_LATEST_S),
            report=report,
            measure_ns=(round(receiver[0].start_s * 1e9), round(receiver[-1].end_s * 1e9)),
            notes=tuple(note for note in (rate.note, self._company()) if note is not None),
            sources=sources,
        )

    def _described(self, spec: FlowSpec) -> dict[str, Any]:
        """What a flow report says beside counts."""
        program = "iperf-dccp" if self._is_dccp else "iperf3"
        described = foreign.described(
            spec,
            generator={"name": program, "version": self._version or "unknown"},
            flow_id=_flow_id(_cookie(self._client)),
            duration_s=spec.duration_s,
            nodelay=None,
        )
        return described | {"clock_offset": UNKNOWN_OFFSET}

    def _ends(
        self, totals: _Totals, intervals: list[dict[str, Any]], asked: int, *, up: bool
    ) -> dict[str, dict[str, Any]]:
        """`sender` and `receiver` of the flow report."""
        mine = [i for i in intervals if i["end"] == "receiver"]
        received, received_bytes = (sum(i[what] for i in mine) for what in ("messages", "bytes"))
        sent = totals.sent_bytes // self._size
        lost, scheduled = max(0, sent - received) if self._loses else None, max(sent, asked)
        end_ns = round(totals.seconds * 1e9)
        sender = {
            "host": CLIENT if up else SERVER,
            "boot_id": "unknown",
            "start_ns": 0,
            "first_packet_ns": 0,
            "last_packet_ns": end_ns,
            "end_ns": end_ns,
            "messages_scheduled": scheduled,
            "messages_sent": sent,
            "messages_not_sent": scheduled - sent,
            "bytes_sent": totals.sent_bytes,
            "goodput_mbps": 8e-6 * totals.sent_bytes / totals.seconds,
            **self._cpu("host" if up else "remote", totals.seconds),
            "transport_stats": {} if totals.retransmits is None else {"retransmits": totals.retransmits},
        }
        receiver = {
            "host": SERVER if up else CLIENT,
            "boot_id": "unknown",
            "first_packet_ns": 0 if received else None,
            "last_packet_ns": max((i["end_ns"] for i in mine if i["messages"]), default=None),
            "messages_received_unique": received,
            "messages_lost": lost,
            "messages_duplicate": 0,
            "messages_reordered": self._reordered(SERVER if up else CLIENT),
            "bytes_received_unique": received_bytes,
            "goodput_mbps": 8e-6 * received_bytes / totals.received_seconds,
            "loss_ratio": lost / sent if lost is not None and sent else None,
            "jitter_ms": totals.jitter_ms,
            "one_way_delay_ms": None,
            **self._cpu("remote" if up else "host", totals.seconds),
            "transport_stats": {},
        }
        return {"sender": sender, "receiver": receiver}

    def _totals(self, suffix: str) -> _Totals:
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
                got.at("bytes").integer() // self._size
                if told[1] is not None
                else packets - (both or got).at("lost_packets").integer(most=packets)
            )
            moved = (packets * self._size, arrived * self._size)
            return _Totals(seconds, received_seconds, *moved, got.at("jitter_ms").number(), None)
        arrived = got.at("bytes").integer()
        # Each end's test ends by its own clock: what arrived had left, whatever the sender counted.
        left = max(arrived, sent.at("bytes").integer())
        retransmits = sent.get("retransmits")
        again = retransmits.integer() if retransmits is not None else None
        return _Totals(seconds, received_seconds, left, arrived, None, again)

    def _slices(self, host: str, *, sends: bool) -> list[_Slice]:
        """What an end counted itself, the omitted start left out; empty without its report."""
        report = self._client if host == CLIENT else self._server
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

    def _intervals(self, end: str, slices: Sequence[_Slice]) -> Iterator[dict[str, Any]]:
        """Contiguous intervals; a message of a stream belongs to the one in which it was whole."""
        reached = [0, *itertools.accumulate(part.size_bytes for part in slices)]
        losses = losses_that_stayed([part.lost for part in slices])
        for part, lost, before, after in zip(slices, losses, reached, reached[1:], strict=False):
            messages = after // self._size - before // self._size
            yield {
                "end": end,
                "start_ns": round(part.start_s * 1e9),
                "end_ns": round(part.end_s * 1e9),
                "messages": messages,
                "bytes": part.size_bytes,
                "messages_lost": lost,
                "messages_duplicate": None,
                "messages_reordered": None,
                "jitter_ms": part.jitter_ms,
                "cpu_s": None,
            }

    def _asked_mbps(self) -> float | None:
        """The rate of -b, which is each stream's; None without a limit, or before it was told."""
        told = self._start.get("target_bitrate") or self._start.at("test_start").get("target_bitrate")
        return told.number() * self._streams / 1e6 if told is not None else None

    def _company(self) -> Reason | None:
        if self.bidirectional:
            return Reason("flows_at_once", "the other direction of --bidir ran at the same time")
        if self._streams > 1:
            return Reason("flows_at_once", f"{self._streams} parallel streams, added up")
        return None

    def _cpu(self, whose: str, seconds: float) -> dict[str, Any]:
        """CPU time of an end's process in s; told as per cent of a core, of both directions together."""
        use = self._end.get("cpu_utilization_percent")
        if use is None or self.bidirectional:
            return dict(foreign.UNKNOWN_CPU)
        parts = {"cpu_s": "total", "cpu_user_s": "user", "cpu_system_s": "system"}
        return {name: use.at(f"{whose}_{theirs}").number() / 100 * seconds for name, theirs in parts.items()}

    def _reordered(self, host: str) -> int | None:
        report = self._client if host == CLIENT else self._server
        streams = report.at("end").get("streams") if report is not None else None
        if not self._datagrams or streams is None:
            return None if self._datagrams else 0
        counts = [s.at("udp") for s in streams.items() if not _sends(s.at("udp"), unknown=False)]
        return sum(c.at("out_of_order").integer() for c in counts if c.get("out_of_order") is not None)

    def _ip_version(self) -> int:
        connected = self._start.get("connected")
        for connection in connected.items() if connected is not None else ():
            return 6 if ":" in connection.at("remote_host").text().removeprefix("::ffff:") else 4
        return 4


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


def _cookie(report: Node) -> str:
    found = report.at("start").get("cookie")
    return found.text() if found is not None else ""


def _flow_id(cookie: str) -> str:
    """A cookie as a flow report may have it; before 3.2 it was a host's name and a time, with dots."""
    return cookie if _FLOW_ID.fullmatch(cookie) else "imported"


def _version(start: Node) -> str | None:
    """Number of the version, which it tells as ``iperf 3.12``."""
    found = start.get("version")
    return found.text().removeprefix("iperf").strip() or None if found is not None else None


def _system(start: Node) -> str | None:
    """Kernel name, release and machine of ``uname -a``, without the host's name."""
    found = start.get("system_info")
    words = found.text().split() if found is not None else []
    return " ".join([words[0], words[2], words[-1]]) if len(words) > 3 else None
