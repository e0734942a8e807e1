# SPDX-License-Identifier: Apache-2.0
"""The integrator of an emulated WT210: watt-hours and ampere-hours since its start."""

from __future__ import annotations

from netjoule_meters.emulated.quantisation import gap_text, nr3_significant
from netjoule_meters.emulated.scpi import ScpiError, parse_number, parse_word

_MODES = ("NORMal", "CONTinuous")


class Integrator:
    """Sums shown means over whole update intervals, wrong by ``gain``. States: reset, running, stopped."""

    def __init__(self, gain: float = 0.0) -> None:
        self._factor = 1 + gain
        self.reset_all()

    def reset_all(self) -> None:
        """State at delivery."""
        self.running = False
        self.mode = "NORMal"
        self._timer = (0, 0, 0)
        self._clear()

    @property
    def at_rest(self) -> bool:
        """Whether settings may be changed: reset, and not only stopped."""
        return not self.running and not self._begun

    @property
    def state(self) -> str:
        """RESet, STARt, STOP or TIMeup, as ``INTEGRATE:STATE?`` of the WT310 says it."""
        if not self._begun:
            return "RESet"
        if self.running:
            return "STARt"
        return "TIMeup" if 0 < self._timer_s() <= self._elapsed_s + 1e-9 else "STOP"

    @property
    def elapsed_s(self) -> float | None:
        """Integration time, s; None when reset."""
        return self._elapsed_s if self._begun else None

    def set_mode(self, text: str) -> None:
        """``INTEGRATE:MODE``."""
        self.mode = parse_word(text, _MODES)

    def set_timer(self, parameters: list[str]) -> None:
        """``INTEGRATE:TIMER h,m,s``."""
        if len(parameters) != 3:
            raise ScpiError(109 if len(parameters) < 3 else 108)
        hours, minutes, seconds = (int(parse_number(text)) for text in parameters)
        if not (0 <= hours <= 10_000 and 0 <= minutes <= 59 and 0 <= seconds <= 59):
            raise ScpiError(222)
        self._timer = (hours, minutes, seconds)

    def timer_text(self) -> str:
        """``h,m,s``."""
        return ",".join(map(str, self._timer))

    def start(self) -> None:
        """``INTEGRATE:START``."""
        if self.running:
            raise ScpiError(842)
        if self.mode == "CONTinuous" and self._timer_s() == 0:
            raise ScpiError(221)
        self.running = self._begun = True

    def stop(self) -> None:
        """``INTEGRATE:STOP``."""
        if not self.running:
            raise ScpiError(844)
        self.running = False

    def reset(self) -> None:
        """``INTEGRATE:RESET``."""
        if self.running:
            raise ScpiError(845)
        self._clear()

    def add(self, power_w: float | None, current_a: float | None, interval_s: float) -> None:
        """One update; an update without a number adds time only."""
        if not self.running:
            return
        self._elapsed_s += interval_s
        energy_wh = (power_w or 0.0) * self._factor * interval_s / 3600
        if energy_wh >= 0:
            self._positive_wh += energy_wh
        else:
            self._negative_wh += energy_wh
        self._ampere_h += (current_a or 0.0) * interval_s / 3600
        if 0 < self._timer_s() <= self._elapsed_s + 1e-9:
            if self.mode == "CONTinuous":
                self._clear()
                self._begun = True
            else:
                self.running = False

    def texts(self) -> dict[str, str]:
        """What the items of the integrator show."""
        if not self._begun:
            none = gap_text(overrange=False)
            return {
                **dict.fromkeys(("WH", "WHP", "WHM", "AH", "AHP", "AHM"), none),
                "TIME": ",".join([none] * 3),
            }
        seconds = int(self._elapsed_s + 1e-6)
        return {
            "WH": nr3_significant(self._positive_wh + self._negative_wh, 6),
            "WHP": nr3_significant(self._positive_wh, 6),
            "WHM": nr3_significant(self._negative_wh, 5),
            "AH": nr3_significant(self._ampere_h, 6),
            "AHP": nr3_significant(self._ampere_h, 6),
            "AHM": nr3_significant(0.0),
            "TIME": f"{seconds // 3600},{seconds // 60 % 60},{seconds % 60}",
        }

    def _timer_s(self) -> int:
        hours, minutes, seconds = self._timer
        return 3600 * hours + 60 * minutes + seconds

    def _clear(self) -> None:
        self._begun = False
        self._elapsed_s = self._positive_wh = self._negative_wh = self._ampere_h = 0.0
