# SPDX-License-Identifier: Apache-2.0
"""Bundles that `netjoule publish` makes, unpacked."""

from __future__ import annotations

import shutil
from pathlib import Path

from netjoule.publishing.bundle import publish
from netjoule.publishing.kinds import Kind


def unpacked(made: Path, folder: Path) -> Path:
    """The one folder that a bundle holds."""
    shutil.unpack_archive(made, folder, {".zip": "zip", ".xz": "xztar"}.get(made.suffix, "gztar"))
    (found,) = folder.iterdir()
    return found


def published(campaign: Path, folder: Path, *kept: Kind) -> Path:
    """A campaign's bundle, unpacked."""
    folder.mkdir(parents=True)
    return unpacked(publish(campaign, folder / "b.zip", kept=frozenset(kept)).path, folder / "unpacked")
