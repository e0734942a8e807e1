# SPDX-License-Identifier: Apache-2.0
"""Whether a folder holds the campaign of an exercise, sound and as its model has it; then its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

import netjoule_contracts as contracts
from netjoule import loads
from netjoule.core import programs
from netjoule.core.errors import InvalidData, NetjouleError, UsageError
from netjoule.coursework import cells, handin
from netjoule.coursework.cells import CannotTell, Cells
from netjoule.coursework.exercise import Exercise
from netjoule.loads.flow.settings import FlowSettings
from netjoule.topology import topology
from netjoule.topology.paths import parameters
from netjoule.validation.check import check_campaign
from netjoule.workload.workload import Workload, find
from netjoule_contracts.lift.workload import newest_campaign
from netjoule_contracts.types.campaign import Campaign
from netjoule_contracts.types.topology import Link

LEAST_BLOCKS, MOST_BLOCKS = 3, 40
_MOST_DEFECTS = 2


def campaign_cells(folder: Path, exercise: Exercise) -> Cells:
    """Cells of the campaign that is handed in for an exercise.

    Args:
        folder: what is handed in; its campaign is the folder of the exercise's name in it.
        exercise: the exercise.

    Raises:
        InvalidData: when it is not safe to read, not this exercise's, not finished, not sound, or not as the
            model of link and device has it.
    """
    place = folder / exercise.name
    handin.require_plain(place)
    document = handin.read_document(place / "campaign.json")
    _require_exercise(place, document, exercise, again=exercise.run_command(str(folder)))
    _require_sound(place)
    found = cells.read(place, exercise.cell_factors)
    _require_as_modelled(place, found, exercise)
    return found


def _require_exercise(place: Path, document: Mapping[str, Any], exercise: Exercise, again: str) -> None:
    """Hold campaign.json to the exercise, before anything is computed from it."""
    where = str(place / "campaign.json")
    defect = next(iter(contracts.document_defects("campaign", document)), None)
    if defect is not None:
        raise InvalidData(
            _short(defect), where=where, next_step=f"'netjoule check {place}' names all defects"
        )
    other = _other_workload(document["workload"], exercise)
    newest = newest_campaign(document)
    campaign = msgspec.convert(newest, Campaign)
    if exercise.preset:
        other = other or _other_link(campaign.topology.link, exercise)
    if exercise.testbed:
        other = other or _other_paths(newest["topology"], exercise)
    if other:
        what = f"it is not the campaign of exercise {exercise.name}: {other}"
        raise InvalidData(what, where=where, next_step=f"make it with '{again}'")
    if campaign.status != "complete":
        step = f"go on with 'netjoule resume {place}'"
        raise InvalidData("the campaign is not finished", where=where, next_step=step)


def _other_workload(document: Mapping[str, Any], exercise: Exercise) -> str:
    """What differs from the exercise's workload, in words; empty when nothing that matters does."""
    try:
        workload = Workload.from_document(document, where="campaign.json")
    except UsageError as error:
        return f"its workload is wrong: {error.what}"
    if workload.load != _shipped(exercise).load:
        return f"its load is {workload.load}"
    if not LEAST_BLOCKS <= workload.blocks <= MOST_BLOCKS:
        return f"its blocks are not {LEAST_BLOCKS} to {MOST_BLOCKS}"
    return _other_runs(workload, exercise)


def _other_runs(workload: Workload, exercise: Exercise) -> str:
    """Anything else but runs as the shipped workload has them; the plan of others may be endless."""
    found, wanted = _values(workload), _values(_shipped(exercise))
    for name in wanted | found:
        values = list(map(str, wanted.get(name, ())))
        if sorted(values) != sorted(map(str, found.get(name, ()))):
            verb = "are" if len(values) > 1 else "is"
            return f"its {name} {verb} not {', '.join(values)}" if values else f"it has a {name}"
    return ""


def _shipped(exercise: Exercise) -> Workload:
    return loads.read(find(exercise.workload, programs.shipped("workloads")))


def _values(workload: Workload) -> dict[str, Sequence[Any]]:
    """Factors and settings that runs follow from; of flows the transports have null for a floor."""
    if workload.load != "flow":
        said = workload.document[workload.load]
        return {**workload.factors, **{f"{workload.load}.{name}": [value] for name, value in said.items()}}
    flow = FlowSettings.of(workload)
    settings: dict[str, Sequence[Any]] = {
        "generator": [flow.generator],
        "clients": [flow.clients],
        "beside": flow.beside,
        "setting of simulated ends": [
            f"{name} {value}" for name, value in flow.simulated.items() if name != "interval_s"
        ],
    }
    return {"transports": flow.transports, **workload.factors, **settings}


def _other_link(link: Link | None, exercise: Exercise) -> str:
    if link is None or link.preset != exercise.preset:
        return f"its link is not {exercise.preset}"
    return "single parameters of its link are changed" if link.overrides else ""


def _other_paths(found: Mapping[str, Any], exercise: Exercise) -> str:
    """What of the testbed's presets differs, where the exercise's runs cross them."""
    shipped = topology.load(programs.shipped(exercise.testbed)).document
    factors = _shipped(exercise).factors
    for name in (factor for factor in factors if factor in shipped.get("presets", {})):
        for value in factors[name]:
            try:
                same = _crossed(found, name, value) == _crossed(shipped, name, value)
            except (KeyError, UsageError):
                same = False
            if not same:
                return f"its {name} {value} is not that of {exercise.testbed}"
    return ""


def _crossed(document: Mapping[str, Any], factor: str, value: Any) -> Any:
    """Parameters of a factor's value, of a path those of its elements."""
    found = parameters(document, factor, value)
    return [document["elements"][name] for name in found["elements"]] if factor == "path" else found


def _require_sound(place: Path) -> None:
    """Hold every file of the campaign to its contract, and its numbers to each other."""
    step = f"'netjoule check {place}' names each; copy the campaign again as it was"
    try:
        # The first says enough, and a plan of anybody may have any number.
        defects = list(islice(check_campaign(place), _MOST_DEFECTS))
    except NetjouleError:
        raise
    except Exception as error:  # whatever a file of anybody provokes is that file's fault
        what = f"its files cannot be read ({type(error).__name__})"
        raise InvalidData(what, where=str(place), next_step=step) from error
    if defects:
        more = " (and more)" if len(defects) > 1 else ""
        raise InvalidData(_short(str(defects[0])) + more, where=str(place), next_step=step)


def _require_as_modelled(place: Path, found: Cells, exercise: Exercise) -> None:
    step = "run it again as it was shipped"
    if exercise.preset:
        step = "close other programs and run it again; on battery many laptops are too slow"
    try:
        strays = list(exercise.strays(found))
    except CannotTell as why:
        raise InvalidData(f"the campaign answers nothing: {why}", where=str(place), next_step=step) from why
    if strays:
        what = f"the campaign is not as its model must have it: {'; '.join(strays)}"
        raise InvalidData(what, where=str(place), next_step=step)


def _short(text: str) -> str:
    """At most as much of a sentence as a line takes: a file may quote itself in it."""
    return text if len(text) <= 300 else f"{text[:297]}..."
