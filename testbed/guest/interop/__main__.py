# SPDX-License-Identifier: Apache-2.0
"""``python testbed/guest/interop [reduced|whole|bench]`` by hand.

The matrices write docs/interoperability.md and .json; the bench prints a table.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import bench
from cells import reduced, whole
from matrix import run_matrix, write

DOCS = Path(__file__).resolve().parents[3] / "docs"


def main() -> int:
    """Exit code: 0 all as it must be, 1 not, 2 usage."""
    if sys.argv[1:2] == ["bench"] and len(sys.argv) == 2:
        with tempfile.TemporaryDirectory(prefix="netjoule-bench-") as scratch:
            found = bench.measure(Path(scratch) / "flows")
        sys.stdout.write(bench.text(found))
        return 0
    matrices = {"reduced": reduced, "whole": whole}
    wanted = sys.argv[1] if len(sys.argv) > 1 else "reduced"
    if wanted not in matrices or len(sys.argv) > 2:
        sys.stderr.write("usage: python testbed/guest/interop [reduced|whole|bench]\n")
        return 2
    with tempfile.TemporaryDirectory(prefix="netjoule-interop-") as scratch:
        flows, comparisons = run_matrix(matrices[wanted](), Path(scratch) / "flows")
    wrong = write(flows, comparisons, DOCS / "interoperability.md", DOCS / "interoperability.json")
    sys.stdout.write((DOCS / "interoperability.md").read_text())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
