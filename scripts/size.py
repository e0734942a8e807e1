#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Lines of code per room of a commit: no blank line, comment or docstring; tests, fixtures and fuzzing apart.

Usage: scripts/size.py [COMMIT]   HEAD by default; Python, Rust, R, shell, JavaScript, CSS, Ansible's YAML.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tarfile
from collections import Counter
from pathlib import PurePath

_NESTED = {"protocols", "testbed"}
"""Folders whose parts are rooms of their own."""
_NO_CODE = {"docs", "results", "workloads"}
_COMMENT = {
    ".R": r"#[^\n]*",
    ".sh": r"^\s*#[^\n]*",
    ".yml": r"^\s*#[^\n]*",
    ".js": r"//[^\n]*|/\*.*?\*/",
    ".css": r"/\*.*?\*/",
}


def filled(text: str) -> int:
    """Lines that are not blank."""
    return sum(bool(line.strip()) for line in text.splitlines())


def python_lines(text: str) -> int:
    """Lines with a token that is no comment, without docstrings."""
    tree = ast.parse(text)
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    lines = text.splitlines()
    for node in ast.walk(tree):
        bodies = [node.body] if isinstance(node, documented) else []
        for expression in (statement for body in bodies for statement in body):
            value = expression.value if isinstance(expression, ast.Expr) else None
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                last = value.end_lineno or value.lineno
                lines[value.lineno - 1 : last] = [""] * (last - value.lineno + 1)
    return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in lines)


def rust_lines(text: str) -> tuple[int, int]:
    """Lines of code, and those of its tests within."""
    code = re.sub(r"/\*.*?\*/", "", re.sub(r"^\s*//[^\n]*", "", text, flags=re.M), flags=re.S)
    code, _, tests = code.partition("#[cfg(test)]\nmod tests {")
    return filled(code), filled(tests)


def other_lines(text: str, ending: str) -> int:
    """Lines of Python, or of a language whose comments a pattern finds."""
    if ending == ".py":
        return python_lines(text)
    code = re.sub(_COMMENT[ending], "", text, flags=re.M | re.S if ending in (".js", ".css") else re.M)
    return filled(code)


def room_of(path: PurePath) -> str:
    """``orchestrator``, ``protocols/quic``, ..."""
    parts = path.parts
    return "/".join(parts[: 2 if parts[0] in _NESTED and len(parts) > 2 else 1])


def is_test(path: PurePath) -> bool:
    """Whether a file serves tests alone."""
    return bool({"tests", "fuzz", "data"} & {*path.parts[:-1]}) or bool(
        re.search(r"(^|_)tests?\.(rs|py)$|^conftest\.py$|^test[-_]", path.name)
    )


def main() -> None:
    """Print a line per room and their sum."""
    commit = sys.argv[1] if len(sys.argv) > 1 else "HEAD"
    packed = subprocess.run(["git", "archive", commit], check=True, capture_output=True).stdout
    code: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        for member in archive:
            path = PurePath(member.name)
            ending = path.suffix
            file = archive.extractfile(member)
            known = ending in (".py", ".rs", *_COMMENT) and path.parts[0] not in _NO_CODE
            if file is None or not known:
                continue
            text = file.read().decode()
            # Tests within a file are Rust's habit.
            lines, inner = rust_lines(text) if ending == ".rs" else (other_lines(text, ending), 0)
            (tests if is_test(path) else code)[room_of(path)] += lines
            tests[room_of(path)] += inner
    print(f"{'room':<28} {'code':>7} {'tests':>7}")
    for room in sorted(code | tests):
        print(f"{room:<28} {code[room]:>7} {tests[room]:>7}")
    print(f"{'all':<28} {code.total():>7} {tests.total():>7}")


if __name__ == "__main__":
    main()
