# SPDX-License-Identifier: Apache-2.0
"""Per-run numbers: the one place where energy per work (of Mb: E_A) and its u95 are computed.

From the bottom: ``power`` (what readings say about a stretch of time), ``uncertainty``, ``run`` (one run at
its meters, pure), ``campaign`` (files). `python -m netjoule_energy CAMPAIGN [RUN_ID...]` computes result.json
again.
The public names below are imported on first use, as numpy takes longer to load than most commands.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from netjoule_energy.campaign.agreement import agree, differing
    from netjoule_energy.campaign.compute import compute_and_write, compute_run
    from netjoule_energy.campaign.coverage import Uncovered, uncovered
    from netjoule_energy.campaign.files import Campaign, CampaignError, read_campaign
    from netjoule_energy.campaign.lags import align_campaign
    from netjoule_energy.campaign.simulated import simulated_result
    from netjoule_energy.power.alignment import BARKER_13, Alignment, Pulse, bit_length_s, find_lag
    from netjoule_energy.run.parts import jain_index
    from netjoule_energy.run.result import GREATEST_FLOOR_RATIO

_HOMES = {
    "campaign.agreement": ("agree", "differing"),
    "campaign.compute": ("compute_and_write", "compute_run"),
    "campaign.coverage": ("Uncovered", "uncovered"),
    "campaign.files": ("Campaign", "CampaignError", "read_campaign"),
    "campaign.lags": ("align_campaign",),
    "campaign.simulated": ("simulated_result",),
    "power.alignment": ("BARKER_13", "Alignment", "Pulse", "bit_length_s", "find_lag"),
    "run.parts": ("jain_index",),
    "run.result": ("GREATEST_FLOOR_RATIO",),
}

__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
