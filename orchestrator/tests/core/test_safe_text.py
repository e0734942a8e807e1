# SPDX-License-Identifier: Apache-2.0
"""What a terminal would obey is written out; everything else stays."""

import pytest

from netjoule.core.safe_text import escaped


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße, 7 Ω, комната", "Straße, 7 Ω, комната"),
        ("a\x1b[2Jb\rc\nd\x7f\x9b", "a\\x1b[2Jb\\rc\\nd\\x7f\\x9b"),
        ("a\u202eb\u2066c\u200bd", "a\\u202eb\\u2066c\\u200bd"),
        ("\ud800", "\\ud800"),
    ],
)
def test_control_characters_and_writing_order_are_written_out(text, expected):
    assert escaped(text) == expected
    assert escaped(text).isprintable()
