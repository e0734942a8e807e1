# SPDX-License-Identifier: Apache-2.0
"""Whether per-run numbers that were computed twice, on two processors say, are the same but for rounding.

Kernels of BLAS and functions of libm differ between processors in the last bits (about 1e-16 of a figure).
In a difference that is 1e-16 of what was subtracted, however small the difference: an idle power that moved
by nothing has moved by 1e-17 W elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

RELATIVE = 1e-9
"""Greatest difference of two equal figures, relative to the greater."""
OF_SUBTRACTED = 1e-11
"""The same of two equal differences, relative to the greatest figure that was subtracted. It is less, so that
a difference of a thousandth of two powers is still held to 1e-8 of itself."""

Path = tuple[str | int, ...]

_POWERS = ("p_a_w", "p_i_w", "p_i_before_w", "p_i_after_w")
_POWER_DIFFERENCES = frozenset(("delta_p_w", "u_delta_p_w", "floor_w", "u95_floor_w"))
_ENERGY_DIFFERENCES = frozenset(("tail_energy_j", "e_d_j"))
_PER_WORK = frozenset(("u95_components", "specification"))
"""Parts of a node whose entries are energies per work, whatever they are called."""


def agree(figure: float, other: float, subtracted: float = 0.0) -> bool:
    """Whether two figures are the same but for rounding.

    subtracted: of a difference, the greatest figure that it was made of, in its own unit.
    """
    greater = max(abs(figure), abs(other))
    return abs(figure - other) <= max(RELATIVE * greater, OF_SUBTRACTED * abs(subtracted))


def differing(stored: Mapping[str, Any], computed: Mapping[str, Any]) -> list[str]:
    """Return the paths (as ``nodes.0.delta_p_w``) at which two documents result.json differ, sorted.

    Figures agree within rounding, counts and everything else are equal; a path that only one has differs.
    """
    ours, theirs = dict(_leaves(stored)), dict(_leaves(computed))
    same = (path for path in ours.keys() & theirs.keys() if _same(ours[path], theirs[path], path, computed))
    return sorted(".".join(map(str, path)) for path in (ours.keys() | theirs.keys()).difference(same))


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that holds no others, with its path; an empty list or mapping is one."""
    if isinstance(value, Mapping) and value:
        for name, part in value.items():
            yield from _leaves(part, (*path, name))
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        for index, part in enumerate(value):
            yield from _leaves(part, (*path, index))
    else:
        yield path, value


def _same(one: Any, other: Any, path: Path, result: Mapping[str, Any]) -> bool:
    numbers = all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in (one, other))
    if not numbers or (isinstance(one, int) and isinstance(other, int)):
        return type(one) is type(other) and bool(one == other)
    return agree(one, other, _subtracted(path, result))


def _subtracted(path: Path, result: Mapping[str, Any]) -> float:
    """The greatest figure of which the one at a path is a difference, in its unit; 0 where it is none."""
    work = result["work"] or {}
    if path == ("work", "u95_work_per_s"):
        return float(work["work_per_s"] or 0.0)
    if path[0] != "nodes":
        return 0.0
    node, name = result["nodes"][path[1]], str(path[-1])
    powers = [*(node[power] for power in _POWERS), node["floor"]["p_null_w"]]
    power_w = max((abs(power) for power in powers if power is not None), default=0.0)
    if name in _POWER_DIFFERENCES:
        return power_w
    if name in _ENERGY_DIFFERENCES and result["window"] is not None:
        # A tail is about as long as what it follows, or shorter.
        return power_w * float(result["window"]["t_end_s"] - result["window"]["t_start_s"])
    work_per_s = node.get("work_per_s", work.get("work_per_s"))
    per_work = "energy_per_work" in name or name.endswith("_j_per_mbit") or path[2] in _PER_WORK
    return power_w / float(work_per_s) if per_work and work_per_s else 0.0
