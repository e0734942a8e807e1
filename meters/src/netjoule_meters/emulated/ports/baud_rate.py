# SPDX-License-Identifier: Apache-2.0
"""What a serial line makes of bytes when its two ends have different baud rates.

A pseudo-terminal carries bytes at any speed; `BaudPort` looks at the speed that the client has set and
hands on what a UART at the other speed would hear: it waits for a falling edge and takes eight samples at
its own spacing.
"""

from __future__ import annotations

import re
import termios
from pathlib import Path

from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.errors import UsageError

_SPEEDS_BD = {
    getattr(termios, name): int(name[1:]) for name in dir(termios) if re.fullmatch(r"B[1-9]\d+", name)
}


def require_baud_rate(baud_rate: int) -> None:
    """Refuse a baud rate that no serial port here can be set to.

    Raises:
        UsageError: with those that there are.
    """
    known = sorted(_SPEEDS_BD.values())
    if baud_rate not in known:
        raise UsageError(f"no serial port runs at {baud_rate} Bd: choose one of {', '.join(map(str, known))}")


def as_received(data: bytes, sent_bd: int, received_bd: int) -> bytes:
    """``data``, sent with 8N1 at ``sent_bd``, as a receiver at ``received_bd`` takes it."""
    if sent_bd == received_bd:
        return data
    levels = [1]
    for byte in data:
        levels += [0, *(byte >> bit & 1 for bit in range(8)), 1]
    bit_length = sent_bd / received_bd  # of a received bit, in bits as sent
    taken = bytearray()
    position = 1
    while (start := _falling_edge(levels, position)) is not None:
        samples = [_level(levels, start + bit_length * (1.5 + bit)) for bit in range(8)]
        taken.append(sum(level << bit for bit, level in enumerate(samples)))
        position = max(start + 1, int(start + bit_length * 9.5))
    return bytes(taken)


def _falling_edge(levels: list[int], position: int) -> int | None:
    return next(
        (at for at in range(position, len(levels)) if levels[at] == 0 and levels[at - 1] == 1),
        None,
    )


def _level(levels: list[int], at: float) -> int:
    """The line at a moment; idle after its last byte."""
    return levels[int(at)] if at < len(levels) else 1


class BaudPort(PtyPort):
    """A pseudo-terminal to an instrument that is set to ``baud_rate``."""

    def __init__(self, link: Path | None, baud_rate: int) -> None:
        super().__init__(link)
        self.baud_rate = baud_rate

    def read(self) -> bytes:
        """What the instrument hears."""
        return as_received(super().read(), self._client_bd(), self.baud_rate)

    def write(self, data: bytes, more: bool = False) -> None:
        """Send what the client hears."""
        super().write(as_received(data, self.baud_rate, self._client_bd()), more)

    def _client_bd(self) -> int:
        """The speed that the client has set; the instrument's own while no cable is in."""
        descriptors = self.descriptors()
        if not descriptors:
            return self.baud_rate
        return _SPEEDS_BD.get(termios.tcgetattr(descriptors[0])[5], self.baud_rate)
