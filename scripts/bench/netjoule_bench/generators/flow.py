# SPDX-License-Identifier: Apache-2.0
"""What is asked of a generator, and what came of it: one form for all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from netjoule_bench.repeats import median, shown


@dataclass(frozen=True)
class Flow:
    """A flow of constant rate; ``rate_mbps`` None means as fast as it goes."""

    payload_bytes: int
    rate_mbps: float | None
    seconds: float

    @property
    def messages(self) -> float:
        """Messages that the asked rate makes in the asked time."""
        return (self.rate_mbps or 0.0) * 1e6 * self.seconds / (8 * self.payload_bytes)

    def at(self, pps: float) -> Flow:
        """The same flow at ``pps`` messages per second."""
        return Flow(self.payload_bytes, pps * 8e-6 * self.payload_bytes, self.seconds)

    def outcome(self, packets: tuple[int, int], seconds: float, cpu_s: tuple[float, float]) -> Outcome:
        """What another generator tells: packets and CPU of both ends; 0 s where it tells no time."""
        return Outcome(round(self.messages), *packets, seconds or self.seconds, *cpu_s)


@dataclass(frozen=True)
class Departures:
    """How late messages left against their schedule, as the generator certifies it; None: not told.

    ``p50_us`` and ``p99_us`` are quantiles in us, ``within_50us`` the share that was at most that late.
    """

    p50_us: float | None
    p99_us: float | None
    within_50us: float | None


@dataclass(frozen=True)
class Outcome:
    """What one flow did: message counts of both ends and CPU seconds of both processes.

    ``seconds`` is the time that the messages were spread over.
    """

    scheduled: int
    sent: int
    received: int
    seconds: float
    sender_cpu_s: float
    receiver_cpu_s: float
    departures: Departures = Departures(None, None, None)

    @property
    def sent_pps(self) -> float:
        """Messages sent per second."""
        return self.sent / self.seconds

    @property
    def received_pps(self) -> float:
        """Messages received per second, each once."""
        return self.received / self.seconds

    @property
    def loss(self) -> float:
        """Share of the sent messages that did not arrive; 1 when none was sent."""
        return 1 - self.received / self.sent if self.sent else 1.0

    @property
    def sender_us(self) -> float:
        """CPU of the sending process per message sent, in us."""
        return 1e6 * self.sender_cpu_s / max(self.sent, 1)

    @property
    def receiver_us(self) -> float:
        """CPU of the receiving process per message received, in us."""
        return 1e6 * self.receiver_cpu_s / max(self.received, 1)


Run = Callable[[Flow], Outcome]
"""One UDP flow of a generator."""


def figures(
    outcomes: Sequence[Outcome | None], figure: Callable[[Outcome], float | None]
) -> list[float | None]:
    """One figure of each round; None where the round has no outcome or the outcome not this figure."""
    return [None if outcome is None else figure(outcome) for outcome in outcomes]


def middle(
    figure: Callable[[Outcome], float | None], form: str = ".2f"
) -> Callable[[Sequence[Outcome | None]], str]:
    """A column of a table: the median of one figure."""
    return lambda outcomes: shown(median(figures(outcomes, figure)), form)
