# SPDX-License-Identifier: Apache-2.0
"""Current Cost CC128 and EnviR, clamps with a radio and a display (vendor's "XML output description", v0.11).

The display sends a message whenever it has heard a sensor, about every 6 s, and listens to nothing. Radio
messages get lost: a missed one is a gap of its own, never filled. What it shows is current times a voltage
that it takes for granted, thus apparent power; the vendor warrants no accuracy, so none is stated here.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from netjoule_meters.adapters.base import Quantity, Semantics
from netjoule_meters.adapters.dialogue_meter import LineMeter
from netjoule_meters.adapters.energy_monitors.cc128_messages import History, Live, is_classic, parse_message
from netjoule_meters.adapters.provisional_checks import Finding, sample_updates, spacing_s
from netjoule_meters.errors import GarbageReply, NoAnswer, ReplyTimeout, UsageError, WrongInstrument
from netjoule_meters.passport import Accuracy, Identification
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting
from netjoule_meters.transports.base import StampedTransport

_LISTEN_UPDATES = 4
"""How many updates long ``open`` listens for its sensor."""
_UNREADABLE_LINES = 3
"""The first line is often the rest of one; so many in a row are not."""
_CLAMP = 1

_PROVISIONAL_INTERVAL = "a live message of a sensor comes every 6 s (users' reports)"
_PROVISIONAL_LAG = "a message stands for the moment at which it arrives"
_PROVISIONAL_VOLTAGE = (
    "the display multiplies current by the one voltage that it is set to, 240 V at delivery"
)


class CC128(LineMeter):
    """Current Cost CC128: apparent power of one sensor, one reading per radio message."""

    name: ClassVar[str] = "cc128"
    make: ClassVar[str] = "Current Cost"
    model: ClassVar[str] = "CC128"
    interface_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({"baud_rate": 57600})
    semantics: ClassVar[Semantics] = Semantics.INSTANTANEOUS
    quantity: ClassVar[Quantity] = Quantity.APPARENT
    provisional: ClassVar[tuple[str, ...]] = (_PROVISIONAL_INTERVAL, _PROVISIONAL_LAG, _PROVISIONAL_VOLTAGE)
    gap_updates: ClassVar[float] = 1.75
    advice_no_answer: ClassVar[str] = (
        "check that the display shows a power, the cable, the port and 57600 Bd 8N1 (the older Classic sends "
        "at 9600 Bd), and that no download of its history is running, which stops live messages"
    )
    settings_declared: ClassVar[tuple[Setting, ...]] = (
        Setting("sensor", "Sensor on the display; 0 is the whole house.", 0, tuple(range(10))),
        Setting("channels", "Clamps of the sensor whose powers are added, for example 1+2.", "1"),
        Setting("update_interval_s", "Time between two messages of a sensor; it cannot be set.", 6.0),
        Setting("lag_s", "Lag of this instrument; None stands for 0.", None),
    )

    _transport: StampedTransport
    _radio_id = ""

    def _check_settings(self) -> None:
        self._channels = _channels(self.settings["channels"])

    # -- what it is ------------------------------------------------------------------------------------

    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Unknown, whatever the calibration: a clamp knows neither voltage nor power factor."""
        return Accuracy(
            None, None, 'unknown: the vendor warrants no accuracy ("XML output description" v0.11)'
        )

    @property
    def resolution(self) -> float:
        """Whole watts."""
        return 1.0

    # -- messages --------------------------------------------------------------------------------------

    def _remaining_s(self, deadline_ns: int, what: str) -> float:
        remaining_s = (deadline_ns - self._clock.monotonic_ns()) / 1e9
        if remaining_s <= 0:
            raise ReplyTimeout(what)
        return remaining_s

    def _identify(self) -> Identification:
        """Listen for one message of the sensor; it tells display, firmware and transmitter."""
        listen_s = _LISTEN_UPDATES * self.update_interval_s
        deadline_ns = self._clock.monotonic_ns() + round(listen_s * 1e9)
        heard: list[Live | History] = []
        unreadable = 0
        while True:
            try:
                remaining_s = self._remaining_s(deadline_ns, f"nothing readable within {listen_s:g} s")
                message = self._first_message(remaining_s)
            except ReplyTimeout as error:
                raise self._not_heard(heard, listen_s) or error from error
            except GarbageReply:
                unreadable += 1
                if unreadable >= _UNREADABLE_LINES and not heard:
                    raise
                continue
            if isinstance(message, Live) and message.sensor == self.settings["sensor"]:
                self._demand_channels(message)
                self._radio_id = message.radio_id
                firmware = message.source.partition("-v")[2] or None
                return Identification(message.source, self.make, self.model, message.radio_id, firmware)
            heard.append(message)

    def _first_message(self, timeout_s: float) -> Live | History:
        text = self.read_reply(timeout_s)
        if is_classic(text):
            raise WrongInstrument(
                f"an older Current Cost Classic sends on {self._transport.resource}, in another form: "
                "name the port of a CC128 or EnviR"
            )
        return parse_message(text)

    def _not_heard(self, heard: list[Live | History], listen_s: float) -> NoAnswer | None:
        """Why the sensor was not heard although something was; None when nothing was."""
        where = f"on {self._transport.resource} within {listen_s:g} s"
        sensor = self.settings["sensor"]
        others = sorted({message.sensor for message in heard if isinstance(message, Live)})
        if others:
            known = ", ".join(map(str, others))
            return NoAnswer(
                f"sensor {sensor} was not heard {where}, but {known}: set 'sensor' to one of those, "
                "or bring its transmitter nearer to the display"
            )
        if heard:
            return NoAnswer(
                f"the CC128 sent its history only {where}: wait until the download is over, then start again"
            )
        return None

    def _demand_channels(self, message: Live) -> None:
        if message.kind != _CLAMP or not message.watts:
            raise UsageError(
                f"sensor {message.sensor} counts impulses and shows no power: name a sensor with a clamp"
            )
        missing = [str(channel) for channel in self._channels if channel not in message.watts]
        if missing:
            there = "+".join(map(str, sorted(message.watts)))
            raise UsageError(
                f"sensor {message.sensor} has no clamp {', '.join(missing)}: set 'channels' from {there}"
            )

    def _read_update(self) -> Reading:
        """The next message of the sensor; those of others and history are passed over."""
        deadline_ns = self._clock.monotonic_ns() + round(self.gap_s * 1e9)
        while True:
            remaining_s = self._remaining_s(deadline_ns, f"no message within {self.gap_s:g} s")
            try:
                message = parse_message(self.read_reply(remaining_s))
                if isinstance(message, History) or message.sensor != self.settings["sensor"]:
                    continue
                self._demand_same_transmitter(message)
            except GarbageReply as error:  # lines are apart, so the next one is as good as any
                self._log.info("%s: %s", self._transport.resource, error)
                return Reading(self._transport.first_byte_ns, flag=Flag.GARBAGE)
            return self._reading(message)

    def _reading(self, message: Live) -> Reading:
        t_ns = self._transport.first_byte_ns
        if any(channel not in message.watts for channel in self._channels):
            return Reading(t_ns, flag=Flag.NO_DATA)
        return Reading(t_ns, float(sum(message.watts[channel] for channel in self._channels)))

    def _demand_same_transmitter(self, message: Live) -> None:
        if message.radio_id != self._radio_id:
            raise GarbageReply(
                f"sensor {message.sensor} is transmitter {message.radio_id} now, not {self._radio_id}"
            )

    def confirm(self, updates: int = 5) -> list[Finding]:
        """Look at ``updates`` messages for what the documents at hand leave open; call after ``open``.

        Raises:
            MeterError: when the instrument falls silent.
        """
        readings = sample_updates(self._read_update, updates, self._transport.resource)
        apart_s = spacing_s(readings)
        held = abs(apart_s - self.update_interval_s) <= 0.1 * self.update_interval_s
        return [
            Finding(
                _PROVISIONAL_INTERVAL, held, f"{apart_s:.2f} s between messages, median of {updates - 1}"
            ),
            Finding(_PROVISIONAL_LAG, None, "cannot be seen from here"),
            Finding(_PROVISIONAL_VOLTAGE, None, "look at the display's settings"),
        ]


def _channels(text: Any) -> tuple[int, ...]:
    """Clamps named as ``1+2``.

    Raises:
        UsageError: for anything else.
    """
    parts = str(text).split("+")
    if not all(part.isdecimal() and 1 <= int(part) <= 9 for part in parts) or len(set(parts)) != len(parts):
        raise UsageError(f"cc128: channels cannot be {text!r}: name clamps as 1 or 1+2+3, each once")
    return tuple(int(part) for part in parts)
