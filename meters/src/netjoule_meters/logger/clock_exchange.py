# SPDX-License-Identifier: Apache-2.0
"""How far is another host's CLOCK_MONOTONIC from this one's, how fast does it drift, and is that good enough?

One exchange is four time stamps over UDP, as in NTP (RFC 5905 section 8): sent here (t1), received (t2) and
answered there (t3), received here (t4). Both ways take some time, so the offset (there minus here) lies
surely between t3 - t4 and t2 - t1; half of that span is the residual. Of many exchanges those with the
narrowest round trips tell most. The clocks are CLOCK_MONOTONIC, which nobody steps.

``serve`` answers, ``measure`` asks, `clock_row` makes a row of clocks.csv, `clock_is_usable` and
`clock_was_stepped` decide before and after a run.
"""

from __future__ import annotations

import math
import os
import select
import socket
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule_meters.clock import Clock, campaign_time_s
from netjoule_meters.errors import GarbageReply, MeterError, MeterUnavailable, UsageError

DEFAULT_PORT = 5303
METHOD = "control_exchange"
MOST_WINDOW_SHARE = 1e-3
"""A clock may be uncertain by so much of a window: both of its edges together then cost 0.2 % of the energy
in the worst case, a fast change of power right at an edge."""
MOST_UNCERTAIN_S = 0.02
MOST_DRIFT_PPM = 200.0
"""A quartz is good to 100 ppm; two of them that differ by more are being slewed or broken."""
_MAGIC = b"NJC1"
_PACKET = struct.Struct("!4sI8sqqq")


@dataclass(frozen=True, slots=True)
class Exchange:
    """The four time stamps of one exchange, ns; t1 and t4 by our clock, t2 and t3 by the other's."""

    t1_ns: int
    t2_ns: int
    t3_ns: int
    t4_ns: int

    @property
    def least_ns(self) -> int:
        """The offset is not less, ns."""
        return self.t3_ns - self.t4_ns

    @property
    def most_ns(self) -> int:
        """The offset is not more, ns."""
        return self.t2_ns - self.t1_ns


@dataclass(frozen=True, slots=True)
class Offset:
    """The other clock minus ours at ``t_ns`` (ours), ns, surely within ``residual_ns`` at that time."""

    t_ns: int
    offset_ns: int
    residual_ns: int

    @property
    def offset_s(self) -> float:
        """The other clock minus ours, s."""
        return self.offset_ns / 1e9

    @property
    def residual_s(self) -> float:
        """Greatest error of the offset, s."""
        return self.residual_ns / 1e9


@dataclass(frozen=True, slots=True)
class Drift:
    """How much faster the other clock runs, ppm, surely within ``residual_ppm`` for a constant drift."""

    ppm: float
    residual_ppm: float


def offset_of(exchanges: Sequence[Exchange]) -> Offset:
    """The offset by the exchange with the narrowest span.

    Raises:
        GarbageReply: when there is none, or one that ends before it begins.
    """
    whole = [exchange for exchange in exchanges if exchange.most_ns >= exchange.least_ns]
    if not whole or len(whole) < len(exchanges):
        raise GarbageReply("time stamps of a clock exchange contradict each other")
    best = min(whole, key=lambda exchange: exchange.most_ns - exchange.least_ns)
    residual_ns = -(-(best.most_ns - best.least_ns) // 2)
    return Offset((best.t1_ns + best.t4_ns) // 2, (best.most_ns + best.least_ns) // 2, residual_ns)


def drift_of(offsets: Sequence[Offset]) -> Drift | None:
    """Drift over offsets taken at different times, by the pair that tells most; None for fewer than two."""
    best: Drift | None = None
    for late in offsets[1:]:
        for early in offsets:
            seconds = (late.t_ns - early.t_ns) / 1e9
            if seconds <= 0:
                continue
            residual_ppm = (late.residual_ns + early.residual_ns) / 1e3 / seconds
            if best is None or residual_ppm < best.residual_ppm:
                best = Drift((late.offset_ns - early.offset_ns) / 1e3 / seconds, residual_ppm)
    return best


def clock_row(host: str, offsets: Sequence[Offset], origin_ns: int) -> dict[str, Any]:
    """A row of clocks.csv for the newest of ``offsets`` (the host's clock minus the controller's).

    Args:
        host: whose clock.
        offsets: all of the campaign so far, by the controller's time.
        origin_ns: the controller's CLOCK_MONOTONIC at campaign time 0.
    """
    newest, drift = offsets[-1], drift_of(offsets)
    told = drift is not None and drift.residual_ppm <= MOST_DRIFT_PPM
    return {
        "t_s": round(campaign_time_s(newest.t_ns, origin_ns), 6),
        "host": host,
        "offset_s": newest.offset_s,
        "drift_ppm": round(drift.ppm, 4) if told and drift is not None else None,
        "residual_s": newest.residual_s,
        "method": METHOD,
    }


def clock_is_usable(row: Mapping[str, Any], window_s: float) -> str | None:
    """Why stamps of this host cannot be joined with the controller's over ``window_s``; None when they can.

    The offset itself does no harm: it is subtracted. What is not known of it, and what it wanders within the
    window when the drift is not known, does.
    """
    host, residual_s = row["host"], float(row["residual_s"])
    drift_ppm = row.get("drift_ppm")
    if not math.isfinite(float(row["offset_s"])) or not math.isfinite(residual_s):
        return f"the clock of {host} was not measured: check that 'netjoule-meters clock serve' runs there"
    if drift_ppm is not None and abs(float(drift_ppm)) > MOST_DRIFT_PPM:
        return (
            f"the clock of {host} drifts by {float(drift_ppm):.0f} ppm against the controller's, more than "
            f"{MOST_DRIFT_PPM:.0f}: let its time service settle, then resume"
        )
    limit_s = min(MOST_UNCERTAIN_S, MOST_WINDOW_SHARE * window_s)
    if residual_s > limit_s:
        return (
            f"the clock of {host} is known to {1e3 * residual_s:.3g} ms only, more than {1e3 * limit_s:.3g} "
            f"ms for windows of {window_s:g} s: use a wired control network or longer windows"
        )
    return None


def clock_was_stepped(before: Mapping[str, Any], after: Mapping[str, Any]) -> str | None:
    """Why the clock of a host cannot have run evenly between two rows; None when it can have."""
    seconds = float(after["t_s"]) - float(before["t_s"])
    moved_s = float(after["offset_s"]) - float(before["offset_s"])
    unsure_s = float(after["residual_s"]) + float(before["residual_s"])
    if abs(moved_s) <= unsure_s + MOST_DRIFT_PPM * 1e-6 * max(0.0, seconds):
        return None
    return (
        f"the clock of {after['host']} moved by {1e3 * moved_s:.3g} ms within {seconds:.0f} s: it was "
        "stepped, suspended or started anew; stop what sets it during a campaign"
    )


# -- over UDP ------------------------------------------------------------------------------------------


def serve(
    host: str = "127.0.0.1",
    port: int = DEFAULT_PORT,
    *,
    clock: Clock,
    stop: int,
    ready: Callable[[str, int], None] | None = None,
) -> None:
    """Answer exchanges until the file descriptor ``stop`` becomes readable.

    An answer is as long as its question and goes only to whoever asked.

    Raises:
        UsageError: when the address cannot be used.
    """

    def refused(why: str) -> UsageError:
        return UsageError(f"cannot answer clock exchanges on {host}:{port}: {why}")

    with _udp(host, port, socket.socket.bind, refused) as server:
        if ready is not None:
            ready(*server.getsockname()[:2])
        while True:
            readable, _, _ = select.select([server.fileno(), stop], [], [])
            if stop in readable:
                return
            try:
                data, sender = server.recvfrom(_PACKET.size + 1)
            except OSError:  # an answer to somebody who has gone came back
                continue
            t2_ns = clock.monotonic_ns()
            if len(data) != _PACKET.size or data[:4] != _MAGIC:
                continue
            _, number, token, t1_ns, _, _ = _PACKET.unpack(data)
            answer = _PACKET.pack(_MAGIC, number, token, t1_ns, t2_ns, clock.monotonic_ns())
            try:
                server.sendto(answer, sender)
            except OSError:
                continue


def measure(
    host: str,
    port: int = DEFAULT_PORT,
    *,
    clock: Clock,
    count: int = 20,
    spacing_s: float = 0.02,
    timeout_s: float = 0.5,
) -> Offset:
    """The offset of the clock of ``host`` against ours, from ``count`` exchanges.

    Raises:
        MeterUnavailable: when less than half of them are answered.
        UsageError: for a name that is none.
    """

    def refused(why: str) -> MeterUnavailable:
        return MeterUnavailable(f"cannot reach {host}:{port} to compare clocks: {why}")

    exchanges = []
    with _udp(host, port, socket.socket.connect, refused) as asking:
        for number in range(count):
            exchange = _exchange(asking, number, clock, timeout_s)
            if exchange is not None:
                exchanges.append(exchange)
            elif number >= count // 2 and len(exchanges) == 0:
                break
            time.sleep(spacing_s)
    if 2 * len(exchanges) < count:
        raise MeterUnavailable(
            f"the clock of {host} answered {len(exchanges)} of {count} questions on UDP port {port}: "
            "run 'netjoule-meters clock serve' there and open the port"
        )
    return offset_of(exchanges)


def _exchange(asking: socket.socket, number: int, clock: Clock, timeout_s: float) -> Exchange | None:
    token = os.urandom(8)
    t1_ns = clock.monotonic_ns()
    deadline_ns = t1_ns + round(timeout_s * 1e9)
    try:
        asking.send(_PACKET.pack(_MAGIC, number, token, t1_ns, 0, 0))
        while (left_ns := deadline_ns - clock.monotonic_ns()) > 0:
            asking.settimeout(left_ns / 1e9)
            data = asking.recv(_PACKET.size + 1)
            t4_ns = clock.monotonic_ns()
            if len(data) == _PACKET.size:
                magic, told_number, told_token, told_t1_ns, t2_ns, t3_ns = _PACKET.unpack(data)
                if (magic, told_number, told_token, told_t1_ns) == (_MAGIC, number, token, t1_ns):
                    return Exchange(t1_ns, t2_ns, t3_ns, t4_ns)
    except OSError:  # no answer in time, or nobody listens
        return None
    return None


def _udp(
    host: str,
    port: int,
    prepare: Callable[[socket.socket, tuple[str, int]], None],
    refused: Callable[[str], MeterError],
) -> socket.socket:
    """A UDP socket that was bound or connected; ``refused`` makes the error of the reason."""
    opened = socket.socket(_family(host, port), socket.SOCK_DGRAM)
    try:
        prepare(opened, (host, port))
    except OSError as error:
        opened.close()
        raise refused(error.strerror or str(error)) from error
    return opened


def _family(host: str, port: int) -> socket.AddressFamily:
    try:
        return socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0][0]
    except OSError as error:
        raise UsageError(
            f"no host is called '{host}' ({error.strerror or error}): name an address"
        ) from error
