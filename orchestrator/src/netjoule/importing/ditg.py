# SPDX-License-Identifier: Apache-2.0
"""D-ITG's logs as flows, in the text that ``ITGDec LOG -l TEXT`` makes of them.

A line is a message: ITGRecv's log has both its times, ITGSend's its own twice. Logs of both ends are brought
together by number and addresses of a flow; a receiver's log by itself does for a flow, but losses after the
last arrival do not show in it. The text has times of day (UTC) without a date, no transport, no rate and no
version: transport, and where wanted the rest, come from the user. Pure.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, time

from netjoule.core.errors import UsageError
from netjoule.core.reason import Reason
from netjoule.importing.flows import (
    HOSTS,
    FileRead,
    Found,
    ImportedFlow,
    Options,
    measured_ns,
    rate_of,
    request,
    settle_unknown,
)
from netjoule.importing.sources import Source
from netjoule.loads.flow.generators.ditg import Record, dated_ns, records
from netjoule.loads.flow.generators.messages import Arrival, Sent, flow_report, joint_jitter_ms

FORMAT = "ditg-text"
BEGINNING = "Flow>"
GENERATOR = "ditg"
_WHOSE = re.compile(r"Flow>\s*(\d+)\s+Seq>\s*\d+\s+Src>\s*(\S+)\s+Dest>\s*(\S+)\s.*Size>\s*(\d+)\s*")
_MOST_DELAY_NS = 10 * 10**9  # more than any queue holds: then the two clocks are not one

_Key = tuple[str, str, str]  # number of the flow, addresses of its ends


@dataclass(slots=True)
class _Log:
    """What one file says of one flow; sizes in bytes."""

    source: Source
    lines: list[str] = field(default_factory=list)
    sizes: set[int] = field(default_factory=set)
    size_bytes: int = 0

    def records(self) -> list[Record]:
        """Its messages. Raises InvalidData for an invalid time."""
        try:
            found = list(records("\n".join(self.lines)))
        except ValueError:
            found = []
        if len(found) != len(self.lines):
            raise self.source.refuse("a line has an invalid time")
        return found


def read(sources: Sequence[Source], options: Options, found: Found) -> None:
    """Find the flows of some decoded logs.

    Raises:
        UsageError: when the transport, which is in no log, is not named.
        InvalidData: for a file that the user named and that cannot be used.
    """
    if options.transport is None:
        raise UsageError(
            "D-ITG's logs do not name their transport",
            where=str(sources[0].path),
            next_step="name it: --transport udp, tcp or dccp-kernel",
        )
    sent: dict[_Key, _Log] = {}
    got: dict[_Key, _Log] = {}
    for source in sources:
        with found.reading(source):
            for key, log in _flows_of(source).items():
                side = sent if all(r.left_ns == r.arrived_ns for r in log.records()) else got
                if key in side:
                    raise source.refuse(f"{side[key].source.path} describes the same flow {key[0]}")
                side[key] = log
            found.files.append(FileRead(source, FORMAT, options.generator_version))
    for key, log in got.items():
        with found.reading(log.source):
            company = sum(other.source is log.source for other in got.values()) > 1
            found.flows.append(_flow(sent.pop(key, None), log, key, options, company=company))
    for log in sent.values():
        with found.reading(log.source):
            raise log.source.refuse(
                "it is the sender's log only, so what arrived is not known",
                next_step="import it with the log of ITGRecv",
            )


def _flows_of(source: Source) -> dict[_Key, _Log]:
    logs: dict[_Key, _Log] = defaultdict(lambda: _Log(source))
    for number, line in enumerate(source.text.splitlines(), 1):
        found = _WHOSE.fullmatch(line)
        if found is None:
            raise source.refuse("it is no line of a decoded log of D-ITG", f"line {number}")
        flow, origin, target, size = found.groups()
        log = logs[flow, origin, target]
        log.lines.append(line)
        log.sizes.add(int(size))
        log.size_bytes += int(size)
    return dict(logs)


def _flow(sent: _Log | None, got: _Log, key: _Key, options: Options, *, company: bool) -> ImportedFlow:
    logs = [sent, got] if sent is not None else [got]
    came = got.records()
    left = sent.records() if sent is not None else came
    near_ns = dated_ns(left[0].left_ns, _near_ns(got.source, options))
    left_ns = sorted(dated_ns(record.left_ns, near_ns) for record in left)
    # A receiver's log alone: the greatest number is what had left by then.
    messages = len(left) if sent is not None else max(r.number for r in came)
    if len(left_ns) < 2 or left_ns[0] == left_ns[-1]:
        raise got.source.refuse(f"its flow {key[0]} has a single moment, so no rate")
    zero_ns, length_s = left_ns[0], (left_ns[-1] - left_ns[0]) * 1e-9
    duration_s = length_s * messages / (messages - 1)
    payload_bytes = round(logs[0].size_bytes / len(logs[0].lines))
    rate = rate_of(None, 8e-6 * messages * payload_bytes / duration_s, options)
    spec = request(
        got.source,
        GENERATOR,
        transport=str(options.transport),
        payload_bytes=payload_bytes,
        offered_rate_mbps=rate.mbps,
        duration_s=duration_s,
        direction="up",
        ip_version=6 if ":" in key[1].rpartition("/")[0] else 4,
    )
    arrivals, apart = _arrivals(came, near_ns, zero_ns)
    times_ns = [at_ns - zero_ns for at_ns in left_ns]
    report = flow_report(
        spec,
        Sent(messages, 0, times_ns[-1], times_ns if sent is not None else ()),
        arrivals,
        generator={"name": GENERATOR, "version": options.generator_version or "unknown"},
        hosts=HOSTS,
        boot_id="unknown",
        residual_ns=0,
        duration_s=duration_s,
        jitter_ms=joint_jitter_ms([a.delay_ms for a in arrivals if a.delay_ms is not None]),
    )
    report = settle_unknown(report, rate)
    if apart:
        report["receiver"]["one_way_delay_ms"] = None
    notes = [rate.note, *_remarks(sent is None, logs[0].sizes, payload_bytes, company=company)]
    return ImportedFlow(
        GENERATOR,
        options.generator_version,
        zero_ns * 1e-9,
        report,
        measured_ns(report, round(duration_s * 1e9)),
        tuple(filter(None, notes)),
        tuple(log.source for log in logs),
    )


def _near_ns(source: Source, options: Options) -> int:
    """About when the flow was: noon of the day that the user says, else the file's own time."""
    if options.day is None:
        return round(source.changed_s * 1e9)
    return round(datetime.combine(options.day, time(12), UTC).timestamp()) * 10**9


def _arrivals(came: Sequence[Record], near_ns: int, zero_ns: int) -> tuple[list[Arrival], bool]:
    """Messages in order of arrival, ns after the first one left; whether the ends' clocks are apart."""
    rows = []
    for record in came:
        left_ns = dated_ns(record.left_ns, near_ns)
        rows.append((dated_ns(record.arrived_ns, left_ns), left_ns, record.number))
    shift_ns = unlike_clocks_ns(min(arrived - left for arrived, left, _ in rows))
    arrivals = [
        Arrival(arrived - shift_ns - zero_ns, number, (arrived - shift_ns - left) * 1e-6)
        for arrived, left, number in sorted(rows)
    ]
    return arrivals, shift_ns != 0


def unlike_clocks_ns(least_delay_ns: int) -> int:
    """What to take from the receiver's times where its clock is not the sender's; 0 where it may be.

    A least delay below 0 or above 10 s is no delay: the fastest message then counts as without any.
    """
    return 0 if 0 <= least_delay_ns <= _MOST_DELAY_NS else least_delay_ns


def _remarks(alone: bool, sizes: set[int], payload_bytes: int, *, company: bool) -> list[Reason]:
    remarks = []
    if alone:
        remarks.append(Reason("sender_unknown", "only the receiver's log was imported"))
    if len(sizes) > 1:
        words = f"{min(sizes)} to {max(sizes)} bytes, taken as {payload_bytes}"
        remarks.append(Reason("message_sizes_vary", words))
    if company:
        remarks.append(Reason("flows_at_once", "its log holds several flows"))
    return remarks
