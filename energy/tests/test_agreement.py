# SPDX-License-Identifier: Apache-2.0
"""Results computed twice: rounding of another processor is no difference, a moved figure is one."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from netjoule_energy import agree, compute_and_write, differing

Document = dict[str, Any]
IDLE_W, EXTRA_W, NULL_EXTRA_W = 10.0, 0.03, 0.01  # P_A - P_I is a small difference of large powers
ROUNDING, TOO_MUCH = 1e-12, 1e-7


@pytest.fixture
def result(build: Callable[..., Any], flow: Any, meter: Any) -> Document:
    """A run beside its null run, with every figure that a run may have."""
    runs = [flow(extra_w={"m1": EXTRA_W}), flow(transport="null", extra_w={"m1": NULL_EXTRA_W})]
    campaign = build(meters=[meter(idle_w=IDLE_W, sigma_w=0.001)], flows=runs)
    compute_and_write(campaign.folder, campaign.run_ids[:1])
    path = campaign.folder / "runs" / campaign.run_ids[0] / "result.json"
    return dict(json.loads(path.read_text()))


def figures(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every figure that is not 0."""
    if isinstance(value, dict | list):
        for name, part in value.items() if isinstance(value, dict) else enumerate(value):
            yield from figures(part, (*path, name))
    elif isinstance(value, float) and value:
        yield path


def changed(document: Document, path: tuple[Any, ...], change: Callable[[Any], Any]) -> Document:
    moved = copy.deepcopy(document)
    place: Any = moved
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = change(place[path[-1]])
    return moved


def test_every_figure_moved_by_rounding_agrees_and_moved_by_more_is_named(result: Document) -> None:
    named = set()
    for path in figures(result):
        assert differing(changed(result, path, lambda x: x * (1 + ROUNDING)), result) == [], path
        found = differing(changed(result, path, lambda x: x * (1 + TOO_MUCH)), result)
        assert found in ([], [".".join(map(str, path))])
        named.update(found)
    spared = {".".join(map(str, path)) for path in figures(result)} - named
    # A ten-thousandth of the two powers and less is within their rounding: here the tail, which is idle,
    # and parts of u95 of E_A.
    spared = {path for path in spared if not path.startswith("nodes.0.u95_components.")}
    assert spared <= {"nodes.0.tail_energy_j"}
    per_work = ("energy_per_work_j", "u95_energy_per_work_j", "floor.energy_per_work_above_floor_j")
    wanted = {"p_a_w", "delta_p_w", "ea_j_per_mbit", "floor.floor_w", *per_work}
    assert {"work.work_per_s", *(f"nodes.0.{name}" for name in wanted)} < named


@pytest.mark.parametrize(("ratio", "agrees"), [(ROUNDING, True), (TOO_MUCH, False)])
def test_what_follows_from_a_moved_power_agrees_as_the_power_does(
    result: Document, ratio: float, agrees: bool
) -> None:
    node = result["nodes"][0]
    by_w = ratio * node["p_a_w"]
    assert by_w > 100 * ratio * node["delta_p_w"]
    moved = changed(result, ("nodes", 0, "p_a_w"), lambda x: x + by_w)
    moved = changed(moved, ("nodes", 0, "delta_p_w"), lambda x: x + by_w)
    moved = changed(
        moved, ("nodes", 0, "energy_per_work_j"), lambda x: x + by_w / result["work"]["work_per_s"]
    )
    names = ["nodes.0.delta_p_w", "nodes.0.energy_per_work_j", "nodes.0.p_a_w"]
    assert differing(moved, result) == ([] if agrees else names)


def test_a_difference_that_is_nothing_here_and_rounding_there_agrees(result: Document) -> None:
    for path in (
        ("nodes", 0, "delta_p_w"),
        ("nodes", 0, "tail_energy_j"),
        ("nodes", 0, "u95_components", "idle_drift"),
        ("nodes", 0, "specification", "reading"),
        ("nodes", 0, "floor", "floor_w"),
        ("nodes", 0, "floor", "ea_above_floor_j_per_mbit"),
    ):
        if path[2] == "specification":
            result["nodes"][0]["specification"] = {"reading": 0.0}
        ours, theirs = (changed(result, path, lambda _, x=x: x) for x in (0.0, -1.8e-15))
        assert differing(ours, theirs) == [], path
    for ours, theirs in ((0.0, 1e-15), (8.0, 8.0 + 2e-7)):  # no difference of others has such a scale
        moved, kept = (changed(result, ("nodes", 0, "p_a_w"), lambda _, x=x: x) for x in (ours, theirs))
        assert "nodes.0.p_a_w" in differing(moved, kept)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("nodes", 0, "readings"), 7),
        (("nodes", 0, "ea_reason"), "below_resolution"),
        (("nodes", 0, "ea_j_per_mbit"), None),
        (("nodes", 0, "grade"), "Z"),
        (("valid",), 1),
        (("reasons",), [{"code": "idle_drift", "detail": "x"}]),
        (("nodes",), []),
    ],
)
def test_counts_words_and_what_is_missing_are_equal_or_differ(
    result: Document, path: tuple[Any, ...], value: Any
) -> None:
    moved = changed(result, path, lambda _: value)
    for found in (differing(moved, result), differing(result, moved)):
        assert found
        assert all(name.startswith(".".join(map(str, path))) for name in found)


def test_two_figures_agree_to_a_billionth_or_to_the_rounding_of_what_they_are_made_of() -> None:
    assert agree(5.0, 5.0 * (1 + 9e-10))
    assert not agree(5.0, 5.0 * (1 + 2e-9))
    assert agree(1e-3, 1e-3 + 5e-11, 10.0)
    assert not agree(1e-3, 1e-3 + 5e-10, 10.0)
    assert not agree(0.0, 1e-17)
