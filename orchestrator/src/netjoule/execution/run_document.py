# SPDX-License-Identifier: Apache-2.0
"""A run's run.json before anything happened. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from netjoule.design.run_table import PlanRow
from netjoule.store.session import rfc3339
from netjoule.topology.topology import Topology

SCHEMA_VERSION = 2
_OF_ROW = ("block", "mini_block", "attempt", "order", "load", "kind", "arm")
WINDOWS = ("idle_before", "warm_up", "measure", "tail", "idle_after")


def new_run_document(
    campaign: str,
    topology: Topology,
    row: PlanRow,
    now: datetime,
    *,
    roles: Iterable[str] = ("client", "server"),
) -> dict[str, Any]:
    """run.json of a run that begins `now`: what is asked, all windows still unknown.

    Args:
        roles: of the hosts that its load needs.
    """
    return {
        "schema_version": SCHEMA_VERSION,
        "run_id": row.run_id,
        "campaign": campaign,
        **{name: getattr(row, name) for name in _OF_ROW},
        "factors": dict(row.cell),
        "seed": row.seed,
        "hosts": {role: topology.host_with(role) for role in roles},
        "radio_source": topology.radio_source,
        "windows": dict.fromkeys(WINDOWS),
        "window": None,
        "work": None,
        "measures": {},
        "control": None,
        "started_utc": rfc3339(now),
        "versions": {},
        "status": "done",
        "reasons": [],
    }
