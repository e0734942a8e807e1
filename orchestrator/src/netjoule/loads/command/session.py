# SPDX-License-Identifier: Apache-2.0
"""One run of a campaign: its command, so often back to back, from ready to its report in campaign time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from netjoule.core.errors import RunFailed
from netjoule.hosts.host import Process, ProcessEnded
from netjoule.loads.command.settings import Settings, Work
from netjoule.workload.load import Document, Event, HostTime, Outcome, Part

_GRACE_S = 10.0
KEPT_LINES = 5
_LINE_LENGTH = 200
_PRINTED = ("stdout", "stdout_cut", "stderr")


class Report:
    """What timed_command.py reported of some runs of a command."""

    def __init__(self, runs: Sequence[Mapping[str, Any]], work: Work) -> None:
        """`runs`, in order; each must have ended well and told its work.

        Raises:
            RunFailed: with the last lines of the one that did not.
        """
        for number, run in enumerate(runs, 1):
            problem = _problem(run)
            if problem:
                which = f"run {number} of {len(runs)} of " if len(runs) > 1 else ""
                raise RunFailed(f"{which}the command {problem}{_last_lines(run)}", code="command_failed")
        self.runs = runs
        self.work = [work.of(run["stdout"], cut=run["stdout_cut"]) for run in runs]

    @property
    def duration_s(self) -> float:
        """From the start of the first run to the end of the last."""
        return float(self.runs[-1]["end_ns"] - self.runs[0]["start_ns"]) / 1e9

    def total(self, name: str) -> float | None:
        """Sum over the runs; None when one does not know."""
        values = [run[name] for run in self.runs]
        return None if any(value is None for value in values) else sum(values)


class CommandSession:
    """A command that is ready to start on its host (`workload.load.LoadSession`)."""

    holds = True
    """Idle is the state in which the command has not started."""

    def __init__(
        self, process: Process, host: str, settings: Settings, *, repeat: int, events: Sequence[Event]
    ) -> None:
        """`process` is timed_command.py, which has said that it is ready.

        Args:
            host: it runs on.
            settings: how much work a run of the command does, and how long it may take.
            repeat: runs of the command, back to back.
            events: of getting ready.
        """
        self._process: Process | None = process
        self._host, self._settings, self._repeat = host, settings, repeat
        self.versions: Mapping[str, str] = {}
        self.events = events

    async def go(self) -> None:
        """Start the command."""
        assert self._process is not None
        await self._process.write_line(json.dumps({"go": self._repeat}))

    async def report(self) -> tuple[Report, dict[str, Any]]:
        """What its runs came to, and the document that says it. Raises RunFailed when one failed."""
        assert self._process is not None
        try:
            longest_s = self._repeat * (self._settings.timeout_s + 1.0) + _GRACE_S
            event = await self._process.expect("report", longest_s)
        except ProcessEnded as error:
            raise RunFailed(error.what, where=error.where, code=error.code or "command_failed") from error
        return Report(event["runs"], self._settings.work), event

    async def outcome(self, time: HostTime) -> Outcome:
        """Its runs in campaign time. Raises RunFailed when one failed."""
        report, event = await self.report()
        spans = [
            Part(time.campaign_s(self._host, run["start_ns"]), time.campaign_s(self._host, run["end_ns"]))
            for run in report.runs
        ]
        whole = Part(spans[0].t_start_s, spans[-1].t_end_s)
        return Outcome(
            parts=[whole],
            judge=lambda _t_end_s: [],
            run_fields=run_fields(report, self._settings.work, self._host, whole.t_start_s),
            documents=[Document("command_report", document_of(event, self._host))],
            intervals=[
                {
                    "part": "1",
                    "node": self._host,
                    "t_start_s": s.t_start_s,
                    "t_end_s": s.t_end_s,
                    "work": work,
                }
                for s, work in zip(spans, report.work, strict=True)
            ],
            events=[Event("started", t_s=whole.t_start_s), Event("ended", t_s=whole.t_end_s)],
        )

    async def end(self) -> None:
        """End what runs; may be called twice."""
        if self._process is not None:
            process, self._process = self._process, None
            await process.finish(grace_s=2.0)


def _problem(run: Mapping[str, Any]) -> str:
    """How a run of the command failed; empty when it did not."""
    if run["timed_out"]:
        return "did not end in time"
    if run["signal"] is not None:
        return f"was killed by signal {run['signal']}"
    return f"ended with code {run['exit_code']}" if run["exit_code"] else ""


def _last_lines(run: Mapping[str, Any]) -> str:
    """The last lines that it wrote, those of stderr behind those of stdout; empty when it wrote nothing."""
    lines = _lines(run)
    return f": {' / '.join(lines)}" if lines else ""


def _lines(run: Mapping[str, Any]) -> list[str]:
    lines = [line.strip() for line in (*run["stdout"].splitlines(), *run["stderr"].splitlines())]
    return [line[:_LINE_LENGTH] for line in lines if line][-KEPT_LINES:]


def document_of(event: Mapping[str, Any], host: str) -> dict[str, Any]:
    """command.json: the runs of the command without all that they printed."""
    runs = [
        {**{name: value for name, value in run.items() if name not in _PRINTED}, "last_lines": _lines(run)}
        for run in event["runs"]
    ]
    return {
        "schema_version": 1,
        "kind": "command_report",
        "host": host,
        "boot_id": event["boot_id"],
        "runs": runs,
    }


def run_fields(report: Report, work: Work, host: str, start_s: float) -> dict[str, Any]:
    """`work` and `measures` of run.json; `start_s`: of the work, campaign time."""
    cpu_s = [report.total(name) or 0.0 for name in ("cpu_user_s", "cpu_system_s")]
    quantity = sum(report.work)
    whole: dict[str, Any] = {
        "part": "1",
        "node": host,
        "t_start_s": round(start_s, 6),
        "quantity": quantity,
        "u": 0.0,
        "asked_per_s": None,
        "measures": {},
    }
    return {
        "work": {
            "quantity": quantity,
            "unit": work.unit,
            "u": 0.0,
            "reconciles": True,
            "repeat": len(report.runs),
            "parts": [whole],
        },
        "measures": {
            "duration_s": report.duration_s / len(report.runs),
            "cpu_s": sum(cpu_s) / len(report.runs),
            **{
                name: None if total is None else total / len(report.runs)
                for name in ("sent_bytes", "received_bytes")
                for total in (report.total(name),)
            },
        },
    }
