# SPDX-License-Identifier: Apache-2.0
"""Asking a running emulated instrument for a fault: JSON in datagrams on a unix socket, one each.

A sender that has a name of its own gets an answer: ``{"ok": true, "t_s": ...}`` or ``{"ok": false,
"error": ...}``; ``request_fault`` is such a sender.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from netjoule_meters.errors import MeterError, MeterUnavailable, UsageError

_LARGEST = 65536
_ANSWER_WITHIN_S = 5.0


class Control:
    """The socket at ``path``; it is taken away by ``close``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        _clear(path)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(str(path))
        except OSError as error:
            self._socket.close()
            raise UsageError(f"cannot make the control socket {path}: {error.strerror or error}") from error

    def descriptor(self) -> int:
        """What to watch for requests."""
        return self._socket.fileno()

    def receive(self) -> tuple[bytes, str | None] | None:
        """The next request and whom to answer; None when there is none."""
        try:
            data, sender = self._socket.recvfrom(_LARGEST)
        except BlockingIOError:
            return None
        return data, sender or None

    def answer(self, sender: str | None, document: Mapping[str, Any]) -> None:
        """Answer a request; a sender that has gone or has no name gets nothing."""
        if sender is not None:
            with contextlib.suppress(OSError):
                self._socket.sendto(json.dumps(document).encode(), sender)

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
        with contextlib.suppress(OSError):
            self.path.unlink()


def request_fault(path: Path, request: Mapping[str, Any]) -> float:
    """Ask the instrument whose control socket is ``path`` for a fault; campaign time in s when it began.

    Raises:
        MeterUnavailable: when no instrument is there.
        MeterError: when it refuses, in its words.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.settimeout(_ANSWER_WITHIN_S)
        try:
            asking.bind("")  # Linux gives it a name, so that it can be answered
            asking.sendto(json.dumps(request).encode(), str(path))
            document = json.loads(asking.recv(_LARGEST))
        except OSError as error:
            raise MeterUnavailable(
                f"no emulated instrument listens on {path} ({error}): start it with --control {path}"
            ) from error
    if not document["ok"]:
        raise MeterError(str(document["error"]))
    return float(document["t_s"])


def _clear(path: Path) -> None:
    """Take away a socket that a killed instrument left behind; never one that somebody listens on."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise UsageError(f"another emulated instrument listens on {path}: name another path for --control")
