# SPDX-License-Identifier: Apache-2.0
"""How a wait is called off from another thread: a pipe that waits watch beside their own descriptor."""

from __future__ import annotations

import contextlib
import os
import select

from netjoule_meters.errors import Cancelled


class Cancellation:
    """Set once, for good; ``descriptor`` becomes readable then."""

    def __init__(self) -> None:
        self.descriptor, self._write = os.pipe()

    def set(self) -> None:
        """Call all waits off."""
        with contextlib.suppress(OSError):
            os.write(self._write, b"x")

    def check(self, resource: str, wait_s: float = 0.0) -> None:
        """Wait for so long.

        Raises:
            Cancelled: when called off, at once.
        """
        if select.select([self.descriptor], [], [], wait_s)[0]:
            raise Cancelled(f"the wait on {resource} was called off")

    def __del__(self) -> None:
        for descriptor in (self.descriptor, self._write):
            with contextlib.suppress(OSError):
                os.close(descriptor)
