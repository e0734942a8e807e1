# SPDX-License-Identifier: Apache-2.0
"""Faults in real time: three emulated instruments on a pseudo-terminal, a TCP port and a serial stream, one
logger, cables pulled, displays frozen, noise on the lines. Everything that was lost must be told, and every
row without a flag must be a power that there was."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from golden_sentences import raises
from meter_processes import PATIENCE_S, Process

from netjoule_meters.emulated.control import request_fault
from netjoule_meters.errors import MeterError

FED_S = 0.05
AHEAD_S = 0.3
"""Power is fed so early that a busy host may hold the feeder up without an update going without."""
LOW_W, HIGH_W, SLOPE_W_PER_S = 10.0, 20.0, 0.1


def true_w(t_s: float) -> float:
    """A slow triangle: a value tells within a second when it was measured."""
    height_w = HIGH_W - LOW_W
    return LOW_W + abs((SLOPE_W_PER_S * t_s) % (2 * height_w) - height_w)


@dataclass
class Arm:
    """One meter of the test: how it is emulated, read and judged.

    ``tolerance_ratio``: by how much a value may be off; an HM8115-2 has dips of 1 %.
    """

    meter_id: str
    node: str
    emulated: str
    interval_s: float
    settings: dict
    tolerance_ratio: float = 0.0
    port_kind: str = "pty"
    faults: list[tuple[float, str, float]] = field(default_factory=list)
    rows: list[tuple[float, int, float | None, str]] = field(default_factory=list)
    told: list[dict] = field(default_factory=list)
    process: Process | None = None

    def spans(self, *kinds: str) -> list[tuple[float, float]]:
        return [(e["since_s"], e["until_s"]) for e in self.told if e["kind"] in kinds and "until_s" in e]


RANGES = {"voltage_range_v": 300, "current_range_a": 0.1}


def arms() -> list[Arm]:
    return [
        Arm("wt210", "client", "wt210", 0.1, {"update_interval_s": 0.1, **RANGES}),
        Arm("wt310", "access_point", "wt310", 0.1, {"update_interval_s": 0.1, **RANGES}, port_kind="tcp"),
        Arm("hameg", "client", "hm8115", 0.47, {"voltage_range_v": 500, "current_range_a": 0.16}, 0.0105),
    ]


class Bench:
    """Three emulated instruments that are fed, and a logger that reads them."""

    def __init__(self, folder: Path, stack: contextlib.ExitStack, stuck_after_s: float) -> None:
        self.folder = folder
        self.arms = arms()
        self.origin_ns = time.monotonic_ns()
        self._fed = 0
        meters = []
        for arm in self.arms:
            link = [] if arm.port_kind == "tcp" else ["--link", str(folder / arm.meter_id)]
            control = ["--control", str(self.control(arm)), "--seed", "3"]
            stream = ["--power-stream", "-", "--origin-ns", str(self.origin_ns)]
            kind = ["--port-kind", arm.port_kind]
            arm.process = stack.enter_context(
                Process("emulate", arm.emulated, *link, *control, *stream, *kind)
            )
            ready = arm.process.wait_for("ready")
            meters.append(
                {
                    "meter_id": arm.meter_id,
                    "node": arm.node,
                    "adapter": ready["adapter"],
                    "resource": ready["resource"],
                    "settings": {**arm.settings, "stuck_after_s": stuck_after_s},
                    "power_source": "modelled",
                    "device_model": "triangle",
                    "device_form": "constant",
                }
            )
        config = folder / "meters.json"
        config.write_text(json.dumps({"schema_version": 1, "meters": meters}))
        log = ["log", "--config", str(config), "--out", str(folder), "--origin-ns", str(self.origin_ns)]
        self.feed_until(self.now_s() + 1)
        self.log = stack.enter_context(Process(*log))

    def control(self, arm: Arm) -> Path:
        return self.folder / f"{arm.meter_id}.faults"

    def now_s(self) -> float:
        return (time.monotonic_ns() - self.origin_ns) / 1e9

    def feed_until(self, t_s: float) -> None:
        """Let time pass; the instruments get their power as it does."""
        while True:
            now_s = self.now_s()
            while (self._fed + 1) * FED_S <= now_s + AHEAD_S:
                start_s, end_s = self._fed * FED_S, (self._fed + 1) * FED_S
                for arm in self.arms:
                    arm.process.feed(start_s, end_s, true_w((start_s + end_s) / 2))
                self._fed += 1
            if now_s >= t_s:
                return
            time.sleep(FED_S / 2)

    def ask(self, arm: Arm, fault: str, seconds: float) -> None:
        request = {"fault": fault} if fault == "garbage" else {"fault": fault, "seconds": seconds}
        arm.faults.append((request_fault(self.control(arm), request), fault, seconds))

    def end(self) -> dict:
        """End the logger; every arm gets its rows and events."""
        self.log.child.send_signal(signal.SIGTERM)
        ended = self.log.wait_for("ended")
        assert self.log.child.wait(PATIENCE_S) == 0
        for arm in self.arms:
            arm.told = [e for e in self.log.said if e["event"] == "meter" and e["meter_id"] == arm.meter_id]
            lines = (self.folder / "meters" / f"{arm.meter_id}.csv").read_text().splitlines()[1:]
            for line in lines:
                t_s, seq, watts, *_, flag = line.split(",")
                arm.rows.append((float(t_s), int(seq), float(watts) if watts else None, flag))
        return ended


def plan(counts: dict[str, int], meters: int) -> Iterator[tuple[int, str]]:
    """Faults in random order, the meters in turn."""
    faults = [name for name, count in counts.items() for _ in range(count)]
    random.Random(4).shuffle(faults)
    return ((index % meters, fault) for index, fault in enumerate(faults))


def run_with_faults(folder: Path, counts: dict[str, int], *, slot_s: float, frozen_s: float) -> list[Arm]:
    with contextlib.ExitStack() as stack:
        bench = Bench(folder, stack, stuck_after_s=frozen_s / 2)
        bench.feed_until(bench.now_s() + 1)
        bench.log.wait_for("ready")
        start_s = bench.now_s() + 2
        for slot, (which, fault) in enumerate(plan(counts, len(bench.arms))):
            bench.feed_until(start_s + slot * slot_s)
            bench.ask(bench.arms[which], fault, 1.5 if fault == "disconnect" else frozen_s)
        bench.feed_until(bench.now_s() + frozen_s + 6)
        ended = bench.end()
    for arm in bench.arms:
        assert ended["rows"][arm.meter_id] == len(arm.rows)
    return bench.arms


def check(arm: Arm) -> None:
    """The rules that hold for each meter whatever was done to it."""
    assert [seq for _, seq, _, _ in arm.rows] == list(range(len(arm.rows)))
    times_s = [t_s for t_s, *_ in arm.rows]
    assert times_s == sorted(times_s)
    check_nothing_is_invented(arm)
    check_every_hole_is_told(arm)
    for t_s, fault, seconds in arm.faults:
        if fault == "disconnect":
            check_disconnection(arm, t_s, seconds)
        elif fault == "freeze":
            check_freeze(arm, t_s, seconds)
    stuck = [event for event in arm.told if event["kind"] == "stuck"]
    assert len(stuck) == [fault for _, fault, _ in arm.faults].count("freeze"), (
        "no live meter is called stuck"
    )


def check_nothing_is_invented(arm: Arm) -> None:
    """Each good reading is a power that there was just before, but for told spans of a frozen display."""
    frozen = arm.spans("stuck_over")
    good = 0
    for t_s, _, power_w, flag in arm.rows:
        if flag or any(since <= t_s <= until for since, until in frozen):
            continue
        good += 1
        back_s = 3 * arm.interval_s + 0.3
        spot_w = true_w(t_s - back_s / 2)
        error_w = SLOPE_W_PER_S * back_s / 2 + 0.0016 * HIGH_W + 0.031 + arm.tolerance_ratio * spot_w
        assert abs(power_w - spot_w) <= error_w, (arm.meter_id, t_s, power_w, spot_w)
    lasted_s = arm.rows[-1][0] - arm.rows[0][0]
    assert good > 0.6 * lasted_s / arm.interval_s


def check_every_hole_is_told(arm: Arm) -> None:
    told = arm.spans("gap", "gap_over")
    updates_s = [t_s for t_s, _, _, flag in arm.rows if flag in ("", "stale", "no_data", "overrange")]
    for before_s, after_s in itertools.pairwise(updates_s):
        if after_s - before_s >= 2.5 * arm.interval_s:
            found = any(since <= before_s and after_s <= until for since, until in told)
            assert found, f"{arm.meter_id}: nothing is told about {before_s} to {after_s}"


def check_disconnection(arm: Arm, t_s: float, seconds: float) -> None:
    spans = [
        s
        for s in arm.spans("gap", "gap_over")
        if s[0] <= t_s + 2 * arm.interval_s + 0.5 and s[1] >= t_s + seconds
    ]
    assert spans, f"{arm.meter_id}: the disconnection at {t_s} is not told"
    back = [
        event
        for event in arm.told
        if event["kind"] == "reconnect" and spans[0][0] < event["t_s"] < spans[0][1]
    ]
    assert len(back) == 1
    assert [flag for at_s, _, _, flag in arm.rows if spans[0][0] < at_s < spans[0][1] and not flag] == []


def check_freeze(arm: Arm, t_s: float, seconds: float) -> None:
    until_s = t_s + seconds
    slack_s = 4 * arm.interval_s + 1
    since = [s for s, u in arm.spans("stuck_over") if abs(s - t_s) < slack_s and abs(u - until_s) < slack_s]
    assert len(since) == 1, f"{arm.meter_id}: the freeze at {t_s} is not told"
    assert any(flag == "stale" for at_s, _, _, flag in arm.rows if t_s < at_s < until_s)


@pytest.fixture
def one_meter(tmp_path):
    """A logger on an emulated WT210 that can be asked for faults: the logger, and how to ask."""
    with contextlib.ExitStack() as stack:
        control = tmp_path / "faults"
        arguments = ("--power-w", "12.5", "--link", str(tmp_path / "wt"), "--control", str(control))
        stack.enter_context(Process("emulate", "wt210", *arguments)).wait_for("ready")
        settings = {"update_interval_s": 0.1, **RANGES}
        meter = {"meter_id": "m1", "node": "client", "adapter": "wt210", "resource": str(tmp_path / "wt")}
        config = tmp_path / "meters.json"
        config.write_text(json.dumps({"schema_version": 1, "meters": [meter | {"settings": settings}]}))
        log = stack.enter_context(Process("log", "--config", str(config), "--out", str(tmp_path)))
        log.wait_for("ready")
        wait_for_rows(tmp_path, 3)
        yield log, lambda **request: request_fault(control, request)


def flags(folder: Path) -> list[str]:
    lines = (folder / "meters" / "m1.csv").read_text().splitlines()[1:]
    return [line.rsplit(",", 1)[1] for line in lines]


def wait_for_rows(folder: Path, count: int) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while len(flags(folder)) < count:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_split_bytes_are_put_together(tmp_path, one_meter):
    log, ask = one_meter
    ask(fault="split", seconds=60, gap_s=0.002)
    wait_for_rows(tmp_path, len(flags(tmp_path)) + 12)
    assert log.end() == 0
    # On a busy host the pieces take their time: that is a gap, never an answer read wrongly.
    assert flags(tmp_path).count("") >= 9 and set(flags(tmp_path)) <= {"", "no_data", "timeout"}


def test_a_silent_meter_is_a_gap_that_ends(one_meter):
    log, ask = one_meter
    ask(fault="silence", seconds=1.2)
    assert log.wait_for("meter", '"gap"')["message"].startswith("no new value for")
    while True:  # a busy host may make shorter ones
        over = log.wait_for("meter", '"gap_over"')
        if over["until_s"] - over["since_s"] > 1.1:
            break


def test_a_lost_answer_is_a_gap_and_neither_garbage_nor_a_stuck_meter(tmp_path, one_meter):
    log, ask = one_meter
    ask(fault="drop", count=1)
    log.wait_for("meter", '"gap_over"')
    wait_for_rows(tmp_path, len(flags(tmp_path)) + 3)
    log.child.send_signal(signal.SIGTERM)
    log.wait_for("ended")
    # A lost answer looks like a lost line: the meter may be connected anew, without a value at first.
    kinds = [event["kind"] for event in log.said if event["event"] == "meter"]
    assert {"gap", "gap_over"} <= set(kinds) <= {"gap", "gap_over", "note", "reconnect", "no_data"}
    assert kinds.count("reconnect") <= 1
    assert set(flags(tmp_path)) <= {"", "no_data", "timeout", "reconnect"}


def test_a_fault_that_there_is_not(one_meter):
    _, ask = one_meter
    with raises(MeterError):
        ask(fault="fire")


def test_some_faults_over_three_meters(tmp_path):
    counts = {"disconnect": 2, "freeze": 1, "garbage": 3}
    for arm in run_with_faults(tmp_path, counts, slot_s=3, frozen_s=6):
        check(arm)


@pytest.mark.slow
def test_ten_minutes_of_faults_over_three_meters(tmp_path):
    counts = {"disconnect": 20, "freeze": 5, "garbage": 50}
    checked = run_with_faults(tmp_path, counts, slot_s=8, frozen_s=8)
    for arm in checked:
        check(arm)
    assert sum(len(arm.faults) for arm in checked) == 75
    garbage = [event for arm in checked for event in arm.told if event["kind"] == "garbage"]
    assert len(garbage) >= 25, "noise on the line is told as what it is"
