# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest
from golden_sentences import forgotten_tests

ROOMS = sorted(path.parent for path in Path(__file__).parent.glob("*/sentences.json"))


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_the_golden_file_names_tests_that_are_there(room: Path) -> None:
    assert not forgotten_tests(room)
