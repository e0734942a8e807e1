# SPDX-License-Identifier: Apache-2.0
"""What the readers of other programs' files give: flows with their reports, and what was read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from netjoule.core.errors import InvalidData
from netjoule.core.jsontree import Unreadable
from netjoule.core.reason import Reason
from netjoule.importing.sources import Source
from netjoule.loads.flow.abilities import ABILITIES
from netjoule.loads.flow.generators import FlowSpec

CLIENT, SERVER = "client", "server"
RUN_ID = "imported"
"""Of a flow that has no run yet."""
HOSTS = {CLIENT: CLIENT, SERVER: SERVER}
UNKNOWN_OFFSET = {"offset_ns": 0, "residual_ns": 0, "method": "unknown"}
_MOST_PAYLOAD_BYTES = 1 << 20  # as workloads may ask for
_MOST_RATE_MBPS = 100_000.0
_EDGE_NS = 1_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What the user says of files that do not say it themselves; None where nothing is said.

    Attributes:
        radio_source: real, wired or unknown.
        day: UTC day of logs that hold times of day only.
        ip_version: 4 or 6, of files without addresses.
    """

    radio_source: str = "unknown"
    transport: str | None = None
    offered_rate_mbps: float | None = None
    generator_version: str | None = None
    day: date | None = None
    ip_version: int | None = None


@dataclass(frozen=True, slots=True)
class Rate:
    """Offered load in Mb/s; `note` when no file tells it."""

    mbps: float
    note: Reason | None = None


@dataclass(frozen=True, slots=True)
class ImportedFlow:
    """One flow.

    Attributes:
        version: of the generator; None when unknown.
        began_s: when its first message left, seconds since 1970 on the sender's clock.
        report: flow report; its times count from the first message.
        measure_ns: start and end of what its goodput is taken over, on the report's clock.
        notes: coded reasons that come with the files.
        sources: files that tell of it.
    """

    generator: str
    version: str | None
    began_s: float
    report: dict[str, Any]
    measure_ns: tuple[int, int]
    notes: tuple[Reason, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class FileRead:
    """A file that was read: as what, the generator's version and the system as it tells them."""

    source: Source
    format: str
    version: str | None = None
    system: str | None = None


@dataclass(slots=True)
class Found:
    """What came out of some files, and what did not and why."""

    flows: list[ImportedFlow] = field(default_factory=list)
    files: list[FileRead] = field(default_factory=list)
    refused: list[InvalidData] = field(default_factory=list)

    @contextmanager
    def reading(self, source: Source) -> Iterator[None]:
        """Leave out a file of a folder that cannot be used; one that the user named must be usable.

        Raises InvalidData for a named file.
        """
        try:
            yield
        except (InvalidData, Unreadable) as error:
            told = source.refuse(error.what, error.place) if isinstance(error, Unreadable) else error
            if source.named:
                raise told from error
            self.refused.append(told)


def rate_of(told_mbps: float | None, sent_mbps: float, options: Options) -> Rate:
    """The offered load: as the file tells it, else as the user does, else what left, to two digits.

    Two digits make one cell out of repetitions that differ by what a clock or a congestion control does.
    """
    if told_mbps:
        return Rate(told_mbps)
    if options.offered_rate_mbps is not None:
        return Rate(options.offered_rate_mbps)
    taken = float(f"{sent_mbps:.2g}")
    words = f"no offered rate is recorded: {sent_mbps:.6g} Mb/s left, taken as {taken:g} Mb/s"
    return Rate(taken, Reason("offered_rate_assumed", words))


def request(source: Source, generator: str, **asked: Any) -> FlowSpec:
    """A flow as the request that its report is made from.

    Raises InvalidData, naming the file, for what no campaign can hold.
    """
    spec = FlowSpec(run_id=RUN_ID, seed=0, **asked)
    ability = ABILITIES[generator]
    if spec.transport not in ability.transports:
        known = ", ".join(sorted(ability.transports))
        what = f"netjoule holds no results of {generator} over {spec.transport}, only over {known}"
        raise source.refuse(what)
    if not ability.least_payload_bytes <= spec.payload_bytes <= _MOST_PAYLOAD_BYTES:
        raise source.refuse(
            f"its messages have {spec.payload_bytes} bytes; netjoule holds results of {generator}"
            f" with {ability.least_payload_bytes} to {_MOST_PAYLOAD_BYTES}"
        )
    if not 0 < spec.offered_rate_mbps <= _MOST_RATE_MBPS:
        raise source.refuse(
            f"its offered load is {spec.offered_rate_mbps:g} Mb/s, not between 0 and {_MOST_RATE_MBPS:g}",
            next_step="name it with --offered-rate-mbps" if spec.offered_rate_mbps <= 0 else "",
        )
    if spec.duration_s <= 0:
        raise source.refuse("its flow took no time")
    return spec


def settle_unknown(report: dict[str, Any], rate: Rate) -> dict[str, Any]:
    """A report of messages with what its files cannot tell: the clocks' offset, Nagle, a schedule.

    Without a rate there is no schedule to fall behind, so what was sent was scheduled.
    """
    sender = report["sender"]
    if rate.note is not None:
        sender = sender | {"messages_scheduled": sender["messages_sent"], "messages_not_sent": 0}
    return report | {"clock_offset": UNKNOWN_OFFSET, "nodelay": None, "sender": sender}


def measured_ns(report: dict[str, Any], until_ns: int) -> tuple[int, int]:
    """Start and end of the receiver's whole intervals up to a time; of all when none ends before it."""
    spans = [(i["start_ns"], i["end_ns"]) for i in report["intervals"] if i["end"] == "receiver"]
    inside = [span for span in spans if span[1] <= until_ns + _EDGE_NS] or spans
    return inside[0][0], inside[-1][1]


def names(sources: Sequence[Source]) -> str:
    """Names of files in a sentence."""
    return ", ".join(source.path.name for source in sources)
