# SPDX-License-Identifier: Apache-2.0
"""A workload: what is asked, as data without conditions. Contract: workload.schema.json.

What all loads have in common is read here; the settings of a load, under its name, are read by its own room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import netjoule_contracts as contracts
from netjoule.core import yamlfile
from netjoule.core.errors import UsageError, did_you_mean
from netjoule.core.yamlfile import Document
from netjoule.workload import contrasts, looks
from netjoule.workload.cell import Cell, value_name
from netjoule.workload.load import Value
from netjoule_contracts.lift.workload import OLDER_FIELDS, is_older, newest_workload, older_place

_LIMITS = {"max_attempts": 3}
_MOST_COMBINATIONS = 1_000_000
"""More are not looked at one by one, and are too many in any case."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Lengths of the parts of a run, all in seconds; see workload.schema.json."""

    idle_s: float
    settle_s: float
    warm_up_s: float
    measure_s: float
    tail_s: float
    tail_max_s: float | None = None

    @property
    def run_s(self) -> float:
        """One run with the idle window that it shares with its neighbour."""
        return self.idle_s + self.settle_s + self.warm_up_s + self.measure_s + self.tail_s


@dataclass(frozen=True, slots=True)
class Workload:
    """A validated workload with its defaults filled in.

    Attributes:
        load: what a run does, by its name in loads.json.
        arm: factor whose values are compared inside a mini-block.
        control: name of the control arm; None without one.
        factors: values of each, in the order of loads.json, those of testbeds and programs behind.
        sync_pulses: whether coded bursts of the load go before and after the campaign.
        document: the effective workload, as campaign.json keeps it.
    """

    name: str
    description: str
    load: str
    arm: str
    control: str | None
    factors: Mapping[str, tuple[Any, ...]]
    blocks: int
    timing: Timing
    max_attempts: int
    sync_pulses: bool
    seed: int | None
    document: dict[str, Any]

    @classmethod
    def from_document(cls, value: Mapping[str, Any], *, where: str) -> Workload:
        """Make a workload from its JSON form, for example from campaign.json; of any version.

        Raises:
            UsageError: naming the field that does not fit.
        """
        return cls.of(effective(Document(where, dict(value), {})))

    @classmethod
    def of(cls, document: Document) -> Workload:
        """Make a workload from what `effective` gave."""
        value = document.value
        named = contracts.loads()[value["load"]]["control"]
        return cls(
            name=value["name"],
            description=value["description"],
            load=value["load"],
            arm=value["arm"],
            control=named if value["control"] else None,
            factors={name: _typed(name, values) for name, values in value["factors"].items()},
            blocks=value["blocks"],
            timing=Timing(**{k: float(v) for k, v in value["timing"].items()}),
            max_attempts=value["limits"]["max_attempts"],
            sync_pulses=value["sync_pulses"],
            seed=value.get("seed"),
            document=value,
        )

    @property
    def compared(self) -> tuple[str, ...]:
        """The arms that do work, by name: a workload without its arm's factor has one, called as its load."""
        return tuple(value_name(value) for value in self.factors.get(self.arm, (self.load,)))

    @property
    def arms(self) -> tuple[str, ...]:
        """What every cell is run with, the control arm behind the others."""
        return self.compared if self.control is None else (*self.compared, self.control)

    @property
    def cells(self) -> tuple[Cell, ...]:
        """Every combination of the values of all factors but the arm, without those that `exclude` names."""
        names = [name for name in self.factors if name != self.arm]
        return tuple(map(Cell, combinations(self.factors, names, self._excluded)))

    @property
    def _excluded(self) -> list[dict[str, Any]]:
        return list(self.document.get("exclude", ()))

    @property
    def looks(self) -> tuple[int, ...]:
        """Blocks after which a gate looks at what it has; none of a campaign that is no gate's."""
        return tuple(self.document.get("gate", {}).get("looks", ()))

    @property
    def mini_blocks(self) -> int:
        """How many mini-blocks it asks for: every cell once in each block."""
        whole = prod(len(values) for name, values in self.factors.items() if name != self.arm)
        counted = self._excluded and whole <= _MOST_COMBINATIONS
        return self.blocks * (len(self.cells) if counted else whole)

    @property
    def runs(self) -> int:
        """How many runs it asks for, when none is invalid."""
        return self.mini_blocks * len(self.arms)

    def values_of(self, arm: str, cell: Mapping[str, Any]) -> dict[str, Value]:
        """The value of every factor in a run; of a control run the load's own arm has the control's name."""
        values = dict(zip(self.compared, self.factors.get(self.arm, ()), strict=False))
        found = dict(cell)
        if arm == self.control and values:
            found[self.arm] = next(iter(values.values()))
            found[contracts.loads()[self.load]["arm"]] = arm
        elif arm in values:
            found[self.arm] = _in_cell(values[arm])
        return found

    def asked_of_testbed(self, values: Mapping[str, Value]) -> dict[str, Any]:
        """What a run with these values of factors asks of its testbed: names of presets, or parameters."""
        written = {
            name: {_in_cell(value): value for value in known}
            for name, known in self.factors.items()
            if of_testbed(name)
        }
        return {name: known[values[name]] for name, known in written.items()}


def combinations(
    factors: Mapping[str, Sequence[Any]], names: Sequence[str], exclude: Sequence[Mapping[str, Any]]
) -> Iterator[dict[str, Any]]:
    """Each combination of the values of these factors, as cells have them, but those that are excluded.

    Args:
        factors: values of each.
        names: of them.
        exclude: of a workload; what names other factors, too, leaves nothing out here.
    """
    left_out = [
        {name: set(map(_in_cell, values)) for name, values in one.items()}
        for one in exclude
        if one.keys() <= set(names)
    ]
    for chosen in product(*(map(_in_cell, factors[name]) for name in names)):
        found = dict(zip(names, chosen, strict=True))
        if not any(all(found[name] in values for name, values in one.items()) for one in left_out):
            yield found


def of_testbed(factor: str) -> bool:
    """Whether the testbed sets it."""
    return (contracts.factor(factor) or {}).get("owner") == "testbed"


def moves_idle_power(factor: str) -> bool:
    """Whether what a host draws while nothing runs depends on it."""
    return bool((contracts.factor(factor) or {}).get("moves_idle_power"))


def effective(document: Document, beside: yamlfile.Beside = lambda _: ()) -> Document:
    """A workload as it was written, in the newest shape and with the defaults that all loads have.

    Args:
        document: of any version.
        beside: as `yamlfile.hold` has it.

    Raises:
        UsageError: naming the field that does not fit.
    """
    document = _newest(document)
    value = document.value
    factors = value.get("factors")
    if isinstance(factors, dict):
        value["factors"] = _lists(factors)
        _check_factors(document)
    if isinstance(exclude := value.get("exclude"), list):
        value["exclude"] = [_lists(one) if isinstance(one, dict) else one for one in exclude]
    contrasts.name_arms(document)
    yamlfile.hold(document, "workload", beside)
    load = contracts.loads()[value["load"]]
    arm = value.get("arm", load["arm"])
    document.value.update(
        description=value.get("description", ""),
        arm=arm,
        control=value.get("control", _has_control(arm, load)),
        factors=_factors(document, load),
        limits=_LIMITS | value.get("limits", {}),
        sync_pulses=value.get("sync_pulses", False),
    )
    _check_names(document, load)
    _check_excluded(document)
    contrasts.check(document, Workload.of(document).compared)
    looks.check(document, Workload.of(document).compared)
    return document


def _newest(document: Document) -> Document:
    """The same in the newest shape, as a copy; its fields are named as they were written."""
    given = document.value
    if not is_older(given):
        if given.get("schema_version") == 1:
            raise document.refuse(("schema_version",), "a workload with factors is of version 2", "set 2")
        return replace(document, value=dict(given))
    for name in given.keys() - set(OLDER_FIELDS):
        guess = did_you_mean(name, OLDER_FIELDS)
        what = f"unknown field{guess or ';'} known here: {', '.join(OLDER_FIELDS)}"
        raise document.refuse((name,), what)
    written = partial(older_place, given)
    return replace(document, value=dict(newest_workload(given)), written=written)


def _check_factors(document: Document) -> None:
    """Refuse factors that no run of the load has; of a load that there is not, its contract tells."""
    load = contracts.loads().get(str(document.value.get("load")))
    for name in map(str, document.value["factors"]):
        entry = contracts.factor(name) or {}
        if load is None or of_testbed(name) or entry.get("name") in load["factors"]:
            continue
        known = [one for one in load["factors"] if "names" not in contracts.factors()[one]]
        guess = did_you_mean(name, [*known, *filter(of_testbed, contracts.factors())])
        capitals = contracts.factor(name.upper()) or {}
        if capitals.get("name") in load["factors"]:
            known.append(f"{name.upper()} ({capitals['label'].lower()}s are written in capitals)")
        what = f"{load['name']} has no factor {name}{guess}"
        raise document.refuse(("factors", name), what, f"name some of {', '.join(known)}")


def _factors(document: Document, load: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Values of each factor, defaults among them, in the order of loads.json."""
    given = document.value["factors"]
    for name in load["required"]:
        if name not in given:
            missing = document.written(("factors", name))[-1]
            raise document.refuse(("factors",), f"the field {missing} is missing")
    known = {name: contracts.factor(name) or {} for name in load["factors"]}
    defaults = {name: [entry["default"]] for name, entry in known.items() if "default" in entry}
    own = {name: given.get(name, defaults.get(name)) for name in load["factors"]}
    return {name: values for name, values in (own | given).items() if values is not None}


def _check_names(document: Document, load: Mapping[str, Any]) -> None:
    """Refuse an arm that is no factor, a control arm that cannot be, and settings of another load."""
    value = document.value
    if value["arm"] not in {*value["factors"], load["arm"]}:
        raise document.refuse(("arm",), f"{value['arm']} is no factor of this workload", "add it to factors")
    if value["control"] and load["control"] is None:
        raise document.refuse(("control",), f"{load['name']} has no control arm", "leave control out")
    if value["control"] and _is_setting(value["arm"], load):
        what = f"a control run has one {value['arm']}, and the arms have several"
        raise document.refuse(("control",), what, f"leave control out, or compare values of {load['arm']}")
    for other in contracts.loads():
        if other in value and other != load["name"]:
            what = f"settings of {other}, and the load of this workload is {load['name']}"
            raise document.refuse((other,), what, "leave them out")


def _check_excluded(document: Document) -> None:
    """Refuse an `exclude` that names what no cell has, and one that leaves no cell."""
    value = document.value
    for number, one in enumerate(value.get("exclude", ())):
        for name, values in one.items():
            known = [] if name == value["arm"] else value["factors"].get(name, [])
            for each in values:
                if each not in known:
                    what = f"no cell has {name} {value_name(each)}"
                    next_step = (
                        f"name some of {', '.join(map(value_name, known))}" if known else "leave it out"
                    )
                    raise document.refuse(("exclude", number, name), what, next_step)
    if value.get("exclude") and not Workload.of(document).mini_blocks:
        raise document.refuse(("exclude",), "it leaves no cell", "exclude fewer")


def _lists(factors: Mapping[str, Any]) -> dict[str, Any]:
    """Values of each factor as a list."""
    return {name: value if isinstance(value, list) else [value] for name, value in factors.items()}


def _is_setting(arm: str, load: Mapping[str, Any]) -> bool:
    """Whether arms differ in a setting of the load: then no control run does the same work as all of them."""
    return arm in load["factors"] and arm != load["arm"]


def _has_control(arm: str, load: Mapping[str, Any]) -> bool:
    """Whether there are control runs where a workload says nothing of them: of fixed windows alone."""
    return load["control"] is not None and load["window"] == "fixed" and not _is_setting(arm, load)


def find(name: str, library: Path) -> Path:
    """The file of a workload given as a path or as a name of the library.

    Args:
        name: e.g. ``demo``, ``workloads/flow/demo.yaml`` or ``my.yaml``.
        library: folder of the named workloads, which has one for each load.

    Raises:
        UsageError: listing the known names.
    """
    direct = Path(name)
    if direct.is_file():
        return direct
    known = {path.stem: path for path in sorted(library.glob("*/*.yaml"))}
    if name in known:
        return known[name]
    next_step = f"name a YAML file or one of: {', '.join(sorted(known)) or 'none'}"
    raise UsageError(f"no workload '{name}'{did_you_mean(name, known)}", next_step=next_step)


def _typed(factor: str, values: Iterable[Any]) -> tuple[Any, ...]:
    """Values as their factor has them: 6 Mb/s is 6.0."""
    entry = contracts.factor(factor) or {}
    return tuple(float(value) if entry["value"]["type"] == "number" else value for value in values)


def _in_cell(value: Any) -> Any:
    """A value as cells have it: a document by its name, parameters as text."""
    return value_name(value) if isinstance(value, Mapping) else value
