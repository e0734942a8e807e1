# SPDX-License-Identifier: Apache-2.0
"""What pacing costs beyond its wake-ups: our sender against a bare loop over two absolute alarms.

On a virtual machine most of a paced sender's CPU goes into arming the processor's timer, which no program
can do without: there 0.9 of iperf3's CPU at a window of 50 us, the target before, is out of reach. So our
sender is held to a loop that does nothing else, and to as few wake-ups as its window allows.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_bench.generators.contest import Contest
from netjoule_bench.generators.flow import Flow
from netjoule_bench.generators.netjoule_traffic import built, departures
from netjoule_bench.repeats import interleaved, median, ratio, shown
from netjoule_bench.sandbox.processes import Running
from netjoule_bench.sandbox.veth import SENDER_NETNS, VETH
from netjoule_bench.tables import Section, at_most, by_arm

PAYLOAD_BYTES, RATE_MBPS, WINDOW_US = 64, 30.0, 50
MOST_CPU_RATIO, MOST_WAKE_UP_RATIO = 1.25, 1.1
OURS, BARE = f"netjoule-traffic (null), window {WINDOW_US} us", "two alarms, nothing else"


@dataclass(frozen=True)
class Waking:
    """Wake-ups of a process, its CPU seconds and the messages that it sent (none: 0).

    ``late_p99_us`` is how late 99 % came at most: wake-ups after their alarm, messages after their deadline.
    """

    wake_ups: int
    cpu_s: float
    messages: int
    late_p99_us: float | None = None

    @property
    def us_per_wake_up(self) -> float | None:
        """CPU in us."""
        return 1e6 * self.cpu_s / self.wake_ups if self.wake_ups else None

    @property
    def per_message(self) -> float | None:
        """Wake-ups per message."""
        return self.wake_ups / self.messages if self.messages else None


def least_wake_ups(period_us: float, window_us: float) -> float:
    """Fewest wake-ups per message: each sends all messages due between the first one and the window's end."""
    return 1 / (math.floor(window_us / period_us) + 1)


def section(contest: Contest, repo: Path) -> Section:
    """Ours over the transport that drops every message, and the loop at the same period, by turns."""
    flow = Flow(PAYLOAD_BYTES, RATE_MBPS, contest.seconds)
    period_us = 8 * PAYLOAD_BYTES / RATE_MBPS
    least = least_wake_ups(period_us, WINDOW_US)
    bare = [str(built(repo, "examples/two_alarms")), f"{1e3 * period_us / least:.0f}", f"{contest.seconds:g}"]
    options = ["--pacing", "absolute", "--window-us", str(WINDOW_US)]

    def ours() -> Waking:
        return of_report(contest.ours.report(VETH, "null", flow, *options))

    arms: dict[str, Callable[[], Waking]] = {OURS: ours, BARE: lambda: _loop(bare)}
    return judged(interleaved(arms, contest.repeats), least)


def judged(taken: Mapping[str, Sequence[Waking]], least: float) -> Section:
    """The section from all rounds and the fewest wake-ups per message; pure."""
    costs = {name: [one.us_per_wake_up for one in rounds] for name, rounds in taken.items()}
    per_message = median([one.per_message for one in taken[OURS]])
    against = ratio(costs[OURS], costs[BARE])
    of_least = None if per_message is None else per_message / least
    return by_arm(
        f"Wake-ups of a paced sender against a bare loop, 64 B at 30 Mb/s, window {WINDOW_US} us",
        taken,
        {
            "CPU us/wake-up": lambda rounds: shown(median([one.us_per_wake_up for one in rounds])),
            "wake-ups/message": lambda rounds: shown(median([one.per_message for one in rounds]), ".3f"),
            "of the fewest": lambda rounds: shown(of_least if rounds is taken[OURS] else None),
            "p99 late us": lambda rounds: shown(median([one.late_p99_us for one in rounds]), ".0f"),
        },
        arms="sender",
        note="CPU of the flow, or the loop, alone (CLOCK_PROCESS_CPUTIME_ID, the figure of "
        "/proc/PID/schedstat). Ours also builds, times and counts the messages of each wake-up. The loop "
        "(traffic/flow/examples/two_alarms.rs) sets two absolute alarms and waits. A window allows for "
        f"{least:.3f} wake-ups per message at the fewest; ours ends windows early by as much as wake-ups are "
        "late. Late is the loop after its alarm, which no sender on this host can better, and a message "
        f"after its deadline, of which the window allows {WINDOW_US} us. This replaces a target of 0.9 of "
        "iperf3's CPU at this window, which a virtual machine's timer puts out of reach.",
        verdicts=[
            at_most(f"CPU per wake-up against the bare loop, window {WINDOW_US} us", against, MOST_CPU_RATIO),
            at_most(
                f"wake-ups per message against the fewest, window {WINDOW_US} us",
                of_least,
                MOST_WAKE_UP_RATIO,
            ),
        ],
    )


def of_report(report: Mapping[str, Any]) -> Waking:
    """The sender's wake-ups of a flow report."""
    sender, late_us = report["sender"], departures(report).p99_us
    return Waking(report["pacing"]["wake_ups"], sender["cpu_s"], sender["messages_sent"], late_us)


def _loop(command: list[str]) -> Waking:
    with Running(SENDER_NETNS, command) as loop:
        told = json.loads(loop.finish().text)
    return Waking(told["wake_ups"], told["cpu_s"], 0, told["late_p99_us"])
