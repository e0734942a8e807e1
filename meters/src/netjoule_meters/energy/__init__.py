# SPDX-License-Identifier: Apache-2.0
"""Per-run numbers: the one place where E_A = (P_A - P_I) / T_A and its u95 are computed.

`compute_run` and `compute_and_write` work on a campaign folder; the modules below them are pure functions
over arrays. `python -m netjoule_meters.energy CAMPAIGN [RUN_ID...]` computes result.json again.
"""

from __future__ import annotations

from netjoule_meters.energy.agreement import agree, differing
from netjoule_meters.energy.align_campaign import align_campaign
from netjoule_meters.energy.alignment import BARKER_13, Alignment, Pulse, bit_length_s, find_lag
from netjoule_meters.energy.campaign_files import Campaign, CampaignError, read_campaign
from netjoule_meters.energy.compute import compute_and_write, compute_run
from netjoule_meters.energy.coverage import Uncovered, uncovered
from netjoule_meters.energy.floor import GREATEST_FLOOR_RATIO
from netjoule_meters.energy.result import FloorResult, NodeResult, Reason, Result
from netjoule_meters.energy.several_flows import jain_index
from netjoule_meters.energy.wake_ups import GREATEST_WAKE_UPS_FACTOR

__all__ = [
    "BARKER_13",
    "GREATEST_FLOOR_RATIO",
    "GREATEST_WAKE_UPS_FACTOR",
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
    "uncovered",
]
