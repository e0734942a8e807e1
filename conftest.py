# SPDX-License-Identifier: Apache-2.0
"""How tests are shared out when several run at once (`make test-python`): by file, as fixtures are."""

from __future__ import annotations

from pathlib import Path

import pytest

WHOLE_CAMPAIGNS = {"test_end_to_end.py", "test_end_to_end_meters.py"}
"""One after the other: their flows and instruments keep real time, and a host has few cores."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give each test the group that runs in one process."""
    for item in items:
        path = Path(item.path)
        group = "whole-campaigns" if path.name in WHOLE_CAMPAIGNS else str(path)
        item.add_marker(pytest.mark.xdist_group(group))
