# SPDX-License-Identifier: Apache-2.0
"""Coded sync pulses before and after a campaign: how late each meter is, seen in its own power trace.

The clients send bursts in the rhythm of a Barker code; netjoule_energy finds that rhythm in the
readings and so the lag from traffic to reading (meter, line and clock offset in one number). The times of
the bursts are those of their first packets, on the clock that everything else is measured on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from netjoule.core.clock import CampaignTime
from netjoule.core.errors import RunFailed
from netjoule.design.timeline import MeterPace, code_for, quiet_s
from netjoule.workload.load import HostTime, Load, LoadSession, Place

PULSE_TRIES = 3
"""A busy host may hold a burst up."""


@dataclass(frozen=True)
class Burst:
    """One run of ones: first bit, number of bits."""

    first_bit: int
    bits: int


def bursts(bits: str) -> list[Burst]:
    """Runs of ones; bits that follow each other are one flow."""
    found = []
    place = 0
    for run in bits.split("0"):
        if run:
            found.append(Burst(place, len(run)))
        place += len(run) + 1
    return found


async def send_pulse(
    load: Load, meters: Sequence[MeterPace], place: Place, time: CampaignTime, hosts: HostTime
) -> dict[str, Any]:
    """Send one pulse between two silences, from every client at once.

    Args:
        load: makes the bursts.
        meters: they must resolve its bits.
        place: hosts of a testbed that is up.
        time: of the campaign.
        hosts: their clocks.

    Returns:
        ``{t_start_s, bit_s, code}`` in campaign time, by the bursts' first packets.

    Raises:
        RunFailed: when a burst fails, or the rhythm is lost in each try because bursts begin late.
    """
    code = code_for(meters)
    for _ in range(PULSE_TRIES):
        await time.sleep_until(time.now_s() + quiet_s(meters))
        begin_s = time.now_s() + code.bit_s
        late_s = []
        for burst in bursts(code.bits):
            session = await load.open_burst(burst.first_bit, burst.bits * code.bit_s, place)
            due_s = begin_s + burst.first_bit * code.bit_s
            late_s += [at_s - due_s for at_s in await _sent(session, due_s, time, hosts)]
        await time.sleep_until(time.now_s() + quiet_s(meters))
        if max(late_s) - min(late_s) <= code.bit_s / 2:
            start_s = begin_s + sum(late_s) / len(late_s)
            return {"t_start_s": round(start_s, 6), "bit_s": code.bit_s, "code": code.bits}
    raise RunFailed(
        f"the bursts of a sync pulse began {min(late_s):.2f} to {max(late_s):.2f} s late, "
        f"as in the {PULSE_TRIES - 1} tries before",
        next_step="free the host of other work, or leave sync_pulses out of the workload",
    )


async def _sent(session: LoadSession, due_s: float, time: CampaignTime, hosts: HostTime) -> list[float]:
    """Send one burst at `due_s`; campaign time of each client's first packet."""
    try:
        await time.sleep_until(due_s)
        await session.go()
        outcome = await session.outcome(hosts)
    finally:
        await session.end()
    return [part.t_start_s for part in outcome.parts]


def lags(alignment: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """The lags that results go by, by meter: those that are sure enough."""
    from netjoule_energy.power.alignment import LEAST_CONFIDENCE

    return {a["meter_id"]: float(a["lag_s"]) for a in alignment if a["confidence"] >= LEAST_CONFIDENCE}


def kept(before: Sequence[Mapping[str, Any]], found: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The alignment to keep: a lag that has moved by less than it is known to stays what results went by.

    Args:
        before: entries from the pulses up to now; none at first.
        found: entries from all pulses, the newest included.
    """
    known = {a["meter_id"]: a for a in before if a["meter_id"] in lags(before)}
    entries = []
    for new in found:
        old = known.get(new["meter_id"])
        if old is not None and abs(new["lag_s"] - old["lag_s"]) <= 2 * max(new["u_lag_s"], old["u_lag_s"]):
            entries.append({**new, **{name: old[name] for name in ("lag_s", "u_lag_s", "confidence")}})
        else:
            entries.append(dict(new))
    return entries


def words(alignment: Sequence[Mapping[str, Any]]) -> str:
    """Lags in words, for people."""
    sure = lags(alignment)
    said = [
        f"{a['meter_id']} lag {a['lag_s']:.3f} s (u {a['u_lag_s']:.3f} s)"
        if a["meter_id"] in sure
        else f"{a['meter_id']} not aligned (confidence {a['confidence']:.2f}): the passport's lag holds"
        for a in alignment
    ]
    return "; ".join(said) or "no meter saw the sync pulse"
