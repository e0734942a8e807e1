# SPDX-License-Identifier: Apache-2.0
"""When a synthetic campaign is said to have been."""

from datetime import UTC, datetime

CREATED = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ORIGIN_NS = 7_000_000_000_000
"""CLOCK_MONOTONIC at campaign time 0."""
BOOT = "11111111-2222-3333-4444-555555555555"
