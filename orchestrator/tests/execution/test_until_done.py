# SPDX-License-Identifier: Apache-2.0
"""Windows until done, against a world without processes: where they lie, and what a resumed session keeps."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from runner_fakes import START_NS, FakeTestbed, Script, new_campaign, opener
from runner_fakes import TIMING as OF_FLOWS

from netjoule import loads
from netjoule.design import timeline
from netjoule.design.timeline import MeterPace, Span
from netjoule.execution import runner
from netjoule.radio import RadioRecord
from netjoule.store.campaign import Campaign
from netjoule.workload.load import (
    Condition,
    Document,
    Event,
    HostTime,
    Kept,
    LoadSession,
    Outcome,
    Part,
    Place,
)
from netjoule.workload.workload import Timing, Workload
from netjoule_energy.campaign.files import read_states
from netjoule_energy.power.readings import Window
from netjoule_energy.power.until_done import tail_of

ONCE_S = 0.4
TIMING = Timing(idle_s=1.0, settle_s=0.2, warm_up_s=0.0, measure_s=1.0, tail_s=0.3)


ENDED = {"exit_code": 0, "signal": None, "timed_out": False, "cpu_user_s": 0.0, "cpu_system_s": 0.0}
KNOWN = {"max_rss_bytes": 0, "sent_bytes": None, "received_bytes": None, "last_lines": []}
REPORT: dict[str, Any] = {
    "schema_version": 1,
    "kind": "command_report",
    "host": "client",
    "boot_id": "b",
    "runs": [{"start_ns": 0, "end_ns": 1, **ENDED, **KNOWN}],
}


class WaitingSession:
    """So many waits, back to back, on the script's clock."""

    holds = True
    versions: Mapping[str, str] = {}
    events: Sequence[Event] = ()

    def __init__(self, script: Script, run_id: str, repeat: int) -> None:
        self._script, self._run_id, self._repeat = script, run_id, repeat
        self._start_ns = 0

    async def go(self) -> None:
        self._script.note("go", self._run_id)
        self._start_ns = self._script.clock.now_ns

    async def outcome(self, time: HostTime) -> Outcome:
        end_ns = self._start_ns + round(ONCE_S * self._repeat * 1e9)
        await self._script.clock.sleep_until_ns(end_ns)
        start_s, end_s = (time.campaign_s("client", at_ns) for at_ns in (self._start_ns, end_ns))
        part = {"part": "1", "node": "client", "quantity": self._repeat, "u": 0.0, "asked_per_s": None}
        work = {
            "quantity": self._repeat,
            "unit": "wait",
            "u": 0.0,
            "reconciles": True,
            "repeat": self._repeat,
        }
        return Outcome(
            parts=[Part(start_s, end_s)],
            judge=lambda _t_end_s: [],
            documents=[Document("command_report", REPORT)],
            run_fields={"work": {**work, "parts": [{**part, "measures": {}}]}, "measures": {}},
            intervals=[
                {"part": "1", "node": "client", "t_start_s": start_s, "t_end_s": end_s, "work": self._repeat}
            ],
        )

    async def end(self) -> None:
        self._script.note("end", self._run_id)


class WaitingLoad:
    """Waits; how often in a run, it finds out before the first of a condition and keeps."""

    name = "command"
    hosts: Mapping[str, int] = {"client": 1, "server": 1}
    programs: Sequence[str] = ()

    def __init__(self, script: Script) -> None:
        self.script = script
        self.repeats: dict[str, int] = {}
        self.lengths_s: list[float] = []

    def recall(self, condition: Condition, run: Mapping[str, Any]) -> None:
        self.repeats[condition.arm] = run["work"]["repeat"]

    async def open(self, condition: Condition, _place: Place, duration_s: float) -> LoadSession:
        self.script.note("open", condition.run_id)
        self.lengths_s.append(duration_s)
        repeat = self.repeats.setdefault(condition.arm, -(-duration_s // ONCE_S).__int__())
        return WaitingSession(self.script, condition.run_id, repeat)

    async def close(self) -> None:
        return None

    def unreachable(self, _runs: Sequence[Sequence[Mapping[str, Any]]]) -> None:
        return None

    def check(self, _condition: Condition, _kept: Kept) -> Iterator[tuple[str, str, str]]:
        return iter(())


class StatesReader:
    """A radio that works with the load and is idle so long after it; looked at ten times a second."""

    node = "client"

    def __init__(self, script: Script, ready_s: float) -> None:
        self._script, self._ready_s, self._next_s = script, ready_s, 0.0

    async def open(self) -> None:
        return None

    async def read(self) -> RadioRecord | None:
        self._next_s += 0.1
        while self._now_s() < self._next_s:
            await asyncio.sleep(0)
        began_s = [t_s for what, _, t_s in self._script.log if what == "go" and t_s <= self._next_s]
        work_s = 6 * ONCE_S
        busy = any(t_s <= self._next_s < t_s + work_s + self._ready_s for t_s in began_s)
        return RadioRecord(t_s=self._next_s, state="dch" if busy else "idle")

    def _now_s(self) -> float:
        return (self._script.clock.now_ns - START_NS) / 1e9

    async def close(self) -> None:
        return None


def levels(**timing: float) -> Workload:
    """Two arms in two blocks."""
    document = {
        "schema_version": 2,
        "name": "fake",
        "load": "command",
        "arm": "LEVEL",
        "factors": {"LEVEL": ["3", "6"]},
        "command": {"run": ["true"]},
        "blocks": 2,
        "timing": OF_FLOWS | timing,
        "seed": 7,
    }
    return loads.made(document, where="test")


def waited(
    path: Path, load: WaitingLoad, ready_s: float | None = None, **timing: float
) -> list[dict[str, Any]]:
    """run.json of every run of a campaign, run to its end or gone on with; `ready_s`: of its radio."""

    def with_radio(testbed: FakeTestbed) -> None:
        testbed.radio_readers = [] if ready_s is None else [StatesReader(load.script, ready_s)]

    with Campaign.open(path) if path.exists() else new_campaign(path, levels(**timing)) as campaign:
        runner.run_campaign(
            campaign,
            lambda _event: None,
            clock=load.script.clock,
            open_testbed=opener(load.script, on_up=with_radio),
            compute=load.script.compute,
            make_load=lambda _workload, _topology: load,  # type: ignore[arg-type,return-value]
        )
        return [campaign.read_run(row.run_id) for row in campaign.rows()]


def test_all_of_the_work_is_measured_and_its_neighbours_are_idle(tmp_path: Path) -> None:
    load = WaitingLoad(Script())
    runs = waited(tmp_path / "c", load)
    # 22 updates of the meter (0.1 s) are more than measure_s, 2.0 s.
    assert load.lengths_s == [pytest.approx(2.2)] * len(runs)
    for run in runs:
        window, windows = run["window"], run["windows"]
        assert window["kind"] == "until_done"
        assert windows["warm_up"] is None
        assert Span.of(window) == Span.of(windows["measure"])
        assert window["t_end_s"] - window["t_start_s"] == pytest.approx(6 * ONCE_S)
        assert run["work"]["repeat"] == 6
        # Guards of 0.1 s (meter) and 0.05 s (grain) on both sides.
        assert window["t_start_s"] >= windows["idle_before"]["t_end_s"] + 0.15 - 1e-6
        assert windows["tail"]["t_start_s"] == window["t_end_s"]
        assert windows["tail"]["t_end_s"] - windows["tail"]["t_start_s"] == pytest.approx(0.3)
        assert windows["idle_after"]["t_start_s"] >= windows["tail"]["t_end_s"] + 0.2 + 0.15 - 1e-6


@pytest.mark.parametrize(
    ("ready_s", "tail_max_s", "least_s", "most_s"),
    [(1.0, 5.0, 1.0, 1.4), (9.0, 2.0, 2.0, 2.0), (0.2, 5.0, 0.2, 0.5)],
)
def test_the_tail_lasts_until_the_radio_is_idle_or_is_cut(
    tmp_path: Path, ready_s: float, tail_max_s: float, least_s: float, most_s: float
) -> None:
    for run in waited(tmp_path / "c", WaitingLoad(Script()), ready_s, tail_max_s=tail_max_s):
        assert run["window"]["tail_max_s"] == tail_max_s
        tail, idle = run["windows"]["tail"], run["windows"]["idle_after"]
        assert least_s - 1e-6 <= tail["t_end_s"] - tail["t_start_s"] <= most_s + 1e-6
        # A radio that is not idle then has as long again before the idle window.
        longer_s = min(max(0.0, ready_s - tail_max_s), tail_max_s)
        assert idle["t_start_s"] >= tail["t_end_s"] + longer_s - 1e-6
        states = read_states(tmp_path / "c", "client", tail["t_start_s"], tail["t_end_s"])
        found = tail_of(Window(tail["t_start_s"], tail["t_end_s"]), states, tail_max_s)
        assert found.cut is (ready_s > tail_max_s)
        assert found.length_s == pytest.approx(min(ready_s, tail_max_s), abs=0.11)


def test_repeats_stay_in_the_sessions_of_a_campaign(tmp_path: Path) -> None:
    path = tmp_path / "c"
    waited(path, WaitingLoad(Script()))
    with Campaign.open(path) as campaign:
        assert campaign.lost == {}
        *kept, lost = campaign.rows()
        for row in kept:
            known = campaign.read_run(row.run_id)
            known["work"]["repeat"] = 9
            campaign.write_run(known)
        (campaign.run_dir(lost.run_id) / "command.json").unlink()
    load = WaitingLoad(Script())
    after = waited(path, load)
    assert load.script.of("open") == [lost.run_id]
    assert set(load.repeats.values()) == {9}
    assert after[-1]["work"]["repeat"] == 9


def test_work_is_as_long_as_the_slowest_meter_needs_or_as_was_asked() -> None:
    slow = MeterPace("slow", 1.0, 0.5)
    assert timeline.least_work_s(TIMING, []) == 1.0
    assert timeline.least_work_s(TIMING, [slow]) == pytest.approx(22.0)


def test_work_until_done_has_no_warm_up_and_no_least_window() -> None:
    short = Timing(idle_s=0.3, settle_s=0.0, warm_up_s=0.0, measure_s=0.0, tail_s=0.0)
    timeline.check_timing(short, [MeterPace("m", 0.1, 0.1)], timeline.UNTIL_DONE)
    windows = timeline.done_windows(TIMING, 3.0, 4.5)
    assert (windows.warm_up, windows.measure, windows.tail) == (None, Span(3.0, 4.5), Span(4.5, 4.8))
