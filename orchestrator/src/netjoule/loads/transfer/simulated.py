# SPDX-License-Identifier: Apache-2.0
"""The load ``transfer`` on a simulated testbed: model connections, and the algorithms of real ones."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from netjoule.core import programs
from netjoule.core.errors import RunFailed, UsageError
from netjoule.loads.transfer.clients import ours
from netjoule.loads.transfer.clients.task import MOST_CONNECTIONS
from netjoule.loads.transfer.load import TransferLoad
from netjoule.loads.transfer.objective import EFFICIENCY
from netjoule.loads.transfer.session import TransferSession
from netjoule.loads.transfer.settings import congestion_control, figures_of, set_and_files
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition, HostTime, Outcome, Place
from netjoule.workload.workload import Workload

_PROGRAM = "netjoule-simulate"
_CLIENTS = (*ours.ALGORITHMS, "h1")
_CONTROLS = {"reno": "newreno", "cubic": "cubic"}
"""Congestion controls by the kernel's names, and as the program has them."""
_ONE = {"server": "apache", "http": "1.1"}
"""Factors that say nothing here, and the value that stands for that."""
_KNOBS = ("concurrency", "parallelism", "max_connections")
_LEFT_OUT = ("streams", "connections", "request_bytes")
_INTERVAL_S = 1.0
_WINDOW_BYTES = 2**20
"""What Linux gives to a receive window at most of the 2 MiB that Android 5 allows a connection's buffer."""
_POWER = {"name": "s5-seed (fitted)", "base_w": 1.0, "share_per_rate": 0.075, "share_per_connection": 0.015}
"""Fitted to the savings of a Galaxy S5 in the first transfer study: ratios mean something, watts do not."""
_FORM = "transfer"


class SimulatedTransferLoad(TransferLoad):
    """Transfers of a simulated campaign (`workload.load.Load`)."""

    programs: Sequence[str] = ()

    def __init__(self, workload: Workload, topology: Topology) -> None:
        """Nothing runs yet."""
        super().__init__(workload, topology)
        self._sizes: dict[str, list[int]] = {}

    def require_fit(self) -> None:
        """Refuse what the program does not have. Raises UsageError, naming the field."""
        for field, what, step in _unfit(self._workload):
            where = f"workload {self._workload.name}, field {field}"
            raise UsageError(what, where=where, next_step=step)

    def require_programs(self) -> None:
        """The testbed starts the one that simulates; the sizes of files are asked of another."""
        programs.find(ours.PROGRAM)

    async def open(self, condition: Condition, place: Place, duration_s: float) -> TransferSession:
        """The transfer of a run; nothing has to get ready."""
        name = str(condition.factors["dataset"])
        if name not in self._sizes:
            self._sizes[name] = await self._sizes_of(condition)
        sizes = self._sizes[name]
        least = self._settings.simulated.get("least_bytes", 0)
        sizes = sizes * max(1, -(-least // max(1, sum(sizes))))
        power = self._settings.simulated.get("power", _POWER)
        asked = {
            "seed": condition.schedule_seed,
            "interval_s": _INTERVAL_S,
            "limit_s": self._settings.timeout_s,
            "transfer": {
                "files": _in_a_row(sizes),
                "settings": self._asked(condition),
                "connection": _connection(condition),
                "power": {field: value for field, value in power.items() if field != "name"},
            },
        }
        tail_s = self._workload.timing.tail_s
        return SimulatedTransfer(asked, place, self._about(condition, sizes), power, tail_s)

    async def _sizes_of(self, condition: Condition) -> list[int]:
        """Sizes of the files of the set, bytes, in order. Raises RunFailed when nobody tells them."""
        knobs = self._settings.knobs(condition, figures_of(self._topology, condition))
        argv = [programs.find(ours.PROGRAM), "dataset", knobs.dataset, *knobs.set_arguments()]
        told = await asyncio.to_thread(programs.said_by, argv)
        if told.returncode:
            raise RunFailed(f"{ours.PROGRAM}: {told.stderr.strip()}", code="simulation_failed")
        return [file["size_bytes"] for file in json.loads(told.stdout)["files"]]

    def _asked(self, condition: Condition) -> dict[str, Any]:
        """Settings of the scheduler, as its crate has them."""
        factors, figures = condition.factors, figures_of(self._topology, condition)
        name = str(factors["client"])
        asked: dict[str, Any] = {"max_connections": MOST_CONNECTIONS}
        asked |= {knob: int(factors[knob]) for knob in _KNOBS if knob in factors}
        asked |= ours.own(name)
        asked |= {
            "algorithm": ours.algorithm(name),
            "objective": self._settings.simulated.get("objective") or self._settings.objective or EFFICIENCY,
        }
        if self._settings.interval_s is not None:
            asked["interval_ns"] = round(self._settings.interval_s * 1e9)
        if figures.rate_mbps is not None and figures.rtt_ms is not None:
            asked["path"] = {
                "bandwidth_bytes_per_s": round(figures.rate_mbps * 125_000),
                "rtt_ns": round(figures.rtt_ms * 1e6),
                "buffer_bytes": 2 * _window_bytes(condition),
            }
        return asked

    def _about(self, condition: Condition, sizes: Sequence[int]) -> dict[str, Any]:
        """transfer.json without its transfers."""
        return {
            "schema_version": 1,
            "kind": "transfer_runs",
            "host": self._topology.host_with("client"),
            "client": str(condition.factors["client"]),
            "http_version": "1.1",
            "tls": bool(condition.factors["tls"]),
            "dataset": {
                "name": set_and_files(str(condition.factors["dataset"]))[0],
                "files_n": len(sizes),
                "bytes": sum(sizes),
            },
            "server": {
                "software": _PROGRAM,
                "version": "",
                "congestion_control": congestion_control(condition),
            },
        }


class SimulatedTransfer(TransferSession):
    """A transfer that is asked for in one document (`workload.load.LoadSession`)."""

    def __init__(
        self,
        asked: Mapping[str, Any],
        place: Place,
        about: Mapping[str, Any],
        power: Mapping[str, Any],
        tail_s: float,
    ) -> None:
        """Nothing has been asked yet.

        Args:
            asked: the document.
            place: of the testbed.
            about: what the report says beside its transfer.
            power: the client's above idle, of the workload.
            tail_s: how long the client is idle afterwards.
        """
        super().__init__(
            None,
            dict(about),
            bytes_expected=about["dataset"]["bytes"],
            timeout_s=asked["limit_s"],
            versions={},
            events=(),
        )
        self._asked, self._place, self._model, self._tail_s = asked, place, str(power["name"]), tail_s
        self._told: Mapping[str, Any] = {}

    async def go(self) -> None:
        """Time begins when the program is asked."""

    async def runs(self) -> Sequence[Mapping[str, Any]]:
        """The transfer. Raises RunFailed when it does not end in time."""
        assert self._place.simulate is not None
        self._told = told = await self._place.simulate(self._asked)
        if not told["is_whole"]:
            limit_s = self._asked["limit_s"]
            raise RunFailed(f"the transfer does not end within {limit_s:g} s", code="simulation_failed")
        self._about["server"]["version"] = told["version"]
        files = self._about["dataset"]["files_n"]
        return [
            {
                "start_ns": told["start_ns"],
                "end_ns": told["end_ns"],
                "http_version": "1.1",
                "tls_version": None,
                "cpu_s": None,
                "connections_opened_n": told["connections_opened_n"],
                "retries_n": None,
                "window_effective_bytes": self._asked["transfer"]["connection"]["receive_window_bytes"],
                "received_bytes": None,
                "files_n": files,
                "files_verified_n": files,
                "bytes": told["bytes"],
                "intervals": [
                    {"start_ns": begin, "end_ns": step["t_end_ns"], "bytes": step["bytes"]}
                    for begin, step in _steps(told)
                ],
                "failures": [],
                "records": told["records"],
                "last_lines": [],
            }
        ]

    async def outcome(self, time: HostTime) -> Outcome:
        """With the power that the model says the client has above its idle, which is 0 here."""
        found = await super().outcome(time)
        steps = [
            [begin / 1e9, step["t_end_ns"] / 1e9, step["energy_j"] * 1e9 / (step["t_end_ns"] - begin)]
            for begin, step in _steps(self._told)
        ]
        end_s = self._told["end_ns"] / 1e9
        steps.append([end_s, end_s + self._tail_s, 0.0])
        client = {"node": self._about["host"], "model": self._model, "form": _FORM, "p_i_w": 0.0}
        return replace(found, power=[{**client, "steps": steps}])


def _steps(told: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Steps of an answer with the moment at which each begins, ns."""
    begins = [told["start_ns"], *(step["t_end_ns"] for step in told["steps"])]
    return zip(begins, told["steps"], strict=False)


def _in_a_row(sizes: Sequence[int]) -> list[list[int]]:
    """Sizes in order, with how many of each follow one another."""
    if len(set(sizes)) == 1:
        return [list(pair) for pair in Counter(sizes).items()]
    return [[size, 1] for size in sizes]


def _window_bytes(condition: Condition) -> int:
    return int(condition.factors.get("window_bytes", _WINDOW_BYTES))


def _connection(condition: Condition) -> dict[str, Any]:
    return {
        "congestion_control": _CONTROLS[congestion_control(condition)],
        "receive_window_bytes": _window_bytes(condition),
        "tls": bool(condition.factors["tls"]),
    }


def _unfit(workload: Workload) -> Iterator[tuple[str, str, str]]:
    """What of a workload the program does not have: field, what, next step."""
    factors = workload.factors
    if workload.control:
        yield "control", "a simulated client neither stores nor checks, so it has no floor", "leave it out"
    if others := sorted({*map(str, factors["client"])} - {*_CLIENTS}):
        what = f"a simulated client is one of ours over HTTP/1.1, not {', '.join(others)}"
        yield "factors.client", what, f"name {', '.join(_CLIENTS)}"
    for name, one in _ONE.items():
        if {*map(str, factors[name])} != {one}:
            yield f"factors.{name}", "a simulated server is a model that speaks HTTP/1.1", f"leave {name} out"
    for name in _LEFT_OUT:
        if name in factors:
            yield f"factors.{name}", "a simulated transfer has no such knob", f"leave {name} out"
    known = ", ".join(_CONTROLS)
    if unknown := sorted({*map(str, factors.get("congestion_control", ["cubic"]))} - {*_CONTROLS}):
        yield "factors.congestion_control", f"a simulated server has no {unknown[0]}", f"name {known}"
