# SPDX-License-Identifier: Apache-2.0
"""Waiting for programs that do not say by themselves when they are ready or done."""

from __future__ import annotations

import asyncio
import contextlib

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Host, Process

LISTEN_TIMEOUT_S = 5.0


async def listening(host: Host, port: int, *, what: str) -> None:
    """Wait until something listens on a TCP port of a host.

    Raises RunFailed (generator_failed), naming `what`, after five seconds.
    """
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(LISTEN_TIMEOUT_S):
            while True:
                look = await host.start(["ss", "-Hltn", "sport", "=", f":{port}"], name="ss")
                found = await look.next_line()
                await look.wait()
                if found:
                    return
    raise RunFailed(f"{what} does not listen on port {port}", code="generator_failed")


async def to_the_end(process: Process, timeout_s: float) -> str:
    """All that a process still writes to stdout, up to its end, as text.

    Raises RunFailed (generator_failed) when it takes longer than `timeout_s`.
    """
    lines = []
    try:
        async with asyncio.timeout(timeout_s):
            while line := await process.next_line():
                lines.append(line)
            await process.wait()
    except TimeoutError:
        raise RunFailed(f"{process.name} did not end in time", code="generator_failed") from None
    return b"".join(lines).decode(errors="replace")
