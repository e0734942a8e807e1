# SPDX-License-Identifier: Apache-2.0
"""Has a running netjoule-device read another device model."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

from netjoule.core.errors import RunFailed

_ANSWER_WITHIN_S = 30.0
_LARGEST = 65_536


async def change_model(path: Path, model: str) -> dict[str, Any]:
    """Ask the netjoule-device whose control socket is `path` for another model; its description of it.

    Raises:
        RunFailed: when it refuses, or nobody answers.
    """
    try:
        said = await asyncio.to_thread(_answer, path, model)
    except OSError as error:
        said = {"ok": False, "error": f"no answer at its control socket ({error})"}
    if not said["ok"]:
        raise RunFailed(f"netjoule-device did not change to {model}: {said['error']}", code="not_in_force")
    return dict(said["model"])


def _answer(path: Path, model: str) -> dict[str, Any]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as asking:
        asking.settimeout(_ANSWER_WITHIN_S)
        asking.bind("")  # Linux gives it a name, so that it can be answered
        asking.sendto(json.dumps({"model": model}).encode(), str(path))
        return dict(json.loads(asking.recv(_LARGEST)))
