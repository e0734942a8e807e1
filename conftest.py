# SPDX-License-Identifier: Apache-2.0
"""How tests that run at once (`make test-python`) are shared out: as their fixtures are; longest first.

And with which signals.
"""

from __future__ import annotations

import signal
from pathlib import PurePath
from typing import Any

import hypothesis
import pytest

# A busy host is no defect of what is tested.
hypothesis.settings.register_profile("netjoule", deadline=None)
hypothesis.settings.load_profile("netjoule")

WHOLE_CAMPAIGNS = ("test_end_to_end.py", "test_end_to_end_meters.py", "test_end_to_end_flows.py")
"""One after the other: their flows and instruments keep real time, and a host has few cores."""
GUEST_LAB = (
    "test_radio_faults.py",
    "test_radio_networks.py",
    "test_radio_refusals.py",
    "test_golden_campaign.py",
)
"""One boot of the guest's lab is theirs."""
REPORTS = ("test_report_screen.py", "test_report_paper.py")
"""They look at the same pages, which are drawn once."""
TOGETHER = {"whole campaigns": WHOLE_CAMPAIGNS, "guest lab": GUEST_LAB, "reports": REPORTS}
EACH_BY_ITSELF = ("test_host_roles.py", "test_radio_roles.py")
"""Files whose tests share nothing."""
BY_PARAMETER = ("test_golden_study.py",)
"""Files whose tests share what they are given by their parameter."""
LONGEST = (
    *GUEST_LAB,
    *WHOLE_CAMPAIGNS,
    "test_lab.py",
    *EACH_BY_ITSELF,
    "test_lab_campaign.py",
    *REPORTS,
    *BY_PARAMETER,
    "test_traps.py",
    "test_end_to_end_clients.py",
)
"""They take minutes each: begun last, the others would be over long before them."""

# Signals that whoever starts the tests ignores (nohup, a job in the background) would be ignored by all
# that they start, too: no test of an end could pass.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the longest first."""

    def place(item: pytest.Item) -> int:
        return LONGEST.index(item.path.name) if item.path.name in LONGEST else len(LONGEST)

    items.sort(key=place)


def shared_by(test: str) -> str:
    """What a test shares with others, by name: as a rule its file, and the fixtures there."""
    file, _, name = test.partition("::")
    base = PurePath(file).name
    if base in EACH_BY_ITSELF:
        return test
    if base in BY_PARAMETER:
        return file + name.partition("[")[2]
    return next((group for group, files in TOGETHER.items() if base in files), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give what is shared to one process; pytest-xdist's own groups are not seen by pytest 9.2."""
    from xdist.scheduler import LoadFileScheduling

    class ByShare(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return shared_by(nodeid)

    return ByShare(config, log)
