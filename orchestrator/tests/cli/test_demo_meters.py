# SPDX-License-Identifier: Apache-2.0
"""The demo as each meter sees it: windows of ten updates, under ten minutes, files that commands read."""

import pytest
from golden_sentences import raises

from netjoule.cli import launch
from netjoule.cli.demo_meters import BUDGET_S, METERS, demo_for, fitted, timing_for
from netjoule.core import programs
from netjoule.core.console import Output
from netjoule.core.errors import UsageError
from netjoule.design.duration import forecast
from netjoule.design.instruments import pace_of
from netjoule.design.timeline import MeterPace, check_timing, data_due_s
from netjoule.loads.flow.settings import FlowSettings
from netjoule.workload.workload import Timing


@pytest.fixture(scope="module")
def inputs() -> launch.Inputs:
    here = programs.checkout()
    assert here is not None
    return launch.load_inputs(str(here / "workloads/flow/demo.yaml"), here / "testbed-topology.yaml")


@pytest.mark.parametrize("name", METERS)
def test_each_meter_has_windows_of_ten_updates_in_under_ten_minutes(name, inputs) -> None:
    load, where, said = demo_for(name, inputs.workload, inputs.topology)
    pace = pace_of(where.meters[0])
    check_timing(load.timing, [pace])
    assert load.timing.idle_s >= 10 * pace.update_interval_s
    assert load.timing.measure_s >= 10 * pace.update_interval_s
    assert forecast(load, where).duration_s + data_due_s(0, [pace]) <= BUDGET_S < 600
    assert {"udp", "null"} <= set(load.arms), "without the floor there is nothing to compare with"
    assert f"meter {name} (emulated)" in said[0]


def test_a_fast_meter_runs_the_whole_demo_and_a_slow_one_says_what_it_leaves_out(inputs) -> None:
    full, _, said = demo_for("wt210", inputs.workload, inputs.topology)
    assert full.arms == inputs.workload.arms and full.blocks == inputs.workload.blocks
    assert not any("left out" in line for line in said)
    slow, _, said = demo_for("cc128", inputs.workload, inputs.topology)
    assert slow.cells[0]["payload_bytes"] == 1440 and slow.cells[0]["offered_rate_mbps"] == 30.0
    assert len(slow.cells) == 1 and slow.blocks == 1
    assert slow.max_attempts == 1 and said[-1].endswith("repeats of invalid runs")
    assert full.max_attempts == inputs.workload.max_attempts
    assert "transport tcp, transport quic" in said[-1] and "1 Mb/s, 6 Mb/s" in said[-1]
    assert set(FlowSettings.of(slow).transport_options) <= set(slow.arms), (
        "options of a transport that is left out go with it"
    )


def test_a_meter_too_slow_for_ten_minutes_is_refused(inputs) -> None:
    with raises(UsageError):
        fitted(inputs.workload, inputs.topology, MeterPace("m", 30.0, 45.0), "x")


def test_a_meter_without_a_demo_is_refused(inputs) -> None:
    with raises(UsageError):
        demo_for("rapl", inputs.workload, inputs.topology)


def test_timing_is_stretched_and_never_shortened() -> None:
    timing = Timing(idle_s=0.8, settle_s=0.1, warm_up_s=0.5, measure_s=1.7, tail_s=0.2)
    assert timing_for(timing, MeterPace("m", 0.01, 0.0)) == timing
    stretched = timing_for(timing, MeterPace("m", 0.47, 0.47))
    assert stretched == Timing(idle_s=4.7, settle_s=0.5, warm_up_s=1.9, measure_s=4.7, tail_s=0.5)


@pytest.mark.parametrize("name", METERS)
def test_what_is_written_is_read_again(name, inputs, tmp_path, capsys) -> None:
    again = launch.with_meter(inputs, name, tmp_path, Output())
    assert again.topology.meters[0].adapter == name and again.topology.meters[0].emulated
    assert again.workload.name == f"demo-{name}"
    assert f"meter {name} (emulated)" in capsys.readouterr().out
