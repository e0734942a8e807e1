# SPDX-License-Identifier: Apache-2.0
"""Closing a run with the idle window that follows it: what its neighbours in time tell of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from netjoule.core.reason import Reason, first_invalidating
from netjoule.design.run_table import PlanRow
from netjoule.design.timeline import Span
from netjoule.execution.active_run import Bench, OpenRun
from netjoule.execution.outages import Outages
from netjoule.execution.results import Results
from netjoule.radio import reader_cost

if TYPE_CHECKING:
    from netjoule.testbeds.base import Remark


class Finaliser:
    """Seals the runs of a campaign."""

    def __init__(self, bench: Bench, outages: Outages, results: Results, remarks: Sequence[Remark]) -> None:
        """Nothing is final yet.

        Args:
            bench: of the session.
            outages: of its testbed.
            results: told of runs with results that no longer count.
            remarks: from before the first run, which has them then.
        """
        self._bench, self._campaign, self._radio = bench, bench.campaign, bench.radio
        self._outages, self._results, self._remarks = outages, results, list(remarks)

    def finalise(self, run: OpenRun, idle: Span) -> None:
        """Write the run.json of an open run, whose reasons are then complete."""
        for loss in self._radio.take_losses():
            self._add(run, "reader_lost", Reason("radio_reader_lost", loss))
        windows = run.document["windows"]
        measure = Span.of(windows["measure"])
        for reason in [
            *self._outages.reasons(windows["idle_before"]["t_start_s"], idle.t_end_s),
            *self._outages.rate_reasons(measure.t_start_s, measure.t_end_s),
        ]:
            self._add(run, reason.code, reason)
        self._judge_readers(run, idle)
        spans = {name: Span.of(windows[name]) if windows[name] else None for name in ("measure", "tail")}
        if energies := self._radio.state_energies(spans):
            run.document["radio_states"] = energies
        earlier, self._remarks = self._remarks, []
        for remark in [*earlier, *self._bench.testbed.take_remarks()]:
            about = Reason("", remark.detail)
            self._bench.note(run.row, remark.source, remark.event, about, t_s=remark.t_s)
            if remark.frozen_since_s is not None:
                self._void_since(remark, run)
        windows["idle_after"] = idle.as_json()
        reasons = [r.as_json() for r in run.reasons]
        status = "invalid" if first_invalidating(reasons) else "done"
        self._campaign.write_run(run.document | {"status": status, "reasons": reasons})

    def _add(self, run: OpenRun, event: str, reason: Reason) -> None:
        """What the radio tells of a run."""
        run.reasons.append(reason)
        self._bench.note(run.row, "radio", event, reason)

    def _judge_readers(self, run: OpenRun, idle_after: Span) -> None:
        """Note what reading the radios took in idle and in the measure window."""
        windows = run.document["windows"]
        idle = [Span.of(windows["idle_before"]), idle_after]
        costs = self._radio.reader_costs(idle, Span.of(windows["measure"]))
        if costs:
            run.document["reader_cpu"] = [cost.as_json() for cost in costs]
        for reason in reader_cost.reasons(costs):
            self._add(run, reason.code, reason)

    def _void_since(self, remark: Remark, latest: OpenRun) -> None:
        """A frozen meter is noticed late: no run since its last change counts, final ones included.

        Runs that were settled already are settled once more, so that plan and results agree.
        """
        assert remark.frozen_since_s is not None
        reason = Reason("meter_frozen", f"{remark.detail} (since {remark.frozen_since_s:.1f} s)")
        latest.reasons.append(reason)
        for row in self._campaign.rows():
            if not self._final_after(row, remark.frozen_since_s):
                continue
            document = self._campaign.read_run(row.run_id)
            known = [reason.as_json(), *document["reasons"]]
            self._campaign.write_run(document | {"status": "invalid", "reasons": known})
            self._bench.note(row, "meter", "run_invalid", reason)
            if row.status == "valid":
                self._results.expect(row.mini_block, row.attempt)

    def _final_after(self, row: PlanRow, t_s: float) -> bool:
        """Whether a run that is final, and counts so far, reached beyond campaign time `t_s`."""
        written = (self._campaign.run_dir(row.run_id) / "run.json").exists()
        if row.status not in ("valid", "running") or not written:
            return False
        document = self._campaign.read_run(row.run_id)
        idle_after = document["windows"]["idle_after"]
        return document["status"] == "done" and idle_after is not None and idle_after["t_end_s"] > t_s
