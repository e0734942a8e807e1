# SPDX-License-Identifier: Apache-2.0
"""One boot of the guest's lab for all tests of this folder; one provisioning of each network."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# importlib mode adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))

from guest_lab import PLAYED, GuestLab, booted

from netjoule.testbeds.guest.lab import Network, template


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if PLAYED:
        terminalreporter.section("plays in the guest")
        for line in PLAYED:
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuestLab]:
    with booted(tmp_path_factory.mktemp("guest-lab")) as lab:
        yield lab


@pytest.fixture(scope="session", params=template()["networks"])
def network(lab: GuestLab, request: pytest.FixtureRequest) -> Iterator[Network]:
    """A provisioned network; nothing of it is left behind. Tests of one network run one after another."""
    name: Network = request.param
    topology = lab.topology(name)
    up = lab.play(topology)
    assert not up.failures, up.failures
    yield name
    down = lab.play(topology, "teardown")
    assert not down.failures, down.failures
    for host in ("access_point", "client"):
        assert json.loads(lab.ask(host, "ip", "-j", "-4", "address", "show", "dev", "wlan0")) in ([], [{}])
    assert "hostapd" not in lab.ask("access_point", "ps", "-e")
    assert "wpa_supplicant" not in lab.ask("client", "ps", "-e")
