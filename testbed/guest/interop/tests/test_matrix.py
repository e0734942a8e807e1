# SPDX-License-Identifier: Apache-2.0
"""`make test-guest` runs the reduced matrix, `make test-slow` the whole one and writes docs/."""

from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[4] / "docs"


@pytest.mark.guest
def test_our_stack_and_the_kernels_understand_each_other(tmp_path):
    from cells import reduced
    from matrix import run_matrix, write

    flows, comparisons = run_matrix(reduced(), tmp_path / "flows")
    wrong = write(flows, comparisons, tmp_path / "page.md", tmp_path / "page.json")
    assert not wrong, (tmp_path / "page.md").read_text()


@pytest.mark.slow
def test_the_whole_matrix(tmp_path):
    from cells import whole
    from matrix import run_matrix, write

    flows, comparisons = run_matrix(whole(), tmp_path / "flows")
    wrong = write(flows, comparisons, DOCS / "interoperability.md", DOCS / "interoperability.json")
    assert not wrong, (DOCS / "interoperability.md").read_text()
