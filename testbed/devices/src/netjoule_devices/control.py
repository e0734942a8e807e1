# SPDX-License-Identifier: Apache-2.0
"""Takes requests for another model while the program runs: JSON in datagrams on a unix socket, one each.

``{"model": NAME}`` is answered with ``{"ok": true, "model": {...}}``, the model's own description, or with
``{"ok": false, "error": ...}``; the samples after the answer are of that model. A sender without a name of
its own gets no answer.
"""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

from netjoule_devices.errors import EnvironmentLacks, UsageError

_LARGEST = 65_536

Change = Callable[[str], dict[str, Any]]
"""Takes the name of another model; returns its description. Raises DeviceError when it cannot be had."""


class Control:
    """The socket at a path; `close` takes it away."""

    def __init__(self, path: Path) -> None:
        """Raises EnvironmentLacks when the socket cannot be made."""
        self._path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        try:
            self._socket.bind(str(path))
        except OSError as error:
            self._socket.close()
            raise EnvironmentLacks(f"the control socket {path} cannot be made: {error.strerror}") from None

    def serve(self, change: Change) -> None:
        """Do what was asked since the last call, in its order, and answer it."""
        with contextlib.suppress(BlockingIOError):
            while True:
                data, sender = self._socket.recvfrom(_LARGEST)
                answer = _answer(data, change)
                if sender:
                    with contextlib.suppress(OSError):  # it has gone
                        self._socket.sendto(json.dumps(answer).encode(), sender)

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()
        self._path.unlink(missing_ok=True)


def _answer(data: bytes, change: Change) -> dict[str, Any]:
    try:
        return {"ok": True, "model": change(_asked(data))}
    except (UsageError, EnvironmentLacks) as error:
        return {"ok": False, "error": str(error)}


def _asked(data: bytes) -> str:
    """Return the model that a request names. Raises UsageError for what is none."""
    with contextlib.suppress(ValueError):
        request = json.loads(data)
        if isinstance(request, dict) and isinstance(request.get("model"), str):
            return str(request["model"])
    raise UsageError(f'{data[:80]!r} is no request: send {{"model": NAME}}')
