# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import sys
from pathlib import Path

import pytest

# Helpers of these tests are modules beside this file; importlib mode adds no folder by itself.
sys.path.insert(0, str(Path(__file__).parent))


class FakeClock:
    """A clock that stands still until it is moved; each look at it costs ``step_ns``."""

    def __init__(self, now_ns: int = 1_000_000_000, step_ns: int = 0) -> None:
        self.now_ns = now_ns
        self.step_ns = step_ns

    def monotonic_ns(self) -> int:
        self.now_ns += self.step_ns
        return self.now_ns

    def advance(self, seconds: float) -> None:
        self.now_ns += round(seconds * 1e9)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def serve():
    """Makes devices of `socket_devices` and ends them."""
    from socket_devices import Served

    devices = []

    def make(model: str, variant: str, **options):
        devices.append(Served(model, variant, **options))
        return devices[-1]

    yield make
    for device in devices:
        device.close()
