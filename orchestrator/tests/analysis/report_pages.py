# SPDX-License-Identifier: Apache-2.0
"""Reports that tests look at in a browser, and the windows they look through."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from chromium import Page

from netjoule.analysis import analysis
from netjoule.core.errors import HostLacks
from netjoule.workload.workload import Timing
from netjoule_synthetic import Design, table_i, tiny, write

DESK, PHONE = {"width": 1280, "height": 800}, {"width": 390, "height": 844, "mobile": True}
PAPER = {"width": 703, "height": 1000}
"""What the margins leave of A4: 186 mm at 96 pixels an inch."""
OpenPage = Callable[..., Page]


def lacking(why: str) -> None:
    if os.environ.get("CI") == "true":
        pytest.fail(f"on CI the report is looked at: {why}")
    pytest.skip(why)


def reported(campaign: Path) -> Path:
    try:
        analysis.require_r()
    except HostLacks as error:
        lacking(str(error))
    analysis.run_analysis("report", campaign, lambda _: None)
    return campaign / "report.html"


def of_design(folder: Path, design: Design) -> Path:
    """The report of a synthetic campaign."""
    return reported(write(folder / "campaign", design))


def beside() -> Design:
    """A small sweep of UDP and DCCP, which published values stand beside."""
    return tiny(transports=("udp", "dccp", "null"), offered_rate_mbps=(1.0, 14.0, 24.0))


def many() -> Design:
    """7,680 runs: table-i's 24 loads and two sizes, 32 blocks, two meters."""
    short = Timing(idle_s=1.0, settle_s=0.5, warm_up_s=0.5, measure_s=2.0, tail_s=0.5)
    design = table_i(blocks=32, timing=short)
    assert design.runs == 7680
    return design
