# SPDX-License-Identifier: Apache-2.0
"""Numbers with their nouns."""

import pytest

from netjoule.core.words import counted


@pytest.mark.parametrize(("number", "text"), [(0, "0 runs"), (1, "1 run"), (2, "2 runs")])
def test_one_of_a_kind_is_no_plural(number, text):
    assert counted(number, "run") == text
