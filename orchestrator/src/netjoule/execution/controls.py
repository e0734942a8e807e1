# SPDX-License-Identifier: Apache-2.0
"""The control run of a mini-block, set against its other runs once all have ended: `control` of run.json."""

from __future__ import annotations

from collections.abc import Sequence

from netjoule.core import files
from netjoule.store.campaign import Campaign
from netjoule.workload.load import Kept, Load


def write_controls(campaign: Campaign, load: Load, run_ids: Sequence[str]) -> None:
    """Write into each run which control run it has, and whether the two compare.

    Args:
        campaign: whose runs they are.
        load: of the runs.
        run_ids: all runs of one mini-block and attempt.
    """
    kept = [_kept(campaign, load, run_id) for run_id in run_ids]
    control = next((one for one in kept if one.run.get("kind") == "control"), None)
    for one in kept:
        if control is None or one.run.get("kind") != "work":
            continue
        found = dict(load.compare(one, control))
        if one.run["control"] != found:
            campaign.write_run({**one.run, "control": found})


def _kept(campaign: Campaign, load: Load, run_id: str) -> Kept:
    run = files.read_json(campaign.run_dir(run_id) / "run.json")
    return Kept(run, campaign.read_documents(run_id, load.name))
