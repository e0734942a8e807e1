# SPDX-License-Identifier: Apache-2.0
"""How often a sender woke up for each message, and whether a run and its null run did so alike."""

from __future__ import annotations

from typing import Any

from netjoule_energy.result import Reason

GREATEST_WAKE_UPS_FACTOR = 1.5
"""Wake-ups per message of a run and of its null run that lie further apart are warned of."""


def wake_ups_per_message(flow: dict[str, Any]) -> float | None:
    """Return the sender's wake-ups over messages scheduled; None when the report lacks either."""
    return _per_message(flow, "wake_ups")


def naps_per_message(flow: dict[str, Any]) -> float | None:
    """Return the wake-ups before a departure over messages scheduled; None when the report lacks either."""
    return _per_message(flow, "naps")


def wake_ups_warning(flow: dict[str, Any], null_flow: dict[str, Any], null_run_id: str) -> list[Reason]:
    """Warn where null's senders woke up far more or less often: what that draws is in E_A above the floor.

    The floor stays: it is what the generator drew. Of a sender that does not tell nothing is said.
    """
    own, null = wake_ups_per_message(flow), wake_ups_per_message(null_flow)
    if own is None or null is None or max(own, null) <= GREATEST_WAKE_UPS_FACTOR * min(own, null):
        return []
    found = f"{own:.3g} wake-ups per message, {null:.3g} in {null_run_id}"
    return [Reason("floor_wake_ups_differ", found)]


def _per_message(flow: dict[str, Any], what: str) -> float | None:
    count = (flow.get("pacing") or {}).get(what)
    scheduled = (flow.get("sender") or {}).get("messages_scheduled")
    if count is None or not scheduled:
        return None
    return float(count) / float(scheduled)
