# SPDX-License-Identifier: Apache-2.0
"""Dynamic energy of a host while its run is under way, from rows as loggers write them."""

import asyncio
import math
from collections.abc import Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from runner_fakes import (
    FakeGenerator,
    FakeTestbed,
    Script,
    new_campaign,
    opener,
    passport,
    topology,
    workload,
)

from netjoule.core.clock import CampaignTime, SystemClock
from netjoule.core.errors import RunFailed
from netjoule.design.timeline import Span
from netjoule.execution import runner
from netjoule.execution.live_energy import STEP_S, HostEnergy, Integral, Row, first_passport, row_of
from netjoule.hosts.host import LocalHost, Process
from netjoule.loads.flow.load import FlowLoad
from netjoule.testbeds.base import follow_table
from netjoule.workload.load import Condition, LiveEnergy, LoadSession, Place

HEADER = "t_s,seq,power_w,voltage_v,current_a,energy_j,flag\n"
IDLE = Span(2.0, 5.0)


def rows(until_s: float, *, lag_s: float = 0.1, flag: str = "") -> list[Row]:
    """A reading every 0.1 s: 5 W, and 8 W from 6 s on."""
    ends_s = [n / 10 for n in range(1, round(until_s * 10) + 1)]
    return [(end_s + lag_s, 8.0 if end_s > 6.05 else 5.0, math.nan, flag) for end_s in ends_s]


def told(known: dict[str, Any], readings: Sequence[Row], start_s: float = 6.0) -> list[float]:
    integral = Integral(known, IDLE, start_s)
    return [joules for row in readings if (joules := integral.add(row)) is not None]


def test_energy_is_power_above_the_idle_window_since_the_start() -> None:
    found = told(passport(), rows(9.0))
    assert len(found) == 30
    assert found[-1] == pytest.approx(3.0 * 3.0)
    assert found == sorted(found)


def test_a_reading_that_straddles_the_start_counts_from_there_on() -> None:
    found = told(passport(lag_s=0.1), rows(6.4), start_s=6.15)
    assert found[-1] == pytest.approx(3.0 * 0.25)


def test_a_meter_that_is_read_a_thousand_times_a_second_does_not_speak_as_often() -> None:
    known = passport(update_interval_s=0.001, lag_s=0.0)
    fast = [(n / 1000, 5.0 if n <= 6000 else 7.0, math.nan, "") for n in range(2000, 8001)]
    found = told(known, fast)
    assert 20 <= len(found) <= 25
    assert found[-1] == pytest.approx(4.0, abs=2 * STEP_S)


def test_a_counter_of_energy_is_read_by_its_differences() -> None:
    known = passport(update_interval_s=1.0, lag_s=0.0) | {"semantics": "energy_counter"}
    counts = [(float(n), math.nan, 5.0 * n + 4.0 * max(0, n - 6), "") for n in range(1, 12)]
    assert told(known, counts) == pytest.approx([4.0, 8.0, 12.0, 16.0, 20.0])


def test_without_a_good_reading_nothing_is_told() -> None:
    assert told(passport(), rows(9.0, flag="overrange")) == []
    late = [row for row in rows(9.0) if row[0] > 5.5]
    assert told(passport(), late) == [], "none lies in the idle window"


def test_readings_that_were_lost_are_taken_for_those_around_them() -> None:
    gap = [row for row in rows(9.0) if not 7.05 < row[0] < 8.05]
    assert told(passport(), gap)[-1] == pytest.approx(9.0)


def test_columns_go_by_the_header_and_a_cut_row_is_none() -> None:
    columns = HEADER.strip().split(",")
    good = row_of(columns, b"1.5,7,2.5,1,2,40.5,\n")
    assert good == (1.5, 2.5, 40.5, "")
    before_counters = row_of(["t_s", "seq", "power_w", "flag"], b"1.5,7,,gap\n")
    assert before_counters is not None
    assert (before_counters[3], math.isnan(before_counters[1])) == ("gap", True)
    assert row_of(columns, HEADER.encode()) is None
    assert row_of(columns, b"1.5,7,2.") is None


def test_the_first_meter_of_a_node_in_the_topology_tells() -> None:
    known = [passport() | {"meter_id": name} for name in ("m2", "m1", "other")]
    nodes = [("other", "server"), ("m1", "client"), ("m2", "client")]
    found = first_passport("client", nodes, known)
    assert found is not None and found["meter_id"] == "m1"
    assert first_passport("access_point", nodes, known) is None


# -- a table that grows -----------------------------------------------------------------------------------


def line(row: Row) -> str:
    return f"{row[0]:.6f},0,{row[1]},,,,{row[3]}\n"


def energy(table: Path, at_s: float, idle: Span | None = IDLE) -> HostEnergy:
    """Of a host whose meter logs to `table`, at this campaign time."""
    clock = SystemClock()
    time = CampaignTime(clock, clock.monotonic_ns() - round(at_s * 1e9))

    async def follow(meter_id: str, rows_n: int) -> Process:
        return await follow_table(LocalHost("here"), table.with_stem(meter_id), rows_n)

    made = HostEnergy(passport(), follow, time)
    made.idle = idle
    return made


def test_rows_are_told_as_they_are_written(tmp_path: Path) -> None:
    table = tmp_path / "m0.csv"
    table.write_text(HEADER + "".join(map(line, rows(5.9))))

    async def run() -> tuple[float, float]:
        async with aclosing(energy(table, 6.0).since_now()) as joules:
            waits = asyncio.ensure_future(anext(joules))
            await asyncio.sleep(0.2)
            assert not waits.done(), "nothing is known of what comes"
            with table.open("a") as file:
                file.write("".join(map(line, rows(6.5)[59:])))
            first = await waits
            return first, [await anext(joules) for _ in range(4)][-1]

    first, last = asyncio.run(asyncio.wait_for(run(), 20))
    # The call came some milliseconds after 6 s, on a busy host more.
    assert first <= 0.3 + 1e-6
    assert 1.0 < last <= 1.5 + 1e-6


def test_without_idle_power_table_or_host_nothing_is_told(tmp_path: Path) -> None:
    table = tmp_path / "m0.csv"

    async def all_of(source: HostEnergy) -> list[float]:
        return [joules async for joules in source.since_now()]

    async def away(_meter_id: str, _rows_n: int) -> Process:
        raise RunFailed("host meter_host is out of reach", code="host_unreachable")

    lost = HostEnergy(passport(), away, CampaignTime(SystemClock(), 0))
    lost.idle = IDLE
    assert asyncio.run(all_of(energy(table, 6.0))) == []
    assert asyncio.run(all_of(lost)) == []
    table.write_text(HEADER + "".join(map(line, rows(9.0))))
    assert asyncio.run(all_of(energy(table, 6.0, idle=None))) == []


# -- in a run -----------------------------------------------------------------------------------------------


def test_a_load_is_given_the_energy_of_metered_hosts_with_the_idle_window_of_its_run(tmp_path: Path) -> None:
    script = Script()
    given: list[tuple[str, LiveEnergy | None, LiveEnergy | None]] = []

    class Asks(FlowLoad):
        async def open(self, condition: Condition, place: Place, duration_s: float) -> LoadSession:
            given.append((condition.run_id, place.live_energy("client"), place.live_energy("server")))
            return await super().open(condition, place, duration_s)

    def follow_meter(_self: FakeTestbed, _meter_id: str, _rows_n: int) -> None:
        raise AssertionError("nobody asked for readings")

    def on_up(testbed: FakeTestbed) -> None:
        testbed.follow_meter = follow_meter  # type: ignore[attr-defined]

    with new_campaign(tmp_path / "c", workload(), topology("constant", "constant")) as campaign:
        runner.run_campaign(
            campaign,
            lambda _event: None,
            clock=script.clock,
            open_testbed=opener(script, on_up=on_up),
            compute=script.compute,
            make_load=lambda load, where: Asks(load, where, lambda *_: FakeGenerator(script)),
        )
        windows = {row.run_id: campaign.read_run(row.run_id)["windows"] for row in campaign.rows()}
    assert [run_id for run_id, _, _ in given] == list(windows)
    for run_id, of_client, of_server in given:
        assert of_server is None
        assert isinstance(of_client, HostEnergy)
        assert of_client.source == "m0"
        assert of_client.idle is not None
        assert of_client.idle.as_json() == windows[run_id]["idle_before"]
