# SPDX-License-Identifier: Apache-2.0
"""An emulated WT210: its registers, settings and command table (IM 760401-01E ch. 14). Sans-IO.

Bytes and power go in, bytes come out, the time is an argument. Not emulated, and refused with an
execution error rather than accepted in silence: scaling factors, averaging, storing, MATH.
"""

from __future__ import annotations

from collections.abc import Callable

from netjoule_meters.adapters.nr_values import ITEM_ORDER
from netjoule_meters.adapters.wt210 import CURRENT_RANGES_A, UPDATE_INTERVALS_S, VOLTAGE_RANGES_V
from netjoule_meters.emulated.integrator import Integrator
from netjoule_meters.emulated.power_history import PowerHistory, PowerInterval
from netjoule_meters.emulated.quantise import nr3_significant
from netjoule_meters.emulated.scpi import (
    Entry,
    Interpreter,
    ScpiError,
    parse_boolean,
    parse_number,
    parse_word,
    pattern_nodes,
)
from netjoule_meters.emulated.wt210_measuring import Errors, Ranges, Supply, measure, nothing_to_show
from netjoule_meters.emulated.wt210_updates import UpdateGrid

IDENTIFICATION = "YOKOGAWA,760401,0,F2.01"
_UPDATING, _INTEGRATING, _TIMER = 1 << 0, 1 << 1, 1 << 2
_TRANSITIONS = ("RISE", "FALL", "BOTH", "NEVer")
_MODES = ("RMS", "VMEan", "DC")
_PRESETS = {"NORMal": ("V", "A", "W"), "CLEar": (), "INTEGrate": ("V", "A", "W", "WH", "AH", "TIME")}


class EmulatedWT210:
    """One instrument. ``seed`` draws its errors; None is an instrument without error."""

    def __init__(
        self,
        *,
        update_interval_s: float = 0.25,
        seed: int | None = None,
        supply: Supply | None = None,
    ) -> None:
        self._supply = supply or Supply()
        self._errors = Errors.drawn(seed)
        self._history = PowerHistory()
        self._grid = UpdateGrid(update_interval_s, self._history)
        self._now_s = 0.0
        self._shown = nothing_to_show(ITEM_ORDER)
        self._integrator = Integrator()
        self._conditions = 0
        self._events = 0
        self._filters = ["NEVer"] * 15
        self._waiting_for = 0
        self._switches = {"qmessage": False, "remote": False, "lockout": False}
        self._reset_settings()
        self._interpreter = Interpreter(self._command_table(), lambda: self._waiting_for != 0)

    # -- the outside ---------------------------------------------------------------------------------

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        self._history.append(interval)

    def receive(self, data: bytes) -> None:
        """Bytes from the serial line."""
        self._interpreter.receive(data)

    def step(self, now_s: float) -> bytes:
        """Show what is due at campaign time ``now_s``, do commands, return bytes to send."""
        self._now_s = now_s
        output = self._interpreter.run()
        while (update := self._grid.take(now_s)) is not None:
            self._show(update.mean_w)
            output += self._interpreter.run()
        return output

    def wake_s(self, now_s: float) -> float | None:
        """Campaign time at which ``step`` should be called even if nothing arrives."""
        return self._grid.wake_s(now_s)

    # -- measuring -----------------------------------------------------------------------------------

    def _show(self, mean_w: float | None) -> None:
        """One display update: values, condition bits, the edge that dialogues wait for."""
        if self._hold:
            return
        self._range_automatically(mean_w)
        ranges = Ranges(self._voltage_range_v, self._current_range_a, self._crest_factor)
        if mean_w is None:
            self._shown = nothing_to_show(ITEM_ORDER)
        else:
            self._shown = measure(mean_w, self._supply, ranges, self._errors)
        self._integrator.add(self._shown.power_w, self._current_a(mean_w), self._grid.interval_s)
        self._set_conditions(self._state_bits() | _UPDATING)
        self._set_conditions(self._state_bits())

    def _state_bits(self) -> int:
        running = (_INTEGRATING | _TIMER) if self._integrator.running else 0
        return self._shown.conditions | running

    def _current_a(self, mean_w: float | None) -> float | None:
        return None if mean_w is None else abs(mean_w) / (self._supply.voltage_v * self._supply.power_factor)

    def _range_automatically(self, mean_w: float | None) -> None:
        """Autorange takes the least range that holds the value."""
        current_a = self._current_a(mean_w)
        if self._voltage_auto:
            self._voltage_range_v = _least_range(self._ranges(VOLTAGE_RANGES_V), self._supply.voltage_v)
        if self._current_auto and current_a is not None:
            self._current_range_a = _least_range(self._ranges(CURRENT_RANGES_A), current_a)

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
        self._hold = False
        self._mode, self._crest_factor = "RMS", 3
        self._voltage_range_v, self._current_range_a = 600.0, 20.0
        self._voltage_auto: bool = True
        self._current_auto: bool = True
        self._options = {"lfilter": False, "filter": False, "mhold": False}
        self._items = {"V", "A", "W"}
        self._integrator.reset_all()

    def _refuse_during_integration(self) -> None:
        if not self._integrator.at_rest:
            raise ScpiError(813)

    def _set_rate(self, seconds: float) -> None:
        self._grid.restart(_choice(seconds, UPDATE_INTERVALS_S), self._now_s)

    def _set_crest_factor(self, value: float) -> None:
        wanted = int(_choice(value, (3, 6)))
        ratio = self._crest_factor / wanted
        self._voltage_range_v, self._current_range_a = (
            self._voltage_range_v * ratio,
            self._current_range_a * ratio,
        )
        self._crest_factor = wanted

    def _set_range(self, which: str, value: float) -> None:
        if which == "voltage":
            self._voltage_range_v, self._voltage_auto = _choice(value, self._ranges(VOLTAGE_RANGES_V)), False
        else:
            self._current_range_a, self._current_auto = _choice(value, self._ranges(CURRENT_RANGES_A)), False

    def _set_filter(self, suffixes: list[int], parameters: list[str]) -> None:
        self._filters[self._filter_index(suffixes)] = parse_word(_one(parameters), _TRANSITIONS)

    def _filter_index(self, suffixes: list[int]) -> int:
        if not 1 <= suffixes[0] <= len(self._filters):
            raise ScpiError(114)
        return suffixes[0] - 1

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

    def _preset_items(self, word: str) -> None:
        self._items = set(_PRESETS[parse_word(word, tuple(_PRESETS))])

    def _values(self) -> str:
        texts = {**self._shown.texts, **self._integrator.texts()}
        return ",".join(texts[item] for item in ITEM_ORDER if item in self._items)

    # -- commands ------------------------------------------------------------------------------------

    def _command_table(self) -> list[Entry]:
        return [
            *self._common_commands(),
            *self._communication_commands(),
            *self._setting_commands(),
            *self._measure_commands(),
            *self._integrate_commands(),
        ]

    def _common_commands(self) -> list[Entry]:
        return [
            Entry("*IDN", lambda _: IDENTIFICATION, bare=True),
            Entry("*OPT", lambda _: "0", bare=True),
            Entry("*CAL", lambda _: "0", bare=True),
            Entry("*TST", lambda _: "0", bare=True),
            Entry("*OPC", lambda _: "1", lambda _s, _p: None, bare=True),
            Entry("*WAI", put=lambda _s, _p: None),
            Entry("*CLS", put=lambda _s, _p: self._clear_status()),
            Entry("*RST", put=lambda _s, _p: self._reset_settings()),
            Entry("STATus:CONDition", lambda _: str(self._conditions), bare=True, grouped=False),
            Entry("STATus:EESR", lambda _: self._take_events(), bare=True, grouped=False),
            Entry(
                "STATus:ERRor",
                lambda _: self._interpreter.errors.pop(self._switches["qmessage"]),
                bare=True,
                grouped=False,
            ),
            self._switch_entry("STATus:QMESsage", self._switches, "qmessage", locked=False),
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
                lambda _s, p: setattr(self._interpreter, "header", parse_boolean(_one(p))),
            ),
            Entry(
                "COMMunicate:VERBose",
                lambda _: str(int(self._interpreter.verbose)),
                lambda _s, p: setattr(self._interpreter, "verbose", parse_boolean(_one(p))),
            ),
            self._switch_entry("COMMunicate:REMote", self._switches, "remote", locked=False),
            self._switch_entry("COMMunicate:LOCKout", self._switches, "lockout", locked=False),
            Entry("COMMunicate:WAIT", put=lambda _s, p: self._wait(parse_number(_one(p)))),
        ]

    def _setting_commands(self) -> list[Entry]:
        return [
            self._number_entry("SAMPle:RATE", lambda: self._grid.interval_s, self._set_rate, "S"),
            Entry(
                "SAMPle:HOLD",
                lambda _: str(int(self._hold)),
                lambda _s, p: setattr(self, "_hold", parse_boolean(_one(p))),
            ),
            self._locked_entry("[:CONFigure]:MODE", lambda: self._word(self._mode), self._set_mode),
            self._number_entry(
                "[:CONFigure]:VOLTage:RANGe",
                lambda: self._voltage_range_v,
                lambda v: self._set_range("voltage", v),
                "V",
            ),
            self._locked_entry(
                "[:CONFigure]:VOLTage:AUTO",
                lambda: str(int(self._voltage_auto)),
                lambda text: setattr(self, "_voltage_auto", parse_boolean(text)),
            ),
            self._number_entry(
                "[:CONFigure]:CURRent:RANGe",
                lambda: self._current_range_a,
                lambda v: self._set_range("current", v),
                "A",
            ),
            self._locked_entry(
                "[:CONFigure]:CURRent:AUTO",
                lambda: str(int(self._current_auto)),
                lambda text: setattr(self, "_current_auto", parse_boolean(text)),
            ),
            self._locked_entry(
                "[:CONFigure]:CFACtor",
                lambda: str(self._crest_factor),
                lambda text: self._set_crest_factor(parse_number(text)),
            ),
            self._switch_entry("[:CONFigure]:LFILter", self._options, "lfilter"),
            self._switch_entry("[:CONFigure]:FILTer", self._options, "filter"),
            self._switch_entry("[:CONFigure]:MHOLd", self._options, "mhold", fixed=True),
            self._off_entry("[:CONFigure]:AVERaging[:STATe]"),
            self._off_entry("[:CONFigure]:SCALing[:STATe]"),
            Entry("[:CONFigure]:WIRing", lambda _: "P1W2"),
        ]

    def _measure_commands(self) -> list[Entry]:
        def item(name: str) -> Entry:
            return Entry(
                f"MEASure[:NORMal]:ITEM:{name}",
                lambda _: str(int(name in self._items)),
                lambda _s, p: (self._items.add if parse_boolean(_one(p)) else self._items.discard)(name),
            )

        return [
            Entry("MEASure[:NORMal]:VALue", lambda _: self._values(), bare=True, grouped=False),
            Entry("MEASure[:NORMal]:ITEM:PRESet", put=lambda _s, p: self._preset_items(_one(p))),
            *(item(name) for name in ITEM_ORDER),
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

    def _set_mode(self, text: str) -> None:
        self._mode = parse_word(text, _MODES)

    def _set_timer(self, _suffixes: list[int], parameters: list[str]) -> None:
        self._refuse_during_integration()
        self._integrator.set_timer(parameters)

    def _word(self, word: str) -> str:
        node = pattern_nodes(word)[0]
        return node.long if self._interpreter.verbose else node.short

    def _locked_entry(self, pattern: str, get: Callable[[], str], put: Callable[[str], None]) -> Entry:
        """A setting that cannot be changed while integrating."""

        def change(_suffixes: list[int], parameters: list[str]) -> None:
            self._refuse_during_integration()
            put(_one(parameters))

        return Entry(pattern, lambda _: get(), change)

    def _number_entry(
        self, pattern: str, get: Callable[[], float], put: Callable[[float], None], unit: str
    ) -> Entry:
        return self._locked_entry(
            pattern, lambda: nr3_significant(get()), lambda text: put(parse_number(text, unit))
        )

    def _switch_entry(
        self, pattern: str, switches: dict[str, bool], name: str, *, locked: bool = True, fixed: bool = False
    ) -> Entry:
        def change(text: str) -> None:
            if fixed and parse_boolean(text):
                raise ScpiError(221)
            switches[name] = parse_boolean(text)

        if locked:
            return self._locked_entry(pattern, lambda: str(int(switches[name])), change)
        return Entry(pattern, lambda _: str(int(switches[name])), lambda _s, p: change(_one(p)))

    def _off_entry(self, pattern: str) -> Entry:
        """A function that is not emulated: off, and an error when switched on."""
        return self._switch_entry(pattern, {"off": False}, "off", fixed=True)


def _one(parameters: list[str]) -> str:
    if len(parameters) != 1:
        raise ScpiError(108 if parameters else 109)
    return parameters[0]


def _choice(value: float, choices: tuple[float, ...]) -> float:
    for choice in choices:
        if abs(value - choice) <= 1e-6 * choice:
            return choice
    raise ScpiError(222)


def _least_range(ranges: tuple[float, ...], value: float) -> float:
    return next((candidate for candidate in sorted(ranges) if value <= candidate), max(ranges))
