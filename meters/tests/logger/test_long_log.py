# SPDX-License-Identifier: Apache-2.0
"""Hours of logging at 10 Hz in minutes: the real logger, adapters, emulated instruments and files; only the
waits are skipped, each meter moving a clock of its own."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path
from random import Random

import pytest

from netjoule_meters.adapters import adapter
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions, make_instrument
from netjoule_meters.errors import Cancelled, ReplyTimeout
from netjoule_meters.logger.process import Logger

SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}
SEEDS = {"client": None, "client-2": 7, "access-point": 8}
STEP_W, STEPS = 0.01, 2000
LINE_S = 0.001
"""What sending one line takes, about."""


def power_w(index: int) -> float:
    """A saw-tooth whose every step a WT210 tells from the one before, whatever its gain."""
    return 5.0 + STEP_W * (index % STEPS)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class SteppedClock:
    """A clock that is moved by who waits."""

    def __init__(self) -> None:
        self.now_ns = 0

    def monotonic_ns(self) -> int:
        return self.now_ns


class Loopback:
    """A transport that moves its clock instead of waiting. True power of the n-th 0.1 s is ``power_w(n)``.

    ``busy`` tells when the test should let others work; ``end_s`` is when the wait is called off.
    """

    def __init__(self, instrument, clock: SteppedClock, power_w: Callable[[int], float], end_s: float,
                 seed: int, busy: Callable[[], bool]) -> None:  # fmt: skip
        self.resource = "loopback"
        self.fed = 0
        self._instrument = instrument
        self._clock = clock
        self._power_w = power_w
        self._end_s = end_s
        self._random = Random(seed)
        self._busy = busy
        self._received = b""

    def open(self) -> None:
        self._received = b""

    def close(self) -> None:
        pass

    def cancel(self) -> None:
        self._end_s = 0.0

    def drain(self, quiet_s: float) -> None:
        self._advance(quiet_s)
        self._received = b""

    def write_line(self, line: bytes) -> None:
        self._advance(LINE_S * self._random.uniform(0.5, 3))
        self._instrument.receive(line + b"\r\n")
        self._advance(0.0)

    def read_line(self, timeout_s: float) -> bytes:
        while self._busy():
            time.sleep(0.001)
        deadline_s = self._now_s() + timeout_s
        while b"\n" not in self._received:
            now_s = self._now_s()
            if now_s >= self._end_s:
                raise Cancelled("the end")
            if now_s >= deadline_s:
                raise ReplyTimeout(f"no answer within {timeout_s} s")
            wake_s = self._instrument.wake_s(now_s)
            next_s = deadline_s if wake_s is None else min(deadline_s, max(wake_s, now_s))
            self._advance(max(1e-6, next_s - now_s))
        line, _, self._received = self._received.partition(b"\n")
        return line.strip(b"\r")

    def _now_s(self) -> float:
        return self._clock.now_ns / 1e9

    def _advance(self, seconds: float) -> None:
        """Let time pass; the instrument does what is due and its output arrives."""
        self._clock.now_ns += round(seconds * 1e9)
        now_s = self._now_s()
        while 0.1 * (self.fed + 1) <= now_s:
            interval = PowerInterval(0.1 * self.fed, 0.1 * (self.fed + 1), self._power_w(self.fed))
            self._instrument.feed(interval)
            self.fed += 1
        self._received += self._instrument.step(now_s)


class LongLog:
    """Three meters on two nodes into ``out`` for ``hours``; memory is noted on the way."""

    def __init__(self, out: Path, hours: float) -> None:
        self.end_s = hours * 3600
        self.memory: list[int] = []
        self.events: list[dict] = []
        self._noted_s = 0.0
        configs = [
            MeterConfig(name, name.rsplit("-", 1)[0], "wt210", name, SETTINGS, "modelled") for name in SEEDS
        ]
        self.transports = {}
        self.logger = Logger(
            configs=configs,
            out=out,
            origin_ns=0,
            clock=SteppedClock(),
            today=date(2026, 11, 21),
            emit=self.events.append,
            build=self._build,
        )

    def _build(self, config, _clock, notify):
        clock = SteppedClock()
        seed = SEEDS[config.meter_id]
        instrument = make_instrument("wt210", EmulationOptions(seed=seed))
        self.transports[config.meter_id] = Loopback(
            instrument, clock, power_w, self.end_s, seed or 0, lambda: self._writer_is_behind(clock)
        )
        return adapter("wt210")(self.transports[config.meter_id], SETTINGS, clock=clock, notify=notify)

    def _writer_is_behind(self, clock) -> bool:
        """Meters that never wait must wait for the disk here; and a look at the memory now and then."""
        if clock.now_ns / 1e9 - self._noted_s > self.end_s / 50:
            self._noted_s = clock.now_ns / 1e9
            self.memory.append(resident_bytes())
        return self.logger._queue.qsize() > 200


def check_rows(path: Path, fed: int) -> int:
    """Every update once: rows numbered without holes, each one step of the saw-tooth after the one before."""
    previous: tuple[float, float] | None = None
    count = 0
    with path.open() as lines:
        next(lines)
        for line in lines:
            t_s, seq, watts, *_, flag = line.rstrip("\n").split(",")
            assert (int(seq), flag) == (count, ""), line
            if previous is not None:
                step_w = float(watts) - previous[1]
                expected_w = STEP_W if step_w > 0 else STEP_W - STEP_W * STEPS
                assert abs(step_w - expected_w) < 0.004 * abs(expected_w) + 0.0011, (line, previous)
                assert 0.09 < float(t_s) - previous[0] < 0.11, line
            previous = (float(t_s), float(watts))
            count += 1
    assert fed - 10 <= count <= fed, "all updates but those of the set-up"
    return count


def log_and_check(tmp_path, hours: float) -> LongLog:
    log = LongLog(tmp_path, hours)
    before = threading.active_count()
    log.logger.run()
    assert threading.active_count() == before
    ended = log.events[-1]
    assert [event["event"] for event in log.events] == ["ready", "ended"], "nothing to remark"
    for name, transport in log.transports.items():
        count = check_rows(tmp_path / "meters" / f"{name}.csv", transport.fed)
        assert ended["rows"][name] == ended["summary"][name]["readings"] == count
        assert ended["summary"][name]["gaps"] == 0
    return log


def test_three_meters_for_ten_minutes_of_their_time(tmp_path):
    log_and_check(tmp_path, 1 / 6)


@pytest.mark.slow
def test_three_meters_for_a_day_of_their_time_without_growing(tmp_path):
    log = log_and_check(tmp_path, 24)
    assert len(log.memory) > 40
    early, late = max(log.memory[4:12]), max(log.memory[-8:])
    assert late - early < 4_000_000, f"{early} -> {late} bytes resident"
    assert all(count > 863_900 for count in log.events[-1]["rows"].values())
