# SPDX-License-Identifier: Apache-2.0
"""What --base, --head, --anchor and --reference of a gate name, and the workload of these arms. Pure.

A git ref (with --build), a folder, a program, an environment setting (MODE=fast) or a setting of a factor of
the workload's load (transport=quic). Settings are values of their factor, which is the arm then; all else are
builds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

import netjoule_contracts as contracts
from netjoule.core.errors import UsageError, did_you_mean
from netjoule.gate.settings import Names
from netjoule.workload.cell import value_name
from netjoule.workload.workload import of_testbed

BASE, HEAD, ANCHOR, REFERENCE = "base", "head", "anchor", "reference"
GIT, DIRECTORY, BINARY, ENVIRONMENT, SETTING, INSTALLED = (
    *("git", "directory", "binary", "environment", "setting", "installed"),
)
_WITHOUT_OWN = (SETTING, INSTALLED)
PATH = "path"
"""Of a source alone: the file system tells whether it is a folder or a program."""
_ARM = next(
    name for name, one in contracts.factors().items() if one["owner"] == "program" and "names" not in one
)
_SETTING = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_WRITTEN_PATH = re.compile(r"(\.{0,2}|~[^/]*)/|\.{1,2}$|~$")


@dataclass(frozen=True, slots=True)
class Source:
    """What one of the options names.

    Attributes:
        role: base, head, anchor or reference.
        kind: git, path, environment or setting.
        text: as it was asked for.
        setting: name and value of a setting or an environment variable.
    """

    role: str
    kind: str
    text: str
    setting: tuple[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Arm:
    """One arm of a gate, ready to run.

    Attributes:
        role: base, head, anchor or reference.
        name: in the campaign: its role, or the value of its setting.
        kind, text, commit, sha256: as verdict.json has them.
        build: what stands under its name in the `builds` of the load's settings.
        setting: factor and value, of a setting alone.
    """

    role: str
    name: str
    kind: str
    text: str
    commit: str | None = None
    sha256: str | None = None
    build: Mapping[str, Any] = field(default_factory=dict)
    setting: tuple[str, Any] | None = None

    def as_json(self) -> dict[str, Any]:
        """As verdict.json has it."""
        return {name: getattr(self, name) for name in ("name", "kind", "text", "commit", "sha256")}


def parse(
    base: str,
    head: str,
    anchor: str | None,
    load: str,
    *,
    reference: str | None = None,
    with_build: bool = False,
) -> tuple[Source, ...]:
    """What the options of a gate name.

    Args:
        base, head, anchor, reference: as they were written.
        load: of the workload, by its name.
        with_build: whether there is a --build, which git refs need.

    Raises:
        UsageError: naming the option.
    """
    asked = {BASE: base, HEAD: head, ANCHOR: anchor, REFERENCE: reference}
    found = tuple(
        _source(role, text, load, with_build=with_build) for role, text in asked.items() if text is not None
    )
    factors = {one.setting[0] for one in found if one.kind == SETTING and one.setting}
    shown = ", ".join(f"--{one.role} {one.text}" for one in found)
    if factors and (len(factors) > 1 or any(one.kind != SETTING for one in found)):
        step = f"let all be settings of {sorted(factors)[0]}, or none"
        raise UsageError(f"{shown} are no values of one factor", next_step=step)
    if factors and reference is not None:
        step = "leave --reference out: it is the workload's own value"
        raise UsageError(f"{shown} are settings of one program", next_step=step)
    if factors and anchor is not None and len({str(one.setting) for one in found}) < len(found):
        raise UsageError(f"{shown} are not three values", next_step="leave --anchor out")
    return found


def pilot(sources: Sequence[Source]) -> tuple[Source, ...]:
    """The base twice: what an A/A pilot compares, a git ref built twice; and the reference."""
    base = next(one for one in sources if one.role == BASE)
    return base, replace(base, role=HEAD), *(one for one in sources if one.role == REFERENCE)


def arms_of_settings(sources: Sequence[Source]) -> tuple[Arm, ...]:
    """Arms of sources that are settings all; two equal ones (A/A) are builds that differ by name alone."""
    chosen = [one.setting for one in sources if one.setting]
    alike = len({value_name(value) for _, value in chosen}) < len(chosen)
    return tuple(
        Arm(
            one.role,
            one.role if alike else value_name(setting[1]),
            SETTING,
            one.text,
            build={"environment": {"NETJOULE_ARM": one.role}} if alike else {},
            setting=setting,
        )
        for one, setting in zip(sources, chosen, strict=True)
    )


def same_programs(arms: Sequence[Arm]) -> bool:
    """Whether base and head run one program in one way, by its bytes or its commit: then the gate is A/A."""
    base, head = ({one.role: one for one in arms}[role] for role in (BASE, HEAD))
    if base.kind == SETTING:
        return base.setting == head.setting
    variables = [one.build.get("environment", {}) for one in (base, head)]
    same_commit = base.commit is not None and base.commit == head.commit
    return (same_commit or base.sha256 == head.sha256) and variables[0] == variables[1]


def with_arms(document: Mapping[str, Any], arms: Sequence[Arm]) -> tuple[dict[str, Any], Names]:
    """A workload that compares these arms, with the reference workload beside them, and how they are named.

    The reference is the arm of that role, or else the workload as it is with the programs that are installed;
    where settings are compared, the arm with the workload's own value, or else the base.

    Args:
        document: an effective workload.
        arms: base, head, and perhaps anchor and reference.

    Raises:
        UsageError: where the workload varies itself what the arms differ in.
    """
    named = {one.role: one.name for one in arms}
    if arms[0].setting is not None and len(set(named.values())) == len(named) and not arms[0].build:
        changed, reference = _with_settings(document, arms)
    else:
        changed, reference = _with_builds(document, arms)
    statistics = {k: v for k, v in document.get("statistics", {}).items() if k != "contrasts"}
    changed = {name: value for name, value in changed.items() if name != "statistics"}
    changed |= {"control": False} | ({"statistics": statistics} if statistics else {})
    return changed, Names(named[HEAD], named[BASE], named.get(ANCHOR), reference)


def as_verdict(arms: Sequence[Arm], names: Names, installed: str | None) -> list[dict[str, Any]]:
    """All arms as verdict.json has them, that of the reference workload among them.

    `installed` is the SHA-256 of the program that a workload without builds runs, None where nobody knows.
    """
    found = list(arms)
    if names.reference is not None and names.reference not in {one.name for one in arms}:
        found.append(Arm(REFERENCE, names.reference, INSTALLED, "the workload as it is"))
    return [(replace(one, sha256=installed) if one.kind in _WITHOUT_OWN else one).as_json() for one in found]


def _with_settings(document: Mapping[str, Any], arms: Sequence[Arm]) -> tuple[dict[str, Any], str]:
    (factor,) = {one.setting[0] for one in arms if one.setting}
    own = document["factors"].get(factor, [])[:1]
    values = {value_name(value): value for value in (*(one.setting[1] for one in arms if one.setting), *own)}
    reference = value_name(own[0]) if own else arms[0].name
    factors = document["factors"] | {factor: list(values.values())}
    return {**document, "arm": factor, "factors": factors}, reference


def _with_builds(document: Mapping[str, Any], arms: Sequence[Arm]) -> tuple[dict[str, Any], str]:
    load, factors = document["load"], dict(document["factors"])
    if _ARM in factors:
        step = f"leave factors.{_ARM} out: --base and --head are the builds"
        raise UsageError(f"the workload {document['name']} has builds of its own", next_step=step)
    for factor, value in {one.setting for one in arms if one.kind == SETTING and one.setting}:
        factors[factor] = [value]  # two equal settings
    own = _taken_out(document["name"], factors, arms)
    builds: dict[str, Any] = {}
    for one in arms:
        variables = own | one.build.get("environment", {})
        builds[one.name] = {**one.build, **({"environment": variables} if variables else {})}
    if own and REFERENCE not in builds:
        builds[REFERENCE] = {"environment": own}
    factors[_ARM] = list(dict.fromkeys([*(one.name for one in arms), REFERENCE]))
    told = {name: said for name, said in builds.items() if said}
    settings = {**document.get(load, {}), "builds": told}
    return {**document, "arm": _ARM, "factors": factors, load: settings}, REFERENCE


def _taken_out(workload: str, factors: dict[str, Any], arms: Sequence[Arm]) -> dict[str, str]:
    """Environment variables that arms set, and the workload as factors of one value: no factors any more."""
    set_by_arms = {name for one in arms for name in one.build.get("environment", {})}
    own: dict[str, str] = {}
    for name in sorted(set_by_arms & set(factors)):
        values = factors.pop(name)
        if len(values) > 1:
            shown = ", ".join(map(value_name, values))
            raise UsageError(
                f"the workload {workload} varies {name} itself: {shown}",
                next_step=f"leave one value of it in factors.{name}, that of the reference workload",
            )
        own[name] = value_name(values[0])
    return own


def _source(role: str, text: str, load: str, *, with_build: bool) -> Source:
    found = _SETTING.fullmatch(text)
    if found is not None:
        name, value = found.groups()
        if name.isupper():
            return Source(role, ENVIRONMENT, text, (name, value))
        return Source(role, SETTING, text, (name, _typed(role, name, value, load)))
    if not text or text.startswith("-"):
        step = "name a git ref, a folder, a program, or a setting such as transport=quic or MODE=fast"
        raise UsageError(f"--{role} {text!r} names nothing", next_step=step)
    return Source(role, GIT if with_build and not _WRITTEN_PATH.match(text) else PATH, text)


def _typed(role: str, name: str, value: str, load: str) -> Any:
    """The value of a factor as workloads have it."""
    entry = contracts.loads()[load]
    known = [
        one
        for one, about in contracts.factors().items()
        if one != _ARM and "names" not in about and one in entry["factors"]
    ]
    about = contracts.factor(name) or {}
    if name not in known and not (of_testbed(name) and about.get("while_up", True)):
        guess = did_you_mean(name, known)
        what = f"--{role} {name}={value}: {load} has no factor {name}{guess}"
        raise UsageError(what, next_step="environment variables are written in capitals")
    if about["value"]["type"] in ("string", ["string", "object"]):
        return value
    try:
        read = yaml.safe_load(value)
    except yaml.YAMLError:
        read = None
    return read if isinstance(read, bool | int | float) else value  # what is wrong the workload's rules say


def program_or_folder(source: Source) -> Path:
    """What the path of a source leads to, an absolute path. Raises UsageError where nothing is."""
    place = Path(source.text).expanduser()
    if not place.exists():
        step = "check the path; a git ref needs --build CMD, which builds it"
        raise UsageError(f"--{source.role} {source.text}: there is no such file or folder", next_step=step)
    return place.absolute()
