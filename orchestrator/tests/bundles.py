# SPDX-License-Identifier: Apache-2.0
"""Bundles that `netjoule publish` makes, unpacked; campaigns whose results are computed anew."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from netjoule.publishing.bundle import publish
from netjoule.publishing.identifiers import Kind
from netjoule_contracts.lift.results import lifted_result
from netjoule_energy import compute_and_write, differing


def unpacked(made: Path, folder: Path) -> Path:
    """The one folder that a bundle holds."""
    shutil.unpack_archive(made, folder, {".zip": "zip", ".xz": "xztar"}.get(made.suffix, "gztar"))
    (found,) = folder.iterdir()
    return found


def published(campaign: Path, folder: Path, *kept: Kind, incomplete: bool = False) -> Path:
    """A campaign's bundle, unpacked."""
    folder.mkdir(parents=True)
    made = publish(campaign, folder / "b.zip", kept=frozenset(kept), incomplete=incomplete)
    return unpacked(made.path, folder / "unpacked")


def differing_anew(campaign: Path) -> dict[str, list[str]]:
    """What differs by more than rounding when all results of a campaign are computed anew: paths by run.

    The campaign is written to.
    """
    paths = {path.parent.name: path for path in sorted(campaign.glob("runs/*/result.json"))}
    stored = {run_id: json.loads(path.read_text()) for run_id, path in paths.items()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)  # nobody cuts the power here; a disk takes long for each
        compute_and_write(campaign, list(stored))
    computed = {run_id: json.loads(path.read_text()) for run_id, path in paths.items()}
    found = {run_id: differing(lifted_result(stored[run_id]), computed[run_id]) for run_id in paths}
    return {run_id: names for run_id, names in found.items() if names}
