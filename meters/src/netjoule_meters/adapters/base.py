# SPDX-License-Identifier: Apache-2.0
"""The mould that adapters come from.

An adapter declares its settings and the commands that set the instrument up, and says in a few lines how
it identifies the instrument and reads one update. Everything else is here, once: logging, retries,
time-outs, time stamps, range checks, reconnection.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, ClassVar

from netjoule_meters.adapters.settings import SERIAL_SETTINGS, Setting, resolve
from netjoule_meters.clock import Clock
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import (
    Cancelled,
    ConnectionLost,
    DialogueError,
    GarbageReply,
    MeterError,
    NoAnswer,
    ReplyTimeout,
    SettingRefused,
)
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange, Passport
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.transports.base import Transport

_GAP_UPDATES = 3
"""No new value within so many updates is a gap."""
_RECONNECT_UPDATES = 10
"""Silence of so many updates (at least 2 s) means that the connection is made anew."""
_GARBAGE_IN_A_ROW = 10
_QUIET_S = 0.05
_BACK_OFF_S = (0.1, 0.2, 0.5, 1.0, 2.0)


@dataclass(frozen=True, slots=True)
class Command:
    """One set-up command; ``{name}`` stands for a setting.

    Attributes:
        text: what is sent.
        query: query whose answer must then equal the setting ``keeps``.
    """

    text: str
    query: str | None = None
    keeps: str | None = None


class Meter(ABC):
    """A power meter whose readings are means over its update interval."""

    name: ClassVar[str]
    make: ClassVar[str]
    model: ClassVar[str]
    settings_declared: ClassVar[tuple[Setting, ...]]
    interface_settings: ClassVar[tuple[Setting, ...]] = SERIAL_SETTINGS
    set_up_commands: ClassVar[tuple[Command, ...]]
    reply_timeout_s: ClassVar[float] = 2.0
    advice_no_answer: ClassVar[str] = "check cable, port and baud rate"

    def __init__(
        self,
        transport: Transport,
        settings: Mapping[str, Any],
        *,
        clock: Clock,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = resolve(self.all_settings(), settings, self.name)
        self.identification: Identification | None = None
        self._transport = transport
        self._clock = clock
        self._notify = notify or (lambda _text: None)
        self._log = logging.getLogger(f"netjoule_meters.{self.name}")
        self._resynchronise = False
        self._last_news_ns = 0
        self._in_gap = False
        self._garbage = 0

    @classmethod
    def all_settings(cls) -> tuple[Setting, ...]:
        """Settings of the instrument and of its interface."""
        return (*cls.settings_declared, *cls.interface_settings)

    # -- what an adapter says ----------------------------------------------------------------------

    @abstractmethod
    def _identify(self) -> Identification:
        """Ask who is there; raise WrongMode or WrongInstrument when it is not this model."""

    @abstractmethod
    def _read_update(self) -> Reading:
        """Wait for the next update and read it; may raise any ``DialogueError``."""

    @abstractmethod
    def _check_errors(self, command: str) -> None:
        """Raise SettingRefused when the instrument complains about ``command``."""

    def _begin(self) -> None:  # noqa: B027 - most instruments need nothing
        """Bring the dialogue into a known state; called first after each connection."""

    @property
    @abstractmethod
    def measuring_range(self) -> MeasuringRange:
        """The fixed range that the settings ask for."""

    @property
    @abstractmethod
    def lag_s(self) -> float:
        """From the end of the interval a reading stands for to its time stamp, s."""

    @abstractmethod
    def accuracy(self, calibration_age_days: float | None) -> Accuracy:
        """Limits of error with these settings, so long after calibration (None: not told)."""

    # -- life ----------------------------------------------------------------------------------------

    @property
    def update_interval_s(self) -> float:
        """Time between two readings, s."""
        return float(self.settings["update_interval_s"])

    @property
    def gap_s(self) -> float:
        """Time without a new value that counts as a gap, s."""
        return _GAP_UPDATES * self.update_interval_s

    def open(self) -> Identification:
        """Connect, identify, set up.

        Raises:
            MeterError: with the next step, when this is not the instrument asked for or it refuses.
        """
        self._transport.open()
        self._resynchronise = False
        try:
            self._transport.drain(_QUIET_S)
            self._begin()
            self.identification = self._identify()
            self._set_up()
        except (ReplyTimeout, ConnectionLost, GarbageReply) as error:
            self._transport.close()
            raise NoAnswer(
                f"no usable answer from a {self.make} {self.model} on {self._transport.resource} ({error}): "
                f"{self.advice_no_answer}"
            ) from error
        except MeterError:
            self._transport.close()
            raise
        self._last_news_ns = self._clock.monotonic_ns()
        return self.identification

    def close(self) -> None:
        """Let go of the instrument."""
        self._transport.close()

    def cancel(self) -> None:
        """End a wait of another thread; ``readings`` then ends."""
        self._transport.cancel()

    def passport(self, config: MeterConfig, today: date) -> Passport:
        """The meter's passport; call after ``open``."""
        assert self.identification is not None, "a passport needs an identified instrument"
        crest_factor = self.settings.get("crest_factor")
        return Passport(
            meter_id=config.meter_id,
            node=config.node,
            adapter=self.name,
            identification=self.identification,
            range=self.measuring_range,
            crest_factor=None if crest_factor is None else float(crest_factor),
            update_interval_s=self.update_interval_s,
            lag_s=self.lag_s,
            accuracy=self._accuracy_of(config, today),
            calibration_date=config.calibration_date,
            power_source=config.power_source,
            device_model=config.device_model,
            device_form=config.device_form,
        )

    def _accuracy_of(self, config: MeterConfig, today: date) -> Accuracy:
        """An emulated instrument does not age: it is drawn within the 12-month limits."""
        if config.power_source == "modelled":
            limits = self.accuracy(365.0)
            return replace(limits, source=f"emulated instrument drawn within: {limits.source}")
        if config.calibration_date is None:
            return Accuracy(None, None, "unknown: no calibration date in the configuration")
        return self.accuracy((today - date.fromisoformat(config.calibration_date)).days)

    # -- dialogue ------------------------------------------------------------------------------------

    def write(self, command: str) -> None:
        """Send one command line."""
        self._log.debug("%s <- %s", self._transport.resource, command)
        self._transport.write_line(command.encode("ascii"))

    def read_reply(self, timeout_s: float | None = None) -> str:
        """Receive one line of ASCII text.

        Raises:
            GarbageReply: when it holds other bytes.
        """
        line = self._transport.read_line(self.reply_timeout_s if timeout_s is None else timeout_s)
        self._log.debug("%s -> %r", self._transport.resource, line)
        if any(byte < 0x20 or byte > 0x7E for byte in line):
            raise GarbageReply(f"{line[:40]!r} is not text")
        return line.decode("ascii")

    def query(self, command: str, attempts: int = 1) -> str:
        """Send a query and receive its answer, again when none comes, ``attempts`` times in all."""
        for attempt in range(attempts):
            self.write(command)
            try:
                reply = self.read_reply()
            except ReplyTimeout:
                if attempt + 1 == attempts:
                    raise
                continue
            if attempt > 0:  # the earlier questions may be answered as well
                self._transport.drain(_QUIET_S)
            return reply
        raise AssertionError("attempts is at least 1")

    def timed_query(self, command: str) -> tuple[str, int]:
        """Answer to a query, and CLOCK_MONOTONIC in ns half-way between question and answer."""
        before_ns = self._clock.monotonic_ns()
        reply = self.query(command)
        return reply, (before_ns + self._clock.monotonic_ns()) // 2

    def _set_up(self) -> None:
        for command in self.set_up_commands:
            text = command.text.format(**self.settings)
            self.write(text)
            self._check_errors(text)
        for command in self.set_up_commands:
            if command.query is not None and command.keeps is not None:
                self._check_kept(command.query, command.keeps)

    def _check_kept(self, query: str, name: str) -> None:
        reply, wanted = self.query(query), self.settings[name]
        if not _means_the_same(reply, wanted):
            raise SettingRefused(
                f"the {self.model} on {self._transport.resource} shows {reply} for {query} "
                f"where {name}={wanted} was set: check the value and that no key lock or integration is on"
            )

    # -- readings ------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """The next update, checked; flagged when its numbers cannot be used.

        Raises:
            ReplyTimeout: no update within three intervals; the wait goes on with the next call.
            ConnectionLost: the port is gone.
        """
        if self._resynchronise:
            self._transport.drain(_QUIET_S)
            self._begin()
            self._resynchronise = False
        try:
            reading = self._read_update()
        except GarbageReply as error:
            self._resynchronise = True
            self._log.info("%s: %s", self._transport.resource, error)
            return Reading(self._clock.monotonic_ns(), flag=Flag.GARBAGE)
        return self._checked(reading)

    def readings(self, stop: threading.Event) -> Iterator[Reading]:
        """Readings until ``stop`` is set or ``cancel`` called; gaps and reconnections are rows too."""
        self._last_news_ns = self._clock.monotonic_ns()
        while not stop.is_set():
            try:
                reading = self.read()
            except Cancelled:
                return
            except ReplyTimeout as error:
                yield from self._gap_row()
                if self._silence_s() > max(2.0, _RECONNECT_UPDATES * self.update_interval_s):
                    yield from self._recover(stop, error)
                continue
            except ConnectionLost as error:
                yield from self._recover(stop, error)
                continue
            self._garbage = self._garbage + 1 if reading.flag is Flag.GARBAGE else 0
            if self._garbage == 0:
                self._last_news_ns, self._in_gap = reading.t_ns, False
            yield reading
            if self._garbage >= _GARBAGE_IN_A_ROW:
                yield from self._recover(stop, GarbageReply("nothing readable arrives"))

    def _checked(self, reading: Reading) -> Reading:
        """Flag what the instrument cannot have measured."""
        limits = self.measuring_range
        # Instruments read on to 130-140 % of voltage and of current, thus to twice the power range.
        pairs = ((reading.power_w, limits.power_w), (reading.voltage_v, limits.voltage_v))
        if any(value is not None and limit is not None and abs(value) > 4 * limit for value, limit in pairs):
            return Reading(reading.t_ns, flag=Flag.GARBAGE)
        return reading

    def _silence_s(self) -> float:
        return (self._clock.monotonic_ns() - self._last_news_ns) / 1e9

    def _gap_row(self) -> Iterator[Reading]:
        """One row per gap, once it is long enough to be one."""
        if not self._in_gap and self._silence_s() >= self.gap_s:
            self._in_gap = True
            self._notify(f"no new value within {_GAP_UPDATES} updates")
            yield Reading(self._clock.monotonic_ns(), flag=Flag.TIMEOUT)

    def _recover(self, stop: threading.Event, why: DialogueError) -> Iterator[Reading]:
        """Connect anew, however long it takes; nothing is made up meanwhile."""
        self._notify(f"connection lost: {why}")
        attempt = 0
        while not stop.is_set():
            yield from self._gap_row()
            if stop.wait(_BACK_OFF_S[min(attempt, len(_BACK_OFF_S) - 1)]):
                return
            attempt += 1
            try:
                self.open()
            except Cancelled:
                return
            except MeterError as error:
                self._log.info("%s", error)
                continue
            self._garbage = 0
            self._notify(f"connected again at attempt {attempt}")
            yield Reading(self._clock.monotonic_ns(), flag=Flag.RECONNECT)
            return


def _means_the_same(reply: str, wanted: Any) -> bool:
    """Whether an answer states the setting, as a number, a switch or a word."""
    if isinstance(wanted, bool):
        return reply.strip().upper() in (("1", "ON") if wanted else ("0", "OFF"))
    if isinstance(wanted, str):
        return reply.strip().upper() == wanted.upper()
    try:
        return abs(float(reply) - float(wanted)) <= 1e-6 * abs(float(wanted))
    except ValueError:
        return False
