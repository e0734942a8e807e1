# SPDX-License-Identifier: Apache-2.0
"""Whether the runs of a gate so far say that its rig is not fit: too many of them do not count. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from netjoule.core.reason import Reason
from netjoule.design.run_table import HAPPENED, PlanRow

GREATEST_SHARE = 0.25
"""Of runs that do not count for what is wrong with the rig, not with what it runs."""
LEAST_RUNS = 8
CLASSES: Mapping[str, str] = {
    "idle": "idle power",
    "clock": "clock",
    "meter": "meter",
    "radio": "radio",
    "host": "host",
    "link": "link",
    "device": "device",
}
"""Classes of reason codes that are a rig's, by the codes' first word."""


def error_class(code: str) -> str | None:
    """The class of a reason code; None of one that is not the rig's."""
    return CLASSES.get(code.partition("_")[0])


def sick(rows: Sequence[PlanRow]) -> Reason | None:
    """Why a gate ends early: over a quarter of its runs did not count, for one class of reasons."""
    happened = [row for row in rows if row.status in HAPPENED]
    if len(happened) < LEAST_RUNS:
        return None
    counts = Counter(error_class(row.reason) for row in happened if row.status == "invalid")
    counts.pop(None, None)
    for name, count in counts.most_common(1):
        if count > GREATEST_SHARE * len(happened):
            words = f"{count} of {len(happened)} runs do not count: {name}"
            return Reason("gate_rig_sick", words)
    return None
