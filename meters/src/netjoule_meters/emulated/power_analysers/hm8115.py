# SPDX-License-Identifier: Apache-2.0
"""An emulated Hameg HM8115-2. Sans-IO.

Bytes and power go in, bytes come out, the time is an argument. From the manual (p. 18): the commands and
their answers; those with values wait for the end of the measuring cycle. Seen on the IeS ISW8001, which
seems to be the same design: CR at the end of answers and none to what is not understood, a cycle of 0.47 s,
bytes one at a time, XON and XOFF inside the data, a relay that costs a cycle and leaves a spike of 180 A,
every 500th value a little low and late. A stream of power that is late leaves a value out.
"""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any

from netjoule_meters.adapters.power_analysers.hm8115 import CYCLE_S
from netjoule_meters.adapters.power_analysers.hm8115_messages import CURRENT_RANGES_A, VOLTAGE_RANGES_V
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.metering import Metering, soonest
from netjoule_meters.emulated.ports.serial_line import XOFF, XON, SerialLine
from netjoule_meters.emulated.power_analysers.hm8115_measurement import (
    DisplayedValues,
    Errors,
    MeasurementSetup,
    line,
    measure,
    spike,
)
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.emulated.update_grid import UpdateGrid
from netjoule_meters.errors import UsageError

BAUD_RATES = (1200, 9600)
DIP_EVERY, DIP_RATIO, DIP_LATE_S = 500, 0.99, 0.2
_LOWER_AT = 0.9
"""The automatic choice takes a lower range when the value is below this part of it."""
_OVERFLOW_CYCLES = 3
_INPUT_BYTES = 256
_ANSWERS = {
    "*IDN?": "HAMEG HM8115-2",
    "VERSION?": "version 2.01",
    "STATUS?": "{function} U{voltage_range} I{current_range}",
}
_SETTINGS: Mapping[str, tuple[str, Any]] = {
    "MA0": ("continuous", False),
    "MA1": ("continuous", True),
    "WATT": ("function", "WATT"),
    "VAR": ("function", "VAR"),
    "VAMP": ("function", "VA"),
    "PFAC": ("function", "PF"),
    "AUTO:U": ("voltage_auto", True),
    "AUTO:I": ("current_auto", True),
    **{f"SET:U{number}": ("voltage_range", number) for number in VOLTAGE_RANGES_V},
    **{f"SET:I{number}": ("current_range", number) for number in CURRENT_RANGES_A},
}
"""What a command sets. Those that lock the front panel or beep (FAV0, BEEP1 ...) show nothing on the line."""


class EmulatedHM8115(Metering):
    """One instrument. ``seed`` draws its errors; ``with_values`` chooses the form of its lines."""

    def __init__(
        self,
        *,
        seed: int | None = None,
        supply: Supply | None = None,
        with_values: bool = True,
        baud_rate: int = 9600,
    ) -> None:
        super().__init__(supply)
        self._errors = Errors.drawn(seed)
        self._with_values = with_values
        self._random = Random(seed or 0)  # noqa: S311 - where control bytes fall, no secret
        self._grid = UpdateGrid(CYCLE_S, self._history)
        self._line = SerialLine(baud_rate)
        self._input = b""
        self._asked: list[bool] = []
        self._values_taken = 0
        self._relay_cycles = 0
        self._spike_due = False
        self._overflow_cycles = 0
        self._unfinished = b""
        self._values: dict[str, Any] = {"function": "WATT", "voltage_range": 3, "current_range": 3}
        self._values |= {"voltage_auto": True, "current_auto": True, "continuous": False}

    # -- the outside -----------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes from the serial line."""
        self._input += self._line.heed(data)

    def step(self, now_s: float) -> bytes:
        """Do commands, end measuring cycles that are over, return bytes that have left by now."""
        if self._input:
            answers = self._answers(self._input)
            self._input = b""
            # It holds its client up while it works, whether it answers or not.
            self._line.put(bytes((XOFF,)) + answers + bytes((XON,)), now_s)
        while (update := self._grid.take(now_s)) is not None:
            self._end_cycle(update.mean_w, now_s)
        return self._line.take(now_s)

    def wake_s(self, now_s: float) -> float | None:
        """When the next byte leaves or the next cycle ends."""
        return soonest(self._line.wake_s(), self._grid.wake_s(now_s))

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """``range_change``: the relays click. ``overflow``: over-range for ``cycles`` values (3)."""
        if name == "range_change":
            self._click()
        elif name == "overflow":
            self._overflow_cycles = int(request.get("cycles", _OVERFLOW_CYCLES))
        else:
            return False
        return True

    # -- commands --------------------------------------------------------------------------------------

    def _answers(self, data: bytes) -> bytes:
        *lines, unfinished = (self._unfinished + data).split(b"\r")
        self._unfinished = unfinished[-_INPUT_BYTES:]
        answers = [self._do(line.decode("latin-1").strip("\n \0").upper()) for line in lines]
        return b"".join(answer.encode("ascii") + b"\r" for answer in answers if answer)

    def _do(self, command: str) -> str:
        """The answer to one line, empty for none; values are answered when the measuring cycle ends."""
        if command in ("VAL?", "VAS?"):
            self._asked.append(command == "VAL?" and self._with_values)
        elif command in _SETTINGS:
            self._set(*_SETTINGS[command])
        return _ANSWERS.get(command, "").format(**self._values)

    def _set(self, name: str, value: Any) -> None:
        """A range that is set stays; another one makes the relays click."""
        old, self._values[name] = self._values[name], value
        if name in ("voltage_range", "current_range"):
            self._values[name.replace("_range", "_auto")] = False
            if value != old:
                self._click()

    # -- measuring -------------------------------------------------------------------------------------

    def _end_cycle(self, mean_w: float | None, now_s: float) -> None:
        if mean_w is None:
            return
        self._range_automatically(mean_w)
        if self._relay_cycles > 0:
            self._relay_cycles -= 1
            return
        self._values_taken += 1
        dips = self._values_taken % DIP_EVERY == 0
        how = self._how()
        shown = measure(mean_w * (DIP_RATIO if dips else 1.0), self._supply, how, self._errors)
        shown = self._spoilt(shown)
        not_before_s = now_s + DIP_LATE_S if dips else now_s
        forms, self._asked = self._asked, []
        if self._values["continuous"]:
            forms = [self._with_values]
        for with_values in forms:
            self._send(line(shown, how, with_values=with_values), now_s, not_before_s)

    def _how(self) -> MeasurementSetup:
        values = self._values
        return MeasurementSetup(values["voltage_range"], values["current_range"], values["function"])

    def _spoilt(self, shown: DisplayedValues) -> DisplayedValues:
        if self._overflow_cycles > 0:
            self._overflow_cycles -= 1
            return DisplayedValues(shown.voltage_v, None, None)
        if self._spike_due:
            self._spike_due = False
            return spike(shown)
        return shown

    def _send(self, text: str, now_s: float, not_before_s: float) -> None:
        """One line with XOFF somewhere inside it and XON a few bytes later."""
        data = text.encode("ascii")
        at = self._random.randrange(1, len(data) - 4)
        mixed = data[:at] + bytes((XOFF,)) + data[at : at + 3] + bytes((XON,)) + data[at + 3 :]
        self._line.put(mixed + b"\r", now_s, not_before_s)

    # -- ranges ----------------------------------------------------------------------------------------

    def _click(self) -> None:
        self._relay_cycles, self._spike_due = 1, True

    def _range_automatically(self, mean_w: float) -> None:
        """One step towards the least range that holds the value, for each of both."""
        values = self._values
        for name, ranges, value in (
            ("voltage", VOLTAGE_RANGES_V, self._supply.voltage_v),
            ("current", CURRENT_RANGES_A, self._supply.current_a(mean_w)),
        ):
            now = values[f"{name}_range"]
            if not values[f"{name}_auto"]:
                continue
            if value > ranges[now] and now < max(ranges):
                values[f"{name}_range"] = now + 1
            elif now > min(ranges) and value < _LOWER_AT * ranges[now - 1]:
                values[f"{name}_range"] = now - 1
            else:
                continue
            self._click()


def make(options: EmulationOptions) -> EmulatedHM8115:
    """An emulated HM8115-2; see `EmulatedModel`. Variant ``values``: lines with voltage and
    current, the usual one; ``ranges``: lines with their ranges only."""
    if options.update_interval_s not in (None, CYCLE_S):
        raise UsageError(f"the measuring cycle of an HM8115-2 is {CYCLE_S} s and cannot be set")
    baud_rate = options.known_extra("HM8115-2", ("baud_rate",)).get("baud_rate", 9600)
    if baud_rate not in BAUD_RATES:
        raise UsageError(f"an HM8115-2 sends at 1200 or 9600 Bd, not at {baud_rate}")
    return EmulatedHM8115(
        seed=options.seed,
        supply=options.supply,
        with_values=options.variant != "ranges",
        baud_rate=baud_rate,
    )
