# SPDX-License-Identifier: Apache-2.0
"""Per-run numbers: the one place where energy per work (of Mb: E_A) and its u95 are computed.

`compute_run` and `compute_and_write` work on a campaign folder; the modules below them are pure functions
over arrays. `python -m netjoule_energy CAMPAIGN [RUN_ID...]` computes result.json again.
The public names below are imported on first use, as numpy takes longer to load than most commands.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_energy.agreement import agree, differing
    from netjoule_energy.alignment import BARKER_13, Alignment, Pulse, bit_length_s, find_lag
    from netjoule_energy.campaign_files import Campaign, CampaignError, read_campaign
    from netjoule_energy.campaign_lags import align_campaign
    from netjoule_energy.compute import compute_and_write, compute_run
    from netjoule_energy.coverage import Uncovered, uncovered
    from netjoule_energy.floor import GREATEST_FLOOR_RATIO
    from netjoule_energy.parts import jain_index
    from netjoule_energy.result import FloorResult, NodeResult, Reason, Result
    from netjoule_energy.until_done import repeats_needed

_HOMES = {
    "BARKER_13": "alignment",
    "GREATEST_FLOOR_RATIO": "floor",
    "Alignment": "alignment",
    "Campaign": "campaign_files",
    "CampaignError": "campaign_files",
    "FloorResult": "result",
    "NodeResult": "result",
    "Pulse": "alignment",
    "Reason": "result",
    "Result": "result",
    "Uncovered": "coverage",
    "agree": "agreement",
    "align_campaign": "campaign_lags",
    "bit_length_s": "alignment",
    "compute_and_write": "compute",
    "compute_run": "compute",
    "differing": "agreement",
    "find_lag": "alignment",
    "jain_index": "parts",
    "read_campaign": "campaign_files",
    "repeats_needed": "until_done",
    "uncovered": "coverage",
}

__all__ = [
    "BARKER_13",
    "GREATEST_FLOOR_RATIO",
    "Alignment",
    "Campaign",
    "CampaignError",
    "FloorResult",
    "NodeResult",
    "Pulse",
    "Reason",
    "Result",
    "Uncovered",
    "agree",
    "align_campaign",
    "bit_length_s",
    "compute_and_write",
    "compute_run",
    "differing",
    "find_lag",
    "jain_index",
    "read_campaign",
    "repeats_needed",
    "uncovered",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
