# SPDX-License-Identifier: Apache-2.0
"""When each window of a run lies: pure arithmetic on campaign time.

::

    idle_before | guard | warm_up | measure | guard | tail | (next sender starts) settle | idle_after ...
                        |------- the flow ----------|                                    = next idle_before

The idle window between two runs is one window, used by both; the first of a chain and the last stand
alone. A reading is the mean over one meter update, so the one that straddles a window's edge also holds
what comes after it: a guard of one update keeps the flow out of the last idle reading and idle out of
the last measured one. (Warm-up and settle do this at the windows' starts.)

Work that ends by itself has a window *until done*: from its start to its end, without a warm-up; a guard of
one update keeps it out of the idle windows on both sides::

    idle_before | guard | measure: all of the work | tail | (next gets ready) settle, guard | idle_after
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import itemgetter
from typing import Any, NamedTuple

from netjoule.core.errors import UsageError
from netjoule.workload.workload import Timing

_LEAST_BIT_S = 0.5  # a sender needs a fraction of it to start
_QUIET_UPDATES = 5

MIN_WARM_UP_UPDATES = 3  # DESIGN: a window starts 3 meter updates plus the lag after the first packet
MIN_WINDOW_UPDATES = 3  # fewer readings give neither a mean nor its noise

UNTIL_DONE = "until_done"
"""Kind of a load's window, in loads.json and run.json: from the start of its work to the end of it."""
_WORK_MARGIN = 1.1  # a run may be shorter than the warm-up run that it is planned by


@dataclass(frozen=True)
class MeterPace:
    """How often a meter updates and how late it publishes, seconds."""

    meter_id: str
    update_interval_s: float
    lag_s: float


@dataclass(frozen=True)
class Span:
    """A window in campaign time, seconds."""

    t_start_s: float
    t_end_s: float

    def as_json(self) -> dict[str, float]:
        """The window as run.json holds it, 6 decimals."""
        return {"t_start_s": round(self.t_start_s, 6), "t_end_s": round(self.t_end_s, 6)}

    @classmethod
    def of(cls, window: Mapping[str, float]) -> Span:
        """A window of run.json."""
        return cls(window["t_start_s"], window["t_end_s"])


@dataclass(frozen=True)
class Windows:
    """The windows that the work itself decides; warm_up: None where all of the work is measured."""

    warm_up: Span | None
    measure: Span
    tail: Span


class TooShort(NamedTuple):
    """A window's name, why it is too short, and what to set; empty where another one says it."""

    name: str
    what: str
    fix: str


def least_warm_up_s(meters: Sequence[MeterPace]) -> float:
    """Shortest warm-up that the slowest meter allows, seconds."""
    return max((MIN_WARM_UP_UPDATES * m.update_interval_s + m.lag_s for m in meters), default=0.0)


def check_timing(timing: Timing, meters: Sequence[MeterPace], kind: str = "fixed") -> None:
    """Refuse windows that a meter cannot resolve; `kind`: of the load's window, see loads.json.

    Raises:
        UsageError: naming every window that is too short, the meter that needs most, and the least length.
    """
    found = list(too_short(asdict(timing), meters, kind))
    if found:
        fixes = [one.fix for one in found if one.fix]
        raise UsageError(
            "; ".join(one.what for one in found),
            where="workload, field timing",
            next_step=f"set {', '.join(fixes) or 'idle_s to a few updates of the slowest meter'}",
        )


def too_short(
    timing: Mapping[str, Any], meters: Sequence[MeterPace], kind: str = "fixed"
) -> Iterator[TooShort]:
    """Windows that a meter cannot resolve; of a workload's ``timing`` as it was written, right or not."""
    known = {name: length for name, length in timing.items() if isinstance(length, (int, float))}
    if known.get("idle_s", 1) <= 0:
        yield TooShort("idle_s", "idle_s is 0, but P_I is measured in it", "")
    # Work until done has no warm-up, and is repeated until a meter resolves it (`least_work_s`).
    for name in ("idle_s",) if kind == UNTIL_DONE else ("warm_up_s", "idle_s", "measure_s"):
        needs_s, meter = max(
            ((_least_s(name, one), one) for one in meters), default=(0.0, None), key=itemgetter(0)
        )
        if meter is not None and known.get(name, needs_s) < needs_s - 1e-9:
            what = (
                f"{name} is {known[name]:g} s, but {meter.meter_id} updates every "
                f"{meter.update_interval_s:g} s with {meter.lag_s:g} s lag"
            )
            yield TooShort(name, what, f"{name} to at least {needs_s:g}")


def _least_s(window: str, meter: MeterPace) -> float:
    """Shortest window that a meter allows, seconds."""
    return least_warm_up_s([meter]) if window == "warm_up_s" else MIN_WINDOW_UPDATES * meter.update_interval_s


def guard_s(meters: Sequence[MeterPace], power_grain_s: float) -> float:
    """Time that keeps what follows a window out of its last reading, seconds.

    Args:
        meters: the slowest decides.
        power_grain_s: time over which the power itself is smeared (a modelled device's samples), else 0.
    """
    return power_grain_s + max((m.update_interval_s for m in meters), default=0.0)


def flow_duration_s(timing: Timing, guard_s: float) -> float:
    """How long the sender sends, seconds."""
    return timing.warm_up_s + timing.measure_s + guard_s


def flow_windows(timing: Timing, t_first_packet_s: float, t_flow_end_s: float) -> Windows:
    """Windows of a flow from its first packet and its end (campaign time, seconds).

    A flow that outlasts its schedule (a stream that drains its backlog) has its tail after its real end.
    """
    start = t_first_packet_s + timing.warm_up_s
    end = start + timing.measure_s
    tail = max(end, t_flow_end_s)
    return Windows(Span(t_first_packet_s, start), Span(start, end), Span(tail, tail + timing.tail_s))


def least_work_s(timing: Timing, meters: Sequence[MeterPace]) -> float:
    """Least length of the work of a run until done, seconds: short work is repeated until it is as long."""
    from netjoule_energy.power.until_done import LEAST_UPDATES

    slowest_s = max((meter.update_interval_s for meter in meters), default=0.0)
    return max(timing.measure_s, _WORK_MARGIN * LEAST_UPDATES * slowest_s)


def run_s(timing: Timing, meters: Sequence[MeterPace], guard_s: float, kind: str) -> float:
    """One run with its guards and the idle window that it shares, seconds; at least, where work ends it."""
    longer_s = least_work_s(timing, meters) - timing.measure_s if kind == UNTIL_DONE else 0.0
    return timing.run_s + longer_s + 2 * guard_s


def done_windows(timing: Timing, t_start_s: float, t_end_s: float) -> Windows:
    """Windows of work that was measured until it was done (campaign time, seconds)."""
    return Windows(None, Span(t_start_s, t_end_s), Span(t_end_s, t_end_s + timing.tail_s))


def data_due_s(t_end_s: float, meters: Sequence[MeterPace]) -> float:
    """Campaign time by which every meter has logged the reading that covers `t_end_s`.

    A reading logged at t stands for what ended at t - lag; the next one comes an update later, and
    the query itself may fall one update after the publication.
    """
    return max((t_end_s + m.lag_s + 2 * m.update_interval_s for m in meters), default=t_end_s)


@dataclass(frozen=True)
class Code:
    """Bits of a pulse as text of 0 and 1, seconds per bit."""

    bits: str
    bit_s: float


def code_for(meters: Sequence[MeterPace]) -> Code:
    """The code whose bits the slowest meter resolves."""
    from netjoule_energy.power.alignment import BARKER_13, bit_length_s

    slowest_s = max((meter.update_interval_s for meter in meters), default=0.0)
    return Code(BARKER_13, max(_LEAST_BIT_S, bit_length_s(slowest_s)))


def quiet_s(meters: Sequence[MeterPace]) -> float:
    """Silence before and after a pulse, so that its edges are seen, seconds."""
    return max((_QUIET_UPDATES * m.update_interval_s + m.lag_s for m in meters), default=0.0)


def pulse_s(meters: Sequence[MeterPace]) -> float:
    """How long one pulse takes with its silence, seconds."""
    code = code_for(meters)
    return 2 * quiet_s(meters) + code.bit_s * (len(code.bits) + 1)
