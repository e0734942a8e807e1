# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.transports.line_framing import LINE_ENDS, Line, LineAssembler


def assembled(mode: str, *pieces: bytes) -> list[bytes]:
    lines = LineAssembler(LINE_ENDS[mode])
    for piece in pieces:
        lines.add(piece, 0)
    return [line.text for line in iter(lines.take, None)]


@pytest.mark.parametrize(
    ("mode", "data", "lines"),
    [
        ("lf", b"one\ntwo\r\n\nthr", [b"one", b"two", b""]),
        ("crlf", b"one\r\ntwo\r\n", [b"one", b"two"]),
        ("cr", b"one\rtwo\r\n\rthree\nfou", [b"one", b"two", b"three"]),
    ],
)
def test_lines_by_their_end(mode, data, lines):
    assert assembled(mode, data) == lines


@given(st.lists(st.binary(max_size=5)), st.sampled_from(sorted(LINE_ENDS)))
def test_it_does_not_matter_where_the_pieces_are_cut(pieces, mode):
    assert assembled(mode, *pieces) == assembled(mode, b"".join(pieces))


def test_the_stamp_is_that_of_the_first_byte():
    lines = LineAssembler(LINE_ENDS["cr"])
    for t_ns, piece in ((10, b"fi"), (20, b"rst\r"), (30, b"\n"), (40, b"se"), (50, b"cond\rthird\r")):
        lines.add(piece, t_ns)
    assert list(iter(lines.take, None)) == [Line(b"first", 10), Line(b"second", 40), Line(b"third", 50)]


def test_a_part_is_kept_and_can_be_forgotten():
    lines = LineAssembler(LINE_ENDS["lf"])
    lines.add(b"old", 1)
    assert lines.take() is None
    lines.clear()
    lines.add(b"new\n", 2)
    assert lines.take() == Line(b"new", 2)


def test_noise_without_end_does_not_fill_memory():
    lines = LineAssembler(LINE_ENDS["lf"])
    for t_ns in range(100):
        lines.add(b"x" * 4096, t_ns)
    lines.add(b"\n", 101)
    line = lines.take()
    assert line is not None and len(line.text) < 20_000
