# SPDX-License-Identifier: Apache-2.0
"""What a session works on: its bench, and a run under way or one that waits for its closing idle window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netjoule.core.clock import CampaignTime
from netjoule.core.reason import Reason
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import MeterPace
from netjoule.execution.progress import ProgressSink
from netjoule.radio.log import RadioLog
from netjoule.store.campaign import Campaign
from netjoule.workload.load import Load, LoadSession

if TYPE_CHECKING:
    from netjoule.testbeds.base import Testbed

Compute = Callable[[Path, Sequence[str]], object]
"""Writes result.json of the runs of a mini-block with these ids, in a campaign's folder."""
Align = Callable[[Path, Sequence[Mapping[str, Any]]], list[dict[str, Any]]]
"""Finds each meter's lag from sync pulses, in a campaign's folder."""


Look = Callable[[Path], Reason]
"""What the blocks of a gate decide so far: the rule that ends it, without a code where none does."""


@dataclass(frozen=True)
class Bench:
    """A campaign on a testbed that is up, as all parts of its execution have it; meters: as they answered."""

    campaign: Campaign
    testbed: Testbed
    load: Load
    time: CampaignTime
    meters: Sequence[MeterPace]
    radio: RadioLog
    progress: ProgressSink
    compute: Compute
    align: Align
    look: Look

    def note(
        self, row: PlanRow, source: str, event: str, reason: Reason, *, t_s: float | None = None
    ) -> None:
        """Write a line of a run's events.csv; `t_s`, campaign time, is now unless given."""
        at_s = self.time.now_s() if t_s is None else t_s
        record = {"t_s": at_s, "source": source, "event": event, **reason.as_json()}
        self.campaign.append_events(row.run_id, [record])


@dataclass
class OpenRun:
    """What is known of a run so far.

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
