# SPDX-License-Identifier: Apache-2.0
"""`python -m netjoule_energy CAMPAIGN [RUN_ID...]`: compute result.json of runs again."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from netjoule_contracts.types.result import Node, Result
from netjoule_energy.campaign.compute import computed
from netjoule_energy.campaign.files import CampaignError

EXIT_INVALID_DATA = 4


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 0, or 4 when the campaign's files are broken."""
    parser = argparse.ArgumentParser(
        prog="python -m netjoule_energy",
        description="Compute runs/<run_id>/result.json from the raw files of a campaign.",
        epilog="example: python -m netjoule_energy results/demo b01m003-udp-a1",
    )
    parser.add_argument("campaign", type=Path, help="folder of the campaign, e.g. results/demo")
    parser.add_argument("run_id", nargs="*", help="runs to compute; all of them when none is named")
    chosen = parser.parse_args(arguments)
    try:
        run_ids = chosen.run_id or all_run_ids(chosen.campaign)
        for result in computed(chosen.campaign, run_ids):
            sys.stdout.write(summary(result) + "\n")
    except CampaignError as error:
        sys.stderr.write(f"netjoule_energy: {error}\n")
        return EXIT_INVALID_DATA
    return 0


def all_run_ids(campaign: Path) -> list[str]:
    """Return the ids of all runs that have a run.json, sorted.

    Raises:
        CampaignError: when there is none.
    """
    run_ids = sorted(path.parent.name for path in (campaign / "runs").glob("*/run.json"))
    if not run_ids:
        raise CampaignError(f"{campaign} holds no runs/<run_id>/run.json; name the folder of a campaign")
    return run_ids


def summary(result: Result) -> str:
    """Return one line per run: id, validity, and energy per work with u95 at each meter."""
    state = (
        "valid" if result.valid else "invalid (" + ", ".join(sorted({r.code for r in result.reasons})) + ")"
    )
    unit = "work" if result.work is None else result.work.unit
    return "  ".join([result.run_id, state, *(_node_summary(node, unit) for node in result.nodes)])


def _node_summary(node: Node, unit: str) -> str:
    if node.energy_per_work_j is None or node.u95_energy_per_work_j is None:
        return f"{node.meter_id}: no energy per {unit} ({node.ea_reason})"
    text = f"{node.meter_id}: {node.energy_per_work_j:.4g} +- {node.u95_energy_per_work_j:.2g} J/{unit}"
    apparent = ", apparent power" if node.quantity == "apparent_power" else ""
    return f"{text} [{node.grade}; {node.power_source}, {node.radio_source}{apparent}]"


if __name__ == "__main__":
    sys.exit(main())
