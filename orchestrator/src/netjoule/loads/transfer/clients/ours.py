# SPDX-License-Identifier: Apache-2.0
"""netjoule-transfer as a client: its algorithms, what browsers do over each HTTP version, and no network."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from netjoule.loads.transfer.clients.task import CA_FILE, MOST_CONNECTIONS, Task

PROGRAM = "netjoule-transfer"
FIXED = "fixed"
NULL = "null"
"""Writes the same bytes from memory to storage, checked and counted, without a network."""
_MEMORY = "memory"
ALGORITHMS = (FIXED, "lowe", "lowe-sequential", "hat", "eht", "auto")
CONNECTIONS = "connections"
OPTIONS = ("concurrency", "parallelism", "streams", "max_connections", "request_bytes", "window_bytes")
"""Factors that are options of the program."""
FACTORS = (*OPTIONS, CONNECTIONS)
"""Factors that say what the program does."""
_BROWSER_CONNECTIONS = 6  # to a host over HTTP/1.1
_STREAMS = 64  # at once, on the one connection of a browser over HTTP/2 or HTTP/3


@dataclass(frozen=True, slots=True)
class Knobs:
    """What netjoule-transfer is told beside what it fetches; None leaves its default.

    Attributes:
        dataset: name of a set, or as JSON what it has.
        seed: of the set.
        files: only so many of the set's; None for all.
        to: where bodies are written, ring or nowhere.
        bandwidth_mbps: of the path, for algorithms that are told it; None has it measured.
        rtt_ms: likewise.
        interval_s: of probing.
        options: those of FACTORS that the workload has.
    """

    dataset: str
    seed: int
    files: int | None = None
    to: str = "ring"
    bandwidth_mbps: float | None = None
    rtt_ms: float | None = None
    interval_s: float | None = None
    options: Mapping[str, int] = field(default_factory=dict)

    def set_arguments(self) -> list[str]:
        """The set, as ``dataset`` and ``get`` both have it, without its name."""
        return ["--seed", str(self.seed), *(["--files", str(self.files)] if self.files else [])]


def fill(knobs: Knobs, program: str, out: str = ".") -> list[str]:
    """Program and arguments that write the set into a folder."""
    return [program, "dataset", knobs.dataset, *knobs.set_arguments(), "--out", out]


def argv(client: str, task: Task, knobs: Knobs, program: str) -> list[str]:
    """Program and arguments of a client of ours, which says ``ready``, waits for ``go`` and reports."""
    arguments = [program, "get", "--dataset", knobs.dataset, *knobs.set_arguments()]
    source = _MEMORY if client == NULL else task.url
    arguments += ["--from", source, "--to", knobs.to, "--http", task.http]
    arguments += ["--ca-file", CA_FILE] if task.tls else []
    told = {"max_connections": MOST_CONNECTIONS, **options(knobs.options, task.http), **own(client)}
    for name, value in told.items():
        arguments += [f"--{name.replace('_', '-')}", str(value)]
    for name in ("bandwidth_mbps", "rtt_ms", "interval_s"):
        value = getattr(knobs, name)
        arguments += [] if value is None else [f"--{name.replace('_', '-')}", f"{value:g}"]
    return [*arguments, "--algorithm", algorithm(client), "--json", "--hold"]


def options(factors: Mapping[str, int], http: str) -> Mapping[str, int]:
    """Options of the program that a workload's factors come to over an HTTP version.

    The program has as many connections as `concurrency` says, and over HTTP/2 and /3 `streams` files on each.
    """
    told = {name: value for name, value in factors.items() if name != CONNECTIONS}
    if CONNECTIONS not in factors:
        return told
    files, connections = (
        factors.get("concurrency", 1),
        min(factors.get("concurrency", 1), factors[CONNECTIONS]),
    )
    streams = {} if http == "1.1" else {"streams": math.ceil(files / connections)}
    return told | {"concurrency": connections} | streams


def algorithm(client: str) -> str:
    """What an arm is to the scheduler."""
    return client if client in ALGORITHMS else FIXED


def own(client: str) -> Mapping[str, int]:
    """What an arm fixes, whatever the workload's factors say."""
    one = {"concurrency": 1, "parallelism": 1, "streams": _STREAMS, "max_connections": 1}
    browser = {"concurrency": _BROWSER_CONNECTIONS, "parallelism": 1, "max_connections": _BROWSER_CONNECTIONS}
    return {"h1": browser, "h2": one, "h3": one, NULL: one}.get(client, {})
