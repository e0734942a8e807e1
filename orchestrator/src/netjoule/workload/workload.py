# SPDX-License-Identifier: Apache-2.0
"""A workload: what is asked, as data without conditions. Contract: workload.schema.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import yamlfile
from netjoule.core.errors import UsageError, did_you_mean
from netjoule.core.yamlfile import Document
from netjoule.workload import contrasts, profiles, transports
from netjoule.workload.abilities import ABILITIES
from netjoule.workload.cell import Cell

__all__ = [
    "Beside",
    "Pace",
    "Timing",
    "Workload",
    "find",
    "load",
]

# Spelled out where a workload leaves them out: by them, results of one name would not be comparable.
_SPELLED_OUT = frozenset({"ccid", "carrier"})

_DEFAULTS: dict[str, Any] = {
    "description": "",
    "generator": "netjoule-traffic",
    "direction": "up",
    "ip_version": 4,
    "parallel": 1,
    "clients": 1,
    "pacing": "absolute",
    "window_us": 0,
    "gso": False,
    "limits": {"max_attempts": 3},
}
# A server of netjoule-traffic has room for so many (serve --max-flows).
_MOST_FLOWS = 64
# Every combination is a factor of each block.
_MOST_PACES = 1000


@dataclass(frozen=True, slots=True)
class Pace:
    """One way of spreading messages over time, a factor like the offered load; see workload.schema.json."""

    mode: str = "absolute"
    window_us: int = 0
    gso: bool = False

    @classmethod
    def of(cls, cell: Mapping[str, Any]) -> Pace:
        """That of a cell."""
        return cls(cell["pacing"], cell["window_us"], cell["gso"])

    def as_json(self) -> dict[str, Any]:
        """As run.json holds it."""
        return {"mode": self.mode, "window_us": self.window_us, "gso": self.gso}

    def __str__(self) -> str:
        """In words: ``absolute``, ``absolute, window 50 us, GSO``."""
        window = f", window {self.window_us} us" if self.window_us else ""
        return self.mode + window + (", GSO" if self.gso else "")


@dataclass(frozen=True, slots=True)
class Beside:
    """A flow that runs side by side with the run's transport; what is None is the cell's."""

    transport: str
    payload_bytes: int | None = None
    offered_rate_mbps: float | None = None


@dataclass(frozen=True, slots=True)
class Timing:
    """Lengths of the parts of a run, all in seconds; see workload.schema.json."""

    idle_s: float
    settle_s: float
    warm_up_s: float
    measure_s: float
    tail_s: float

    @property
    def run_s(self) -> float:
        """One run with the idle window that it shares with its neighbour."""
        return self.idle_s + self.settle_s + self.warm_up_s + self.measure_s + self.tail_s


@dataclass(frozen=True, slots=True)
class Workload:
    """A validated workload with its defaults filled in.

    Attributes:
        transport_options: by transport, only where something was chosen or DCCP's defaults hold.
        direction: up, down or both.
        parallel: flows of the run's transport at once, at each client and in each direction.
        clients: how many hosts with the role client take part.
        beside: what runs side by side with them in every run.
        paces: ways of pacing, each a factor.
        pacing_limits: what the pacing certificate of every run must keep, by name; empty for none.
        profile: what is sent instead of messages of one size at a constant rate; see profile.schema.json.
        load_pulses: rate and size of the coded bursts that align meters; None for a campaign without.
        document: the effective workload, as campaign.json keeps it.
    """

    name: str
    description: str
    generator: str
    transports: tuple[str, ...]
    transport_options: dict[str, dict[str, Any]]
    payload_bytes: tuple[int, ...]
    offered_rate_mbps: tuple[float, ...]
    direction: str
    ip_version: int
    parallel: int
    clients: int
    beside: tuple[Beside, ...]
    blocks: int
    timing: Timing
    paces: tuple[Pace, ...]
    pacing_limits: dict[str, float]
    max_attempts: int
    load_pulses: dict[str, Any] | None
    profile: dict[str, Any] | None
    seed: int | None
    document: dict[str, Any]

    @classmethod
    def from_document(cls, value: dict[str, Any], *, where: str) -> Workload:
        """Make a workload from its JSON form, for example from campaign.json.

        Raises:
            UsageError: naming the field that does not fit.
        """
        return _validated(Document(where, value, {}))

    def generator_of(self, transport: str) -> str:
        """Which program makes the flows of a transport; the null floor is always our own pacer's."""
        return "netjoule-traffic" if transport == "null" else self.generator

    @property
    def load(self) -> str:
        """What a run does, by its name in loads.json."""
        return "flow"

    @property
    def control(self) -> str | None:
        """The arm that does nothing but what is to be subtracted; None without one."""
        named = contracts.loads()[self.load]["control"]
        return named if named in self.transports else None

    @property
    def arms(self) -> tuple[str, ...]:
        """What every cell is run with, the control arm among them."""
        return self.transports

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every combination of its factors."""
        profile = {} if self.profile is None else {"profile": self.profile["name"]}
        return tuple(
            Cell(
                {
                    "payload_bytes": payload,
                    "offered_rate_mbps": rate,
                    "direction": self.direction,
                    "parallel": self.parallel,
                    "pacing": pace.mode,
                    "window_us": pace.window_us,
                    "gso": pace.gso,
                }
                | profile
            )
            for payload, rate, pace in product(self.payload_bytes, self.offered_rate_mbps, self.paces)
        )

    @property
    def mini_blocks(self) -> int:
        """How many mini-blocks it asks for: every cell once in each block."""
        return self.blocks * len(self.payload_bytes) * len(self.offered_rate_mbps) * len(self.paces)

    @property
    def runs(self) -> int:
        """How many runs it asks for, when none is invalid."""
        return self.mini_blocks * len(self.arms)

    @property
    def flows(self) -> int:
        """How many flows a run has."""
        return self.clients * (self.parallel + len(self.beside)) * (2 if self.direction == "both" else 1)

    @property
    def server_sends_profile(self) -> bool:
        """Whether the server writes out schedules of a profile."""
        return self.profile is not None and self.direction != "up"

    def all_transports(self) -> tuple[str, ...]:
        """Every transport of any flow, each once."""
        return tuple(dict.fromkeys([*self.transports, *(other.transport for other in self.beside)]))

    def options_of(self, transport: str) -> dict[str, Any]:
        """Options of a transport; empty when it has none."""
        return self.transport_options.get(transport, {})


def load(path: Path, beside: yamlfile.Beside = lambda _: ()) -> Workload:
    """Read a workload file.

    Args:
        path: the file.
        beside: as `yamlfile.hold` has it.

    Raises:
        UsageError: naming file, line and field of what does not fit.
    """
    document = yamlfile.load(path)
    profiles.embed(document, path.parent)
    return _validated(document, beside)


def find(name: str, library: Path) -> Path:
    """The file of a workload given as a path or as a name of the library.

    Args:
        name: e.g. ``demo``, ``workloads/demo.yaml`` or ``my.yaml``.
        library: folder of the named workloads.

    Raises:
        UsageError: listing the known names.
    """
    direct = Path(name)
    if direct.is_file():
        return direct
    named = library / f"{name}.yaml"
    if named.is_file():
        return named
    known = sorted(p.stem for p in library.glob("*.yaml"))
    next_step = f"name a YAML file or one of: {', '.join(known) or 'none'}"
    raise UsageError(f"no workload '{name}'{did_you_mean(name, known)}", next_step=next_step)


def _validated(document: Document, beside: yamlfile.Beside = lambda _: ()) -> Workload:
    value = {**_DEFAULTS, **document.value}
    if isinstance(value.get("transports"), list):
        # A bare null in a YAML list is the transport of that name.
        value["transports"] = ["null" if t is None else t for t in value["transports"]]
    document = Document(document.source, value, document.lines)
    yamlfile.hold(document, "workload", beside)
    _spell_out_pacing(document)
    value["limits"] = {**_DEFAULTS["limits"], **value["limits"]}
    _check_generator(document)
    profiles.check(document)
    contrasts.check(document)
    paces = _paces(document)
    options = _effective_options(document)
    if options:
        value["transport_options"] = options
    return Workload(
        name=value["name"],
        description=value["description"],
        generator=value["generator"],
        transports=tuple(value["transports"]),
        transport_options=options,
        payload_bytes=tuple(value["payload_bytes"]),
        offered_rate_mbps=tuple(float(r) for r in value["offered_rate_mbps"]),
        direction=value["direction"],
        ip_version=value["ip_version"],
        parallel=value["parallel"],
        clients=value["clients"],
        beside=_beside(document),
        blocks=value["blocks"],
        timing=Timing(**{k: float(v) for k, v in value["timing"].items()}),
        paces=paces,
        pacing_limits={name: float(limit) for name, limit in value.get("pacing_limits", {}).items()},
        max_attempts=value["limits"]["max_attempts"],
        load_pulses=value.get("load_pulses"),
        profile=value.get("profile"),
        seed=value.get("seed"),
        document=value,
    )


def _check_generator(document: Document) -> None:
    """Refuse transports, directions and options that the generator does not do."""
    value = document.value
    name = value["generator"]
    ability = ABILITIES[name]
    for index, transport in enumerate(value["transports"]):
        if transport not in ability.transports and transport != "null":
            raise document.refuse(
                ("transports", index),
                f"{name} cannot send {transport}",
                f"use generator netjoule-traffic, or only {_listed(sorted(ability.transports))}",
            )
    if value["direction"] not in ability.directions:
        raise document.refuse(
            ("direction",), f"{name} cannot send {value['direction']}", "use generator netjoule-traffic"
        )
    for index, payload in enumerate(value["payload_bytes"]):
        if payload < ability.least_payload_bytes:
            raise document.refuse(
                ("payload_bytes", index),
                f"a message of {name} has at least {ability.least_payload_bytes} bytes, not {payload}",
            )
    if "profile" in value and not ability.profiles:
        raise document.refuse(
            ("profile",),
            f"{name} takes no profile",
            "use generator netjoule-traffic, or leave the profile out",
        )


def _beside(document: Document) -> tuple[Beside, ...]:
    """What runs side by side with every run's transport.

    Raises:
        UsageError: for more flows than a server takes, for null as a companion, and for several flows of a
            generator that makes one.
    """
    value = document.value
    others = value.get("beside", [])
    for index, other in enumerate(others):
        if other["transport"] == "null":
            place = ("beside", index, "transport")
            raise document.refuse(place, "null sends nothing, so nothing shares the path with it")
    ways = 2 if value["direction"] == "both" else 1
    at_once = value["clients"] * (value["parallel"] + len(others)) * ways
    for field in ("parallel", "clients", "beside"):
        if value.get(field, 1) != 1 and not ABILITIES[value["generator"]].several:
            words = f"{value['generator']} makes one flow at a time here"
            raise document.refuse((field,), words, "use generator netjoule-traffic")
    if at_once > _MOST_FLOWS:
        counts = {"parallel": value["parallel"], "clients": value["clients"], "beside": len(others)}
        field = max(counts, key=lambda name: counts[name])
        raise document.refuse((field,), f"{at_once} flows at once, and a server takes {_MOST_FLOWS} at most")
    own_load = any({"payload_bytes", "offered_rate_mbps"} & set(other) for other in others)
    if "profile" in value and own_load:
        raise document.refuse(
            ("beside",), "with a profile every flow sends it", "leave payload_bytes and offered_rate_mbps out"
        )
    return tuple(Beside(**other) for other in others)


def _spell_out_pacing(document: Document) -> None:
    """A mapping, as older workloads and campaigns have it, becomes the three fields that it stands for."""
    value = document.value
    if not isinstance(value["pacing"], dict):
        return
    for name in ("window_us", "gso"):
        if value[name] != _DEFAULTS[name]:
            raise document.refuse((name,), f"pacing is a mapping and has its own {name}", f"say {name} once")
    old = value["pacing"]
    value |= {"pacing": old["mode"], "window_us": old["window_us"], "gso": old["gso"]}


def _paces(document: Document) -> tuple[Pace, ...]:
    """Every combination of pacing, window and trains.

    Raises:
        UsageError: for one that makes no sense, or that generator or transports do not do.
    """
    value = document.value
    modes, windows, trains = (_listed_values(value[name]) for name in ("pacing", "window_us", "gso"))
    count = len(modes) * len(windows) * len(trains)
    if count > _MOST_PACES:
        words = f"pacing, window_us and gso give {count} ways of pacing, and {_MOST_PACES} are the most"
        raise document.refuse(("window_us",), words)
    paces = tuple(Pace(*combination) for combination in product(modes, windows, trains))
    name = value["generator"]
    if not ABILITIES[name].paces:
        for field in ("pacing", "window_us", "gso"):
            if value[field] != _DEFAULTS[field]:
                raise document.refuse((field,), f"{name} has a pacer of its own", "leave the field out")
        if "pacing_limits" in value:
            raise document.refuse(("pacing_limits",), f"{name} gives no pacing certificate", "leave them out")
    if "so_txtime" in modes:
        _check_launch_times(document, windows, trains)
    return paces


def _check_launch_times(document: Document, windows: list[int], trains: list[bool]) -> None:
    """Refuse what does not go with so_txtime, by which every message has a launch time of its own."""
    if windows != [0]:
        raise document.refuse(("window_us",), "so_txtime has no window", "give it a workload of its own")
    if trains != [False]:
        raise document.refuse(("gso",), "so_txtime sends no trains", "give it a workload of its own")
    taking = transports.with_launch_times()
    named: list[tuple[tuple[str | int, ...], str]] = [
        *((("transports", index), name) for index, name in enumerate(document.value["transports"])),
        *(
            (("beside", index, "transport"), other["transport"])
            for index, other in enumerate(document.value.get("beside", []))
        ),
    ]
    for place, transport in named:
        if transport not in taking:
            raise document.refuse(
                place,
                f"the kernel takes no launch times for {transport}",
                f"use so_txtime with {_listed(sorted(taking))} alone",
            )


def _listed_values(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _effective_options(document: Document) -> dict[str, dict[str, Any]]:
    """Options of the workload's transports with their defaults.

    Raises:
        UsageError: for options of a transport that the workload has not, or that its generator lets no
            one choose.
    """
    value = document.value
    taken = ABILITIES[value["generator"]].options
    given: dict[str, dict[str, Any]] = value.get("transport_options", {})
    named = dict.fromkeys([*value["transports"], *(other["transport"] for other in value.get("beside", []))])
    for transport in given:
        if transport not in named:
            raise document.refuse(
                ("transport_options", transport),
                f"options for {transport}, which is not a transport of this workload",
                f"add {transport} to transports, or leave its options out",
            )
        if transport not in taken:
            raise document.refuse(
                ("transport_options", transport),
                f"{value['generator']} takes no options of {transport}",
                "leave them out: the settings of its hosts decide (for DCCP sysctl net.dccp.default)",
            )
    chosen = {
        transport: _spelled_out(transport) | given.get(transport, {})
        for transport in named
        if transport in taken
    }
    return {transport: options for transport, options in sorted(chosen.items()) if options}


def _spelled_out(transport: str) -> dict[str, Any]:
    """The defaults that an effective workload names."""
    return {name: value for name, value in transports.defaults(transport).items() if name in _SPELLED_OUT}


def _listed(names: list[str]) -> str:
    """Names as a sentence has them: "a", "a and b", "a, b and c"."""
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part)
