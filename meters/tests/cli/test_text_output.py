# SPDX-License-Identifier: Apache-2.0
"""The command line's pure parts: sparkline, live line, options, traces as power."""

from __future__ import annotations

import pytest
from golden_sentences import raises

from netjoule_meters.cli.options import host_and_port, name_and_value
from netjoule_meters.cli.read import watch_line
from netjoule_meters.cli.sparkline import sparkline
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.recorded_trace import TraceSource, load_trace
from netjoule_meters.errors import UsageError
from netjoule_meters.reading import Flag, Reading


def test_a_sparkline_spans_from_the_least_to_the_greatest_value():
    assert sparkline([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 8) == "▁▂▃▄▅▆▇█"
    assert sparkline([0.0, 10.0], 8, unicode=False) == "_#"


def test_a_gap_is_a_blank_and_a_constant_reading_lies_in_the_middle():
    assert sparkline([5.0, None, 5.0], 8) == "▅ ▅"
    assert sparkline([None, None], 8) == "  "


def test_a_sparkline_shows_the_newest_values_that_fit():
    assert sparkline([9.0, 1.0, 2.0], 2) == "▁█"
    assert sparkline([1.0, 2.0], 0) == ""


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
def test_the_live_line_never_wraps(columns):
    reading = Reading(0, power_w=1234.5678, flag=Flag.PEAK_OVER)
    line = watch_line(reading, [float(value) for value in range(300)], columns)
    assert len(line) < columns


def test_the_live_line_says_power_mean_spread_and_flag():
    line = watch_line(Reading(0, power_w=12.0), [10.0, None, 12.0], 80)
    assert line.startswith("       12 W  mean 11  10..12 W") and line.endswith("▁ █")
    flagged = watch_line(Reading(0, flag=Flag.TIMEOUT), [10.0, None], 80)
    assert "- W" in flagged and "timeout" in flagged


def test_options_name_what_is_wrong():
    assert name_and_value("update_interval_s=0.1") == ("update_interval_s", 0.1)
    assert name_and_value("preset=netio") == ("preset", "netio")
    assert host_and_port("127.0.0.1:80", "--listen") == ("127.0.0.1", 80)
    for text in ("80", "host:", ":80", "host:x", "host:70000"):
        with raises(UsageError):
            host_and_port(text, "--listen")


TRACE = (PowerInterval(5.0, 6.0, 1.0), PowerInterval(6.0, 8.0, 2.0))


def test_a_trace_begins_when_it_is_first_asked_for_and_ends():
    source = TraceSource(TRACE)
    assert source.take(100.0) == []
    assert source.take(101.5) == [PowerInterval(100.0, 101.0, 1.0)]
    assert source.take(103.0) == [PowerInterval(101.0, 103.0, 2.0)]
    assert source.take(103.1) is None


def test_a_repeated_trace_has_no_seam():
    source = TraceSource(TRACE, repeat=True)
    source.take(0.0)
    intervals = source.take(7.0) or []
    assert [(i.t_start_s, i.t_end_s) for i in intervals] == [(0, 1), (1, 3), (3, 4), (4, 6), (6, 7)]
    assert [i.power_w for i in intervals] == [1.0, 2.0, 1.0, 2.0, 1.0]


def test_a_meters_file_is_a_trace_whose_gaps_hold_the_last_value(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("t_s,seq,power_w,flag\n1.0,0,5,\n2.0,1,,timeout\n4.0,2,7,\n5.0,3,8,\n")
    assert load_trace(path).trace == [PowerInterval(1.0, 4.0, 5.0), PowerInterval(4.0, 5.0, 7.0)]


def test_a_device_stream_is_a_trace(tmp_path):
    path = tmp_path / "d.ndjson"
    path.write_text('{"t_start_s": 0, "t_end_s": 1, "power_w": 3, "terms": {}}\n')
    assert load_trace(path).trace == [PowerInterval(0.0, 1.0, 3.0)]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "t_s,watts\n1,2\n",
        "t_s,power_w\n1,2\n",
        "t_s,power_w\n1,2\n1,3\n",
        "t_s,power_w\n1,2\n2,nan\n3,1\n",
        "t_s,power_w\n1,2\n2,x\n",
        '{"t_start_s": 0}\n',
    ],
)
def test_what_is_no_trace_is_refused(tmp_path, text):
    path = tmp_path / "x.csv"
    path.write_text(text)
    with raises(UsageError):
        load_trace(path)


def test_a_missing_trace_is_refused(tmp_path):
    with raises(UsageError):
        load_trace(tmp_path / "absent.csv")
