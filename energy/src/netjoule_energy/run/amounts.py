# SPDX-License-Identifier: Apache-2.0
"""Energies of a run of transfers over what it moved: per 100 MB, as studies print them, and per file."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from netjoule_contracts.types.result import Node, Work
from netjoule_energy.run.result import MEGABIT
from netjoule_energy.run.run_input import RunInput

MB_PER_100_MB = 800.0
"""Mb of 100 MB, which are 10^8 byte: the first transfer study prints 1,500 files of 128 KiB as 196 MB."""


def with_amounts(source: RunInput, node: Node, work: Work | None) -> Node:
    """Return the node with E_b, E_d, E_t and tail per 100 MB and per file, J; as it is where no files moved.

    All files of the window count, so that a set that is fetched twice pays for one tail between both.
    """
    files = source.run["measures"].get("files_verified")
    if not files or work is None or work.unit != MEGABIT or not work.quantity:
        return node
    files_n = files * source.run["work"].get("repeat", 1)
    shares = {"per_100_mb": MB_PER_100_MB / work.quantity, "per_file": 1.0 / files_n}
    base_j = None if node.e_t_j is None or node.e_d_j is None else node.e_t_j - node.e_d_j
    known_j = {"eb": base_j, "ed": node.e_d_j, "et": node.e_t_j, "tail": node.tail_energy_j}
    per_work_j = node.u95_energy_per_work_j
    known_j["u95_ed"] = None if per_work_j is None else per_work_j * work.quantity
    told: dict[str, Any] = {
        f"{name}_j_{unit}": None if energy_j is None else energy_j * share
        for unit, share in shares.items()
        for name, energy_j in known_j.items()
    }
    return replace(node, **told)
