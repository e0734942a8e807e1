# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import pytest


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
