# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import itertools
import math
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.logger.quality_monitor import QualityMonitor, stuck_limit_s
from netjoule_meters.reading import Flag, Reading

TAU_S = 0.1


def reading(t_s: float, power_w: float | None = None, flag: Flag = Flag.GOOD) -> Reading:
    """A reading whose digits are its own unless a power is given."""
    if flag is not Flag.GOOD:
        return Reading(round(t_s * 1e9), flag=flag)
    return Reading(round(t_s * 1e9), t_s if power_w is None else power_w, 230.0)


def watch(readings, *, stuck_after_s=0.0, interval_s=TAU_S):
    watcher = QualityMonitor(interval_s, stuck_after_s=stuck_after_s, may_stand_still=False)
    seen, remarks = [], []
    for one in readings:
        out, said = watcher.see(one)
        seen.append(out)
        remarks += said
    return seen, remarks + watcher.end(), watcher.summary()


def evenly(start_s: float, count: int) -> list[Reading]:
    return [reading(start_s + TAU_S * index) for index in range(count)]


def kinds(remarks) -> list[str]:
    return [remark.kind for remark in remarks]


def test_even_readings_pass_unchanged_and_nothing_is_said():
    readings = evenly(5, 500)
    seen, remarks, summary = watch(readings)
    assert seen == readings and remarks == []
    assert (summary["readings"], summary["gaps"], summary["worst_jitter_ratio"]) == (500, 0, 0)


def test_one_missing_update_is_a_gap_from_reading_to_reading():
    _, (gap,), summary = watch([*evenly(0, 10), *evenly(1.1, 10)])
    assert (gap.kind, gap.since_ns, gap.until_ns) == ("gap", 900_000_000, 1_100_000_000)
    assert gap.message == "no reading for 0.200 s, 1 update missing"
    assert (summary["gaps"], summary["missing_updates"]) == (1, 1)


def test_a_late_reading_is_no_gap():
    readings = [*evenly(0, 10), reading(1.08), *evenly(1.1, 10)]
    seen, remarks, summary = watch(readings)
    assert (kinds(remarks), summary["gaps"]) == ([], 0)
    assert seen == readings


def test_a_late_last_reading_counts_as_a_gap_because_nothing_can_clear_it():
    assert kinds(watch([*evenly(0, 10), reading(1.08)])[1]) == ["gap"]


def test_a_long_silence_is_told_once_at_its_beginning_and_once_at_its_end():
    readings = [*evenly(0, 10), reading(1.2, flag=Flag.TIMEOUT), *evenly(3.0, 3)]
    seen, remarks, summary = watch(readings)
    assert kinds(remarks) == ["gap", "gap_over"]
    assert remarks[0].message == "no new value for 0.300 s" and remarks[0].until_ns is None
    assert (remarks[1].since_ns, remarks[1].until_ns) == (900_000_000, 3_000_000_000)
    assert (summary["gaps"], summary["missing_updates"], summary["longest_gap_s"]) == (1, 20, 2.1)
    assert seen == readings, "nothing is made up"


def test_a_pulled_cable_is_one_gap_and_one_reconnection():
    lost = [reading(1.2, flag=Flag.TIMEOUT), reading(2.0, flag=Flag.RECONNECT)]
    assert kinds(watch([*evenly(0, 10), *lost, *evenly(2.2, 3)])[1]) == ["gap", "reconnect", "gap_over"]


def test_a_quick_reconnection_leaves_a_gap_of_what_it_cost():
    lost = [reading(1.0, flag=Flag.RECONNECT)]
    _, remarks, summary = watch([*evenly(0, 10), *lost, *evenly(1.1, 3)])
    assert kinds(remarks) == ["reconnect", "gap"] and summary["missing_updates"] == 1


def test_a_meter_that_never_says_anything():
    silent = reading(0.3, flag=Flag.TIMEOUT)
    assert [remark.message for remark in watch([silent])[1]] == ["no new value yet"]
    assert kinds(watch([silent, *evenly(0.5, 3)])[1]) == ["gap", "gap_over"]


@pytest.mark.parametrize(
    ("flag", "kind", "advice"),
    [
        (Flag.GARBAGE, "garbage", "check cable"),
        (Flag.NO_DATA, "no_data", "display"),
        (Flag.OVERRANGE, "overrange", "larger fixed range"),
        (Flag.PEAK_OVER, "peak_over", "crest factor"),
    ],
)
def test_rows_without_a_value_are_told_once_per_episode(flag, kind, advice):
    bad = [reading(1.0, flag=flag), reading(1.1, flag=flag)]
    readings = [*evenly(0, 10), *bad, *evenly(1.2, 5), reading(1.7, flag=flag), *evenly(1.8, 2)]
    _, remarks, summary = watch(readings)
    told = [remark for remark in remarks if remark.kind == kind]
    assert len(told) == 2 and advice in told[0].message
    assert summary[flag.value] == 3
    assert kinds(remarks).count("gap") == (2 if flag is Flag.GARBAGE else 0), "garbage holds no update"


def test_the_same_digits_far_too_soon_are_the_same_update():
    twice = [*evenly(0, 10), reading(0.91, 0.9), *evenly(1.0, 10)]
    seen, remarks, summary = watch(twice)
    assert [one.flag for one in seen].count(Flag.DUPLICATE) == 1 and seen[10].flag is Flag.DUPLICATE
    assert kinds(remarks) == ["duplicate"] and summary["duplicate"] == 1
    assert summary["gaps"] == 0


def test_other_digits_or_a_late_reading_before_it_make_no_duplicate():
    other = [*evenly(0, 10), reading(0.91, 77.0), *evenly(1.0, 10)]
    late = [reading(0.1 * n, 5.0) for n in range(10)] + [reading(1.08, 5.0), reading(1.10, 5.0)]
    for readings in (other, late):
        assert all(one.flag is Flag.GOOD for one in watch(readings)[0])


def test_many_duplicates_do_not_fill_the_log():
    readings = [reading(TAU_S * n, flag=Flag.DUPLICATE if n % 2 else Flag.GOOD) for n in range(1000)]
    _, remarks, summary = watch(readings, interval_s=2 * TAU_S)
    assert kinds(remarks) == ["duplicate", "duplicate"] and summary["duplicate"] == 500
    assert "(301 so far)" in remarks[1].message


def test_uneven_spacing_beyond_a_fifth_at_p95():
    random = Random(1)
    uneven = [reading(TAU_S * (n + random.uniform(-0.2, 0.2))) for n in range(400)]
    remarks = watch(uneven + evenly(40.0, 300))[1]
    assert kinds(remarks) == ["jitter", "jitter_over"]
    assert "p95" in remarks[0].message and "update_interval_s" in remarks[0].message
    assert remarks[0].since_ns < remarks[1].until_ns


def test_spacing_within_a_fifth_is_even():
    random = Random(1)
    assert watch([reading(TAU_S * (n + random.uniform(-0.09, 0.09))) for n in range(400)])[1] == []


def test_a_wrong_update_interval_shows_as_jitter():
    assert "jitter" in kinds(watch([reading(0.07 * n) for n in range(200)])[1])


def test_a_value_that_stands_still_is_flagged_from_the_limit_on():
    frozen = [reading(1.0 + TAU_S * n, 7.5) for n in range(40)]
    seen, remarks, summary = watch([*evenly(0, 10), *frozen, *evenly(5.0, 10)], stuck_after_s=2.0)
    stale = [one.t_ns for one in seen if one.flag is Flag.STALE]
    assert (min(stale), max(stale), len(stale)) == (3_000_000_000, 4_900_000_000, 20)
    assert kinds(remarks) == ["stuck", "stuck_over"]
    assert (remarks[0].since_ns, remarks[0].t_ns) == (1_000_000_000, 3_000_000_000)
    assert "7.5 W" in remarks[0].message and "display" in remarks[0].message
    assert (remarks[1].since_ns, remarks[1].until_ns) == (1_000_000_000, 5_000_000_000)
    assert (summary["stale"], summary["gaps"]) == (20, 0)


def test_one_moving_digit_is_a_live_meter():
    readings = [Reading(n * 10**8, 7.5, 230.0 + 0.01 * (n % 2)) for n in range(100)]
    assert all(one.flag is Flag.GOOD for one in watch(readings, stuck_after_s=2.0)[0])


def test_limits_of_standstill():
    assert stuck_limit_s(None, may_stand_still=True, with_voltage=True) == math.inf
    assert stuck_limit_s(0, may_stand_still=False, with_voltage=True) == math.inf
    assert stuck_limit_s(5, may_stand_still=True, with_voltage=True) == 5
    assert stuck_limit_s(None, may_stand_still=False, with_voltage=True) == 30
    assert stuck_limit_s(None, may_stand_still=False, with_voltage=False) == 600


def test_a_stale_row_of_the_adapter_is_told_too():
    rows = [*evenly(0, 5), reading(0.5, flag=Flag.STALE), reading(0.6, flag=Flag.STALE)]
    assert kinds(watch(rows)[1]) == ["stuck"]


@given(st.lists(st.tuples(st.integers(1, 50), st.sampled_from(Flag)), max_size=80))
def test_nothing_is_added_lost_or_changed_but_the_flag(steps):
    t_ns, readings = 0, []
    for step, flag in steps:
        t_ns += step * 10**7
        readings.append(Reading(t_ns, float(step), flag=flag))
    seen, remarks, summary = watch(readings)
    assert [(one.t_ns, one.power_w) for one in seen] == [(one.t_ns, one.power_w) for one in readings]
    for before, after in zip(readings, seen, strict=True):
        assert after.flag is before.flag or (before.flag, after.flag) == (Flag.GOOD, Flag.DUPLICATE)
    assert summary["gaps"] == kinds(remarks).count("gap")


@given(st.lists(st.integers(1, 40), min_size=3, max_size=60))
def test_every_hole_of_three_updates_is_inside_a_told_gap(steps):
    t_ns, readings = 0, []
    for step in steps:
        t_ns += step * 10**8
        readings.append(reading(t_ns / 1e9))
    _, remarks, _ = watch(readings)
    gaps = [(remark.since_ns, remark.until_ns) for remark in remarks if remark.kind == "gap"]
    for before, after in itertools.pairwise(readings):
        if after.t_ns - before.t_ns >= 3 * 10**8:
            assert any(since <= before.t_ns and after.t_ns <= until for since, until in gaps)
