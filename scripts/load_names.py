#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds a load's name, or a factor of its own, where no load should be known: as identifier or as string.

Loads and factors are data (protocols/contracts/loads.json, factors.json): rooms that plan, run, store, check,
compute and report read them from there. Only a load's own room, what imports other programs' results, the
coursework, savings, diagnostics, the commands of one load and R's `<load>-*` files may name them. A
file that still does stands in KNOWN with how often; a number there only ever falls.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ROOT / "protocols/contracts"
KNOWN = {"analysis-r/R/lift.R": 20}
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
EVERYWHERE = frozenset({"client", "server", "streams", "connections", "http", "tls", "dataset"})
"""Factors called like roles of hosts, streams, forms of device, protocols, data of a bundle: left alone."""


def names() -> frozenset[str]:
    """Loads, and the factors that only loads have; one known by its form has no name of its own."""
    factors = json.loads((CONTRACTS / "factors.json").read_text(encoding="utf-8"))["factors"]
    own = {one["name"] for one in factors if one["owner"] != "testbed" and "names" not in one}
    return frozenset(loads() | own) - EVERYWHERE


def loads() -> set[str]:
    """Loads by name."""
    document = json.loads((CONTRACTS / "loads.json").read_text(encoding="utf-8"))
    return {load["name"] for load in document["loads"]}


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
            own = (getattr(node, attribute, None) for attribute in ("id", "attr", "arg", "name", "asname"))
            yield from ((getattr(node, "lineno", 0), one) for one in own if one in wanted - ORDINARY)


_R_TOKEN = re.compile(r"""#.*|"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[A-Za-z.][A-Za-z0-9._]*""")


def in_r(file: Path, wanted: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Lines and names in the code of a file of R."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        for token in _R_TOKEN.findall(line):
            quoted = token[0] in "\"'"
            name = token[1:-1] if quoted else token
            if name in (wanted if quoted else wanted - ORDINARY):
                yield number, name


def found() -> dict[str, list[tuple[int, str]]]:
    """Every place by its file."""
    wanted = names()
    python = (path for folder in PYTHON for path in (ROOT / folder).rglob("*.py"))
    # The files of a load: flow-tables.R.
    r = (path for path in (ROOT / R).glob("*.R") if path.name.partition("-")[0] not in loads())
    files = {path.relative_to(ROOT).as_posix(): path for path in sorted((*python, *r))}
    return {
        file: [*(in_r if path.suffix == ".R" else in_python)(path, wanted)]
        for file, path in files.items()
        if not file.startswith(ALLOWED)
    }


def main() -> int:
    """Hold every file to KNOWN; 1 when one names more."""
    more = {file: places for file, places in found().items() if len(places) > KNOWN.get(file, 0)}
    for file, places in more.items():
        told = ", ".join(f"{name} (line {line})" for line, name in places)
        print(f"{file} names a load or its factors {len(places)} times, not {KNOWN.get(file, 0)}: {told}")
    return 1 if more else 0


if __name__ == "__main__":
    sys.exit(main())
