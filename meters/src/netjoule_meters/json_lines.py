# SPDX-License-Identifier: Apache-2.0
"""Events as JSON lines on standard output, from a thread of their own: a reader who stops reading holds
nobody up."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from queue import SimpleQueue
from types import TracebackType
from typing import Any

_STDOUT, _FLUSH_S = 1, 0.5


class JsonLinesWriter:
    """``write`` queues one event; leaving the block waits a moment for the rest to be written."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[str | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._write, name="events", daemon=True)

    def write(self, event: Mapping[str, Any]) -> None:
        """Queue one event."""
        self._queue.put(json.dumps(event))

    def __enter__(self) -> JsonLinesWriter:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._queue.put(None)
        self._thread.join(_FLUSH_S)

    def _write(self) -> None:
        # The descriptor, not sys.stdout: a thread that waits inside sys.stdout at the end of the
        # interpreter makes it abort.
        while (line := self._queue.get()) is not None:
            rest = (line + "\n").encode()
            try:
                while rest:
                    rest = rest[os.write(_STDOUT, rest) :]
            except OSError:  # nobody listens any more; the readings are what counts
                return
