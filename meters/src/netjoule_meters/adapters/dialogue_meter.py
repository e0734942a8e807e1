# SPDX-License-Identifier: Apache-2.0
"""Instruments that speak in lines of text: questions, answers, time stamps, and a declared set-up."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

from netjoule_meters.adapters.base import QUIET_S, Meter
from netjoule_meters.errors import GarbageReply, ReplyTimeout, SettingRefused
from netjoule_meters.transports.base import Transport


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


class LineMeter(Meter):
    """A meter that speaks in lines of ASCII text.

    Attributes:
        meaningless: bytes that may stand inside a line and say nothing.
    """

    meaningless: ClassVar[bytes] = b""
    _transport: Transport
    _heard_meaningless = False

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
        text = line.translate(None, self.meaningless)
        self._heard_meaningless = self._heard_meaningless or text != line
        if any(byte < 0x20 or byte > 0x7E for byte in text):
            raise GarbageReply(f"{line[:40]!r} is not text")
        return text.decode("ascii")

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
                self._transport.drain(QUIET_S)
            return reply
        raise AssertionError("attempts is at least 1")

    def timed_query(self, command: str) -> tuple[str, int]:
        """Answer to a query, and CLOCK_MONOTONIC in ns half-way between question and answer."""
        before_ns = self._clock.monotonic_ns()
        reply = self.query(command)
        return reply, (before_ns + self._clock.monotonic_ns()) // 2


class DialogueMeter(LineMeter):
    """A meter that answers questions. Set-up is the declared commands, each checked, each read back."""

    set_up_commands: ClassVar[tuple[Command, ...]]

    @abstractmethod
    def _check_errors(self, command: str) -> None:
        """Raise SettingRefused when the instrument complains about ``command``."""

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
