# SPDX-License-Identifier: Apache-2.0
"""The part ``transfer`` of a workload, and the rules of its factors beyond their types. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core.errors import did_you_mean
from netjoule.core.yamlfile import Document
from netjoule.loads.transfer.clients.arms import CLIENTS
from netjoule.loads.transfer.clients.ours import CONNECTIONS, FACTORS, FIXED, NULL, Knobs
from netjoule.loads.transfer.clients.task import MOST_CONNECTIONS
from netjoule.loads.transfer.servers.server import SOFTWARE
from netjoule.topology.paths import path_elements
from netjoule.topology.topology import Topology
from netjoule.workload.load import Condition
from netjoule.workload.workload import combinations

DEFAULT_CONGESTION_CONTROL = "cubic"
_DEFAULTS = {"dataset_seed": 1, "to": "ring", "timeout_s": 600.0}


@dataclass(frozen=True, slots=True)
class PathFigures:
    """What the path of a run can carry; None where nobody has said."""

    rate_mbps: float | None
    rtt_ms: float | None


@dataclass(frozen=True, slots=True)
class Settings:
    """The part ``transfer`` of a workload.

    Attributes:
        dataset_seed: of every set.
        sets: groups of the workload's own sets, by name.
        to: where clients of ours write bodies, ring or nowhere.
        interval_s: of their probing; None for their default.
        timeout_s: after it a transfer is ended, and fails.
        objective: what clients look for that weigh energy; None for their default.
        simulated: of transfers on a simulated testbed, as the workload has it.
    """

    dataset_seed: int
    sets: Mapping[str, Sequence[Mapping[str, Any]]]
    to: str
    interval_s: float | None
    timeout_s: float
    objective: str | None
    simulated: Mapping[str, Any]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> Settings:
        """From the effective workload, which fits its contract."""
        said = _DEFAULTS | document.get("transfer", {})
        return cls(
            dataset_seed=said["dataset_seed"],
            sets=said.get("sets", {}),
            to=said["to"],
            interval_s=said.get("interval_s"),
            timeout_s=float(said["timeout_s"]),
            objective=said.get("objective"),
            simulated=said.get("simulated", {}),
        )

    def knobs(self, condition: Condition, path: PathFigures) -> Knobs:
        """What netjoule-transfer is told under a condition."""
        name, files = set_and_files(str(condition.factors["dataset"]))
        return Knobs(
            dataset=self._dataset(name),
            seed=self.dataset_seed,
            files=files,
            to=self.to,
            bandwidth_mbps=path.rate_mbps,
            rtt_ms=path.rtt_ms,
            interval_s=self.interval_s,
            options={name: int(condition.factors[name]) for name in FACTORS if name in condition.factors},
        )

    def _dataset(self, name: str) -> str:
        """A set as the program takes it: its name, or what one of the workload has as text."""
        return json.dumps({"name": name, "groups": self.sets[name]}) if name in self.sets else name


def set_and_files(dataset: str) -> tuple[str, int | None]:
    """What the factor ``dataset`` names: ``html-1:300`` are 300 files of html-1."""
    name, _, files = dataset.partition(":")
    return name, int(files) if files else None


def congestion_control(condition: Condition) -> str:
    """Of the server's connections to the client."""
    return str(condition.factors.get("congestion_control", DEFAULT_CONGESTION_CONTROL))


def figures_of(topology: Topology, condition: Condition) -> PathFigures:
    """What the path to the server can carry under a condition: its slowest element's rate, all its delays."""
    server = topology.host_with("server")
    asked = condition.testbed.get("path", condition.testbed.get(f"path.{server}"))
    elements = path_elements(topology.document, server, asked)
    rates = [float(one["rate_mbps"]) for one in elements if "rate_mbps" in one]
    delay_ms = sum(float(one.get("delay_ms", 0.0)) for one in elements)
    return PathFigures(min(rates, default=None), 2 * delay_ms or None)


def complete(document: Document, _folder: Path | None) -> None:
    """Hold an effective workload to the rules of transfers; its settings then have their defaults.

    Raises:
        UsageError: naming the field that does not fit.
    """
    value = document.value
    value["transfer"] = {**_DEFAULTS, **value.get("transfer", {})}
    if value["sync_pulses"]:
        raise document.refuse(("sync_pulses",), "transfers have no bursts", "leave sync_pulses out")
    if value["control"] and NULL in value["factors"]["client"]:
        step = "leave it out of client, or write control: false"
        raise document.refuse(("factors", "client"), "null is the control arm", step)
    _check_datasets(document)
    _check_versions(document)
    _check_connections(document)


def _check_datasets(document: Document) -> None:
    """Refuse a set of one's own that cannot be made, and a data set that nobody knows."""
    own, known = document.value["transfer"].get("sets", {}), contracts.datasets()
    for name, groups in own.items():
        if name in known:
            raise document.refuse(
                ("transfer", "sets", name), "there is a data set of that name", "rename yours"
            )
        _check_groups(document, name, groups)
    for name, _ in map(set_and_files, document.value["factors"]["dataset"]):
        if name not in (names := [*own, *known]):
            what = f"there is no data set '{name}'{did_you_mean(name, names)}"
            next_step = f"name one of {', '.join(names)}, or describe it in transfer.sets"
            raise document.refuse(("factors", "dataset"), what, next_step)


def _check_groups(document: Document, name: str, groups: Sequence[Mapping[str, Any]]) -> None:
    """Refuse kinds that stand twice, and a mean that sizes cannot have."""
    for number, group in enumerate(groups):
        place = ("transfer", "sets", name, number)
        if group["kind"] in [other["kind"] for other in groups[:number]]:
            raise document.refuse((*place, "kind"), f"kind {group['kind']} is there twice", "name each once")
        if not group["min_bytes"] <= group["mean_bytes"] <= group["max_bytes"]:
            what = f"a mean of {group['mean_bytes']} bytes lies outside of min_bytes and max_bytes"
            raise document.refuse((*place, "mean_bytes"), what, "let it lie between them")


def _check_versions(document: Document) -> None:
    """Refuse a client whose HTTP version a server of the workload does not speak."""
    factors = document.value["factors"]
    names = ("client", "http", "tls", "server")
    for client, http, tls, server in product(*(factors[name] for name in names)):
        version = CLIENTS[client].version_for(http)
        if version not in SOFTWARE[server].http_versions:
            what = f"client {client} speaks HTTP/{version} there, and {server} does not"
            known = ", ".join(name for name, one in SOFTWARE.items() if version in one.http_versions)
            raise document.refuse(("factors", "server"), what, f"take {known}, or leave {client} out")
        if version != "1.1" and not tls:
            what = f"client {client} speaks HTTP/{version} there, which takes TLS"
            raise document.refuse(("factors", "tls"), what, f"set tls to true, or leave {client} out")


def _check_connections(document: Document) -> None:
    """Refuse a fixed level that takes more connections than a client may have, or says twice how many."""
    factors = document.value["factors"]
    for name in ("parallelism", "streams") if CONNECTIONS in factors else ():
        if set(factors.get(name, [1])) != {1}:
            what = f"{CONNECTIONS} share whole files out, and {name} says otherwise"
            raise document.refuse(("factors", name), what, f"leave {name} or {CONNECTIONS} out")
    most = min(factors.get("max_connections", [MOST_CONNECTIONS]))
    levels = combinations(factors, ("concurrency", "parallelism"), document.value.get("exclude", ()))
    for files, ranges in (level.values() for level in levels):
        if FIXED in factors["client"] and files * ranges > most:
            what = f"concurrency {files} and parallelism {ranges} take {files * ranges} connections"
            next_step = f"{most} are the most: name smaller values, or leave that cell out by exclude"
            raise document.refuse(("factors", "parallelism"), what, next_step)
