# SPDX-License-Identifier: Apache-2.0
"""A second implementation of the radio machines, to hold those of the emulated link to.

Not a machine that lives through time: when each packet passes is found first, from the whole trace. After a
packet has passed, the radio stands on top of a ladder and would step down it, rung by rung, at known times;
the next packet cuts the ladder off. The intervals are those pieces of ladders, the energy their integral.
All times are whole nanoseconds, so that two things at one moment are at one moment here.

The parameters are those of two published analysers and of one study, written anew from their tables:

- EnergyBox (rtslab/EnergyBox@150320e, config/): `energybox-s2`, `energybox-teliasonera`;
- AT&T ARO (attdevsupport/VideoOptimizer@d164529, ARO.Core/src/main/resources/): `aro-wifi`, `aro-lte`,
  `aro-i997`, `aro-inspire`; its LTE is that of Huang et al., MobiSys 2012, whose base power `mobisys12` has;
- "Energy-efficient mobile web in a bundle" (Nokia N9): `n9-wlan`, `n9-umts`.
"""

from __future__ import annotations

import csv
import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from pathlib import Path

MS = 10**6
S = 10**9


@dataclass(frozen=True, slots=True)
class Packet:
    """A packet that arrives: when, whether it goes up, and its IP bytes."""

    t_ns: int
    up: bool
    bytes: int


@dataclass(frozen=True, slots=True)
class Rung:
    """A state on a ladder: how long it lasts (None: for ever) and what it draws.

    With a `cycle_ns`, the first `on_ns` of each cycle, counted from where the state begins, draw `on_w`.
    """

    state: str
    lasts_ns: int | None
    power_w: float
    cycle_ns: int | None = None
    on_ns: int = 0
    on_w: float = 0.0

    def energy_j(self, length_ns: int) -> float:
        """Energy of the first `length_ns` of it."""
        on_ns = 0
        if self.cycle_ns is not None:
            whole, rest = divmod(length_ns, self.cycle_ns)
            on_ns = whole * self.on_ns + min(rest, self.on_ns)
        return (on_ns * self.on_w + (length_ns - on_ns) * self.power_w) / S

    def wait_ns(self, age_ns: int, left_ns: float) -> float:
        """How long a packet waits for a station `age_ns` into this state, of which `left_ns` are left."""
        assert self.cycle_ns is not None
        phase = age_ns % self.cycle_ns
        return 0 if phase < self.on_ns else min(self.cycle_ns - phase, left_ns)


Ladder = tuple[Rung, ...]


@dataclass(frozen=True, slots=True)
class Passage:
    """How a packet passes: it cuts the ladder before it, the radio promotes, and a new ladder begins."""

    cuts_ns: int
    promotions: Ladder
    ladder: Ladder

    @property
    def t_ns(self) -> int:
        """When it passes."""
        return self.cuts_ns + sum(rung.lasts_ns or 0 for rung in self.promotions)


@dataclass(frozen=True, slots=True)
class Interval:
    """A piece of time in one state."""

    start_ns: int
    end_ns: int
    rung: Rung


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a machine makes of a trace: pieces of time, joules of bytes by state, delay of each packet."""

    intervals: Sequence[Interval]
    bytes_j: dict[str, float]
    delays_ns: Sequence[int]

    @property
    def energy_by_state_j(self) -> dict[str, float]:
        """Energy of each state that it was in."""
        found: dict[str, float] = defaultdict(float, self.bytes_j)
        for one in self.intervals:
            found[one.rung.state] += one.rung.energy_j(one.end_ns - one.start_ns)
        return dict(found)

    @property
    def energy_j(self) -> float:
        """Energy of the whole trace."""
        return math.fsum(self.energy_by_state_j.values())

    @property
    def seconds_by_state(self) -> dict[str, float]:
        """Time in each state that it was in."""
        found: dict[str, int] = defaultdict(int)
        for one in self.intervals:
            found[one.rung.state] += one.end_ns - one.start_ns
        return {state: length_ns / S for state, length_ns in found.items()}


def read(path: Path) -> list[Packet]:
    """The packets of a trace: t_s, direction (up or down), bytes."""
    with path.open(newline="") as handle:
        return [
            Packet(round(float(row["t_s"]) * S), row["direction"] == "up", int(row["bytes"]))
            for row in csv.DictReader(handle)
        ]


def _standing(ladder: Ladder, age_ns: int) -> tuple[Rung, int, float]:
    """Rung at an age of the ladder, how long the radio has been on it, and how long it yet would be."""
    for rung in ladder:
        if rung.lasts_ns is None or age_ns < rung.lasts_ns:
            break
        age_ns -= rung.lasts_ns
    return rung, age_ns, math.inf if rung.lasts_ns is None else rung.lasts_ns - age_ns


def _descent(start_ns: int, ladder: Ladder, end_ns: int) -> Iterator[Interval]:
    """Pieces of a ladder that begins at `start_ns` and is cut at `end_ns`."""
    for rung in ladder:
        until_ns = end_ns if rung.lasts_ns is None else min(start_ns + rung.lasts_ns, end_ns)
        if until_ns > start_ns:
            yield Interval(start_ns, until_ns, rung)
            start_ns = until_ns


def _intervals(passages: Sequence[Passage], lowest: Rung) -> Iterator[Interval]:
    """All pieces from t = 0 in the lowest state until it is reached again."""
    start_ns, ladder = 0, (lowest,)
    for passage in passages:
        yield from _descent(start_ns, ladder, passage.cuts_ns)
        yield from _descent(passage.cuts_ns, passage.promotions, passage.t_ns)
        start_ns, ladder = passage.t_ns, passage.ladder
    yield from _descent(start_ns, ladder, start_ns + sum(rung.lasts_ns or 0 for rung in ladder))


def _woken_ns(packets: Sequence[Packet]) -> list[float]:
    """When the next packet up arrives after each one: it wakes the radio, and what waits passes with it."""
    times = accumulate(
        ((packet.t_ns if packet.up else None) for packet in reversed(packets[1:])),
        lambda later, t_ns: later if t_ns is None else t_ns,
        initial=math.inf,
    )
    return list(times)[::-1][: len(packets)]


def _delays(packets: Sequence[Packet], passages: Sequence[Passage]) -> list[int]:
    return [passage.t_ns - packet.t_ns for packet, passage in zip(packets, passages, strict=True)]


# Wi-Fi


@dataclass(frozen=True, slots=True)
class Wifi:
    """Wi-Fi: awake (CAM) for a tail after a packet; CAMH while the last window has more than its bytes."""

    psm: Rung
    cam: Rung
    camh: Rung
    beacon_ns: int = 0
    window_ns: int = 50 * MS
    window_bytes: int = 3000

    def run(self, packets: Sequence[Packet]) -> Outcome:
        """What it makes of a trace."""
        passages = self._passages(packets)
        pieces = list(self._pieces(packets, passages))
        return Outcome(pieces, {}, _delays(packets, passages))

    def _passages(self, packets: Sequence[Packet]) -> list[Passage]:
        found: list[Passage] = []
        start_ns, ladder = 0, (self.psm,)
        for packet, woken_ns in zip(packets, _woken_ns(packets), strict=True):
            t_ns = max(packet.t_ns, start_ns)
            asleep = _standing(ladder, t_ns - start_ns)[0] is self.psm
            if asleep and self.beacon_ns and not packet.up:
                t_ns = min(-(-t_ns // self.beacon_ns) * self.beacon_ns, woken_ns)
            start_ns, ladder = t_ns, (self.cam, self.psm)
            found.append(Passage(t_ns, (), ladder))
        return found

    def _pieces(self, packets: Sequence[Packet], passages: Sequence[Passage]) -> Iterator[Interval]:
        """From one moment that may change the state to the next, each judged by itself."""
        times = [passage.t_ns for passage in passages]
        bytes_until = [0, *accumulate(packet.bytes for packet in packets)]
        tail_ns = self.cam.lasts_ns
        for start_ns, end_ns in pairwise(
            sorted({0, *(t + after for t in times for after in (0, self.window_ns, tail_ns))})
        ):
            now, before = bisect_right(times, start_ns), bisect_right(times, start_ns - self.window_ns)
            if bytes_until[now] - bytes_until[before] > self.window_bytes:
                rung = self.camh
            else:
                rung = self.cam if now and start_ns < times[now - 1] + tail_ns else self.psm
            yield Interval(start_ns, end_ns, rung)


def _wifi(psm_w: float, cam_w: float, camh_w: float, tail_ms: int, beacon_ms: int = 0) -> Wifi:
    cam = Rung("CAM", tail_ms * MS, cam_w)
    return Wifi(Rung("PSM", None, psm_w), cam, Rung("CAMH", None, camh_w), beacon_ms * MS)


# LTE


@dataclass(frozen=True, slots=True)
class Lte:
    """LTE: one ladder, reached by one promotion; bytes cost joules of their own."""

    promotion: Rung
    ladder: Ladder
    up_j_per_mbit: float = 0.43839
    down_j_per_mbit: float = 0.05197

    def run(self, packets: Sequence[Packet]) -> Outcome:
        """What it makes of a trace."""
        passages = self._passages(packets)
        per_bit = {True: self.up_j_per_mbit / 1e6, False: self.down_j_per_mbit / 1e6}
        bytes_j = math.fsum(8 * packet.bytes * per_bit[packet.up] for packet in packets)
        pieces = list(_intervals(passages, self.ladder[-1]))
        return Outcome(pieces, {"CR": bytes_j} if packets else {}, _delays(packets, passages))

    def _passages(self, packets: Sequence[Packet]) -> list[Passage]:
        found: list[Passage] = []
        idle = self.ladder[-1]
        start_ns, ladder = 0, (idle,)
        for packet, woken_ns in zip(packets, _woken_ns(packets), strict=True):
            t_ns = max(packet.t_ns, start_ns)
            rung, age_ns, left_ns = _standing(ladder, t_ns - start_ns)
            if rung.state.endswith("_DRX") and not packet.up:
                t_ns = min(t_ns + rung.wait_ns(age_ns, left_ns), woken_ns)
                # Kept past the last cycle, it finds the radio idle.
                rung = _standing(ladder, t_ns - start_ns)[0]
            promotions = (self.promotion,) if rung is idle else ()
            found.append(Passage(t_ns, promotions, self.ladder))
            start_ns, ladder = found[-1].t_ns, self.ladder
        return found


def _lte(base_w: float) -> Lte:
    def drx(state: str, lasts_ms: int, cycle_ms: int) -> Rung:
        return Rung(state, lasts_ms * MS, 1.06, cycle_ms * MS, 2 * MS, 1.68)

    idle = Rung("IDLE", None, 0.0, 1280 * MS, 43 * MS, 0.594)
    ladder = (Rung("CR", 100 * MS, base_w), drx("SHORT_DRX", 20, 20), drx("LONG_DRX", 10_000, 40), idle)
    return Lte(Rung("PROMOTION", 260 * MS, 1.21), ladder)


# UMTS


def _aro_drain_ns(queued: int) -> int:
    """0.0014 q^2 + 1.6 q + 20 ms of q bytes."""
    return 1400 * queued**2 + 1_600_000 * queued + 20 * MS


Promotion = tuple[int, float]
"""How long it lasts, ns, and what it draws, W."""


@dataclass(frozen=True, slots=True)
class Umts:
    """UMTS: the ladder is that of DCH, or what follows of it from FACH on; bytes decide which."""

    dch: Ladder
    """DCH in the one or two powers that it has after a packet."""
    rest: Ladder
    """FACH and what comes below."""
    low_to_fach: Promotion | None
    low_to_dch: Promotion | None
    """From IDLE and PCH."""
    fach_to_dch: Promotion
    low_above_bytes: float
    """A packet of more bytes lifts it from IDLE or PCH to DCH at once."""
    queue_above_bytes: dict[bool, int]
    """By whether up: a queue in FACH of more bytes lifts it to DCH."""
    drain_ns: Callable[[int], int] = _aro_drain_ns

    def run(self, packets: Sequence[Packet]) -> Outcome:
        """What it makes of a trace."""
        passages = self._passages(packets)
        pieces = list(_intervals(passages, self.rest[-1]))
        return Outcome(pieces, {}, _delays(packets, passages))

    def _passages(self, packets: Sequence[Packet]) -> list[Passage]:
        found: list[Passage] = []
        queues: dict[bool, tuple[int, int]] = {}
        start_ns, ladder = 0, self.rest[-1:]
        for packet in packets:
            cuts_ns = max(packet.t_ns, start_ns)
            state = _standing(ladder, cuts_ns - start_ns)[0].state
            promotions, ladder = self._lifted(packet, state, cuts_ns, queues)
            found.append(Passage(cuts_ns, promotions, ladder))
            start_ns = found[-1].t_ns
        return found

    def _lifted(
        self, packet: Packet, state: str, t_ns: int, queues: dict[bool, tuple[int, int]]
    ) -> tuple[Ladder, Ladder]:
        """Promotions that a packet at the head of all waits for, and the ladder it then stands on."""
        promotions: Ladder = ()
        if state in ("IDLE", "PCH"):
            above = packet.bytes > self.low_above_bytes
            target, promotion = ("DCH", self.low_to_dch) if above else ("FACH", self.low_to_fach)
            assert promotion is not None
            promotions, state = (Rung(f"PROMOTION_{state}_{target}", *promotion),), target
        if state == "FACH":
            now_ns = t_ns + sum(rung.lasts_ns or 0 for rung in promotions)
            queued, last_ns = queues.get(packet.up, (0, now_ns))
            kept = 0 if now_ns - last_ns > self.drain_ns(queued) else queued
            queues[packet.up] = (kept + packet.bytes, now_ns)
            if kept + packet.bytes <= self.queue_above_bytes[packet.up]:
                return promotions, self.rest
            promotions += (Rung("PROMOTION_FACH_DCH", *self.fach_to_dch),)
        queues.clear()
        return promotions, self.dch + self.rest


def _aro_umts(dch_w: float, fach_w: float) -> Umts:
    return Umts(
        dch=(Rung("DCH", 4 * S, dch_w),),
        rest=(Rung("FACH", 10 * S, fach_w), Rung("IDLE", None, 0.0)),
        low_to_fach=None,
        low_to_dch=(2 * S, 0.65),
        fach_to_dch=(1500 * MS, 0.80),
        low_above_bytes=0,
        queue_above_bytes={True: 543, False: 475},
    )


_TELIASONERA = Umts(
    dch=(Rung("DCH", 4100 * MS, 1.3),),
    rest=(Rung("FACH", 5600 * MS, 0.5), Rung("IDLE", None, 0.2)),
    low_to_fach=(430 * MS, 0.2),
    low_to_dch=(1700 * MS, 0.2),
    fach_to_dch=(650 * MS, 0.5),
    low_above_bytes=1000,
    queue_above_bytes={True: 294, False: 515},
    drain_ns=lambda _: 100 * MS,
)
_N9_UMTS = Umts(
    dch=(Rung("DCH", 100 * MS, 1.470), Rung("DCH", 2900 * MS, 1.085)),
    rest=(Rung("FACH", 2 * S, 0.489), Rung("PCH", 1800 * S, 0.0147), Rung("IDLE", None, 0.0)),
    low_to_fach=(1 * S, 0.489),
    low_to_dch=None,
    fach_to_dch=(500 * MS, 0.489),
    low_above_bytes=math.inf,
    queue_above_bytes={True: 470, False: 470},
)

MACHINES: dict[str, Wifi | Lte | Umts] = {
    "energybox-s2": _wifi(0.03, 0.25, 0.45, tail_ms=220),
    "aro-wifi": _wifi(0.02, 0.403, 0.403, tail_ms=250),
    "n9-wlan": _wifi(0.0, 0.310, 1.380, tail_ms=200, beacon_ms=100),
    "mobisys12": _lte(1.288),
    "aro-lte": _lte(1.2),
    "aro-i997": _aro_umts(1.30, 0.30),
    "aro-inspire": _aro_umts(0.60, 0.38),
    "energybox-teliasonera": _TELIASONERA,
    "n9-umts": _N9_UMTS,
}
