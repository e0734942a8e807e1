# SPDX-License-Identifier: Apache-2.0
"""What can go and come back during a campaign: hosts and clients' associations; what it means for runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from netjoule.core.errors import RunFailed
from netjoule.core.reason import Reason
from netjoule.radio.log import RadioLog

if TYPE_CHECKING:
    from netjoule.testbeds.base import Testbed

RETURN_S = 600.0
"""A client not associated or a host without an answer for so long ends the campaign; `resume` goes on."""
_OUTAGES = frozenset({"host_unreachable", "radio_disassociated", "radio_roamed"})


class Outages:
    """What of a testbed's hosts and of its clients' radios was away, and when it is back."""

    def __init__(self, testbed: Testbed, radio: RadioLog) -> None:
        """Watch over a testbed that is up."""
        self._testbed = testbed
        self._radio = radio

    def reasons(self, t_start_s: float, t_end_s: float) -> list[Reason]:
        """Why a run over this time, its idle windows included, does not count; each code once."""
        first: dict[str, Reason] = {}
        for fault in self._radio.faults(t_start_s, t_end_s):
            first.setdefault(fault.code, Reason(fault.code, f"{fault.detail} at {fault.t_s:.1f} s"))
        return list(first.values())

    def rate_reasons(self, t_start_s: float, t_end_s: float) -> list[Reason]:
        """One reason when rates over this time, a measure window, were others than the topology's."""
        strays = self._radio.stray_rates(t_start_s, t_end_s)
        if not strays:
            return []
        first = strays[0]
        more = f"; {len(strays)} looks in all" if len(strays) > 1 else ""
        return [Reason(first.code, f"{first.detail} at {first.t_s:.1f} s{more}")]

    def cause(self, error: RunFailed, since_s: float, now_s: float) -> Reason:
        """Why a flow failed: the radio when that went first, else what the flow said."""
        radio = self.reasons(since_s, now_s)
        if not radio:
            return Reason(error.code or "generator_failed", str(error))
        return Reason(radio[0].code, f"{radio[0].detail}; the flow then failed: {error}")

    @staticmethod
    def may_return(reason: Reason) -> bool:
        """Whether what failed may come back, so that the failure says nothing about the next run."""
        return reason.code in _OUTAGES

    async def all_back(self) -> None:
        """Return when all hosts are in reach and all clients are associated.

        Raises:
            RunFailed: when one stays away.
        """
        await self._testbed.returned()
        try:
            await self._radio.wait_associated(RETURN_S)
        except TimeoutError:
            raise RunFailed(
                f"the radio of {' and '.join(self._radio.away())} is not associated since {RETURN_S:g} s",
                next_step="'netjoule doctor --testbed FILE' names what differs; then 'netjoule resume'",
                code="radio_disassociated",
            ) from None
