# SPDX-License-Identifier: Apache-2.0
"""A second implementation of schedules, from their description alone, in whole numbers.

It writes protocols/contracts/vectors/random.json and schedules.json (``python schedule_reference.py``), which
the traffic engine is held to. It favours plainness over speed.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

VECTORS = Path(__file__).parents[1] / "vectors"
WORD = (1 << 64) - 1
PURPOSES = ("size", "inter_departure", "on", "off")
LN_2_Q63 = 6393154322601327829
NS = 10**9
DAY_NS = 86400 * NS

Departure = tuple[int, int]


def splitmix64(seed: int) -> Iterator[int]:
    while True:
        seed = (seed + 0x9E3779B97F4A7C15) & WORD
        z = seed
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9 & WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB & WORD
        yield z ^ (z >> 31)


def rotated(x: int, left: int) -> int:
    return (x << left | x >> (64 - left)) & WORD


def xoshiro256plusplus(state: list[int]) -> Iterator[int]:
    s = list(state)
    while True:
        yield (rotated((s[0] + s[3]) & WORD, 23) + s[0]) & WORD
        t = s[1] << 17 & WORD
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotated(s[3], 45)


def sequence(seed: int, purpose: str) -> Iterator[int]:
    first = 4 * PURPOSES.index(purpose)
    return xoshiro256plusplus(list(itertools.islice(splitmix64(seed), first, first + 4)))


def log2_q40(x: int) -> int:
    """floor(log2(x) * 2^40), by squaring the mantissa, truncated to 63 fraction bits after each step."""
    whole = x.bit_length() - 1
    mantissa = x << (63 - whole)
    log = whole
    for _ in range(40):
        mantissa = mantissa * mantissa >> 63
        digit = mantissa >> 64
        mantissa >>= digit
        log = log << 1 | digit
    return log


def natural(log2: int) -> int:
    return log2 * LN_2_Q63 >> 63


def exp2_q62(fraction: int) -> int:
    power, root = 1 << 62, 1 << 63
    for place in range(39, -1, -1):
        root = math.isqrt(root << 62)
        if fraction >> place & 1:
            power = power * root >> 62
    return power


def rounded(value: int, bits: int) -> int:
    return value + (1 << bits - 1) >> bits


def whole(value: float, scale: float) -> int:
    return math.floor(value * scale + 0.5)


class Values:
    """Values of one distribution in whole units of 1/scale."""

    def __init__(self, law: Any, scale: float, least: int, greatest: int, words: Iterator[int]) -> None:
        self.law = law if isinstance(law, dict) else {"distribution": "constant", "value": law}
        self.scale, self.words = scale, words
        kind = self.law["distribution"]
        self.least, self.greatest = least, greatest
        if kind == "constant":
            self.least = self.greatest = whole(self.law["value"], scale)
        elif kind == "pareto":
            self.least = whole(self.law["scale"], scale)
        elif "min" in self.law:
            self.least = whole(self.law["min"], scale)
        if "max" in self.law:
            self.greatest = whole(self.law["max"], scale)
        if kind == "empirical":
            self.values = [whole(v, scale) for v in self.law["values"]]
            weights = self.law.get("weights", [1] * len(self.values))
            self.cumulative = list(itertools.accumulate(weights))

    def parameter(self, name: str) -> int:
        return math.floor(self.law[name] * self.scale * 65536 + 0.5)

    def minus_log2(self) -> int:
        return (64 << 40) - log2_q40(max(1, next(self.words)))

    def draw(self) -> int:
        kind = self.law["distribution"]
        if kind == "empirical":
            place = next(self.words) * self.cumulative[-1] >> 64
            return next(v for v, upto in zip(self.values, self.cumulative, strict=True) if upto > place)
        return min(max(getattr(self, kind)(), self.least), self.greatest)

    def constant(self) -> int:
        return self.least

    def uniform(self) -> int:
        return self.least + (next(self.words) * (self.greatest - self.least + 1) >> 64)

    def exponential(self) -> int:
        return rounded(natural(self.minus_log2()) * self.parameter("mean"), 56)

    def pareto(self) -> int:
        shape = math.floor(self.law["shape"] * 2.0**32 + 0.5)
        exponent = (self.minus_log2() << 32) // shape
        if exponent >> 40 >= 78:
            return WORD
        power = exp2_q62(exponent & ((1 << 40) - 1))
        return rounded(self.parameter("scale") * power, 78 - (exponent >> 40))

    def normal(self) -> int:
        while True:
            word = next(self.words)
            x, y = (word >> 32) - 2**31, (word & 0xFFFFFFFF) - 2**31
            square = x * x + y * y
            if 0 < square < 1 << 62:
                break
        ratio = (2 * natural((62 << 40) - log2_q40(square)) << 62) // square
        z = x * math.isqrt(ratio << 18) >> 20
        value = (self.parameter("mean") << 20) + (z * self.parameter("standard_deviation") >> 20)
        return rounded(max(0, value), 36)


def departures(profile: dict[str, Any], seed: int) -> Iterator[Departure]:
    """Endless, but for a trace that is played once."""
    words = {purpose: sequence(seed, purpose) for purpose in PURPOSES}
    if "trace" in profile:
        return replayed(profile["trace"])
    if "video_chunks" in profile:
        given = profile["video_chunks"]
        return fetched(given, Values(given["chunk_bytes"], 1.0, 16, 10**9, words["size"]))
    given = profile.get("messages") or profile["talk_spurts"]
    size = Values(given["size_bytes"], 1.0, 16, 65535, words["size"])
    gap = Values(given["inter_departure_s"], 1e9, 0, DAY_NS, words["inter_departure"])
    if "messages" in profile:
        return spaced(size, gap)
    on, off = (Values(given[f"{name}_s"], 1e9, 0, DAY_NS, words[name]) for name in ("on", "off"))
    return talked(size, gap, on, off)


def spaced(size: Values, gap: Values) -> Iterator[Departure]:
    due_ns = 0
    while True:
        yield due_ns, size.draw()
        due_ns += gap.draw()


def talked(size: Values, gap: Values, on: Values, off: Values) -> Iterator[Departure]:
    start_ns = 0
    while True:
        length_ns, silence_ns = on.draw(), off.draw()
        into_ns = 0
        while True:
            yield start_ns + into_ns, size.draw()
            into_ns += gap.draw()
            if into_ns >= length_ns:
                break
        start_ns += length_ns + silence_ns


def fetched(given: dict[str, Any], chunk: Values) -> Iterator[Departure]:
    """Chunks as a player fetches them; times in ns."""
    chunk_ns, start_ns, room_ns = (
        whole(given[name], 1e9) for name in ("chunk_s", "start_buffer_s", "greatest_buffer_s")
    )
    rate_bps, message_bytes = whole(given["download_mbps"], 1e6), whole(given["message_bytes"], 1.0)
    now_ns = media_ns = 0
    playing = False

    def took_ns(size: int) -> int:
        return -(-8 * size * NS // rate_bps)

    while True:
        size = chunk.draw()
        for before in range(0, size, message_bytes):
            yield now_ns + took_ns(before), max(16, min(message_bytes, size - before))
        fetch_ns = took_ns(size)
        if playing:
            playing = fetch_ns < media_ns
            media_ns = max(0, media_ns - fetch_ns)
        media_ns += chunk_ns
        playing = playing or media_ns >= start_ns
        wait_ns = max(0, media_ns + chunk_ns - room_ns)
        if playing:
            playing = wait_ns < media_ns
            media_ns = max(0, media_ns - wait_ns)
        now_ns += fetch_ns + wait_ns


def replayed(given: dict[str, Any]) -> Iterator[Departure]:
    lines = [line.split(",") for line in given["csv"].split()[1:]]
    seen = [(whole(float(t) - float(lines[0][0]), 1e9), int(size)) for t, size in lines]
    rounds = itertools.count() if "period_s" in given else range(1)
    for n in rounds:
        for due_ns, size in seen:
            yield due_ns + n * whole(given.get("period_s", 0), 1e9), size


def fnv1a64(data: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & WORD
    return value


def schedule(profile: dict[str, Any], seed: int, duration_ns: int) -> list[Departure]:
    return list(itertools.takewhile(lambda d: d[0] < duration_ns, departures(profile, seed)))


def digest(table: list[Departure]) -> str:
    entries = (due.to_bytes(8, "little") + size.to_bytes(2, "little") for due, size in table)
    return f"fnv1a64:{fnv1a64(b'netjoule schedule, table' + bytes([10]) + b''.join(entries)):016x}"


# --- vectors ----------------------------------------------------------------------------------------

PROFILES: list[dict[str, Any]] = [
    {"name": "constant", "messages": {"size_bytes": 300, "inter_departure_s": 0.02}},
    {
        "name": "uniform-exponential",
        "messages": {
            "size_bytes": {"distribution": "uniform", "min": 64, "max": 1440},
            "inter_departure_s": {"distribution": "exponential", "mean": 0.01},
        },
    },
    {
        "name": "exponential-uniform",
        "messages": {
            "size_bytes": {"distribution": "exponential", "mean": 400.5, "max": 1440},
            "inter_departure_s": {"distribution": "uniform", "min": 0, "max": 0.03},
        },
    },
    {
        "name": "normal-pareto",
        "messages": {
            "size_bytes": {
                "distribution": "normal",
                "mean": 700,
                "standard_deviation": 250,
                "min": 100,
                "max": 1400,
            },
            "inter_departure_s": {"distribution": "pareto", "shape": 1.5, "scale": 0.004, "max": 2},
        },
    },
    {
        "name": "pareto-normal",
        "messages": {
            "size_bytes": {"distribution": "pareto", "shape": 1.2, "scale": 80.5, "max": 1440},
            "inter_departure_s": {"distribution": "normal", "mean": 0.01, "standard_deviation": 0.005},
        },
    },
    {
        "name": "empirical",
        "messages": {
            "size_bytes": {"distribution": "empirical", "values": [64, 576, 1440], "weights": [5, 0, 3]},
            "inter_departure_s": {"distribution": "empirical", "values": [0.001, 0.0205, 0.005]},
        },
    },
    {
        "name": "talk",
        "talk_spurts": {
            "on_s": {"distribution": "exponential", "mean": 1.2, "max": 8},
            "off_s": {"distribution": "exponential", "mean": 1.8},
            "size_bytes": {"distribution": "normal", "mean": 160, "standard_deviation": 30, "max": 300},
            "inter_departure_s": 0.02,
        },
    },
    {
        "name": "video",
        "video_chunks": {
            "chunk_bytes": {"distribution": "uniform", "min": 90000, "max": 160000},
            "chunk_s": 1.5,
            "message_bytes": 1400,
            "download_mbps": 7.7,
            "start_buffer_s": 2,
            "greatest_buffer_s": 12,
        },
    },
    {"name": "once", "trace": {"csv": "t_s,bytes\n7,64\n7.5,1440\n7.5,100\n9.25,64\n"}},
    {"name": "rounds", "trace": {"csv": "t_s,bytes\n0,64\n0.5,1440\n2.25,65535\n", "period_s": 2.5}},
]
SEEDS = (1, 2**53 - 1)
DURATION_NS = 30 * NS


def schedule_case(profile: dict[str, Any], seed: int) -> dict[str, Any]:
    profile = {"schema_version": 1, **profile}
    table = schedule(profile, seed, DURATION_NS)
    return {
        "profile": profile,
        "seed": seed,
        "duration_ns": DURATION_NS,
        "messages": len(table),
        "bytes": sum(size for _, size in table),
        "last_due_ns": table[-1][0],
        "digest": digest(table),
        "first": [list(d) for d in table[:6]],
    }


def schedules_document() -> dict[str, Any]:
    return {
        "schema_version": 1,
        "description": "What a profile, a seed and a duration give, for every language: written by"
        " protocols/contracts/tests/schedule_reference.py. first: [due in ns, size in bytes] of the first"
        " messages; digest: FNV-1a of 64 bits over 'netjoule schedule, table', a line feed, and of every"
        " message the due time (8 bytes) and the size (2 bytes), little-endian.",
        "cases": [schedule_case(profile, seed) for profile in PROFILES for seed in SEEDS],
    }


def random_document() -> dict[str, Any]:
    def words(of: Iterator[int], count: int) -> list[str]:
        return [str(word) for word in itertools.islice(of, count)]

    return {
        "schema_version": 1,
        "description": "Random numbers of schedules, as text because they have 64 bits. splitmix64 with seed"
        " 1234567 and xoshiro256++ with state 1, 2, 3, 4 are the published test values of both; the purpose"
        " numbered k (size, inter_departure, on, off) starts xoshiro256++ from words 4k to 4k + 3 of"
        " splitmix64. Written by protocols/contracts/tests/schedule_reference.py.",
        "splitmix64": [
            {"seed": seed, "words": words(splitmix64(seed), 5)} for seed in (1234567, 0, 2**53 - 1)
        ],
        "xoshiro256plusplus": [{"state": [1, 2, 3, 4], "words": words(xoshiro256plusplus([1, 2, 3, 4]), 10)}],
        "purposes": [
            {"seed": seed, "purpose": purpose, "words": words(sequence(seed, purpose), 4)}
            for seed in SEEDS
            for purpose in PURPOSES
        ],
    }


DOCUMENTS = {"random.json": random_document, "schedules.json": schedules_document}

if __name__ == "__main__":
    for name, document in DOCUMENTS.items():
        text = json.dumps(document(), indent=1, ensure_ascii=False)
        (VECTORS / name).write_text(text + "\n", encoding="utf-8")
