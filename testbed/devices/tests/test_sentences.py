# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

from golden_sentences import forgotten_tests


def test_the_golden_sentences_are_those_of_tests_that_are_there():
    assert not forgotten_tests(Path(__file__).parent)
