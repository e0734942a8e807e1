# SPDX-License-Identifier: Apache-2.0
"""A thin flow: skype's 300 bytes at 65 kb/s. What does it cost, and how many messages leave in time?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.flow import Flow, Outcome, figures, middle
from netjoule_bench.repeats import INTERVALS, interleaved, interval, median
from netjoule_bench.tables import Section, at_least, at_most, by_arm

RATE_MBPS, PAYLOAD_BYTES = 0.065, 300
MOST_CORE_SHARE_PERCENT = 1.0
LEAST_IN_TIME_PERCENT = 95.0
OURS = "netjoule-traffic, window 0"


def section(contest: Contest) -> Section:
    """One row per generator."""
    flow = Flow(PAYLOAD_BYTES, RATE_MBPS, contest.seconds)
    arms = {OURS: lambda: contest.ours.run(flow, "--pacing", "absolute", "--window-us", "0")}
    taken = interleaved(arms | contest.others(flow), contest.repeats)
    return judged(taken, contest.seconds).with_absent(contest.absent)


def judged(taken: Mapping[str, Sequence[Outcome]], seconds: float) -> Section:
    """The section from the outcomes of all rounds; pure."""
    share = median(figures(taken[OURS], lambda o: 100 * o.sender_cpu_s / seconds))
    in_time = _in_time_percent(taken[OURS])
    held = at_least("skype: departures within 50 us, %", median(in_time), LEAST_IN_TIME_PERCENT, "{:.1f}")
    return by_arm(
        "A thin flow: UDP 300 B at 65 kb/s (skype), window 0",
        taken,
        {
            "sender, % of a core": middle(lambda o: 100 * o.sender_cpu_s / seconds, ".3f"),
            "receiver, % of a core": middle(lambda o: 100 * o.receiver_cpu_s / seconds, ".3f"),
            "within 50 us %": lambda outcomes: interval(_in_time_percent(outcomes)),
            "p99 us": middle(lambda o: o.departures.p99_us, ".1f"),
        },
        note="CPU of the whole process over the flow's time, start-up included. " + INTERVALS,
        verdicts=[
            at_most("skype: sender, % of a core", share, MOST_CORE_SHARE_PERCENT),
            replace(held, measured=interval(in_time)),
        ],
    )


def _in_time_percent(outcomes: Sequence[Outcome]) -> list[float | None]:
    shares = figures(outcomes, lambda o: o.departures.within_50us)
    return [None if share is None else 100 * share for share in shares]
