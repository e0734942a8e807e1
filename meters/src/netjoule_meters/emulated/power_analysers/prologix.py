# SPDX-License-Identifier: Apache-2.0
"""An emulated Prologix GPIB controller with one emulated instrument on its bus. Sans-IO.

Lines that begin with ``++`` are for the controller, others go to the instrument at the address set. An answer
stays in the instrument until ``++read`` fetches it; a read without an answer ends after ``++read_tmo_ms``
without a word (Prologix GPIB-USB controller user manual). With ``++auto 1``, the state at delivery, every
line is followed by a read; the "query unterminated" that this costs a real instrument is not emulated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from netjoule_meters.emulated.instrument_loop import Instrument
from netjoule_meters.emulated.metering import soonest
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EmulationOptions

VERSION = "Prologix GPIB-USB Controller version 6.107 (emulated)"
ADDRESS = 5
_ESC = 0x1B


class BusInstrument(Instrument, Protocol):
    """An instrument that can be cleared over its bus."""

    def clear(self) -> None:
        """Device clear."""


class EmulatedPrologix:
    """A controller and the instrument at GPIB address 5; nobody else is on the bus."""

    def __init__(self, instrument: BusInstrument) -> None:
        self._instrument = instrument
        self._received = bytearray()
        self._pending = bytearray()
        self._answers: list[bytes] = []
        self._settings = {"mode": 1, "auto": 1, "addr": 0, "eoi": 1, "eos": 0, "read_tmo_ms": 500}
        self._settings |= {"eot_enable": 0, "savecfg": 1}
        self._read_until_s: float | None = None
        self._now_s = 0.0

    def feed(self, interval: PowerInterval) -> None:
        """The next interval of true power."""
        self._instrument.feed(interval)

    def receive(self, data: bytes) -> None:
        """Bytes from the computer."""
        self._received += data

    def step(self, now_s: float) -> bytes:
        """Do the lines received; bytes for the computer."""
        self._now_s = now_s
        output = bytearray()
        while (line := self._next_line()) is not None:
            if line.startswith(b"++"):
                output += self._command(line[2:].decode("ascii", "replace").split())
            elif line and self._settings["addr"] == ADDRESS:
                self._instrument.receive(line + b"\n")
                if self._settings["auto"]:
                    self._begin_read()
            self._collect(now_s)
        self._collect(now_s)
        return bytes(output + self._finish_read(now_s))

    def wake_s(self, now_s: float) -> float | None:
        """When the instrument or a read that times out needs attention."""
        return soonest(self._instrument.wake_s(now_s), self._read_until_s)

    def _collect(self, now_s: float) -> None:
        """Answers stay in the instrument, one message each, until they are read."""
        self._pending += self._instrument.step(now_s)
        *lines, rest = self._pending.split(b"\n")
        self._pending = bytearray(rest)
        self._answers += [bytes(line) + b"\n" for line in lines]

    def _begin_read(self) -> None:
        self._read_until_s = self._now_s + self._settings["read_tmo_ms"] / 1e3

    def _finish_read(self, now_s: float) -> bytes:
        if self._read_until_s is None:
            return b""
        if self._answers and self._settings["addr"] == ADDRESS:
            self._read_until_s = None
            return self._answers.pop(0)
        if now_s >= self._read_until_s:
            self._read_until_s = None
        return b""

    def _command(self, words: list[str]) -> bytes:
        name, parameters = (words[0].lower() if words else ""), words[1:]
        actions: dict[str, Callable[[], None]] = {
            "read": self._begin_read,
            "clr": self._clear,
            "ifc": lambda: None,
            "loc": lambda: None,
        }
        if name == "ver":
            return f"{VERSION}\r\n".encode()
        if name in actions:
            actions[name]()
            return b""
        if name not in self._settings:
            return b"Unrecognized command\r\n"
        if not parameters:
            return f"{self._settings[name]}\r\n".encode()
        if parameters[0].isdecimal():
            self._settings[name] = int(parameters[0])
        return b""

    def _clear(self) -> None:
        if self._settings["addr"] == ADDRESS:
            self._instrument.clear()
            self._pending.clear()
            self._answers.clear()

    def _next_line(self) -> bytes | None:
        """The next line, its escapes undone; CR, LF and + are data behind an ESC."""
        line = bytearray()
        escaped = False
        for index, byte in enumerate(self._received):
            if escaped:
                line.append(byte)
                escaped = False
            elif byte == _ESC:
                escaped = True
            elif byte in b"\r\n":
                del self._received[: index + 1]
                return bytes(line)
            else:
                line.append(byte)
        return None


def make(options: EmulationOptions) -> EmulatedPrologix:
    """An emulated WT210 at GPIB address 5 behind an emulated controller; see `EmulatedModel`."""
    from netjoule_meters.emulated.power_analysers.wt210 import make as make_wt210

    return EmulatedPrologix(make_wt210(options))
