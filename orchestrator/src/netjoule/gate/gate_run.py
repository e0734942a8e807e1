# SPDX-License-Identifier: Apache-2.0
"""A gate from its arms to its verdict: how long it is, its sessions, what rig they ran on."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

import yaml

import netjoule
import netjoule_contracts as contracts
from netjoule import loads
from netjoule.analysis import decision
from netjoule.core import files
from netjoule.core.errors import UsageError, file_errors
from netjoule.core.reason import Reason
from netjoule.design.duration import forecast
from netjoule.gate import campaign_process, settings, verdict
from netjoule.gate.fingerprint import fingerprint
from netjoule.gate.sessions import Sessions
from netjoule.gate.settings import Names, Pilot, Rule
from netjoule.gate.verdict import SKIPPED, Judged
from netjoule.store.session import rfc3339
from netjoule.topology.topology import Topology

Kind = Literal["gate", "pilot"]
VERDICT = "verdict.json"
"""The last file that a gate writes, when all sessions are on disk."""
_SHORTER = "allow more, take a greater --margin, or choose cells that scatter less (--pilot names them)"


@dataclass(frozen=True, slots=True)
class Length:
    """How long a session is at most.

    Attributes:
        looks: blocks after which the data is looked at; the last is n_max.
        duration_s: of so many blocks, as long as the pilot's took; of a pilot, by its workload's windows.
        at_least: whether it is longer by what the runs take, which nobody knows before the pilot.
    """

    looks: tuple[int, ...]
    duration_s: float
    at_least: bool

    @property
    def blocks_max(self) -> int:
        """n_max."""
        return self.looks[-1]


@dataclass(frozen=True)
class GateRun:
    """One gate, or its pilot.

    Attributes:
        folder: of the gate; made, empty but for its builds.
        workload: the effective workload as asked, without arms.
        document: the same with its arms.
        names: of the arms.
        arms: what they were made from, as verdict.json has it.
        rule: of the decision.
        topology: of the rig.
        testbed: its file.
        same_arms: whether base and head are one program run in one way.
        seed: draws the seed of a session.
        told: gets the events of sessions.
        utc: the time now.
    """

    folder: Path
    workload: Mapping[str, Any]
    document: Mapping[str, Any]
    names: Names
    arms: Sequence[Mapping[str, Any]]
    rule: Rule
    topology: Topology
    testbed: Path
    same_arms: bool
    seed: Callable[[], int]
    told: Callable[[Mapping[str, Any]], None]
    utc: Callable[[], datetime]

    def looks(self, pilot: Pilot | None) -> tuple[int, ...]:
        """Blocks after which a session is looked at: by what the pilot scattered; of a pilot, its own.

        Raises:
            UsageError: where no number of blocks is enough.
            NetjouleError: when R cannot tell.
        """
        if pilot is None:
            return settings.PILOT_LOOKS
        rule = self.rule
        found = decision.plan(pilot.log_ratio_sd, pilot.blocks, rule.margin_percent, rule.tolerance_percent)
        if not found["looks"]:
            step = "take a greater --margin, a lower --tolerance, or cells that scatter less"
            raise UsageError(str(found["words"]).rstrip("."), next_step=step)
        return tuple(found["looks"])

    def length(self, looks: tuple[int, ...], pilot: Pilot | None) -> Length:
        """How long a session is at most. Raises UsageError where workload and testbed do not fit."""
        planned = forecast(loads.made(self._session(looks, pilot), where="netjoule gate"), self.topology)
        if pilot is None:
            return Length(looks, planned.duration_s, at_least=planned.until_done)
        of_pilot = planned.arms - (self.names.anchor is not None)
        return Length(looks, looks[-1] * pilot.block_s * planned.arms / of_pilot, at_least=False)

    def decided(self, pilot: Pilot, length: Length) -> dict[str, Any]:
        """Run the gate; its verdict, on disk when this returns."""
        began = self.utc()
        sessions = Sessions(self.folder, lambda folder: self._run(folder, length.looks, pilot))
        found = self._as_in_pilot(sessions.gate(), sessions.done, pilot)
        anchor = sessions.anchor if self.names.anchor else None
        return self._written(began, "gate", found, sessions.done, anchor=anchor)

    def piloted(self, length: Length) -> dict[str, Any]:
        """Run the pilot; its verdict, on disk when this returns."""
        began = self.utc()
        sessions = Sessions(self.folder, lambda folder: self._run(folder, length.looks, None))
        found, numbers = sessions.pilot(self.rule.margin_percent)
        names = ("log_ratio_sd", "half_width_percent", "blocks", "reference_log_sd", "ranking")
        pilot = {name: numbers[name] for name in names} if numbers else None
        return self._written(began, "pilot", found, sessions.done, pilot=pilot)

    def skipped(self, kind: Kind, reason: Reason) -> dict[str, Any]:
        """The verdict of a gate, or a pilot, that does not begin, on disk when this returns."""
        return self._written(self.utc(), kind, Judged(SKIPPED, reason), ())

    def _as_in_pilot(self, found: Judged, sessions: Sequence[Mapping[str, Any]], pilot: Pilot) -> Judged:
        """The same; skipped where kernel, CPU, meters or ranges are not those that the pilot had."""
        now = self._rig(sessions)["fingerprint"] if sessions else {}
        for name, had in pilot.fingerprint.items():
            if now and now[name] != had:
                words = f"{name}: {_words(now[name])}, and the pilot had {_words(had)}"
                return Judged(SKIPPED, Reason("unlike_pilot", f"{words}: run --pilot again"))
        return found

    def _session(self, looks: Sequence[int], pilot: Pilot | None) -> dict[str, Any]:
        return settings.session_document(self.document, self.rule, self.names, looks, pilot)

    def _run(self, campaign: Path, looks: Sequence[int], pilot: Pilot | None) -> None:
        """Run a session's campaign; its workload file stands beside it."""
        file = campaign.with_suffix(".yaml")
        text = yaml.safe_dump(self._session(looks, pilot), sort_keys=False, width=100)
        with file_errors("write", file):
            file.write_text(f"# A session of a gate, written by netjoule gate.\n{text}", encoding="utf-8")
        campaign_process.run(file, self.testbed, campaign, self.seed(), self.told)

    def _written(
        self,
        began: datetime,
        kind: Kind,
        found: Judged,
        sessions: Sequence[Mapping[str, Any]],
        **more: Mapping[str, Any] | None,
    ) -> dict[str, Any]:
        about = self._about(kind, began) | self._rig(sessions)
        about["unit"] = (found.decision or {}).get("unit", about["unit"])
        document = verdict.document(about, found, sessions, **more)
        contracts.validate("gate_verdict", document)
        files.write_json(self.folder / VERDICT, document)
        return document

    def _about(self, kind: str, began: datetime) -> dict[str, Any]:
        work = contracts.loads()[self.workload["load"]]["work"]["unit"]
        per = "" if work == "1" else f"/{work}"
        units = {"energy": f"J{per}", "cpu_time": f"s{per}", "p99_delay": "ms"}
        rule = self.rule
        return {
            "kind": kind,
            "id": _id(self.folder, began),
            "created_utc": rfc3339(began),
            "finished_utc": rfc3339(self.utc()),
            "workload": self.workload["name"],
            "workload_version": settings.workload_version(self.workload),
            "objective": rule.objective,
            "unit": units.get(rule.objective, f"s{per}"),
            "margin_percent": rule.margin_percent,
            "tolerance_percent": rule.tolerance_percent,
            "arms": [dict(arm) for arm in self.arms],
            "same_arms": self.same_arms,
            "versions": {"netjoule": netjoule.__version__},
        }

    def _rig(self, sessions: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """What the last session ran on; before any, this host without meters."""
        campaign = (
            files.read_json(self.folder / sessions[-1]["campaign"] / "campaign.json") if sessions else {}
        )
        return {"rig": self.topology.name, **fingerprint(campaign)}


def _id(folder: Path, began: datetime) -> str:
    """A name that no other gate has: its folder's, and when it began where that does not say so."""
    name = re.sub("[^A-Za-z0-9._-]", "_", folder.resolve().name).lstrip("._-")[:60] or "gate"
    moment = f"{began:%Y%m%dT%H%M%SZ}"
    return name if moment[:8] in name else f"{name}-{moment}"


def _words(value: str | Sequence[str]) -> str:
    return value if isinstance(value, str) else "; ".join(value)


def require_fit(pilot: Pilot | None, rule: Rule) -> Reason | None:
    """Why a gate cannot decide with what is known of its rig; None when it can."""
    if pilot is None:
        return Reason("no_pilot", "nobody has measured how much this rig scatters: run the same with --pilot")
    if pilot.half_width_percent > rule.margin_percent / 2:
        words = f"the pilot's half-width is {pilot.half_width_percent:.2g} %, over half of the margin"
        return Reason("pilot_too_wide", f"{words}: lengthen the windows, or run --pilot again")
    if pilot.biased:
        words = "two builds of one source differed in the pilot"
        return Reason("pilot_biased", f"{words}: find out why, then run --pilot again")
    return None


def require_few(looks: Sequence[int], max_blocks: int | None) -> None:
    """Refuse, with a UsageError, a gate that may take more blocks than was allowed."""
    if max_blocks is not None and looks[-1] > max_blocks:
        what = f"a session may take {looks[-1]} blocks, and --max-blocks allows {max_blocks}"
        raise UsageError(what, next_step=_SHORTER)


def require_short(length: Length, max_time_s: float | None) -> None:
    """Refuse, with a UsageError, a gate that may take longer than was allowed."""
    if max_time_s is not None and length.duration_s > max_time_s:
        what = f"a session may take {length.duration_s:.0f} s, and --max-time allows {max_time_s:g} s"
        raise UsageError(what, next_step=_SHORTER)
