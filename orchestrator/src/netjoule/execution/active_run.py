# SPDX-License-Identifier: Apache-2.0
"""A run under way, or one that waits for its closing idle window."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

from netjoule.core.reason import Reason
from netjoule.design.run_table import PlanRow
from netjoule.workload.load import LoadSession


@dataclass
class OpenRun:
    """What is known of it so far.

    Attributes:
        row: of the plan.
        document: run.json as it will be.
        began_s: campaign time.
        session: its work, while that has processes or sockets.
        reasons: coded reasons so far, run.json's.
    """

    row: PlanRow
    document: dict[str, Any]
    began_s: float
    session: LoadSession | None = None
    reasons: list[Reason] = field(default_factory=list)


class Note(Protocol):
    """Writes lines of runs' events.csv."""

    def __call__(
        self, row: PlanRow, source: str, event: str, reason: Reason, *, t_s: float | None = None
    ) -> None:
        """Write one; `t_s`, campaign time, is now unless given."""
