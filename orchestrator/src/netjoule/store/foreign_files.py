# SPDX-License-Identifier: Apache-2.0
"""Names what stands in a campaign's folder and is none of its files: netjoule never reads it, others may."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import netjoule_contracts as contracts
from netjoule.store import folder_limits

FOREIGN = "none of a campaign's files: netjoule never reads it"

_OWN = (
    *("campaign.json", "plan.csv", "status.csv", "clocks.csv", "datapackage.json", "provisioning.json"),
    *("meters/*.csv", "radio/*.csv", "devices/*.ndjson"),
    *("runs/*/*.json", "runs/*/intervals.csv", "runs/*/events.csv", "runs/*/power.csv"),
    "runs/*/routers.csv",
    # Of a simulated block.
    *("blocks/*/runs.ndjson", "blocks/*/results.ndjson", "blocks/*/intervals.csv", "blocks/*/events.csv"),
    "blocks/*/routers.csv",
    *("runs/*/*.pcap", "runs/*/*.pcapng"),
    # Made by R.
    *("report.html", "tables/*.csv", "tables/.per-run-pass*"),
    *("figures/*.svg", "figures/*.png", "figures/index.json"),
    # Of a bundle.
    *("README.md", "CITATION.cff", "LICENCE.txt", "SHA256SUMS", "workload.yaml", "topology.yaml"),
    # Of this machine; a kill while a file is written leaves the last.
    *(".lock", ".testbed", ".*.json.tmp", ".*.csv.tmp", "runs/*/.*.tmp"),
    *(".part-*", "tables/.part-*", "figures/.part-*"),
)


def _of_parts() -> Iterator[str]:
    """What loads keep of further parts of a run."""
    for load in contracts.loads():
        yield from (f"runs/*/{load}s/*.json", f"runs/*/{load}s/.*.tmp", f"blocks/*/{load}.ndjson")


def foreign_files(campaign: Path) -> Iterator[str]:
    """Paths, relative to the campaign's folder, of files that are none of a campaign's, in order."""
    own = (*_OWN, *_of_parts())
    own += tuple(f"blocks/*/{one}" for one in own)
    for entry in folder_limits.walk(campaign):
        place = PurePosixPath(entry.place.relative_to(campaign).as_posix())
        patterns = (one for one in own if one.count("/") + 1 == len(place.parts))
        under_way = place.parts[0] == ".blocks"
        if not stat.S_ISDIR(entry.found.st_mode) and not under_way and not any(map(place.match, patterns)):
            yield str(place)
