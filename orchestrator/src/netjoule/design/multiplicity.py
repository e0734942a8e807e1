# SPDX-License-Identifier: Apache-2.0
"""How many contrasts of a workload are tested, and from how many blocks on (docs/method/statistics.md).

The tests themselves are R's (analysis-r/R/statistics.R).
"""

from __future__ import annotations

from math import ceil, comb, log2

import netjoule_contracts as contracts
from netjoule.workload.workload import Workload

MOST_TESTS = 6
"""Contrasts beyond these are exploratory."""
LEAST_BLOCKS_TESTED = 8
"""From so many blocks on tests are made: six of them can then reach 0.05 after Holm."""
_ALPHA = 0.05


def size(of: Workload) -> int:
    """Number of main comparisons: those that the workload names, else its pairs at each value that counts."""
    named = of.document.get("statistics", {}).get("contrasts", [])
    at = contracts.loads()[of.load]["compared_at"]
    values = 1 if at in (None, of.arm) else len(of.factors[at])
    return min(MOST_TESTS, len(named) or comb(len(of.compared), 2) * values)


def alpha(of: Workload) -> float:
    """Level of the whole family."""
    return float(of.document.get("statistics", {}).get("alpha", _ALPHA))


def least_blocks(tests: int, level: float) -> int:
    """Fewest blocks at which a family is tested: then each test can reach the level after Holm."""
    # Rounding must not ask for one block more where 2 / 2^n is just enough.
    return max(LEAST_BLOCKS_TESTED, ceil(1 + log2(tests / level) - 1e-9))
