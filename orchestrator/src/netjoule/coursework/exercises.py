# SPDX-License-Identifier: Apache-2.0
"""The exercises that there are."""

from __future__ import annotations

from netjoule.coursework.congestion import CONGESTION
from netjoule.coursework.envelope import ENVELOPE
from netjoule.coursework.exercise import Exercise
from netjoule.coursework.floor import FLOOR
from netjoule.coursework.scaling import SCALING
from netjoule.coursework.transfers import TRANSFERS

EXERCISES: dict[str, Exercise] = {one.name: one for one in (ENVELOPE, FLOOR, CONGESTION, SCALING, TRANSFERS)}
"""By name, in the order of docs/coursework.md."""
