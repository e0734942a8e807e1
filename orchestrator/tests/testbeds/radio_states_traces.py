# SPDX-License-Identifier: Apache-2.0
"""Makes the traces that the radio machines are held to each other on; one seed, the same bytes every time.

`python3 orchestrator/tests/testbeds/radio_states_traces.py` writes protocols/contracts/vectors/radio-states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

FOLDER = Path(__file__).parents[3] / "protocols" / "contracts" / "vectors" / "radio-states"
SEED = 31
Line = tuple[float, str, int]
"""t_s, direction, IP bytes."""
FULL_BYTES, ACK_BYTES = 1500, 52


def _handshake(t_s: float, rtt_s: float) -> Iterator[Line]:
    yield t_s, "up", 60
    yield t_s + rtt_s, "down", 60
    yield t_s + rtt_s + 0.0002, "up", ACK_BYTES


def _answer(t_s: float, size_bytes: int, spacing_s: float, random: Random) -> Iterator[Line]:
    """A body in full packets, every second one and the last acknowledged."""
    packets = -(-size_bytes // (FULL_BYTES - ACK_BYTES))
    for index in range(packets):
        left = size_bytes - index * (FULL_BYTES - ACK_BYTES)
        at_s = t_s + (index + random.uniform(-0.15, 0.15)) * spacing_s
        yield at_s, "down", min(left + ACK_BYTES, FULL_BYTES)
        if index % 2 or index == packets - 1:
            yield at_s + 0.1 * spacing_s, "up", ACK_BYTES


def bulk(random: Random) -> Iterator[Line]:
    """One download of 8 MB at 20 Mb/s."""
    yield from _handshake(1.0137, 0.02)
    yield 1.0345, "up", 420
    yield from _answer(1.06, 8_000_000, FULL_BYTES * 8 / 20e6, random)


def once_a_second(random: Random) -> Iterator[Line]:
    """60 small packets, up and down in turn."""
    for second in range(60):
        yield second + 0.5 + random.uniform(-0.03, 0.03), ("down" if second % 2 else "up"), _small(random)


def web(random: Random) -> Iterator[Line]:
    """Pages of twelve objects; between them times to read that end in each state of each machine."""
    t_s = 2.0
    for think_s in (5.2, 8.3, 12.0, 18.0, 29.0):
        yield t_s, "up", 70
        yield t_s + 0.06, "down", 150
        t_s += 0.065
        yield from _handshake(t_s, 0.06)
        for _ in range(12):
            t_s += random.uniform(0.05, 0.35)
            yield t_s, "up", round(random.uniform(380, 620))
            size_bytes = round(500 * 120 ** random.random())
            yield from _answer(t_s + random.uniform(0.06, 0.12), size_bytes, 0.0009, random)
        t_s += 0.2 + think_s
        yield from _news(t_s - random.uniform(0.1, 0.9) * think_s, random)
    # The last is read for long; what is new comes by itself.
    for _ in range(4):
        t_s += random.uniform(5, 20)
        yield from _news(t_s, random)


def _news(t_s: float, random: Random) -> Iterator[Line]:
    """Small packets from the network; one in two is answered, whether it has yet passed or not."""
    for index in range(1 + int(3 * random.random())):
        at_s = t_s + index * random.uniform(0.02, 0.4)
        yield at_s, "down", _small(random)
        if random.random() < 0.5:
            yield at_s + 0.003, "up", ACK_BYTES


def _small(random: Random) -> int:
    return round(random.uniform(60, 260))


TRACES: dict[str, Callable[[Random], Iterator[Line]]] = {
    "bulk": bulk,
    "once-a-second": once_a_second,
    "web": web,
}


def text(name: str) -> str:
    """A trace as its file has it: in order of time, no two packets in one microsecond."""
    lines, last_us = ["t_s,direction,bytes"], 0
    for t_s, direction, size in sorted(TRACES[name](Random(f"{SEED} {name}"))):
        last_us = max(round(t_s * 1e6), last_us + 1)
        lines.append(f"{last_us / 1e6:.6f},{direction},{size}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for each in TRACES:
        (FOLDER / f"{each}.csv").write_text(text(each), encoding="utf-8")
