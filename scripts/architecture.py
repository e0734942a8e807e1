#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws docs/architecture.svg: the Python rooms as boxes in their layers, what each imports as lines.

A line is left out where others lead from the one to the other.

Usage: scripts/architecture.py            writes the picture
       scripts/architecture.py --check    fails when it is not that of the imports
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from html import escape
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/architecture.svg"
BESIDE = ["netjoule_energy", "netjoule_meters", "netjoule_radio", "netjoule_devices"]
"""Packages that the orchestrator uses as libraries or starts as programs."""
BELOW = "netjoule_contracts"
WIDTH, BOX_HEIGHT, ROW = 1180, 34, 74
GAP, MARGIN = 14, 20


def layers() -> list[list[str]]:
    """Rooms from top to bottom, as pyproject.toml has them for `make lint`; then the other packages."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    (rooms,) = (contract["layers"] for contract in contracts if contract.get("containers") == ["netjoule"])
    return [[f"netjoule.{room}" for room in row.split(" | ")] for row in rooms] + [BESIDE, [BELOW]]


def imports(names: list[str]) -> tuple[Counter[str], Counter[tuple[str, str]]]:
    """Files of each room, and imports from one to another."""
    packages = sorted({name.partition(".")[0] for name in names})
    graph = grimp.build_graph(*packages, cache_dir=None)

    def room_of(module: str) -> str | None:
        return next((name for name in names if f"{module}.".startswith(f"{name}.")), None)

    files = Counter(room for module in graph.modules if (room := room_of(module)))
    found: Counter[tuple[str, str]] = Counter()
    for module in graph.modules:
        for other in graph.find_modules_directly_imported_by(module):
            pair = room_of(module), room_of(other)
            if pair[0] and pair[1] and pair[0] != pair[1]:
                found[pair] += 1  # type: ignore[index]
    return files, found


def needed(found: Counter[tuple[str, str]]) -> list[tuple[str, str]]:
    """Pairs that no way over others replaces."""
    uses: dict[str, set[str]] = {}
    for user, used in found:
        uses.setdefault(user, set()).add(used)

    def reached(name: str) -> set[str]:
        return {below for used in uses.get(name, ()) for below in {used} | reached(used)}

    return sorted(pair for pair in found if not any(pair[1] in reached(other) for other in uses[pair[0]]))


def places(rows: list[list[str]]) -> dict[str, tuple[float, float, float]]:
    """Left edge, top and width of each box."""
    found = {}
    for level, row in enumerate(rows):
        width = min(200.0, (WIDTH - 2 * MARGIN - GAP * (len(row) - 1)) / len(row))
        left = (WIDTH - width * len(row) - GAP * (len(row) - 1)) / 2
        for index, name in enumerate(row):
            found[name] = (left + index * (width + GAP), MARGIN + level * ROW, width)
    return found


def drawn() -> str:
    """The picture as SVG."""
    rows = layers()
    boxes = places(rows)
    files, found = imports([name for row in rows for name in row])
    lines = []
    for user, used in needed(found):
        (x1, y1, w1), (x2, y2, w2) = boxes[user], boxes[used]
        x, y = x1 + w1 / 2, y1 + BOX_HEIGHT
        dx, dy = x2 + w2 / 2 - x, y2 - y
        told = f"{user} uses {used}: {found[user, used]} imports"
        curve = f"M{x:.0f} {y:.0f}c0 {dy / 2:.0f} {dx:.0f} {dy / 2:.0f} {dx:.0f} {dy:.0f}"
        lines.append(f'<path d="{curve}"><title>{told}</title></path>')
    parts = []
    for name, (x, y, width) in boxes.items():
        shown = name.removeprefix("netjoule.")
        parts.append(
            f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{BOX_HEIGHT}" rx="6"/>'
            f'<text x="{x + width / 2:.0f}" y="{y + 15:.0f}">{escape(shown)}</text>'
            f'<text class="files" x="{x + width / 2:.0f}" y="{y + 28:.0f}">{files[name]} files</text>'
        )
    height = MARGIN + ROW * len(rows)
    label = "Rooms of the Python packages; a line leads from a room to one below it that it uses"
    style = "rect{fill:#fff;stroke:#33465c}text{font:13px sans-serif;text-anchor:middle;fill:#142030}"
    style += "path{fill:none;stroke:#7a8aa0}.files{font-size:10px;fill:#4a5a70}"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img"'
            f' aria-label="{label}">',
            f"<style>{style}</style>",
            f'<rect width="{WIDTH}" height="{height}" style="fill:#f4f6f9;stroke:none"/>',
            *lines,
            *parts,
            "</svg>\n",
        ]
    )


def main() -> int:
    """Write the picture, or say whether it is stale."""
    picture = drawn()
    if "--check" not in sys.argv:
        PICTURE.write_text(picture)
        return 0
    if PICTURE.exists() and PICTURE.read_text() == picture:
        return 0
    print("docs/architecture.svg is not that of the imports: run scripts/architecture.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
