# SPDX-License-Identifier: Apache-2.0
"""One block on one rig: what a worker does, in a private folder, until the block is whole or another's.

The block is a campaign of its own that `netjoule resume` runs in a process of its own, so that a block whose
worker was killed ends with it, and nothing is left of the block before.
"""

from __future__ import annotations

import json
import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen
from typing import IO, Any

from netjoule.core import files, programs
from netjoule.core.errors import InvalidData, RunFailed
from netjoule.hosts import child_process
from netjoule.store import blocks
from netjoule.store.campaign import Campaign
from netjoule.store.fingerprint import host_fingerprint
from netjoule.testbeds import rig_lock

Tell = Callable[[Mapping[str, Any]], None]

RESUME = (*programs.PYTHON, "-m", "netjoule", "resume")
"""What runs a block: a program that takes a campaign's folder, and --json and --no-verify."""
RIG_WAIT_S = 600.0
"""For a rig that a gate or another campaign has."""
_LOOK_S = 0.5
_ASK = (signal.SIGTERM, signal.SIGTERM)
_GRACE_S = 30.0
"""A testbed takes some seconds to go down."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a block on a rig.

    Attributes:
        token: of its owner there.
        whole: every run of it is there; else `said` says what ended it, empty where it was asked to end.
    """

    block: int
    rig: str
    token: int
    whole: bool
    said: str = ""


def execute_block(
    campaign: Path,
    block: int,
    rig: str,
    above: int,
    tell: Tell,
    *,
    program: Sequence[str] = RESUME,
    wait_s: float = RIG_WAIT_S,
) -> Done:
    """Run a block on a rig, to its end or until it has to stop.

    Args:
        campaign: folder of the campaign; nothing is written in it but a private folder.
        block: number.
        rig: this worker's.
        above: greatest owner_token that the campaign knows of the block.
        tell: told that it began (tokens by block, rig), and each event of its runs.
        program: runs it, see `RESUME`.
        wait_s: for a rig in use.

    Raises:
        NetjouleError: when it could not begin; code ``rig_busy`` when another has the rig.
    """
    of = Campaign.read_own(campaign)
    lock = rig_lock.path_of(rig_lock.name_of(of.topology.of_rig(rig)))
    owner = f"campaign {campaign.name}, block {block}"
    with rig_lock.held(lock, owner, wait_s, lambda who: tell({"event": "rig_busy", "rig": rig, "by": who})):
        token = blocks.claim(campaign, block, above, _mine(campaign, block, rig))
        folder = blocks.private_folder(campaign, block, token)
        if not (folder / "campaign.json").exists():
            _begin(of, block, rig, folder)
        tell({"event": "blocks_begun", "tokens": [(block, token)], "rig": rig})

        def must_stop() -> bool:
            return blocks.is_stale(campaign, block, token) or blocks.stop_asked(campaign)

        said = _run(program, folder, lambda event: tell({**event, "blocks": [block], "rig": rig}), must_stop)
    return Done(block, rig, token, whole=not said and _is_whole(folder), said=said)


def begun_on(campaign: Path, block: int) -> str | None:
    """The rig that has begun a block last; None where none has."""
    return next((rig for rig, _ in _begun(campaign, block)), None)


def _mine(campaign: Path, block: int, rig: str) -> int | None:
    """Token of the newest private folder of a block that this rig has begun: it is gone on with."""
    return next((token for by, token in _begun(campaign, block) if by == rig), None)


def _begun(campaign: Path, block: int) -> Iterator[tuple[str, int]]:
    """Rig and token of each private folder of a block that is a campaign, the newest first."""
    for token in reversed(blocks.tokens(campaign, block)):
        with suppress(RunFailed, InvalidData, KeyError):
            document = files.read_json(blocks.private_folder(campaign, block, token) / "campaign.json")
            yield str(document["topology"]["rig"]), token


def _begin(of: Campaign, block: int, rig: str, folder: Path) -> None:
    """Make the block's own campaign, with meters and their ranges as the rig had them before."""
    sessions = of.document["sessions"]
    zero = {name: sessions[-1][name] for name in ("boot_id", "monotonic_origin_ns")}
    zero["started_utc"] = sessions[0]["started_utc"]
    with Campaign.create(
        folder,
        workload=of.workload,
        topology=of.topology.of_rig(rig),
        seed=of.seed,
        versions=of.document["versions"],
        host=host_fingerprint(),
        created=datetime.now(UTC),
        rows=[replace(row, status="planned", reason="") for row in of.rows_of(block) if row.attempt == 1],
        block={"number": block, "zero": zero},
        name=of.name,
    ) as made:
        before = _known_of(of.path, rig)
        if before is not None and before["meters"]:
            made.set_meters(before["meters"])
            made.fix_settings(
                {one["meter_id"]: one.get("settings", {}) for one in before["topology"]["meters"]}
            )


def _known_of(campaign: Path, rig: str) -> Mapping[str, Any] | None:
    """campaign.json of a committed block of a rig."""
    for block in blocks.committed(campaign):
        document = files.read_json(blocks.home(campaign, block) / "campaign.json")
        if document["topology"].get("rig") == rig:
            return document
    return None


def _is_whole(folder: Path) -> bool:
    try:
        return bool(files.read_json(folder / "campaign.json")["status"] == "complete")
    except (RunFailed, InvalidData):  # it is another's by now
        return False


def _run(program: Sequence[str], folder: Path, tell: Tell, must_stop: Callable[[], bool]) -> str:
    """Have the block run in a process of its own; what ended it early, empty when it was asked to end."""
    # Killed by the kernel when this worker dies: the rig is free then. Ctrl-C in a terminal is not for it.
    command = ["setsid", "setpriv", "--pdeathsig", "KILL", *program, str(folder), "--json", "--no-verify"]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        with child_process.held(command, os.environ, stderr, ask=_ASK, grace_s=_GRACE_S) as process:
            asked = _watched(process, must_stop)
            assert process.stdout is not None
            for line in process.stdout:
                with suppress(ValueError):
                    event = json.loads(line)
                    if isinstance(event, dict) and "event" in event:
                        tell(event)
            process.wait()
        return "" if asked.is_set() or _is_whole(folder) else _last_words(stderr, process.returncode)


def _watched(process: Popen[str], must_stop: Callable[[], bool]) -> threading.Event:
    """Ask a process to end as soon as it must; the event is set then."""
    asked = threading.Event()

    def watch() -> None:
        while process.poll() is None:
            if must_stop() and not asked.is_set():
                asked.set()
                process.terminate()
            time.sleep(_LOOK_S)

    threading.Thread(target=watch, name="ownership of the block", daemon=True).start()
    return asked


def _last_words(stderr: IO[str], code: int) -> str:
    stderr.seek(0)
    lines = [line.strip() for line in stderr.read().splitlines() if line.strip()]
    words = lines[-1].removeprefix("netjoule: ") if lines else ""
    return words or f"its process ended with exit code {code}"
