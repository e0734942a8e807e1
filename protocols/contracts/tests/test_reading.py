# SPDX-License-Identifier: Apache-2.0
"""Files that anybody may have made: what is beyond a limit is named with its place, and nothing else."""

import math
import os
import signal

import pytest

from netjoule_contracts import ContractError, reading, root, table, table_defects
from netjoule_contracts.reading import MOST_DIGITS, MOST_LEVELS, MOST_LINE_BYTES, Unreadable, value_of


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("[" * 200_000, ""),
        ("[" * (MOST_LEVELS + 1) + "]" * (MOST_LEVELS + 1), ""),
        ('{"a":' * 60 + "1" + "}" * 60, ""),
        ("9" * 4300, ""),
        ("9" * 4301, ""),
        ('{"a": -' + "1" * (MOST_DIGITS + 1) + "}", ""),
        ("[1e999]", ""),
        ("[-1E+400]", ""),
        ("NaN", ""),
        ("[-Infinity]", ""),
        ('{\n "a": }', "line 2"),
        (b'{\n "a": "\xff"}', "line 2"),
        ("", "line 1"),
    ],
)
def test_what_no_reader_could_use_is_named(text, place):
    with pytest.raises(Unreadable) as told:
        value_of(text)
    assert told.value.place == place
    assert 0 < len(told.value.what) < 100


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("9" * MOST_DIGITS, int("9" * MOST_DIGITS)),
        ("[" * MOST_LEVELS + "]" * MOST_LEVELS, None),
        ("[1e99, 0.1]", [1e99, 0.1]),
        ('"NaN ' + "7" * 200 + ' [[["', "NaN " + "7" * 200 + " [[["),
        (str([[0]] * 1000), [[0]] * 1000),
        (b'{"\xc3\xa4": null}', {"ä": None}),
    ],
)
def test_what_is_within_the_limits_is_read(text, value):
    assert value is None or value_of(text) == value


def test_numbers_that_were_read_are_finite_as_floats():
    assert math.isfinite(float(value_of("9" * MOST_DIGITS)))


@pytest.mark.parametrize("read", [reading.content, reading.document, lambda p: list(reading.rows(p))])
def test_nothing_but_a_plain_file_is_opened_and_none_waited_for(tmp_path, read):
    os.mkfifo(tmp_path / "fifo")
    signal.alarm(20)
    try:
        for place in (tmp_path / "fifo", tmp_path):
            with pytest.raises(Unreadable, match="no plain file"):
                read(place)
    finally:
        signal.alarm(0)


def test_a_link_is_followed_only_where_it_may_be(tmp_path):
    (tmp_path / "a").write_text("x")
    (tmp_path / "b").symlink_to("a")
    assert reading.content(tmp_path / "b") == b"x"
    with pytest.raises(OSError, match="symbolic link"):
        reading.content(tmp_path / "b", follow=False)


def test_a_long_file_is_refused_by_its_length(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"x" * 1001)
    with pytest.raises(Unreadable, match="longer than 1 kB"):
        reading.content(path, 1000)
    assert len(reading.content(path, 1001)) == 1001


def test_a_row_that_cannot_be_read_leaves_those_behind_it(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text(f"a,b\n1,2\n3,{'x' * 131_073}\n5,6\n")
    rows = list(reading.rows(path))
    assert [(row.line, row.cells) for row in rows] == [
        (1, ["a", "b"]),
        (2, ["1", "2"]),
        (3, []),
        (4, ["5", "6"]),
    ]
    assert "131072" in rows[2].defect


@pytest.mark.parametrize("ending", [b"", b"\n", b"\nmore"])
def test_a_line_without_end_ends_the_reading(tmp_path, ending):
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n" + b"x" * (2 * MOST_LINE_BYTES + 1) + ending)
    with pytest.raises(Unreadable, match="line 2: a line longer than 1 MiB"):
        list(reading.lines(path))
    with pytest.raises(Unreadable, match="longer than 1 MiB"):
        reading.require_lines(path)
    path.write_bytes(b"a\n" + b"x" * (MOST_LINE_BYTES - 1) + b"\n" + b"b\n" * 10)
    assert len(list(reading.lines(path))) == 12
    reading.require_lines(path)


def test_every_defect_of_a_table_is_named_and_quotes_little(tmp_path):
    header = [field["name"] for field in table("clocks")["fields"]]
    path = tmp_path / "clocks.csv"
    rows = [["x" * 131_073] * len(header), ["9" * 4300] * len(header), ["y" * 5000] * len(header), ["z"]]
    path.write_text("\n".join(",".join(row) for row in [header, *rows]) + "\n")
    found = list(table_defects("clocks", path))
    assert {defect.partition(":")[0].partition(",")[0] for defect in found} == {
        "line 2",
        "line 3",
        "line 4",
        "line 5",
    }
    assert any("a number of 4300 digits" in defect for defect in found)
    assert max(map(len, found)) < 400


def test_contracts_themselves_are_found():
    assert (root() / "schemas").is_dir()
    with pytest.raises(ContractError):
        table("no such table")
