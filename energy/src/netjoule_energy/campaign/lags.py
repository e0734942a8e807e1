# SPDX-License-Identifier: Apache-2.0
"""The lags of all meters of a campaign, from the sync pulses that were sent beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from netjoule_energy.campaign.files import CampaignError, read_campaign, read_trace
from netjoule_energy.power.alignment import Alignment, Pulse, find_lag
from netjoule_energy.power.readings import joined

_REACH_UPDATES = 10
_LEAST_REACH_S = 4.0


def align_campaign(campaign: Path, pulses: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the `alignment` entries of campaign.json, one for each meter that gave an answer.

    pulses: t_start_s (campaign seconds), bit_s and code of each. Unsure answers are among them. The lag is
    looked for about the passport's own, whatever an earlier alignment said.

    Raises:
        CampaignError: naming the file that is missing or broken, or the pulse that is none.
    """
    try:
        sent = [Pulse(float(p["t_start_s"]), float(p["bit_s"]), str(p["code"])) for p in pulses]
    except (KeyError, TypeError, ValueError) as error:
        raise CampaignError(f"{campaign}: a sync pulse is broken: {error!r}") from None
    entries = []
    for passport in read_campaign(campaign).passports:
        found = _find(campaign, passport, sent)
        if found is not None:
            entries.append(found.document(str(passport["meter_id"])))
    return entries


def _find(campaign: Path, passport: dict[str, Any], pulses: Sequence[Pulse]) -> Alignment | None:
    reach_s = max(_LEAST_REACH_S, _REACH_UPDATES * float(passport["update_interval_s"]))
    around = [
        read_trace(campaign, passport, p.t_start_s - reach_s - 4 * p.bit_s, p.t_end_s + reach_s + 4 * p.bit_s)
        for p in pulses
    ]
    return find_lag(joined(around), pulses) if around else None
