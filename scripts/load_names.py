#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds a load's name, or a factor of its own, where no load should be known: as identifier or as string.

Loads and factors are data (protocols/contracts/loads.json, factors.json): rooms that plan, run, store, check,
compute and report read them from there. Only a load's own room, what imports other programs' results, the
coursework, savings, diagnostics, the commands of one load and R's `<load>-*` files may name them. Places that
still do stand in scripts/load_names.json with how often; a number there only ever falls.

Usage: scripts/load_names.py            fails when a file names them more often than that list says
       scripts/load_names.py --list     every place
       scripts/load_names.py --write    write the list anew; it must not grow
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ROOT / "protocols/contracts"
KNOWN = ROOT / "scripts/load_names.json"
SOURCE = "orchestrator/src/netjoule"
PYTHON = (SOURCE, "energy/src", "testbed/radio/src")
R = "analysis-r/R"
ALLOWED = tuple(
    f"{SOURCE}/{place}"
    for place in (
        *("loads/", "importing/", "coursework/", "savings/", "diagnostics/"),
        *("cli/measure.py", "cli/quick.py", "cli/table_iv.py"),
    )
)
ORDINARY = frozenset({"build", "command", "flow", "page", "transfer", "direction", "parallel", "profile"})
"""Words that mean other things, too: found as whole strings alone."""


class Found(NamedTuple):
    """One place."""

    file: str
    line: int
    name: str


def names() -> frozenset[str]:
    """Loads, and the factors that only loads have; one known by its form has no name of its own."""
    loads = json.loads((CONTRACTS / "loads.json").read_text(encoding="utf-8"))["loads"]
    factors = json.loads((CONTRACTS / "factors.json").read_text(encoding="utf-8"))["factors"]
    own = {one["name"] for one in factors if one["owner"] != "testbed" and "names" not in one}
    return frozenset({load["name"] for load in loads} | own)


def in_python(file: Path, wanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Lines and names in the code of a module; its comments and docstrings may say what they like."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    words = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in words:
            if node.value in wanted:
                yield node.lineno, node.value
        else:
            for name in identifiers(node):
                if name in wanted - ORDINARY:
                    yield getattr(node, "lineno", 0), name


def identifiers(node: ast.AST) -> Iterator[str]:
    """Names that a node has itself."""
    for attribute in ("id", "attr", "arg", "name", "asname"):
        value = getattr(node, attribute, None)
        if isinstance(value, str):
            yield value


_R_TOKEN = re.compile(r"""#.*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z.][A-Za-z0-9._]*""")


def in_r(file: Path, wanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Lines and names in the code of a file of R."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        for token in _R_TOKEN.findall(line):
            quoted = token[0] in "\"'"
            name = token[1:-1] if quoted else token
            if name in (wanted if quoted else wanted - ORDINARY):
                yield number, name


def found() -> list[Found]:
    """Every place, file by file."""
    wanted = names()
    loads = {load["name"] for load in json.loads((CONTRACTS / "loads.json").read_text())["loads"]}
    places = []
    for folder in PYTHON:
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = path.relative_to(ROOT).as_posix()
            if not file.startswith(ALLOWED):
                places += [Found(file, *one) for one in in_python(path, wanted)]
    for path in sorted((ROOT / R).glob("*.R")):
        if path.name.partition("-")[0] not in loads:
            file = path.relative_to(ROOT).as_posix()
            places += [Found(file, *one) for one in in_r(path, wanted)]
    return places


def main() -> int:
    """Compare with the list; 1 when there are more."""
    places = found()
    counts = Counter(place.file for place in places)
    known: dict[str, int] = json.loads(KNOWN.read_text(encoding="utf-8")) if KNOWN.exists() else {}
    more = [file for file, count in counts.items() if count > known.get(file, 0)]
    if "--list" in sys.argv:
        for place in places:
            print(f"{place.file}:{place.line}: {place.name}")
    if "--write" in sys.argv and (not more or not known):
        KNOWN.write_text(json.dumps(dict(sorted(counts.items())), indent=2) + "\n", encoding="utf-8")
        return 0
    for file in more:
        told = ", ".join(f"{one.name} (line {one.line})" for one in places if one.file == file)
        print(f"{file} names a load or its factors {counts[file]} times, not {known.get(file, 0)}: {told}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
