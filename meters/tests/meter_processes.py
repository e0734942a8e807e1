# SPDX-License-Identifier: Apache-2.0
"""Children of a test: ``netjoule-meters`` with its JSON lines."""

from __future__ import annotations

import contextlib
import json
import queue
import signal
import subprocess
import sys
import threading
import time

COMMAND = [sys.executable, "-m", "netjoule_meters"]
PATIENCE_S = 60
"""Waits end as soon as the thing happens; so long only when it never does, on however busy a machine."""


class Process:
    """A child with its output as a queue of JSON lines; ended by id when the block ends."""

    def __init__(self, *arguments: str, **options: object) -> None:
        self.child = subprocess.Popen(
            [*COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **options,
        )
        self._lines: queue.Queue[str | None] = queue.Queue()
        self.said: list[dict] = []
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        with contextlib.suppress(ValueError):
            for line in self.child.stdout:
                self._lines.put(line)
        self._lines.put(None)

    def wait_for(self, event: str, containing: str = "") -> dict:
        deadline = time.monotonic() + PATIENCE_S
        while True:
            line = self._lines.get(timeout=max(0.01, deadline - time.monotonic()))
            if line is None:
                raise AssertionError(f"ended without '{event}': {self.child.stderr.read()}")
            document = json.loads(line)
            self.said.append(document)
            if document["event"] == event and containing in line:
                return document

    def feed(self, t_start_s: float, t_end_s: float, power_w: float) -> None:
        line = {
            "t_start_s": t_start_s,
            "t_end_s": t_end_s,
            "power_w": power_w,
            "extrapolated": False,
            "terms": {},
        }
        self.child.stdin.write(json.dumps(line) + "\n")
        self.child.stdin.flush()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.child.send_signal(number)
        return self.child.wait(PATIENCE_S)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.child.poll() is None:
            self.child.kill()
        self.child.wait(PATIENCE_S)
        for pipe in (self.child.stdin, self.child.stdout, self.child.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
