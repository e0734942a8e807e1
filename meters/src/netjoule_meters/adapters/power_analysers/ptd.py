# SPDX-License-Identifier: Apache-2.0
"""A power analyser behind SPEC's PTDaemon, over TCP (usually port 8888).

PTDaemon speaks to dozens of analysers; its clients speak lines to it (known of them: ``ptd_messages``).
A measurement runs between ``Go`` and ``Stop``; ``RL,*`` asks for all samples not read yet and waits up to
one interval when there is none, so that each sample is read once and soon. PTDaemon stamps samples with its
own host's clock: several at once are spaced by it, and the newest is stamped here when it arrives.
"""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any, ClassVar

from netjoule_meters.adapters.dialogue_meter import Command, DialogueMeter
from netjoule_meters.adapters.power_analysers import ptd_messages, wt210_accuracy, wt310_accuracy
from netjoule_meters.adapters.power_analysers.ptd_messages import PtdIdentity, PtdRanges, PtdSample
from netjoule_meters.adapters.provisional_checks import Finding, sample_updates, spacing_s
from netjoule_meters.adapters.range_selection import with_head_room
from netjoule_meters.errors import (
    DialogueError,
    GarbageReply,
    ReplyTimeout,
    SettingRefused,
    UsageError,
    WrongInstrument,
)
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting

_MODELS = ("unknown", "WT210", "WT310", "WT310E")
_LEFT_OVER = ("Last ", "Time,", "No unread", "Insufficient unread", "Watts,", "Uncertainty,")
"""Beginnings of answers to earlier questions, which may still be on their way."""
_MOST_LEFT_OVER = 1000
_LARGEST_BATCH = 10_000
_UNCERTAINTY_EVERY = 60
"""Samples between two questions after the uncertainty."""

_SPOKEN = "PTDaemon's protocol is known from two public clients, not from its document"
_MEAN = "a sample is taken as the mean over the interval of Go, shown one interval late"
_OVER = "an over-range sample is taken to come as an error (-1) and is flagged as no data"
_CHANNELS = "written for AC analysers with one channel; DC and several channels have not been tried"


class Ptd(DialogueMeter):
    """An analyser behind SPEC PTDaemon: ``tcp:HOST:8888``."""

    name: ClassVar[str] = "ptd"
    make: ClassVar[str] = "SPEC"
    lag_updates: ClassVar[float] = 1
    model: ClassVar[str] = "PTDaemon"
    interfaces: ClassVar[tuple[str, ...]] = ("tcp",)
    reply_timeout_s: ClassVar[float] = 5.0
    advice_no_answer: ClassVar[str] = (
        "check that PTDaemon has found its analyser (its window says so), that no other client is connected "
        "to it, and the port (usually 8888)"
    )
    provisional: ClassVar[tuple[str, ...]] = (_SPOKEN, _MEAN, _OVER, _CHANNELS)
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("update_interval_s", "Sampling interval asked of PTDaemon.", 1.0),
        Setting("voltage_range_v", "Fixed voltage range; PTDaemon takes the next one upwards."),
        Setting("current_range_a", "Fixed current range; PTDaemon takes the next one upwards."),
        Setting("model", "Analyser behind PTDaemon, for its accuracy table.", "unknown", _MODELS),
        Setting("crest_factor", "Crest factor set on the analyser, for the accuracy table.", 3, (3, 6)),
        Setting("line_frequency_hz", "Frequency of the supply, for the accuracy table.", 50.0),
        Setting("power_factor", "Power factor of the load, for the accuracy table.", 1.0),
        Setting("lag_s", "Lag of PTDaemon and analyser; None stands for one interval.", None),
    )
    set_up_commands: ClassVar[tuple[Command, ...]] = (
        Command("Stop"),
        Command("SR,V,{voltage_range_v:g}"),
        Command("SR,A,{current_range_a:g}"),
    )
    _ranges: PtdRanges | None = None
    _identity: PtdIdentity | None = None
    _measuring = _asked = _greet = _was_missing = False
    _last_ns = 0
    _due = 0
    _over_limit = _unknown = _since_uncertainty = 0

    def _check_settings(self) -> None:
        for name in ("voltage_range_v", "current_range_a"):
            if not isinstance(self.settings[name], int | float):
                raise UsageError(
                    f"ptd: {name} cannot be {self.settings[name]!r}: PTDaemon does not tell its analyser's "
                    "ranges; write the value that the load needs, and it takes the next range upwards"
                )

    # -- what the base asks for ----------------------------------------------------------------------

    @property
    def measuring_range(self) -> MeasuringRange:
        """The ranges that PTDaemon has set, before that those of the settings."""
        voltage_v, current_a = self.settings["voltage_range_v"], self.settings["current_range_a"]
        if self._ranges is not None:
            voltage_v = self._ranges.voltage_v or voltage_v
            current_a = self._ranges.current_a or current_a
        return MeasuringRange(float(voltage_v), float(current_a), round(voltage_v * current_a, 9))

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Limits of error of the analyser behind PTDaemon, when its table is here."""
        model = self.settings["model"]
        if model == "unknown":
            return Accuracy(
                None, None, "unknown: the setting model does not name the analyser behind PTDaemon"
            )
        conditions = wt210_accuracy.Conditions(**self._conditions())
        if model == "WT210":
            return wt210_accuracy.power_accuracy(conditions, calibration_age_days)
        return wt310_accuracy.power_accuracy(model, conditions, calibration_age_days)

    def _conditions(self) -> dict[str, Any]:
        limits = self.measuring_range
        return {
            "voltage_range_v": limits.voltage_v or 0.0,
            "current_range_a": limits.current_a or 0.0,
            "frequency_hz": float(self.settings["line_frequency_hz"]),
            "power_factor": float(self.settings["power_factor"]),
            "crest_factor": int(self.settings["crest_factor"]),
            "line_filter": False,
        }

    def autorange(self, on: bool) -> None:
        """Let the analyser choose, or return to the ranges of the settings; the measurement begins anew."""
        self._begin()
        self._await_greeting()
        if on:
            self._order("Stop")
            self._order("SR,V,Auto")
            self._order("SR,A,Auto")
            self._ranges = ptd_messages.parse_ranges(self.query("RR"))
        else:
            self._set_ranges()
        self._go()

    def choose_range(self, most_v: float, most_a: float, most_w: float) -> dict[str, Any]:
        """What to ask for: PTDaemon takes the analyser's next range upwards."""
        return {
            "voltage_range_v": float(f"{with_head_room(most_v, 'V'):.4g}"),
            "current_range_a": float(f"{with_head_room(most_a, 'A'):.4g}"),
        }

    def confirm(self, updates: int = 5) -> list[Finding]:
        """Look at ``updates`` samples for what no document tells; call after ``open``.

        Raises:
            MeterError: when PTDaemon falls silent.
        """
        apart_s = spacing_s(sample_updates(self._read_update, updates, self._transport.resource))
        even = abs(apart_s - self.update_interval_s) <= 0.1 * self.update_interval_s
        return [
            Finding(_SPOKEN, True, "greeting, identification, ranges and samples were understood"),
            Finding(_MEAN, None if even else False, f"{apart_s:.3f} s between samples, median"),
            Finding(_OVER, None, "try it with a load over the range"),
            Finding(_CHANNELS, None, "cannot be seen from here"),
        ]

    def close(self) -> None:
        """End the measurement, so that PTDaemon does not go on for nobody, and hang up."""
        if self._measuring:
            self._measuring = False
            with contextlib.suppress(DialogueError):
                self.write("Stop")
        super().close()

    # -- beginning -----------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A known state: what was asked before is answered before this greeting."""
        self._asked, self._due, self._greet = False, 0, True
        self._batch: list[PtdSample] = []
        self._ready: deque[Reading] = deque()
        self._last_time: str | None = None
        self.write("Hello")

    def _identify(self) -> Identification:
        self._await_greeting()
        text = self.query("Identify")
        try:
            identity = ptd_messages.parse_identity(text)
        except GarbageReply as error:
            raise self._wrong(str(error)) from error
        if identity.mode.startswith("temp"):
            raise WrongInstrument(
                f"the PTDaemon on {self._transport.resource} reads {identity.mode}, not power: "
                "name the port of the one beside a power analyser (usually 8888)"
            )
        wanted = self.settings["model"]
        if wanted != "unknown" and wanted[:5] not in identity.driver.upper().replace(" ", ""):
            raise WrongInstrument(
                f"the PTDaemon on {self._transport.resource} speaks to a {identity.driver}, not a {wanted}: "
                "set model to what it is, or name another port"
            )
        self._identity = identity
        return Identification(text, "SPEC PTDaemon", identity.driver, None, identity.version)

    def _await_greeting(self) -> None:
        """Answers to earlier questions come first and are passed over."""
        for _ in range(_MOST_LEFT_OVER):
            reply = self.read_reply()
            if reply == ptd_messages.GREETING:
                self._greet = False
                return
            if not reply.startswith(_LEFT_OVER):
                raise self._wrong(f"it answers {reply[:60]!r} to Hello")
        raise self._wrong("it never greets")

    def _wrong(self, what: str) -> WrongInstrument:
        return WrongInstrument(
            f"what answers on {self._transport.resource} is not PTDaemon ({what}): name PTDaemon's port "
            "(usually 8888), or the adapter for this instrument"
        )

    def _set_up(self) -> None:
        self._set_ranges()
        self._go()

    def _set_ranges(self) -> None:
        """Fixed ranges, as asked or the next ones upwards; checked by what PTDaemon reads back."""
        can_set = self._identity is None or self._identity.can_set_range
        for command in self.set_up_commands:
            if can_set or not command.text.startswith("SR"):
                self._order(command.text.format(**self.settings))
        self._ranges = ranges = ptd_messages.parse_ranges(self.query("RR"))
        for name, auto, found in (
            ("voltage_range_v", ranges.voltage_auto, ranges.voltage_v),
            ("current_range_a", ranges.current_auto, ranges.current_a),
        ):
            wanted = float(self.settings[name])
            if auto or (found is not None and found < wanted * (1 - 1e-6)):
                shown = "autorange" if auto else f"{found:g}"
                raise SettingRefused(
                    f"PTDaemon on {self._transport.resource} shows {shown} where {name}={wanted:g} was set: "
                    "choose a range that the analyser has, and set it on its front panel if PTDaemon cannot"
                )

    def _go(self) -> None:
        self._order(f"Go,{round(self.update_interval_s * 1e3)},0,netjoule")
        self._measuring = True
        self._over_limit = self._unknown = self._since_uncertainty = 0

    def _order(self, command: str) -> None:
        self.write(command)
        self._check_errors(command)

    def _check_errors(self, command: str) -> None:
        """PTDaemon answers each command; only the right answer will do."""
        reply = self.read_reply()
        wanted = {"Stop": ("Stopping", "Error: no measurement"), "SR": ("Range ",), "Go": ("Starting ",)}
        if not reply.startswith(wanted[command.partition(",")[0]]):
            raise SettingRefused(
                f"PTDaemon on {self._transport.resource} answers {reply[:80]!r} to '{command}': check that "
                "no other client measures, and the setting against the analyser's manual"
            )

    # -- reading -------------------------------------------------------------------------------------

    def _read_update(self) -> Reading:
        if not self._ready:
            self._fill()
        return self._ready.popleft()

    def _fill(self) -> None:
        """All samples that PTDaemon has; waits for one."""
        if self._greet:  # after garbage: up to here, answers belong to earlier questions
            self._await_greeting_again()
        if not self._asked and self._due == 0:
            self._watch_uncertainty()
            self.write("RL,*")
            self._asked = True
        if self._due == 0:
            self._due = self._announced(self.read_reply(self.gap_s + 0.1 * self.reply_timeout_s))
            self._asked, self._arrived_ns = False, self._clock.monotonic_ns()
        while self._due:
            line = self.read_reply()
            self._due -= 1
            self._batch.append(ptd_messages.parse_sample(line))
        batch, self._batch = self._batch, []
        self._check_times(batch)
        self._ready.extend(self._reading(sample, batch[-1]) for sample in batch)
        self._since_uncertainty += len(batch)

    def _check_times(self, batch: list[PtdSample]) -> None:
        """Samples are spaced by PTDaemon's clock; one that was set meanwhile cannot space them."""
        longest_s = (len(batch) + 2) * self.update_interval_s
        if any(ptd_messages.age_s(sample, batch[-1]) > longest_s for sample in batch):
            raise GarbageReply(f"PTDaemon's times {batch[0].time_text} to {batch[-1].time_text} cannot be")

    def _await_greeting_again(self) -> None:
        try:
            self._await_greeting()
        except WrongInstrument as error:
            raise GarbageReply(str(error)) from error

    def _announced(self, line: str) -> int:
        """How many lines follow.

        Raises:
            ReplyTimeout: none; ask again.
            GarbageReply: for another line.
        """
        if line.startswith(("No unread", "Insufficient unread", "No data")):
            self._asked = False
            self._transport.drain(min(0.05, 0.1 * self.update_interval_s))  # not to ask without pause
            raise ReplyTimeout(f"PTDaemon on {self._transport.resource} has no new sample")
        if line == ptd_messages.GREETING:
            raise ReplyTimeout("a second greeting came first")
        count = ptd_messages.sample_count(line)
        if count is None or not 0 < count <= _LARGEST_BATCH:
            raise GarbageReply(f"{line[:60]!r} is not the head of a list of samples")
        return count

    def _reading(self, sample: PtdSample, newest: PtdSample) -> Reading:
        t_ns = self._arrived_ns - round(ptd_messages.age_s(sample, newest) * 1e9)
        t_ns = self._last_ns = max(t_ns, self._last_ns + 1)  # an earlier one may have arrived late
        repeated, self._last_time = sample.time_text == self._last_time, sample.time_text
        if sample.missing is not None:
            if not self._was_missing:
                self._notify(
                    f"PTDaemon tells {sample.missing} at {sample.time_text}; the range may be too small"
                )
            self._was_missing = True
            return Reading(t_ns, None, sample.voltage_v, sample.current_a, flag=Flag.NO_DATA)
        self._was_missing = False
        flag = Flag.DUPLICATE if repeated else Flag.GOOD
        return Reading(t_ns, sample.power_w, sample.voltage_v, sample.current_a, flag=flag)

    def _watch_uncertainty(self) -> None:
        """PTDaemon knows its analyser's limits: say so when the range is too large for the load."""
        if self._since_uncertainty < _UNCERTAINTY_EVERY:
            return
        self._since_uncertainty = 0
        found = ptd_messages.parse_uncertainty(self.query("Uncertainty"))
        if found is None or (found.over_limit, found.unknown) == (self._over_limit, self._unknown):
            return
        self._over_limit, self._unknown = found.over_limit, found.unknown
        self._notify(
            f"PTDaemon warns: of {found.samples} samples {found.over_limit} have an uncertainty over its "
            f"limit and {found.unknown} an unknown one (mean {100 * found.average_ratio:.2f} %); "
            "choose smaller ranges"
        )
