# SPDX-License-Identifier: Apache-2.0
"""Programs in Go that read what is written here, built once per run of the tests from pinned sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

BENCHSTAT = "golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da"
ACTIONLINT = "github.com/rhysd/actionlint/cmd/actionlint@v1.7.12"


def built(source: str, folder: Path) -> Path:
    """The program of a Go package; without go, or its sources, the test is skipped, in CI it fails."""
    go = shutil.which("go") or shutil.which("go", path=Path(sys.executable).parent)
    if go is None:
        lacking("there is no go on this host")
    environment = {**os.environ, "GOBIN": str(folder), "GOFLAGS": "-mod=mod"}
    done = subprocess.run(
        [go, "install", source], env=environment, cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        lacking(f"go cannot install {source}: {done.stderr.strip()[-300:]}")
    return folder / source.partition("@")[0].rpartition("/")[2]


def lacking(words: str) -> None:
    """End the test."""
    if os.environ.get("CI") == "true":
        pytest.fail(words)
    pytest.skip(words)
