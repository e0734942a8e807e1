# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import os
import stat

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.errors import InvalidLog, LogWriteError
from netjoule_meters.logger import readings_file
from netjoule_meters.logger.readings_file import ReadingsFile, last_row, row
from netjoule_meters.reading import Flag, Reading

HEADER = "t_s,seq,power_w,voltage_v,current_a,energy_j,flag\n"


def append(path, *readings) -> int:
    file = ReadingsFile(path, origin_ns=0)
    try:
        for reading in readings:
            file.append(reading)
        return file.next_seq
    finally:
        file.close()


def test_header_only_once_and_numbers_go_on(tmp_path):
    path = tmp_path / "m.csv"
    append(path, Reading(10**9, 1.0), Reading(2 * 10**9, 2.0))
    append(path, Reading(3 * 10**9, 3.0))
    assert path.read_text() == HEADER + "1.000000,0,1,,,,\n2.000000,1,2,,,,\n3.000000,2,3,,,,\n"


def test_an_empty_or_headless_beginning_is_begun_again(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(HEADER[:10])
    assert append(path, Reading(0, 1.0)) == 1
    assert path.read_text() == HEADER + "0.000000,0,1,,,,\n"


BEFORE_COUNTERS = "t_s,seq,power_w,voltage_v,current_a,flag\n"


def test_a_file_from_before_counters_is_continued_in_its_own_columns(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(BEFORE_COUNTERS + "1.000000,0,1,2,3,\n")
    assert append(path, Reading(2 * 10**9, 1.5, 230.0), Reading(3 * 10**9, flag=Flag.TIMEOUT)) == 3
    assert path.read_text() == (
        BEFORE_COUNTERS + "1.000000,0,1,2,3,\n2.000000,1,1.5,230,,\n3.000000,2,,,,timeout\n"
    )


def test_a_counter_does_not_fit_a_file_from_before_counters(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(BEFORE_COUNTERS)
    with raises(InvalidLog):
        append(path, Reading(0, None, energy_j=1e6))
    assert path.read_text() == BEFORE_COUNTERS


def test_a_counter_has_its_column(tmp_path):
    path = tmp_path / "m.csv"
    append(path, Reading(0, 1.0, energy_j=262143.328))
    assert path.read_text() == HEADER + "0.000000,0,1,,,262143.328,\n"


def test_a_cut_off_row_is_taken_off(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text(HEADER + "1.000000,0,1,,,,\n2.0000")
    file = ReadingsFile(path, origin_ns=0)
    assert (file.cut_off_bytes, file.next_seq) == (6, 1)
    file.close()
    assert path.read_text() == HEADER + "1.000000,0,1,,,,\n"


def test_files_that_are_no_readings_are_left_alone(tmp_path):
    path = tmp_path / "m.csv"
    for content in ("a,b\n1,2\n", HEADER + "x\n", HEADER + "1,y,1,1,1,,\n"):
        path.write_text(content)
        with raises(InvalidLog):
            ReadingsFile(path, origin_ns=0)
        assert path.read_text() == content


def test_a_session_does_not_begin_before_the_last_row(tmp_path):
    path = tmp_path / "m.csv"
    append(path, Reading(5 * 10**9, 1.0))
    file = ReadingsFile(path, origin_ns=0)
    file.require_later(5 * 10**9)
    with raises(InvalidLog):
        file.require_later(4 * 10**9)
    file.close()


def test_one_writer_at_a_time(tmp_path):
    file = ReadingsFile(tmp_path / "m.csv", origin_ns=0)
    with raises(LogWriteError):
        ReadingsFile(tmp_path / "m.csv", origin_ns=0)
    file.close()
    ReadingsFile(tmp_path / "m.csv", origin_ns=0).close()


def test_a_row_that_fits_only_in_part_is_not_left_behind(tmp_path, monkeypatch):
    path = tmp_path / "m.csv"
    file = ReadingsFile(path, origin_ns=0)
    file.append(Reading(0, 1.0))
    real_write, calls = os.write, []

    def full_disk(descriptor, data):
        calls.append(data)
        if len(calls) == 1:
            return real_write(descriptor, data[:5])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(readings_file.os, "write", full_disk)
    with raises(LogWriteError):
        file.append(Reading(10**9, 2.0))
    monkeypatch.undo()
    file.close()
    assert path.read_text() == HEADER + "0.000000,0,1,,,,\n"


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "meters").write_text("a file where a folder should be")
    with raises(LogWriteError):
        ReadingsFile(tmp_path / "meters" / "m.csv", origin_ns=0)


def test_new_files_are_readable_by_all(tmp_path):
    append(tmp_path / "m.csv")
    assert stat.S_IMODE((tmp_path / "m.csv").stat().st_mode) & stat.S_IRUSR


def test_row_text():
    assert (
        row(7, Reading(1_500_000_000, 22.95, 230.12, 0.2064), 500_000_000)
        == "1.000000,7,22.95,230.12,0.2064,,"
    )
    assert row(8, Reading(500_000_000, flag=Flag.RECONNECT), 500_000_000) == "0.000000,8,,,,,reconnect"


@given(
    st.integers(0, 10**9),
    st.integers(-(10**12), 10**15),
    st.one_of(st.none(), st.floats(-1e6, 1e6, allow_nan=False)),
    st.sampled_from(Flag),
)
def test_every_row_is_read_back(seq, t_ns, power_w, flag):
    text = row(seq, Reading(t_ns, power_w, flag=flag), 0)
    cells = text.split(",")
    assert len(cells) == 7
    assert float(cells[0]) == pytest.approx(t_ns / 1e9, abs=1e-6)
    assert last_row((HEADER + text + "\n").encode(), "m.csv") == (seq, float(text.split(",")[0]))
    assert cells[2] == "" if power_w is None else float(cells[2]) == pytest.approx(power_w, rel=1e-8)
