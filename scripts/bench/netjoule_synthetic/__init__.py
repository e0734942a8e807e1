# SPDX-License-Identifier: Apache-2.0
"""Synthetic campaigns with known truth, in the files that a real campaign leaves, from 12 runs to 9,600.

``design`` says what is true, ``campaign.write`` puts it on disk. Nothing was measured: every number comes
from the design's formulas and a seed, and every file says ``modelled``.
"""

from netjoule_synthetic.campaign import write
from netjoule_synthetic.design import Design, LinearPower, Meter, table_i, tiny
from netjoule_synthetic.truth import Cell, cells

__all__ = ["Cell", "Design", "LinearPower", "Meter", "cells", "table_i", "tiny", "write"]
