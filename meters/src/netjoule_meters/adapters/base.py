# SPDX-License-Identifier: Apache-2.0
"""The mould that adapters come from.

An adapter says in a few lines how it identifies the instrument and reads one update. Everything else is
here, once: logging, gaps, range checks, reconnection. ``dialogue_meter`` adds questions and answers,
``polled`` adds reading at a pace of one's own.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import date
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar

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
    UsageError,
    WrongInstrument,
)
from netjoule_meters.passport import Accuracy, Identification, MeasuringRange, Passport, specified
from netjoule_meters.reading import Flag, Reading
from netjoule_meters.settings import Setting, resolve
from netjoule_meters.transports import interface_settings
from netjoule_meters.transports.base import Connection

if TYPE_CHECKING:
    from netjoule_meters.calibration import Calibration

COMMON_SETTINGS = (
    Setting(
        "stuck_after_s",
        "A value that has not moved for so long is taken as frozen and its rows flagged stale; 0: never; "
        "None: 30 s (10 min for meters that show watts only), and never where power_source is modelled.",
        None,
    ),
)
"""Settings of every meter: they are the logger's affair."""
_RECONNECT_UPDATES = 10
"""Silence of so many updates (at least 2 s) means that the connection is made anew."""
_GARBAGE_IN_A_ROW = 10
_SHORTEST_UPDATE_S, _LONGEST_UPDATE_S = 0.001, 86_400.0
"""What an update interval may be: no meter here is read more often than 1000 times in a second."""
QUIET_S = 0.05
"""A line on which nothing arrives for so long is quiet."""
_BACK_OFF_S = (0.1, 0.2, 0.5, 1.0, 2.0)


class Semantics(StrEnum):
    """What one reading stands for; energy arithmetic goes by it."""

    INTERVAL_MEAN = "interval_mean"
    """Mean over the update interval that ended ``lag_s`` before."""
    INSTANTANEOUS = "instantaneous"
    """A spot value, or a mean over an unknown window."""
    ENERGY_COUNTER = "energy_counter"
    """``energy_j`` counts up, modulo ``counter_modulus_j``; ``power_w`` is only for people."""


class Quantity(StrEnum):
    """Which power the watts are."""

    ACTIVE = "active_power"
    APPARENT = "apparent_power"
    """Current times a nominal voltage (VA); never a measured active power."""


class Meter(ABC):
    """A power meter: life, readings, gaps, reconnection. Adapters derive from `DialogueMeter`,
    `PolledMeter` or, for instruments that talk unasked, `LineMeter`.

    Attributes:
        interfaces: how it may be connected, by the names of ``transports.INTERFACES``.
        interface_defaults: settings of an interface whose default is another with this instrument.
        semantics: what a reading stands for.
        quantity: which power it is.
        provisional: statements about this instrument that no document at hand confirms.
        lag_updates: the lag that is taken where no setting tells it, in update intervals.
        gap_updates: no new value within so many updates is a gap.
    """

    name: ClassVar[str]
    make: ClassVar[str]
    model: ClassVar[str]
    settings_declared: ClassVar[tuple[Setting, ...]]
    interfaces: ClassVar[tuple[str, ...]] = ("serial",)
    interface_defaults: ClassVar[Mapping[str, Any]] = MappingProxyType({})
    semantics: ClassVar[Semantics] = Semantics.INTERVAL_MEAN
    quantity: ClassVar[Quantity] = Quantity.ACTIVE
    provisional: ClassVar[tuple[str, ...]] = ()
    reply_timeout_s: ClassVar[float] = 2.0
    lag_updates: ClassVar[float] = 0
    gap_updates: ClassVar[float] = 3
    advice_no_answer: ClassVar[str] = "check cable, port and baud rate"

    def __init__(
        self,
        transport: Connection,
        settings: Mapping[str, Any],
        *,
        clock: Clock,
        notify: Callable[[str], None] | None = None,
    ) -> None:
        self.settings = resolve(self.all_settings(), settings, self.name)
        if not _SHORTEST_UPDATE_S <= self.update_interval_s <= _LONGEST_UPDATE_S:
            raise UsageError(
                f"{self.name}: update_interval_s cannot be {self.update_interval_s:g}: choose a time between "
                f"{_SHORTEST_UPDATE_S:g} s and a day"
            )
        self.identification: Identification | None = None
        self._transport = transport
        self._clock = clock
        self._notify = notify or (lambda _text: None)
        self._log = logging.getLogger(f"netjoule_meters.{self.name}")
        self._resynchronise = False
        self._last_news_ns = 0
        self._in_gap = False
        self._garbage = 0
        self._check_settings()

    @classmethod
    def all_settings(cls) -> tuple[Setting, ...]:
        """Settings of the instrument and of all interfaces that it may be connected by."""
        return (
            *cls.settings_declared,
            *COMMON_SETTINGS,
            *interface_settings(cls.interfaces, cls.interface_defaults),
        )

    # -- what an adapter says ----------------------------------------------------------------------

    @abstractmethod
    def _identify(self) -> Identification:
        """Ask who is there; raise WrongMode or WrongInstrument when it is not this model."""

    @abstractmethod
    def _read_update(self) -> Reading:
        """Wait for the next update and read it; may raise any ``DialogueError``."""

    def _check_settings(self) -> None:  # noqa: B027 - most need nothing
        """Raise UsageError for settings that do not go together."""

    def _set_up(self) -> None:  # noqa: B027 - some instruments have no settings
        """Set the instrument as the settings say; raise SettingRefused when it will not."""

    def _begin(self) -> None:  # noqa: B027 - most instruments need nothing
        """Bring the dialogue into a known state; called first after each connection."""

    def _restart(self) -> None:
        """Bring the dialogue of an identified instrument back into a known state after an answer was lost."""
        self._begin()

    @property
    def measuring_range(self) -> MeasuringRange:
        """The fixed range that the settings ask for; nothing where the instrument has or tells none."""
        return MeasuringRange(None, None, None)

    @property
    def lag_s(self) -> float:
        """From the end of the interval a reading stands for to its time stamp, s; a setting knows better."""
        lag_s = self.settings.get("lag_s")
        return self.lag_updates * self.update_interval_s if lag_s is None else float(lag_s)

    def accuracy(self, calibration_age_days: float | None) -> Accuracy:
        """Limits of error with these settings, so long after calibration (None: not told)."""
        if calibration_age_days is None:
            return Accuracy(None, None, "unknown: time since calibration is not known")
        return self._limits(calibration_age_days)

    @abstractmethod
    def _limits(self, calibration_age_days: float) -> Accuracy:
        """Limits of error with these settings, so long after calibration."""

    def autorange(self, on: bool) -> None:
        """Let the instrument choose its ranges (a ranging pass before a campaign), or hold them again.

        Call it after ``open``. ``on=False`` returns to the ranges of the settings.

        Raises:
            UsageError: when it has one range only.
            SettingRefused: when the instrument will not.
        """
        raise UsageError(f"{self._called()} has one range: there is nothing to choose")

    def choose_range(self, most_v: float, most_a: float, most_w: float) -> dict[str, Any]:
        """Settings of the least ranges that hold what a ranging pass saw, with head-room.

        Args:
            most_v: highest voltage, V.
            most_a: highest current, A.
            most_w: highest power, W; only instruments with ranges of power use it.

        Raises:
            UsageError: when it has one range only, or none that holds the values.
        """
        raise UsageError(f"{self._called()} has one range: there is nothing to choose")

    @property
    def counter_modulus_j(self) -> float | None:
        """Where an energy counter starts again from 0, J; None when it never does or there is none."""
        return None

    @property
    def resolution(self) -> float | None:
        """Least step of the readings, W (of the counter, J, where that is read); None when unknown."""
        return None

    @property
    def mapping_source(self) -> str | None:
        """Where a configured mapping comes from (a preset, a manual); None for built-in dialogues."""
        return None

    def _called(self) -> str:
        """What it is, with the article, for messages."""
        return f"{'an' if self.make[0] in 'AEIOUaeiou' else 'a'} {self.make} {self.model}"

    # -- life ----------------------------------------------------------------------------------------

    @property
    def update_interval_s(self) -> float:
        """Time between two readings, s."""
        return float(self.settings["update_interval_s"])

    @property
    def gap_s(self) -> float:
        """Time without a new value that counts as a gap, s."""
        return self.gap_updates * self.update_interval_s

    def open(self) -> Identification:
        """Connect, identify, set up.

        Raises:
            MeterError: with the next step, when this is not the instrument asked for or it refuses.
        """
        self._transport.open()
        self._resynchronise = False
        try:
            self._transport.drain(QUIET_S)
            self._begin()
            self.identification = self._identify()
            self._set_up()
        except (ReplyTimeout, ConnectionLost, GarbageReply) as error:
            self._transport.close()
            raise NoAnswer(
                f"no usable answer from {self._called()} on {self._transport.resource} ({error}): "
                f"{self.advice_no_answer}"
            ) from error
        except (MeterError, Cancelled):
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

    def identity(self, config: MeterConfig) -> Identification:
        """Which instrument this is; the configuration adds a serial number that it does not tell itself.

        Raises:
            WrongInstrument: when it tells another one.
        """
        told = self.identification
        assert told is not None, "only an open meter is identified"
        if config.serial is None or told.serial == config.serial:
            return told
        if told.serial is not None:
            raise WrongInstrument(
                f"the {told.make} {told.model} on {self._transport.resource} has serial number "
                f"{told.serial}, not {config.serial}: name its port, or correct 'serial' of meter "
                f"'{config.meter_id}'"
            )
        return replace(told, serial=config.serial)

    def passport(self, config: MeterConfig, today: date) -> Passport:
        """The meter's passport; call after ``open``.

        Raises:
            WrongInstrument: see `identity`.
            UsageError: when its calibration document is for another instrument or range.
        """
        crest_factor = self.settings.get("crest_factor")
        calibration = self._calibration_of(config)
        return Passport(
            meter_id=config.meter_id,
            node=config.node,
            adapter=self.name,
            identification=self.identity(config),
            range=self.measuring_range,
            crest_factor=None if crest_factor is None else float(crest_factor),
            update_interval_s=self.update_interval_s,
            lag_s=self.lag_s,
            accuracy=self._accuracy_of(config, today),
            calibration_date=config.calibration_date,
            power_source=config.power_source,
            device_model=config.device_model,
            device_form=config.device_form,
            semantics=self.semantics.value,
            quantity=self.quantity.value,
            counter_modulus_j=self.counter_modulus_j,
            mapping_source=self.mapping_source,
            provisional=self.provisional,
            resolution=self.resolution,
            calibration=None if calibration is None else calibration.citation(),
        )

    def _calibration_of(self, config: MeterConfig) -> Calibration | None:
        """The calibration document that the configuration names, held to this instrument."""
        if config.calibration is None:
            return None
        from netjoule_meters.calibration import load

        found = load(Path(config.calibration))
        found.require(self.name, self.identity(config), self.measuring_range)
        return found

    def _accuracy_of(self, config: MeterConfig, today: date) -> Accuracy:
        """Limits of a calibration document, else of the specification."""
        calibration = self._calibration_of(config)
        if calibration is not None:
            return calibration.accuracy(today)
        return specified(self.accuracy, config.power_source, config.calibration_date, today)

    # -- readings ------------------------------------------------------------------------------------

    def read(self) -> Reading:
        """The next update, checked; flagged when its numbers cannot be used.

        Raises:
            ReplyTimeout: no update within three intervals; the wait goes on with the next call.
            ConnectionLost: the port is gone.
        """
        try:
            if self._resynchronise:
                self._transport.drain(QUIET_S)
                self._restart()
                self._resynchronise = False
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
            self._notify(f"no new value within {self.gap_updates:g} updates")
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
