# SPDX-License-Identifier: Apache-2.0
"""CPU per message of 64 bytes at 30 Mb/s against iperf3 at the same delivered rate, and departure errors.

What iperf3 3.18 costs where both are equally late is held by ``wire``. How few wake-ups a window takes, and
how little each costs, is held against a bare loop (``alarms``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from netjoule_bench.generators.contest import Arms, Contest
from netjoule_bench.generators.flow import Flow, Outcome, figures, middle
from netjoule_bench.repeats import interleaved, median, ratio, shown
from netjoule_bench.tables import Section, Verdict, at_most, by_arm

RATE_MBPS = 30.0
PAYLOAD_BYTES = 64
SAME_RATE = 0.01  # delivered rates may differ by this share and still count as the same


class _Limit(NamedTuple):
    """What one of our arms is held to: its CPU against iperf3's (None: not), and its p99 departure error."""

    window_us: int
    gso: bool
    greatest_ratio: float | None
    greatest_p99_us: float


_LIMITS = [_Limit(50, False, None, 60), _Limit(50, True, 0.75, 60), _Limit(200, True, 0.35, 220)]


def section(contest: Contest) -> Section:
    """One row per window, plain and GSO, and one per other generator."""
    flow = Flow(PAYLOAD_BYTES, RATE_MBPS, contest.seconds)
    taken = interleaved(_ours(contest, flow) | contest.others(flow), contest.repeats)
    return judged(taken, contest.reference).with_absent(contest.absent)


def judged(taken: Mapping[str, Sequence[Outcome]], reference: str) -> Section:
    """The section from the outcomes of all rounds. Pure."""

    def against(figure: Callable[[Outcome], float]) -> Callable[[Sequence[Outcome]], str]:
        return lambda outcomes: shown(_against(outcomes, taken[reference], figure))

    return by_arm(
        "CPU per message, UDP 64 B at 30 Mb/s (58.6 kpps), pacing absolute",
        taken,
        {
            "sender us/message": middle(lambda o: o.sender_us),
            "receiver us/message": middle(lambda o: o.receiver_us),
            "sender against iperf3": against(lambda o: o.sender_us),
            "both against iperf3": against(lambda o: o.sender_us + o.receiver_us),
            "received pps": middle(lambda o: o.received_pps, ",.0f"),
            "departure error p50 us": middle(lambda o: o.departures.p50_us, ".1f"),
            "p99 us": middle(lambda o: o.departures.p99_us, ".1f"),
        },
        note="CPU of the whole process, start-up included; what a veth pair costs in the kernel is the "
        "sender's. Ratios are within a round. Errors are those of the flow's pacing certificate, which no "
        "other generator has.",
        verdicts=[v for limit in _LIMITS for v in _verdicts(taken, taken[reference], limit)],
    )


def _name(window_us: int, *, gso: bool) -> str:
    return f"netjoule-traffic, window {window_us} us{', GSO' if gso else ''}"


def _ours(contest: Contest, flow: Flow) -> Arms:
    paced = partial(contest.ours.run, flow, "--pacing", "absolute", "--window-us")
    return {
        _name(window_us, gso=gso): partial(paced, str(window_us), *(["--gso"] if gso else []))
        for gso in (False, True)
        for window_us in (0, 50, 200)
    }


def _against(
    outcomes: Sequence[Outcome], reference: Sequence[Outcome], figure: Callable[[Outcome], float]
) -> float | None:
    return ratio(figures(outcomes, figure), figures(reference, figure))


def _verdicts(
    taken: Mapping[str, Sequence[Outcome]], reference: Sequence[Outcome], limit: _Limit
) -> list[Verdict]:
    name = _name(limit.window_us, gso=limit.gso)
    outcomes = taken[name]
    p99_us = median(figures(outcomes, lambda o: o.departures.p99_us))
    late = at_most(f"p99 departure error in us, {name}", p99_us, limit.greatest_p99_us, "{:.0f}")
    if limit.greatest_ratio is None:
        return [late]
    what = f"sender CPU per message against iperf3, {name}"
    return [cost(what, outcomes, reference, limit.greatest_ratio), late]


def cost(what: str, outcomes: Sequence[Outcome], reference: Sequence[Outcome], limit: float) -> Verdict:
    """The sender's CPU per message, held to ``limit`` of the reference's; not judged at unlike rates."""
    rates = _against(outcomes, reference, lambda o: o.received_pps)
    found = at_most(what, _against(outcomes, reference, lambda o: o.sender_us), limit)
    if rates is None or abs(rates - 1) > SAME_RATE:
        return Verdict(found.what, found.limit, f"delivered rates differ: {shown(rates, '.3f')}", None)
    return found
