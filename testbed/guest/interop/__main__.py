# SPDX-License-Identifier: Apache-2.0
"""``python testbed/guest/interop [reduced|whole|bench]`` by hand.

The matrices write docs/interoperability.md and .json; the bench prints a table.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import bench
from cells import reduced, whole
from matrix import run_matrix, write

DOCS = Path(__file__).resolve().parents[3] / "docs"


def main() -> int:
    """Exit code: 0 all as it must be, 1 not, 2 usage."""
    matrices = {"reduced": reduced, "whole": whole}
    parser = argparse.ArgumentParser(prog="python testbed/guest/interop", description=__doc__)
    parser.add_argument("what", nargs="?", choices=[*matrices, "bench"], default="reduced")
    what = parser.parse_args().what
    if what == "bench":
        with tempfile.TemporaryDirectory(prefix="netjoule-bench-") as scratch:
            found = bench.measure(Path(scratch) / "flows")
        sys.stdout.write(bench.text(found))
        return 0
    with tempfile.TemporaryDirectory(prefix="netjoule-interop-") as scratch:
        flows, comparisons = run_matrix(matrices[what](), Path(scratch) / "flows")
    wrong = write(flows, comparisons, DOCS / "interoperability.md", DOCS / "interoperability.json")
    sys.stdout.write((DOCS / "interoperability.md").read_text())
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
