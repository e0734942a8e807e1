# SPDX-License-Identifier: Apache-2.0
"""Files of iperf3's JSON (``-J``) as flows.

A server's own report goes with its client's where that is imported too: both name the test by its cookie.
Pure.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from netjoule.core.jsontree import Node, documents
from netjoule.core.reason import Reason
from netjoule.importing.flows import (
    HOSTS,
    RUN_ID,
    UNKNOWN_OFFSET,
    FileRead,
    Found,
    ImportedFlow,
    Options,
    rate_of,
    request,
)
from netjoule.importing.sources import Source
from netjoule.loads.flow.generators import foreign
from netjoule.loads.flow.generators.iperf3_report import IperfTest

FORMAT = "iperf3-json"
_FLOW_ID = re.compile("[A-Za-z0-9-]{1,64}")  # as flow_report.schema.json has it


def read(sources: Sequence[Source], options: Options, found: Found) -> None:
    """Find the flows of all tests in some files.

    Raises InvalidData for a file that the user named and that cannot be used.
    """
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
    test = IperfTest(report, other)
    for second in (False, True) if test.bidirectional else (False,):
        yield _flow(test, report, options, second=second, sources=sources)


def _flow(
    test: IperfTest, client: Node, options: Options, *, second: bool, sources: tuple[Source, ...]
) -> ImportedFlow:
    """One direction of a test; the `second` one of --bidir is the server's."""
    up = not test.reverse and not second
    totals = test.told_totals(second=second)
    rate = rate_of(test.asked_mbps, 8e-6 * totals.sent_bytes / totals.seconds, options)
    program = "iperf-dccp" if test.is_dccp else "iperf3"
    spec = request(
        sources[0],
        program,
        transport=test.transport,
        payload_bytes=test.payload_bytes,
        offered_rate_mbps=rate.mbps,
        duration_s=test.asked_s or totals.seconds,
        direction="up" if up else "down",
        ip_version=test.ip_version,
    )
    asked = math.floor(rate.mbps * 1e6 * totals.seconds / 8 / test.payload_bytes) if rate.note is None else 0
    ends = test.both_ends(totals, up=up, asked_messages=asked, hosts=HOSTS, boot_id="unknown")
    mine = [i for i in ends["intervals"] if i["end"] == "receiver"]
    version = _version(client.at("start")) or options.generator_version
    cookie = _cookie(client)  # before 3.2 a host's name and a time, with dots
    described = foreign.described(
        spec,
        generator={"name": program, "version": version or "unknown"},
        flow_id=cookie if _FLOW_ID.fullmatch(cookie) else RUN_ID,
        duration_s=spec.duration_s,
        nodelay=None,
    )
    report = described | ends
    report["clock_offset"] = UNKNOWN_OFFSET
    report["interval_s"] = (mine[0]["end_ns"] - mine[0]["start_ns"]) / 1e9
    report["reconciles"] = ends["receiver"]["bytes_received_unique"] <= totals.sent_bytes
    return ImportedFlow(
        generator=program,
        version=version,
        began_s=test.began_s,
        report=report,
        measure_ns=(mine[0]["start_ns"], mine[-1]["end_ns"]),
        notes=tuple(filter(None, (rate.note, _company(test)))),
        sources=sources,
    )


def _company(test: IperfTest) -> Reason | None:
    """What ran beside a flow."""
    if test.bidirectional:
        return Reason("flows_at_once", "the other direction of --bidir ran at the same time")
    if test.streams > 1:
        return Reason("flows_at_once", f"{test.streams} parallel streams, added up")
    return None


def _cookie(report: Node) -> str:
    return _told(report.at("start"), "cookie")


def _version(start: Node) -> str | None:
    """Number of the version, which it tells as ``iperf 3.12``."""
    return _told(start, "version").removeprefix("iperf").strip() or None


def _system(start: Node) -> str | None:
    """Kernel name, release and machine of ``uname -a``, without the host's name."""
    words = _told(start, "system_info").split()
    return " ".join([words[0], words[2], words[-1]]) if len(words) > 3 else None


def _told(start: Node, name: str) -> str:
    found = start.get(name)
    return found.text() if found is not None else ""
