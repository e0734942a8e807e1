# SPDX-License-Identifier: Apache-2.0
"""Whether the readings that a campaign holds cover the windows that the numbers of a run rest on.

Every run that counts was computed from covered windows; where they are not any more, its readings were lost
since, and its numbers stand for nothing that can be looked at.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from netjoule_energy.campaign.files import Campaign, read_trace
from netjoule_energy.power.readings import mean_power
from netjoule_energy.power.windows import Window
from netjoule_energy.run.node_power import UNKNOWN_POWER

WINDOWS = ("idle_before", "measure", "idle_after")
"""Of run.json; of the measure window the part that result.json calls its own."""


@dataclass(frozen=True, slots=True)
class Uncovered:
    """What one meter's readings lack of one run: the covered share of each window that is not covered."""

    meter_id: str
    coverage: Mapping[str, float]

    def __str__(self) -> str:
        """As ``readings cover 0 % of measure, 12 % of idle_after``."""
        return "readings cover " + ", ".join(
            f"{100 * share:.0f} % of {n}" for n, share in self.coverage.items()
        )


def uncovered(
    campaign_dir: Path, known: Campaign, run: Mapping[str, Any], result: Mapping[str, Any]
) -> list[Uncovered]:
    """Return what each logged meter's readings lack of a run; none for a run that is covered.

    run, result: its documents run.json and result.json, each as its contract has it.

    Raises:
        CampaignError: when the table of a meter is missing or broken.
    """
    spans = {**run["windows"], "measure": result.get("window") or run["windows"]["measure"]}
    windows = {
        name: Window(float(span["t_start_s"]), float(span["t_end_s"]))
        for name in WINDOWS
        if (span := spans[name]) is not None and span["t_end_s"] > span["t_start_s"]
    }
    found = []
    for passport in known.passports if windows else ():
        if passport["power_source"] == UNKNOWN_POWER:
            continue
        first_s, last_s = min(w.start_s for w in windows.values()), max(w.end_s for w in windows.values())
        lag = known.lags.get(str(passport["meter_id"]))
        readings = read_trace(campaign_dir, passport, first_s, last_s, None if lag is None else lag.lag_s)
        means = {name: mean_power(readings, window) for name, window in windows.items()}
        lacking = {name: mean.coverage for name, mean in means.items() if not mean.covered}
        if lacking:
            found.append(Uncovered(str(passport["meter_id"]), lacking))
    return found
