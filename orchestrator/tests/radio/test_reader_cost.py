# SPDX-License-Identifier: Apache-2.0
"""What reading a radio takes of the CPU is reported, and told when it differs between idle and measure."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
import runner_fakes as fakes
from hypothesis import given
from hypothesis import strategies as st

from netjoule.design.timeline import Span
from netjoule.radio import RadioRecord
from netjoule.radio.reader_cost import TOLERANCE_CORES, ReaderCost, cores, differs, reasons
from netjoule.validation.check import check_campaign

EVERY_S = 0.25


def looks(start_s: float, end_s: float, cpu_s: float) -> list[tuple[float, float]]:
    """A look each quarter of a second from start to before end."""
    return [(start_s + k * EVERY_S, cpu_s) for k in range(round((end_s - start_s) / EVERY_S))]


def test_a_share_of_a_core_is_cpu_time_over_time_within_the_windows() -> None:
    known = [*looks(0, 10, 0.001), *looks(10, 20, 0.002)]
    assert cores(known, [Span(0, 9.9)]) == pytest.approx(0.004)
    assert cores(known, [Span(11.1, 19)]) == pytest.approx(0.008)
    both = (0.039 + 0.068) / (9.75 + 8.5)  # s over s, from first to last look of each
    assert cores(known, [Span(0, 9.9), Span(11.1, 21)]) == pytest.approx(both, abs=1e-6)


def test_stations_of_one_look_count_together() -> None:
    """An access point has a record for each client: the first carries what the look took."""
    known = [(t_s, cpu_s) for t_s, used_s in looks(0, 10, 0.001) for cpu_s in (used_s, 0.0)]
    assert cores(known, [Span(0, 10)]) == pytest.approx(0.004)


@pytest.mark.parametrize("known", [[], [(1.0, 0.1)], [(1.0, 0.1), (1.0, 0.1)], [(99.0, 0.1)]])
def test_records_of_one_moment_tell_no_share(known: list[tuple[float, float]]) -> None:
    assert cores(known, [Span(0, 10)]) is None


@given(st.floats(0, 1), st.floats(0, 1))
def test_what_differs_has_a_reason_and_only_that(idle: float, measure: float) -> None:
    cost = ReaderCost("laptop", idle, measure)
    assert differs(cost) == (abs(idle - measure) > TOLERANCE_CORES) == bool(reasons([cost]))
    assert not differs(ReaderCost("laptop", idle, idle))


def test_all_readers_stand_in_one_reason() -> None:
    found = reasons([ReaderCost("ap", 0.01, 0.02), ReaderCost("b", 0.01, 0.0119), ReaderCost("c", 0.2, 0.1)])
    assert [reason.as_json() for reason in found] == [
        {
            "code": "reader_cpu_differs",
            "detail": "the radio reader of ap took 0.0100 of a core in idle, 0.0200 in measure;"
            " the radio reader of c took 0.2000 of a core in idle, 0.1000 in measure",
        }
    ]


class Reader:
    """Looks at the fake clock's time; takes more while a flow goes out."""

    node = "client"

    def __init__(self, script: fakes.Script, idle_cpu_s: float, flow_cpu_s: float) -> None:
        self.script, self.idle_cpu_s, self.flow_cpu_s = script, idle_cpu_s, flow_cpu_s
        self.next_ns = fakes.START_NS

    async def open(self) -> None:
        return None

    async def read(self) -> RadioRecord | None:
        while self.script.clock.now_ns < self.next_ns:
            await asyncio.sleep(0)
        t_s, self.next_ns = (self.next_ns - fakes.START_NS) / 1e9, self.next_ns + 250_000_000
        flows = [(at_s, at_s + 3.5) for what, _, at_s in self.script.log if what == "go"]
        busy = any(a <= t_s <= b for a, b in flows)
        return RadioRecord(t_s=t_s, reader_cpu_s=self.flow_cpu_s if busy else self.idle_cpu_s)

    async def close(self) -> None:
        return None


class SlowClock(fakes.FakeClock):
    """Goes on in steps, so that readers look meanwhile."""

    async def sleep_until_ns(self, deadline_ns: int) -> None:
        while self.now_ns < deadline_ns:
            self.now_ns = min(deadline_ns, self.now_ns + 50_000_000)
            for _ in range(3):
                await asyncio.sleep(0)


def run_with(folder: Path, idle_cpu_s: float, flow_cpu_s: float) -> list[dict[str, Any]]:
    """The run.json of each run of a campaign whose client's radio is read at this cost."""
    script = fakes.Script(clock=SlowClock())

    def with_reader(testbed: fakes.FakeTestbed) -> None:
        testbed.radio_readers = [Reader(script, idle_cpu_s, flow_cpu_s)]

    load = fakes.workload(transports=["udp"], offered_rate_mbps=[10])
    with fakes.new_campaign(folder / "c", load) as campaign:
        fakes.run(campaign, script, on_up=with_reader)
        return [json.loads(path.read_text()) for path in sorted((folder / "c" / "runs").glob("*/run.json"))]


def test_a_run_tells_what_its_readers_took(tmp_path: Path) -> None:
    (run,) = run_with(tmp_path, 0.001, 0.001)
    (cost,) = run["reader_cpu"]
    assert cost["node"] == "client"
    assert cost["idle_cores"] == pytest.approx(0.004, rel=0.01)
    assert cost["measure_cores"] == pytest.approx(0.004, rel=0.01)
    assert (run["status"], run["reasons"]) == ("done", [])


def test_a_reader_that_takes_more_while_packets_flow_is_flagged_and_the_run_counts(tmp_path: Path) -> None:
    (run,) = run_with(tmp_path, 0.001, 0.003)
    assert run["status"] == "done"
    assert [reason["code"] for reason in run["reasons"]] == ["reader_cpu_differs"]
    assert run["reader_cpu"][0]["measure_cores"] == pytest.approx(0.012, rel=0.05)
    events = (tmp_path / "c" / "runs" / run["run_id"] / "events.csv").read_text()
    assert ',radio,reader_cpu_differs,reader_cpu_differs,"the radio reader of client took 0.00' in events


@pytest.mark.parametrize(("measure", "code", "defects"), [(0.0055, "", 0), (0.02, "", 1), (0.02, "told", 0)])
def test_check_names_a_difference_that_nobody_told(
    campaign_dir: Path, measure: float, code: str, defects: int
) -> None:
    path = next(campaign_dir.glob("runs/*udp*/run.json"))
    run = json.loads(path.read_text())
    run["reader_cpu"] = [{"node": "client", "idle_cores": 0.004, "measure_cores": measure}]
    run["reasons"] = [{"code": "reader_cpu_differs", "detail": "seen"}] if code else []
    path.write_text(json.dumps(run))
    words = "field reader_cpu.0: 0.004 of a core in idle, 0.02 in measure, without reader_cpu_differs"
    assert [str(d).partition(", ")[2] for d in check_campaign(campaign_dir)] == [words] * defects
