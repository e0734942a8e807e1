# SPDX-License-Identifier: Apache-2.0
"""The program that simulates: a JSON document on a line asks it, and one on a line is what came of that.

Each has an ``id``, and the answer has that of its question. The program stays up from run to run. Its times
are of the simulation, which begins at 0 in every run. What it cannot do it answers with
``{"error": "one sentence"}``; what it prints on stderr is shown when it dies.
"""

from __future__ import annotations

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import HostLacks, RunFailed
from netjoule_contracts import reading

PROGRAM = "netjoule-simulate"
FAILED = "simulation_failed"
_LONGEST_LINE = 256 * 1024 * 1024
_MOST_WORDS = 500


class SimulatedTime:
    """A simulated host's clock is the campaign's (`HostTime`): both begin with the run."""

    def campaign_s(self, _host: str, at_ns: int) -> float:
        """Seconds of the run."""
        return at_ns / 1e9

    def host_ns(self, _host: str, t_s: float) -> int:
        """The same back."""
        return round(t_s * 1e9)


class Simulator:
    """One process of the program, which is started when it is asked first, and again where it has died."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self._process: Process | None = None
        self._asked = 0

    async def simulate(self, document: Mapping[str, Any]) -> Mapping[str, Any]:
        """What came of a document; see `Place.simulate`.

        Raises:
            RunFailed: code ``simulation_failed``, with what the program said.
            HostLacks: without the program.
        """
        if self._process is None:
            self._process = await _started()
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        self._asked += 1
        try:
            asked = {**document, "id": self._asked}
            process.stdin.write(json.dumps(asked, allow_nan=False).encode() + b"\n")
            await process.stdin.drain()
            line = await process.stdout.readline()
            if not line.endswith(b"\n"):
                raise BrokenPipeError
            told = reading.value_of(line)
            if not isinstance(told, dict) or told.get("id") != self._asked:
                raise ValueError("it is no object with the id of what was asked")
        except (BrokenPipeError, ConnectionResetError):
            raise RunFailed(f"{PROGRAM} ended: {await self._last_words()}", code=FAILED) from None
        except ValueError as error:
            await self.close()  # nobody knows what the next line would belong to
            raise RunFailed(f"the answer of {PROGRAM} is not read: {error}", code=FAILED) from None
        if "error" in told:
            said = str(told["error"])[:_MOST_WORDS].encode(errors="replace").decode()
            raise RunFailed(f"{PROGRAM}: {said}", code=FAILED)
        return told

    async def close(self) -> None:
        """End the program; may be called twice."""
        process, self._process = self._process, None
        if process is not None and process.returncode is None:
            process.kill()  # it holds nothing
            await process.communicate()

    async def _last_words(self) -> str:
        process, self._process = self._process, None
        assert process is not None
        _, words = await process.communicate()
        said = words.decode(errors="replace").strip().splitlines()
        return said[-1][:_MOST_WORDS] if said else f"exit code {process.returncode}"


async def _started() -> Process:
    # Killed by the kernel with whoever asks it; Ctrl-C in a terminal is not for it.
    command = ["setpriv", "--pdeathsig", "KILL", programs.find(PROGRAM)]
    try:
        return await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, limit=_LONGEST_LINE, start_new_session=True
        )
    except OSError as error:
        raise HostLacks(f"cannot start {command[0]}: {error.strerror}") from error
