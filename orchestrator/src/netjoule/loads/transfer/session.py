# SPDX-License-Identifier: Apache-2.0
"""One run of a campaign: its transfers, back to back, from ready to their outcome in campaign time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.reason import Reason
from netjoule.loads.transfer.downloads import Download, Run
from netjoule.loads.transfer.objective import Objective
from netjoule.workload.load import Document, Event, HostTime, Outcome, Part

DIFFERS = "files_differ"
_BITS_PER_MB = 1e6


class TransferSession:
    """Transfers that are ready to begin (`workload.load.LoadSession`)."""

    holds = True
    """Idle is the state in which only the first request is missing."""

    def __init__(
        self,
        download: Download | None,
        about: Mapping[str, Any],
        *,
        objective: Objective | None = None,
        bytes_expected: int,
        timeout_s: float,
        versions: Mapping[str, str],
        events: Sequence[Event],
    ) -> None:
        """`about`: what the report says beside its runs and `objective`: host, client, server, dataset."""
        self._download = download
        self._about, self._bytes, self._timeout_s = about, bytes_expected, timeout_s
        self._objective = objective
        self.versions, self.events = versions, events

    async def go(self) -> None:
        """Begin."""
        assert self._download is not None
        await self._download.go()

    async def runs(self) -> Sequence[Run]:
        """The transfers, once all have ended. Raises RunFailed when one failed."""
        assert self._download is not None
        return await self._download.runs(self._timeout_s)

    async def outcome(self, time: HostTime) -> Outcome:
        """The transfers in campaign time. Raises RunFailed when one failed."""
        runs, host = await self.runs(), str(self._about["host"])
        whole = Part(time.campaign_s(host, runs[0]["start_ns"]), time.campaign_s(host, runs[-1]["end_ns"]))
        reason = differs(runs, self._bytes)
        looked_for = {} if self._objective is None else {"objective": self._objective.told(runs)}
        return Outcome(
            parts=[whole],
            judge=lambda _t_end_s: [] if reason is None else [reason],
            run_fields=run_fields(runs, host, whole, reconciles=reason is None),
            documents=[Document("transfer_runs", {**self._about, **looked_for, "runs": list(runs)})],
            intervals=[
                {
                    "part": "1",
                    "node": host,
                    "t_start_s": time.campaign_s(host, row["start_ns"]),
                    "t_end_s": time.campaign_s(host, row["end_ns"]),
                    "work": megabits(row["bytes"]),
                }
                for run in runs
                for row in run["intervals"] or [run]
            ],
            events=[Event("started", t_s=whole.t_start_s), Event("ended", t_s=whole.t_end_s)],
        )

    async def end(self) -> None:
        """End what runs; may be called twice."""
        if self._download is not None:
            download, self._download = self._download, None
            await download.end()


def megabits(count: float) -> float:
    """Mb of so many bytes."""
    return 8 * count / _BITS_PER_MB


def differs(runs: Sequence[Run], expected: int) -> Reason | None:
    """Why the books of a run do not balance; None when every file of every transfer arrived whole."""
    for number, run in enumerate(runs, 1):
        right, wanted = run["files_verified_n"], run["files_n"]
        if right == wanted and run["bytes"] == expected:
            continue
        first = next(iter(run["failures"]), None)
        words = f"{first['file']}: {first['sentence']}" if first else f"{run['bytes']} of {expected} bytes"
        counts = f"transfer {number} of {len(runs)}: {right} of {wanted} files are right"
        return Reason(DIFFERS, f"{counts}, {words}")
    return None


def run_fields(runs: Sequence[Run], host: str, whole: Part, *, reconciles: bool) -> dict[str, Any]:
    """`work` and `measures` of run.json."""
    quantity = megabits(sum(run["bytes"] for run in runs))
    duration_s = whole.t_end_s - whole.t_start_s
    part = {"part": "1", "node": host, "t_start_s": round(whole.t_start_s, 6), "quantity": quantity}
    return {
        "work": {
            "quantity": quantity,
            "unit": "Mb",
            "u": 0.0,
            "reconciles": reconciles,
            "repeat": len(runs),
            "parts": [{**part, "u": 0.0, "asked_per_s": None, "measures": {}}],
        },
        "measures": {
            "throughput_mbps": quantity / duration_s,
            "duration_s": duration_s / len(runs),
            "cpu_s": _mean(runs, "cpu_s"),
            "connections_opened": _mean(runs, "connections_opened_n"),
            "files_verified": _mean(runs, "files_verified_n"),
            "retries": _mean(runs, "retries_n"),
        },
    }


def _mean(runs: Sequence[Run], name: str) -> float | None:
    """Over the transfers; None when one does not know."""
    values = [run[name] for run in runs]
    return None if any(value is None for value in values) else sum(values) / len(values)
