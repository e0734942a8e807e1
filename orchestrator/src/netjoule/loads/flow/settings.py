# SPDX-License-Identifier: Apache-2.0
"""What a workload of the load ``flow`` says: its rules and defaults. Contract: workload_flow.schema.json."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from netjoule.core.errors import UsageError, did_you_mean
from netjoule.core.yamlfile import Document
from netjoule.loads.flow import builds, profiles, transports
from netjoule.loads.flow.abilities import ABILITIES
from netjoule.loads.flow.builds import Build
from netjoule.workload.workload import Workload

NULL = "null"
"""The control arm: builds, times and drops the schedule."""
# Spelled out where a workload leaves them out: by them, results of one name would not be comparable.
_SPELLED_OUT = frozenset({"ccid", "carrier"})
_DEFAULTS: dict[str, Any] = {"generator": "netjoule-traffic", "ip_version": 4, "clients": 1}
_OWN_PACER = {"pacing": ["absolute"], "window_us": [0], "gso": [False]}
_RATE = "offered_rate_mbps"
# A server of netjoule-traffic has room for so many (serve --max-flows).
_MOST_FLOWS = 64


@dataclass(frozen=True, slots=True)
class Pace:
    """One way of spreading messages over time; see factors.json."""

    mode: str = "absolute"
    window_us: int = 0
    gso: bool = False

    @classmethod
    def of(cls, factors: Mapping[str, Any]) -> Pace:
        """That of a run or cell."""
        return cls(str(factors["pacing"]), int(factors["window_us"]), bool(factors["gso"]))

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
class Variant:
    """What a value of the factor ``transport`` stands for; a rate of None is the cell's."""

    transport: str
    options: Mapping[str, Any] = field(default_factory=dict)
    offered_rate_mbps: float | None = None

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> Variant:
        """One of the workload's."""
        (transport,) = said.keys() - {_RATE}
        return cls(transport, said[transport], said.get(_RATE))


@dataclass(frozen=True, slots=True)
class FlowSettings:
    """Factors and settings of a workload, typed.

    Attributes:
        name: of the workload.
        transports: those of its runs, or variants; null behind the others where there are control runs.
        variants: by the name that a workload gives to one.
        transport_options: by transport, only where something was chosen or DCCP's defaults hold.
        directions: up, down or both.
        parallel: flows of the run's transport at once, at each client and in each direction.
        clients: how many hosts with the role client take part.
        beside: what runs side by side with them in every run.
        pacing: values of pacing, window and trains.
        pacing_limits: what the pacing certificate of every run must keep, by name; empty for none.
        profile: what is sent instead of messages of one size at a constant rate; see profile.schema.json.
        sync_pulse: rate and size of the bursts that align meters; None for a campaign without.
        builds: of the program that makes the flows, one at least.
        simulated: how the ends behave on a simulated testbed; only what was chosen.
    """

    name: str
    generator: str
    transports: tuple[str, ...]
    variants: Mapping[str, Variant]
    transport_options: Mapping[str, Mapping[str, Any]]
    payload_bytes: tuple[int, ...]
    offered_rate_mbps: tuple[float, ...]
    directions: tuple[str, ...]
    ip_version: int
    parallel: tuple[int, ...]
    clients: int
    beside: tuple[Beside, ...]
    pacing: tuple[tuple[Any, ...], ...]
    pacing_limits: Mapping[str, float]
    profile: Mapping[str, Any] | None
    sync_pulse: Mapping[str, Any] | None
    builds: tuple[Build, ...]
    simulated: Mapping[str, Any]

    @classmethod
    def of(cls, workload: Workload) -> FlowSettings:
        """Those of a workload that `complete` has completed, or of a campaign.

        Raises:
            UsageError: for a workload of another load.
        """
        if workload.load != "flow":
            what = f"workload {workload.name} is of load {workload.load}"
            raise UsageError(what, next_step="name one of load flow")
        factors, said = workload.factors, _DEFAULTS | workload.document.get(workload.load, {})
        named = (*factors["transport"], *([NULL] if workload.control else []))
        return cls(
            name=workload.name,
            generator=said["generator"],
            transports=named,
            variants={name: Variant.of(one) for name, one in said.get("variants", {}).items()},
            transport_options=said.get("transport_options", {}),
            payload_bytes=factors["payload_bytes"],
            offered_rate_mbps=factors["offered_rate_mbps"],
            directions=factors["direction"],
            ip_version=said["ip_version"],
            parallel=factors["parallel"],
            clients=said["clients"],
            beside=tuple(Beside(**other) for other in said.get("beside", [])),
            pacing=tuple(factors[name] for name in _OWN_PACER),
            pacing_limits={name: float(limit) for name, limit in said.get("pacing_limits", {}).items()},
            profile=next(iter(factors.get("profile", ())), None),
            sync_pulse=said["sync_pulse"] if workload.sync_pulses else None,
            builds=builds.of_factors(factors, said),
            simulated=said.get("simulated", {}),
        )

    def generator_of(self, transport: str) -> str:
        """Which program makes the flows of a transport; the control arm's are always our own pacer's."""
        return "netjoule-traffic" if transport == NULL else self.generator

    def build_of(self, factors: Mapping[str, Any]) -> Build:
        """The build that a run has; of what names none, such as a sync pulse, the installed program."""
        named = {build.name: build for build in self.builds}
        return named.get(str(factors.get("build", "")), Build(place=len(self.builds)))

    @property
    def paces(self) -> tuple[Pace, ...]:
        """Every way of pacing; of a workload that nobody has counted there may be no end of them."""
        return tuple(Pace(*one) for one in product(*self.pacing))

    @property
    def flows(self) -> int:
        """How many flows a run has at most."""
        ways = 2 if "both" in self.directions else 1
        return self.clients * (max(self.parallel) + len(self.beside)) * ways

    @property
    def server_sends_profile(self) -> bool:
        """Whether the server writes out schedules of a profile."""
        return self.profile is not None and self.directions != ("up",)

    def all_transports(self) -> tuple[str, ...]:
        """Every transport of any flow, or variant of one, each once."""
        return tuple(dict.fromkeys([*self.transports, *(other.transport for other in self.beside)]))

    def variant_of(self, name: str) -> Variant:
        """What a value of the factor transport, or what is beside it, stands for, with all options."""
        variant = self.variants.get(name, Variant(name))
        options = {**self.transport_options.get(variant.transport, {}), **variant.options}
        return replace(variant, options=options)

    def options_of(self, name: str) -> Mapping[str, Any]:
        """Options of a transport or variant; empty when it has none."""
        return self.variant_of(name).options


def complete(document: Document, folder: Path | None) -> None:
    """Hold an effective workload to the rules of flows; its settings then have their defaults.

    Args:
        document: as `workload.effective` gave it.
        folder: where its file is, for the name of a profile; None for one that has no file.

    Raises:
        UsageError: naming the field that does not fit.
    """
    value = document.value
    value["flow"] = {**_DEFAULTS, **value.get("flow", {})}
    profiles.embed(document, folder)
    _check_variants(document)
    _check_generator(document)
    builds.check(document)
    _check_beside(document)
    _check_variants_run(document)
    profiles.check(document)
    _check_paces(document)
    if value["sync_pulses"] and "sync_pulse" not in value["flow"]:
        raise document.refuse(("flow", "sync_pulse"), "sync pulses have a rate and a size", "say both there")
    options = _effective_options(document)
    if options:
        value["flow"]["transport_options"] = options


def _check_variants(document: Document) -> None:
    """Refuse variants of no transport or several, and those called like a transport."""
    said = document.value["flow"]
    for name, one in said.get("variants", {}).items():
        place = ("flow", "variants", name)
        if len(one.keys() - {_RATE}) != 1:
            raise document.refuse(
                place, "a variant is of one transport", "write {TRANSPORT: {OPTION: VALUE}}"
            )
        if name in transports.names():
            what = f"{name} is a transport itself"
            raise document.refuse(place, what, f"give it another name, or use transport_options.{name}")
        if not ABILITIES[said["generator"]].paces:
            what = f"{said['generator']} has no variants of transports"
            raise document.refuse(place, what, "use generator netjoule-traffic")


def _check_variants_run(document: Document) -> None:
    """Refuse variants that no run has."""
    for name in document.value["flow"].get("variants", {}):
        if name not in _named(document).values():
            step = "name it in factors.transport, or leave it out"
            raise document.refuse(("flow", "variants", name), "no run has this variant", step)


def _transport_of(document: Document, name: str) -> str:
    """The transport that a value of the factor stands for."""
    said = document.value["flow"].get("variants", {}).get(name)
    return name if said is None else Variant.of(said).transport


def _check_generator(document: Document) -> None:
    """Refuse transports, directions and options that the generator does not do."""
    factors, name = document.value["factors"], document.value["flow"]["generator"]
    ability = ABILITIES[name]
    for index, transport in enumerate(factors["transport"]):
        place = ("factors", "transport", index)
        if transport == NULL:
            raise document.refuse(place, "null is the control arm", "write control: true, and no null here")
        sent = _transport_of(document, transport)
        if sent not in transports.names():
            known = [*document.value["flow"].get("variants", {}), *sorted(transports.names() - {NULL})]
            what = f"there is no transport '{sent}'{did_you_mean(sent, known)}"
            raise document.refuse(place, what, f"use one of {', '.join(known)}, or name it in flow.variants")
        if sent not in ability.transports:
            step = f"use generator netjoule-traffic, or only {_listed(sorted(ability.transports))}"
            raise document.refuse(place, f"{name} cannot send {sent}", step)
    for index, direction in enumerate(factors["direction"]):
        if direction not in ability.directions:
            place = ("factors", "direction", index)
            raise document.refuse(place, f"{name} cannot send {direction}", "use generator netjoule-traffic")
    for index, payload in enumerate(factors["payload_bytes"]):
        if payload < ability.least_payload_bytes:
            what = f"a message of {name} has at least {ability.least_payload_bytes} bytes, not {payload}"
            raise document.refuse(("factors", "payload_bytes", index), what)
    if "profile" in factors and not ability.profiles:
        step = "use generator netjoule-traffic, or leave the profile out"
        raise document.refuse(("factors", "profile"), f"{name} takes no profile", step)


def _check_beside(document: Document) -> None:
    """Refuse more flows than a server takes, null as a companion, and several flows of most generators."""
    factors, said = document.value["factors"], document.value["flow"]
    others = said.get("beside", [])
    for index, other in enumerate(others):
        if other["transport"] == NULL:
            place = ("flow", "beside", index, "transport")
            raise document.refuse(place, "null sends nothing, so nothing shares the path with it")
    counts: dict[tuple[str, str], int] = {
        ("factors", "parallel"): max(factors["parallel"]),
        ("flow", "clients"): said["clients"],
        ("flow", "beside"): len(others),
    }
    if not ABILITIES[said["generator"]].several:
        for field, count in counts.items():
            if count > (0 if field[1] == "beside" else 1):
                words = f"{said['generator']} makes one flow at a time here"
                raise document.refuse(field, words, "use generator netjoule-traffic")
    ways = 2 if "both" in factors["direction"] else 1
    at_once = said["clients"] * (max(factors["parallel"]) + len(others)) * ways
    if at_once > _MOST_FLOWS:
        field = max(counts, key=lambda one: counts[one])
        raise document.refuse(field, f"{at_once} flows at once, and a server takes {_MOST_FLOWS} at most")
    if "profile" in factors and any({"payload_bytes", "offered_rate_mbps"} & set(one) for one in others):
        step = "leave payload_bytes and offered_rate_mbps out"
        raise document.refuse(("flow", "beside"), "with a profile every flow sends it", step)


def _check_paces(document: Document) -> None:
    """Refuse a pacing that makes no sense, or that generator or transports do not do."""
    factors, said = document.value["factors"], document.value["flow"]
    name = said["generator"]
    if not ABILITIES[name].paces:
        for field, own in _OWN_PACER.items():
            if factors[field] != own:
                place = ("factors", field)
                raise document.refuse(place, f"{name} has a pacer of its own", "leave the field out")
        if "pacing_limits" in said:
            what = f"{name} gives no pacing certificate"
            raise document.refuse(("flow", "pacing_limits"), what, "leave them out")
    if "so_txtime" in factors["pacing"]:
        _check_launch_times(document)


def _check_launch_times(document: Document) -> None:
    """Refuse what does not go with so_txtime, by which every message has a launch time of its own."""
    factors = document.value["factors"]
    alone = "give it a workload of its own"
    if factors["window_us"] != [0]:
        raise document.refuse(("factors", "window_us"), "so_txtime has no window", alone)
    if factors["gso"] != [False]:
        raise document.refuse(("factors", "gso"), "so_txtime sends no trains", alone)
    taking = transports.which("launch_times")
    for place, name in _named(document).items():
        transport = _transport_of(document, name)
        if transport not in taking:
            raise document.refuse(
                place,
                f"the kernel takes no launch times for {transport}",
                f"use so_txtime with {_listed(sorted(taking))} alone",
            )


def _named(document: Document) -> dict[tuple[str | int, ...], str]:
    """Every transport that the workload names, by its place."""
    own = enumerate(document.value["factors"]["transport"])
    beside = enumerate(document.value["flow"].get("beside", []))
    return {("factors", "transport", index): name for index, name in own} | {
        ("flow", "beside", index, "transport"): other["transport"] for index, other in beside
    }


def _effective_options(document: Document) -> dict[str, dict[str, Any]]:
    """Options of the workload's transports with their defaults.

    Raises:
        UsageError: for options of a transport that is not in it, or that its generator does not take.
    """
    said = document.value["flow"]
    taken = ABILITIES[said["generator"]].options
    given: dict[str, dict[str, Any]] = said.get("transport_options", {})
    named = dict.fromkeys(_transport_of(document, name) for name in _named(document).values())
    for transport in given:
        place = ("flow", "transport_options", transport)
        if transport not in named:
            raise document.refuse(
                place,
                f"options for {transport}, which is not a transport of this workload",
                f"add {transport} to the transports, or leave its options out",
            )
        if transport not in taken:
            raise document.refuse(
                place,
                f"{said['generator']} takes no options of {transport}",
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
