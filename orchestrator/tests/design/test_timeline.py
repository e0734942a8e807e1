# SPDX-License-Identifier: Apache-2.0
import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule.core.errors import UsageError
from netjoule.design import timeline
from netjoule.design.timeline import MeterPace, Span
from netjoule.workload.workload import Timing

TIMING = Timing(idle_s=1.0, settle_s=0.2, warm_up_s=0.6, measure_s=2.0, tail_s=0.3)
WT210 = MeterPace("wt210", 0.1, 0.1)


def test_windows_follow_the_first_packet() -> None:
    windows = timeline.flow_windows(TIMING, 10.0, 12.6)
    assert windows.warm_up == Span(10.0, 10.6)
    assert windows.measure == Span(10.6, 12.6)
    assert windows.tail.t_start_s == pytest.approx(12.6)
    assert windows.tail.t_end_s == pytest.approx(12.9)


def test_a_flow_that_drains_late_has_its_tail_after_its_end() -> None:
    windows = timeline.flow_windows(TIMING, 10.0, 14.0)
    assert windows.measure == Span(10.6, 12.6)
    assert windows.tail == Span(14.0, 14.3)


def test_warm_up_is_three_updates_and_the_lag_of_the_slowest_meter() -> None:
    slow = MeterPace("slow", 0.5, 0.7)
    assert timeline.least_warm_up_s([WT210, slow]) == pytest.approx(2.2)
    assert timeline.least_warm_up_s([]) == 0


@pytest.mark.parametrize(
    ("meter", "message"),
    [
        (MeterPace("m", 0.2, 0.1), r"warm_up_s is 0\.6 s, but m updates every 0\.2 s with 0\.1 s lag"),
        (MeterPace("m", 0.1, 0.31), r"set warm_up_s to at least 0\.61"),
    ],
)
def test_a_warm_up_too_short_names_meter_and_least_length(meter: MeterPace, message: str) -> None:
    timeline.check_timing(TIMING, [WT210])
    with pytest.raises(UsageError, match=message):
        timeline.check_timing(TIMING, [WT210, meter])


@pytest.mark.parametrize("name", ["idle_s", "measure_s"])
def test_a_window_below_three_updates_is_refused(name: str) -> None:
    short = {"idle_s": 1.0, "settle_s": 0.2, "warm_up_s": 0.6, "measure_s": 2.0, "tail_s": 0.3} | {name: 0.29}
    with pytest.raises(UsageError, match=rf"set {name} to at least 0\.3"):
        timeline.check_timing(Timing(**short), [WT210])


def test_every_window_that_is_too_short_is_named_at_once_with_the_meter_that_needs_most() -> None:
    with pytest.raises(UsageError) as refused:
        timeline.check_timing(Timing(0.0, 0.2, 0.1, 0.1, 0.3), [WT210, MeterPace("slow", 1.0, 0.5)])
    text = str(refused.value)
    assert text.count("slow updates every 1 s") == 3
    assert text.endswith("; set warm_up_s to at least 3.5, idle_s to at least 3, measure_s to at least 3")


def test_the_guard_is_one_update_of_the_slowest_meter_and_the_grain() -> None:
    slow = MeterPace("slow", 0.5, 0.7)
    assert timeline.guard_s([WT210, slow], 0.1) == pytest.approx(0.6)
    assert timeline.guard_s([], 0.0) == 0
    assert timeline.flow_duration_s(TIMING, 0.6) == pytest.approx(3.2)


def test_exactly_enough_is_enough() -> None:
    timeline.check_timing(Timing(0.3, 0.0, 0.4, 0.3, 0.0), [WT210])


def test_data_are_due_when_the_reading_of_the_last_moment_is_out() -> None:
    assert timeline.data_due_s(20.0, [WT210, MeterPace("slow", 1.0, 0.5)]) == pytest.approx(22.5)
    assert timeline.data_due_s(20.0, []) == 20.0


times = st.floats(0, 1e6)
lengths = st.floats(0, 1e4)


@given(times, lengths, lengths, lengths, lengths)
def test_windows_are_contiguous_and_ordered(
    first_s: float, warm_up_s: float, measure_s: float, tail_s: float, flow_s: float
) -> None:
    timing = Timing(1.0, 0.2, warm_up_s, measure_s, tail_s)
    windows = timeline.flow_windows(timing, first_s, first_s + flow_s)
    assert windows.warm_up.t_start_s == first_s
    assert windows.warm_up.t_end_s == windows.measure.t_start_s
    assert windows.measure.t_end_s <= windows.tail.t_start_s
    assert first_s + flow_s <= windows.tail.t_start_s
    assert windows.tail.t_start_s <= windows.tail.t_end_s


def test_json_has_microseconds() -> None:
    assert Span(1.23456789, 2.0).as_json() == {"t_start_s": 1.234568, "t_end_s": 2.0}
