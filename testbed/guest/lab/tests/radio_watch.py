# SPDX-License-Identifier: Apache-2.0
"""Radio agents on the lab's hosts, all ways of asking at once, and what they tell."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from guest_lab import GuestLab

from netjoule.core.files import append_table
from netjoule.radio import RadioRecord
from netjoule.radio.agent_reader import agent_options, record_from_line
from netjoule_radio.bundle import agent_zipapp

EVERY_S = 1.0
WAYS = (
    ("client", "nl80211"),
    ("client", "iw"),
    ("client", "iwconfig"),
    ("access_point", "nl80211"),
    ("access_point", "iw"),
)


@dataclass
class Watch:
    """What one agent told so far."""

    host: str
    source: str
    ready: dict[str, Any] = field(default_factory=dict)
    readings: list[dict[str, Any]] = field(default_factory=list)
    changed: threading.Condition = field(default_factory=threading.Condition, repr=False)

    def take(self, reading: dict[str, Any]) -> None:
        """One more reading."""
        with self.changed:
            self.readings.append(reading)
            self.changed.notify_all()

    def wait_for(self, what: Callable[[dict[str, Any]], bool], timeout_s: float) -> None:
        """Return when a reading from now on is so."""
        with self.changed:
            seen = len(self.readings)
            came = self.changed.wait_for(lambda: any(map(what, self.readings[seen:])), timeout_s)
        assert came, f"{self.host}: not within {timeout_s:g} s; last reading {self.readings[-1:]}"

    def records(self) -> list[RadioRecord]:
        """Readings as records; time from the first one."""
        began_ns = self.readings[0]["t_ns"]
        return [record_from_line(told, (told["t_ns"] - began_ns) / 1e9, None) for told in self.readings]

    def timed(self, *names: str) -> list[tuple[int, tuple[Any, ...]]]:
        """Time of each reading (ns, the guest's clock) and the values of some fields."""
        return [(told["t_ns"], tuple(told.get(name) for name in names)) for told in self.readings]

    def write(self, folder: Path) -> list[dict[str, Any]]:
        """radio/NODE.SOURCE.csv; its rows."""
        rows = [record.as_row() for record in self.records()]
        (folder / "radio").mkdir(parents=True, exist_ok=True)
        append_table(folder / "radio" / f"{self.host}.{self.source}.csv", "radio", rows)
        return rows


def agreement(
    trusted: Sequence[tuple[int, tuple[Any, ...]]], other: Sequence[tuple[int, tuple[Any, ...]]]
) -> tuple[int, int]:
    """How many readings of another way say the same as those before and after them, and of how many.

    Each reading is time and values. Only those are judged that lie between two trusted readings which agree:
    the rate is that of the last frame, and may have changed between two ways of asking.
    """
    same = judged = 0
    for t_ns, values in other:
        before = [known for at_ns, known in trusted if at_ns <= t_ns][-1:]
        after = [known for at_ns, known in trusted if at_ns > t_ns][:1]
        if before and before == after:
            judged += 1
            same += values == before[0]
    return same, judged


def _library() -> str:
    found = importlib.util.find_spec("pyroute2")
    assert found is not None
    assert found.origin is not None
    return str(Path(found.origin).parent.parent)


@contextlib.contextmanager
def watching(lab: GuestLab, ways: Sequence[tuple[str, str]] = WAYS) -> Iterator[Sequence[Watch]]:
    """Every agent reads until the block ends; begins when all of them do.

    Args:
        lab: the running lab.
        ways: hosts and sources, one agent for each.
    """
    agent = lab.folder / "netjoule-radio.pyz"
    agent.write_bytes(agent_zipapp())
    watches = [Watch(host, source) for host, source in ways]
    with contextlib.ExitStack() as stack:
        threads = []
        for watch in watches:
            words = agent_options("wlan0", EVERY_S, watch.source)
            # -S: without the folders of site, which take most of a start here.
            python = ["env", f"PYTHONPATH={_library()}", "/usr/bin/python3", "-S", str(agent)]
            process = stack.enter_context(lab.running(watch.host, *python, *words))
            assert process.stdout is not None
            thread = threading.Thread(target=_take, args=(watch, process.stdout, began := threading.Event()))
            thread.start()
            threads.append((thread, began, watch))
        for _, began, watch in threads:
            assert began.wait(300), f"the agent of {watch.host} ({watch.source}) does not begin"
            assert watch.ready, f"{watch.host}: {watch.source} cannot be read"
        yield watches
    for thread, _, _ in threads:
        thread.join()


def _take(watch: Watch, lines: Iterator[str], began: threading.Event) -> None:
    for line in lines:
        told = json.loads(line)
        if told["event"] == "ready":
            watch.ready = told
        elif told["event"] == "reading":
            watch.take(told)
        began.set()
    began.set()
