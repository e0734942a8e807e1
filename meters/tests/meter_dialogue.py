# SPDX-License-Identifier: Apache-2.0
"""A written dialogue in place of an instrument, for tests that pin an adapter's every byte.

Each entry is ``(sent, received)`` without terminators; None stands for nothing, so that ``(None, line)`` at
the beginning is a line of an instrument that talks unasked. An entry that was never used is an error, as is
a line that was not foreseen.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from netjoule_meters.errors import Cancelled, ConnectionLost, ReplyTimeout

SILENCE = object()
"""In place of a received line: the instrument does not answer in time."""
UNPLUGGED = object()
"""In place of a received line: the connection is lost at this point."""

Entry = tuple[bytes | None, object]


class DialogueMismatch(AssertionError):
    """The adapter said something else than the dialogue foresees."""


class Dialogue:
    """A transport that plays ``entries`` in order.

    ``wait`` is told how long a silence lasts (s); ``stamp`` says when the first byte of a line arrived (ns).
    """

    def __init__(
        self,
        entries: Sequence[Entry],
        wait: Callable[[float], None] | None = None,
        stamp: Callable[[], int] | None = None,
    ) -> None:
        self._wait = wait
        self._stamp = stamp
        self.first_byte_ns = 0
        self.resource = "dialogue"
        self.opened = 0
        self._entries = list(entries)
        self._position = 0
        self._replies: list[object] = []
        self._cancelled = False

    def open(self) -> None:
        """Count the connection and forget what was not read."""
        self.opened += 1
        self._replies.clear()

    def close(self) -> None:
        """Nothing to let go of."""

    def write_line(self, line: bytes) -> None:
        """Compare ``line`` with the dialogue."""
        if self._position >= len(self._entries):
            raise DialogueMismatch(f"sent {line!r} after the end of the dialogue")
        sent, received = self._entries[self._position]
        if line != sent:
            raise DialogueMismatch(f"entry {self._position}: sent {line!r} instead of {sent!r}")
        self._position += 1
        self._queue(received)
        self._queue_unasked()

    def read_line(self, timeout_s: float) -> bytes:
        """Play the next answer."""
        if self._cancelled:
            raise Cancelled("called off")
        if not self._replies:
            self._queue_unasked(at_most=1)
        if not self._replies:
            raise DialogueMismatch(f"waited for an answer that entry {self._position - 1} does not give")
        reply = self._replies.pop(0)
        if reply is SILENCE:
            if self._wait is not None:
                self._wait(timeout_s)
            raise ReplyTimeout(f"no answer within {timeout_s:g} s")
        if reply is UNPLUGGED:
            raise ConnectionLost("unplugged")
        assert isinstance(reply, bytes)
        if self._stamp is not None:
            self.first_byte_ns = self._stamp()
        return reply

    def drain(self, quiet_s: float) -> None:
        """Forget answers not read yet."""
        self._replies.clear()

    def cancel(self) -> None:
        """End waits."""
        self._cancelled = True

    def finish(self) -> None:
        """Fail when something was neither said nor read."""
        left = self._entries[self._position :]
        if left:
            raise DialogueMismatch(f"never sent: {[entry[0] for entry in left]}")
        if self._replies:
            raise DialogueMismatch(f"never read: {self._replies}")

    def _queue_unasked(self, at_most: int | None = None) -> None:
        """Lines that the instrument sends without being asked."""
        last = len(self._entries) if at_most is None else self._position + at_most
        while self._position < min(last, len(self._entries)) and self._entries[self._position][0] is None:
            self._queue(self._entries[self._position][1])
            self._position += 1

    def _queue(self, received: object) -> None:
        if received is not None:
            self._replies.append(received)


@contextlib.contextmanager
def expected_dialogue(
    entries: Sequence[Entry],
    wait: Callable[[float], None] | None = None,
    stamp: Callable[[], int] | None = None,
) -> Iterator[Dialogue]:
    """A ``Dialogue`` that must be used up when the block ends without an error."""
    dialogue = Dialogue(entries, wait, stamp)
    yield dialogue
    dialogue.finish()
