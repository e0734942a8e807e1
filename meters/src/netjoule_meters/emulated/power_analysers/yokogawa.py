# SPDX-License-Identifier: Apache-2.0
"""What the emulated WT210 and WT310 have in common: updates, ranges, status and integrator. Sans-IO.

Bytes and power go in, bytes come out, the time is an argument. While autorange changes a range there is
nothing to show for a few updates, as on the real ones (WT310E: up to three); a range that is set by command
applies from the next update on. Functions that are not emulated are refused with an execution error and
not accepted in silence.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from netjoule_meters.adapters.power_analysers.nr_values import ITEM_ORDER
from netjoule_meters.adapters.power_analysers.yokogawa import CURRENT_RANGES_A, VOLTAGE_RANGES_V
from netjoule_meters.emulated.mains import Supply
from netjoule_meters.emulated.metering import Metering, soonest
from netjoule_meters.emulated.ports.serial_line import SerialLine
from netjoule_meters.emulated.power_analysers.integrator import Integrator
from netjoule_meters.emulated.power_analysers.wt210_measurement import (
    Errors,
    Ranges,
    measure,
    nothing_to_show,
)
from netjoule_meters.emulated.quantisation import nr3_significant
from netjoule_meters.emulated.registry import EmulationOptions
from netjoule_meters.emulated.scpi import (
    DEVICE_CLEAR,
    Entry,
    Interpreter,
    ScpiError,
    parse_boolean,
    parse_number,
    parse_word,
    pattern_nodes,
)
from netjoule_meters.emulated.update_grid import UpdateGrid
from netjoule_meters.errors import UsageError

_UPDATING, _INTEGRATING, _TIMER = 1 << 0, 1 << 1, 1 << 2
_TRANSITIONS = ("RISE", "FALL", "BOTH", "NEVer")
_MODES = ("RMS", "VMEan", "DC")
_UPDATES_UP, _UPDATES_DOWN = 3, 2
"""How many updates a range change takes at most (IM WT310E-01EN p. 5-12); the WT210 is taken alike."""
_RANGE_UP, _RANGE_DOWN = 1.3, 0.3
"""Autorange goes up above 130 % of the range or a peak over it, down at 30 % of it (same, p. 2-7)."""


@dataclass(frozen=True, slots=True)
class Extra:
    """Further options.

    Attributes:
        range_change_updates: how many updates autorange shows nothing for when it changes a range; None:
            three on the way up, two on the way down.
        baud_rate: answers leave byte by byte as on a serial line of this rate; None: at once.
    """

    range_change_updates: int | None = None
    baud_rate: int | None = None


class EmulatedYokogawa(Metering, ABC):
    """One instrument; ``errors`` are its own."""

    identification: str
    intervals_s: tuple[float, ...]
    _voltage_range_v: float
    _current_range_a: float
    _crest_factor: int

    def __init__(
        self,
        errors: Errors,
        *,
        update_interval_s: float = 0.25,
        supply: Supply | None = None,
        extra: Extra | None = None,
    ) -> None:
        super().__init__(supply)
        self._extra = extra or Extra()
        self._line = None if self._extra.baud_rate is None else SerialLine(self._extra.baud_rate)
        self._errors = errors
        self._grid = UpdateGrid(update_interval_s, self._history)
        self._now_s = 0.0
        self._shown = nothing_to_show(ITEM_ORDER)
        self._hole = 0
        self._integrator = Integrator(errors.integrator_gain)
        self._conditions = 0
        self._events = 0
        self._filters = ["NEVer"] * 15
        self._waiting_for = 0
        self._on = {"qmessage": False, "remote": False, "lockout": False, "off": False}
        self._reset_settings()
        self._interpreter = Interpreter(self._command_table(), lambda: self._waiting_for != 0)

    # -- the outside ---------------------------------------------------------------------------------

    def receive(self, data: bytes) -> None:
        """Bytes from a client."""
        _, cleared, after = data.rpartition(DEVICE_CLEAR)
        if cleared:
            self.clear()
        self._interpreter.receive(after)

    def step(self, now_s: float) -> bytes:
        """Show what is due at campaign time ``now_s``, do commands, return bytes to send."""
        self._now_s = now_s
        output = self._interpreter.run()
        while (update := self._grid.take(now_s)) is not None:
            self._show(update.mean_w)
            output += self._interpreter.run()
        if self._line is None:
            return output
        self._line.put(output, now_s)
        return self._line.take(now_s)

    def wake_s(self, now_s: float) -> float | None:
        """Campaign time at which ``step`` should be called even if nothing arrives."""
        return soonest(self._grid.wake_s(now_s), None if self._line is None else self._line.wake_s())

    def clear(self) -> None:
        """Device clear of a bus: forget questions and answers, and what is waited for."""
        self._waiting_for = 0
        self._interpreter.clear()

    def take_fault(self, name: str, request: Mapping[str, Any], now_s: float) -> bool:
        """``range_change`` with ``updates``: show nothing for so many updates, as while a relay clicks.

        Raises:
            UsageError: for a number of updates that is none.
        """
        if name != "range_change":
            return False
        updates = request.get("updates", _UPDATES_UP)
        if not isinstance(updates, int) or isinstance(updates, bool) or updates < 1:
            raise UsageError("'updates' of the fault 'range_change' is a whole number from 1")
        self._hole = updates + 1
        return True

    # -- measuring -----------------------------------------------------------------------------------

    def _show(self, mean_w: float | None) -> None:
        """One display update: values, condition bits, the edge that dialogues wait for."""
        if self._on["hold"]:
            return
        self._hole = max(0, self._hole - 1)
        if self._hole == 0:
            self._hole = self._range_automatically(mean_w)
        if self._hole > 0 or mean_w is None:
            self._shown = nothing_to_show(ITEM_ORDER)
        else:
            self._shown = measure(mean_w, self._supply, self._active_ranges(), self._errors)
        self._integrate(self._current_a(mean_w))
        self._set_conditions(self._state_bits() | _UPDATING)
        self._set_conditions(self._state_bits())

    def _integrate(self, current_a: float | None) -> None:
        """Count this update."""
        self._integrator.add(self._shown.power_w, current_a, self._grid.interval_s)

    def _active_ranges(self) -> Ranges:
        return Ranges(self._voltage_range_v, self._current_range_a, self._crest_factor)

    def _state_bits(self) -> int:
        running = (_INTEGRATING | _TIMER) if self._integrator.running else 0
        return self._shown.conditions | running

    def _current_a(self, mean_w: float | None) -> float | None:
        return None if mean_w is None else self._supply.current_a(mean_w)

    def _range_automatically(self, mean_w: float | None) -> int:
        """Let autorange follow; for how many updates there is nothing to show while it does."""
        current_a = self._current_a(mean_w)
        if current_a is None:
            return 0
        before = (self._voltage_range_v, self._current_range_a)
        peaks = (math.sqrt(2) * self._supply.voltage_v, self._supply.current_crest_factor * current_a)
        if self._on["voltage_auto"]:
            ranges, voltage_v = self._ranges(VOLTAGE_RANGES_V), self._supply.voltage_v
            self._voltage_range_v = _followed(before[0], ranges, voltage_v, peaks[0] / self._crest_factor)
        if self._on["current_auto"]:
            ranges = self._ranges(CURRENT_RANGES_A)
            self._current_range_a = _followed(before[1], ranges, current_a, peaks[1] / self._crest_factor)
        after = (self._voltage_range_v, self._current_range_a)
        if after == before:
            return 0
        if self._extra.range_change_updates is not None:
            return self._extra.range_change_updates
        rose = any(new > old for new, old in zip(after, before, strict=True))
        return _UPDATES_UP if rose else _UPDATES_DOWN

    def _ranges(self, at_crest_factor_3: tuple[float, ...]) -> tuple[float, ...]:
        return tuple(value * 3 / self._crest_factor for value in at_crest_factor_3)

    def _set_conditions(self, conditions: int) -> None:
        """New condition bits; transitions that the filters let through become events."""
        rising, falling = conditions & ~self._conditions, self._conditions & ~conditions
        self._conditions = conditions
        for bit, transition in enumerate(self._filters):
            passed = (rising if transition in ("RISE", "BOTH") else 0) | (
                falling if transition in ("FALL", "BOTH") else 0
            )
            self._events |= passed & (1 << bit)
        if self._events & self._waiting_for:
            self._waiting_for = 0

    # -- settings ------------------------------------------------------------------------------------

    def _reset_settings(self) -> None:
        """``*RST``: the state at delivery; the update rate stays what it is."""
        self._mode, self._crest_factor = "RMS", 3
        self._voltage_range_v, self._current_range_a = 600.0, 20.0
        self._on |= {"hold": False, "lfilter": False, "filter": False, "mhold": False}
        self._on |= {"voltage_auto": True, "current_auto": True}
        self._integrator.reset_all()

    def _refuse_during_integration(self) -> None:
        if not self._integrator.at_rest:
            raise ScpiError(813)

    def _set_rate(self, seconds: float) -> None:
        self._grid.restart(choice(seconds, self.intervals_s), self._now_s)

    def _set_crest_factor(self, text: str) -> None:
        wanted = int(choice(parse_number(text), (3, 6)))
        ratio = self._crest_factor / wanted
        self._voltage_range_v *= ratio
        self._current_range_a *= ratio
        self._crest_factor = wanted

    def _set_voltage_range(self, value: float) -> None:
        self._voltage_range_v = choice(value, self._ranges(VOLTAGE_RANGES_V))
        self._on["voltage_auto"] = False

    def _set_current_range(self, value: float) -> None:
        self._current_range_a = choice(value, self._ranges(CURRENT_RANGES_A))
        self._on["current_auto"] = False

    def _set_mode(self, text: str) -> None:
        self._mode = parse_word(text, _MODES)

    def _set_filter(self, suffixes: list[int], parameters: list[str]) -> None:
        self._filters[self._filter_index(suffixes)] = parse_word(one(parameters), _TRANSITIONS)

    def _filter_index(self, suffixes: list[int]) -> int:
        if not 1 <= suffixes[0] <= len(self._filters):
            raise ScpiError(114)
        return suffixes[0] - 1

    def _set_timer(self, _suffixes: list[int], parameters: list[str]) -> None:
        self._refuse_during_integration()
        self._integrator.set_timer(parameters)

    def _wait(self, mask: float) -> None:
        if not 0 < mask < 65536:
            raise ScpiError(222)
        if not self._events & int(mask):
            self._waiting_for = int(mask)

    def _take_events(self) -> str:
        events, self._events = self._events, 0
        return str(events)

    def _clear_status(self) -> None:
        self._events = 0
        self._interpreter.errors.clear()

    # -- commands ------------------------------------------------------------------------------------

    def _command_table(self) -> list[Entry]:
        return [
            *self._common_commands(),
            *self._status_commands(),
            *self._communication_commands(),
            *self._integrate_commands(),
            *self._own_commands(),
        ]

    @abstractmethod
    def _own_commands(self) -> list[Entry]:
        """Commands of this model: settings, output items, values."""

    def _common_commands(self) -> list[Entry]:
        return [
            Entry("*IDN", lambda _: self.identification, bare=True),
            Entry("*OPT", lambda _: "0", bare=True),
            Entry("*CAL", lambda _: "0", bare=True),
            Entry("*TST", lambda _: "0", bare=True),
            Entry("*OPC", lambda _: "1", lambda _s, _p: None, bare=True),
            Entry("*WAI", put=lambda _s, _p: None),
            Entry("*CLS", put=lambda _s, _p: self._clear_status()),
            Entry("*RST", put=lambda _s, _p: self._reset_settings()),
        ]

    def _status_commands(self) -> list[Entry]:
        return [
            Entry("STATus:CONDition", lambda _: str(self._conditions), bare=True, grouped=False),
            Entry("STATus:EESR", lambda _: self._take_events(), bare=True, grouped=False),
            Entry(
                "STATus:ERRor",
                lambda _: self._interpreter.errors.pop(self._on["qmessage"]),
                bare=True,
                grouped=False,
            ),
            self._switch_entry("STATus:QMESsage", "qmessage", locked=False),
            Entry(
                "STATus:FILTer<n>",
                lambda s: self._word(self._filters[self._filter_index(s)]),
                self._set_filter,
            ),
        ]

    def _communication_commands(self) -> list[Entry]:
        return [
            Entry(
                "COMMunicate:HEADer",
                lambda _: str(int(self._interpreter.header)),
                lambda _s, p: setattr(self._interpreter, "header", parse_boolean(one(p))),
            ),
            Entry(
                "COMMunicate:VERBose",
                lambda _: str(int(self._interpreter.verbose)),
                lambda _s, p: setattr(self._interpreter, "verbose", parse_boolean(one(p))),
            ),
            self._switch_entry("COMMunicate:REMote", "remote", locked=False),
            self._switch_entry("COMMunicate:LOCKout", "lockout", locked=False),
            Entry("COMMunicate:WAIT", put=lambda _s, p: self._wait(parse_number(one(p)))),
        ]

    def _integrate_commands(self) -> list[Entry]:
        integrator = self._integrator
        return [
            self._locked_entry("INTEGrate:MODE", lambda: self._word(integrator.mode), integrator.set_mode),
            Entry("INTEGrate:TIMer", lambda _: integrator.timer_text(), self._set_timer),
            Entry("INTEGrate:STARt", put=lambda _s, _p: integrator.start()),
            Entry("INTEGrate:STOP", put=lambda _s, _p: integrator.stop()),
            Entry("INTEGrate:RESet", put=lambda _s, _p: integrator.reset()),
        ]

    def _input_commands(self, prefix: str) -> list[Entry]:
        """Ranges, mode and crest factor, below ``prefix``."""
        return [
            self._locked_entry(f"{prefix}:MODE", lambda: self._word(self._mode), self._set_mode),
            self._number_entry(
                f"{prefix}:VOLTage:RANGe", lambda: self._voltage_range_v, self._set_voltage_range, "V"
            ),
            self._number_entry(
                f"{prefix}:CURRent:RANGe", lambda: self._current_range_a, self._set_current_range, "A"
            ),
            self._switch_entry(f"{prefix}:VOLTage:AUTO", "voltage_auto"),
            self._switch_entry(f"{prefix}:CURRent:AUTO", "current_auto"),
            self._locked_entry(f"{prefix}:CFACtor", lambda: str(self._crest_factor), self._set_crest_factor),
            Entry(f"{prefix}:WIRing", lambda _: "P1W2"),
        ]

    def _word(self, word: str) -> str:
        node = pattern_nodes(word)[0]
        return node.long if self._interpreter.verbose else node.short

    def _locked_entry(self, pattern: str, get: Callable[[], str], put: Callable[[str], None]) -> Entry:
        """A setting that cannot be changed while integrating."""

        def change(_suffixes: list[int], parameters: list[str]) -> None:
            self._refuse_during_integration()
            put(one(parameters))

        return Entry(pattern, lambda _: get(), change)

    def _number_entry(
        self, pattern: str, get: Callable[[], float], put: Callable[[float], None], unit: str
    ) -> Entry:
        return self._locked_entry(
            pattern, lambda: nr3_significant(get()), lambda text: put(parse_number(text, unit))
        )

    def _switch_entry(self, pattern: str, name: str, *, locked: bool = True, fixed: bool = False) -> Entry:
        """What is on or off; ``fixed`` stays as it is, and is an error when switched on."""

        def change(text: str) -> None:
            if fixed and parse_boolean(text):
                raise ScpiError(221)
            self._on[name] = parse_boolean(text)

        if locked:
            return self._locked_entry(pattern, lambda: str(int(self._on[name])), change)
        return Entry(pattern, lambda _: str(int(self._on[name])), lambda _s, p: change(one(p)))

    def _off_entry(self, pattern: str) -> Entry:
        """A function that is not emulated: off, and an error when switched on."""
        return self._switch_entry(pattern, "off", fixed=True)


def checked(options: EmulationOptions, intervals_s: tuple[float, ...], model: str) -> dict[str, Any]:
    """Arguments of a ``model`` that updates every so often; every 0.1 s where no interval is asked for.

    Raises:
        UsageError: for an interval or an option that there is not, or a number that it cannot be.
    """
    interval_s = 0.1 if options.update_interval_s is None else options.update_interval_s
    if interval_s not in intervals_s:
        raise UsageError(f"a {model} updates every {', '.join(f'{s:g}' for s in intervals_s)} s")
    known = {"range_change_updates": 0, "baud_rate": 1200}
    given = options.known_extra(model, known)
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool) or value < known[name]:
            raise UsageError(f"{name} is a whole number from {known[name]}, not {value}")
    return {
        "update_interval_s": interval_s,
        "seed": options.seed,
        "supply": options.supply,
        "extra": Extra(**given),
    }


def one(parameters: list[str]) -> str:
    """The only parameter of a command."""
    if len(parameters) != 1:
        raise ScpiError(108 if parameters else 109)
    return parameters[0]


def choice(value: float, choices: tuple[float, ...]) -> float:
    """That of ``choices`` which ``value`` names."""
    for candidate in choices:
        if abs(value - candidate) <= 1e-6 * candidate:
            return candidate
    raise ScpiError(222)


def _followed(active: float, ranges: tuple[float, ...], value: float, peak: float) -> float:
    """The range that autorange goes to from ``active``; ``peak`` is the peak over the crest factor."""
    if _RANGE_DOWN * active < value <= _RANGE_UP * active and peak <= active:
        return active
    needed = max(value, peak) / (1 + 1e-9)
    return next((candidate for candidate in sorted(ranges) if needed <= candidate), max(ranges))
