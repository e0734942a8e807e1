#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes netjoule_contracts/types/: msgspec types of the documents whose JSON Schemas are the contracts.

A module per contract. A document is a frozen Struct, and so is each part of it whose fields code names
(DOCUMENTS); other parts are mappings. A list is a tuple, an enumeration a Literal; what may be absent is
None, or UNSET where null means something else. Ranges, patterns and what a mapping may hold stay the
schema's: `netjoule_contracts.documents.typed` holds a document to it first.

Usage: scripts/contract_types.py            writes the modules
       scripts/contract_types.py --check    fails when they are not those of the schemas
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ROOT / "protocols/contracts"
PACKAGE = CONTRACTS / "python/netjoule_contracts/types"
DOCUMENTS: dict[str, dict[str, str]] = {
    "workload": {},
    "topology": {"link": "Link", "meters": "Meter", "device": "Device"},
    "campaign": {"host": "Host", "lab_hosts": "LabHost", "imported": "Imported"},
    "run": {},
    "result": {
        "window": "Window",
        "work": "Work",
        "parts": "ResultPart",
        "fairness": "Fairness",
        "reasons": "Reason",
        "nodes": "Node",
        "u95_components": "U95Components",
        "integrator": "Integrator",
        "floor": "Floor",
    },
}
"""Contracts, and the class of each part that has one by the field that holds it."""
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 110

Schema = dict[str, Any]


class Module:
    """What the module of one contract will hold.

    Attributes:
        classes: lines of each class by its name, in order.
        imports: contracts whose types it uses.
    """

    def __init__(self, name: str) -> None:
        self.parts = DOCUMENTS[name]
        self.classes: dict[str, list[str]] = {}
        self.imports: set[str] = set()

    def types_of(self, schema: Schema, key: str) -> list[str]:
        """What the value of a field may be; an object is of the class that the field has."""
        if "x-factor" in schema:
            schema = {**FACTORS[schema["x-factor"]], **schema}
        if schema.get("x-transports") == "names":
            return ["str"]
        if "const" in schema:
            return [f"Literal[{schema['const']!r}]"]
        if "anyOf" in schema:
            return united(self.types_of(part, key) for part in schema["anyOf"])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return united([self._of_kind(kind, schema, key)] for kind in kinds) or ["Any"]

    def _of_kind(self, kind: str, schema: Schema, key: str) -> str:
        if kind == "object":
            return self._object(schema, key)
        if kind == "array":
            return f"tuple[{' | '.join(self.types_of(schema.get('items', {}), key))}, ...]"
        values = [repr(value) for value in schema.get("enum", ()) if type(value) in (str, int)]
        return f"Literal[{', '.join(values)}]" if values and kind in ("string", "integer") else SCALARS[kind]

    def _object(self, schema: Schema, key: str) -> str:
        if schema.get("contract") in DOCUMENTS:
            self.imports.add(schema["contract"])
            return schema["contract"].capitalize()
        if key in self.parts and "properties" in schema:
            return self.add(schema, self.parts[key], "Part")
        values = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        found = [self.types_of(part, "") for part in values if isinstance(part, dict)]
        return f"dict[str, {' | '.join(united(found)) or 'Any'}]"

    def add(self, schema: Schema, name: str, base: str) -> str:
        """Take in an object and the parts in it; the name of its class."""
        assert schema["additionalProperties"] is False, f"{name} is open"
        properties = schema["properties"] | (SETTINGS if schema.get("x-loads") == "settings" else {})
        lines = self.classes[name] = [
            f"class {name}({base}, frozen=True, kw_only=True):",
            *documented(schema["description"]),
        ]
        lines += [f'    contract: ClassVar[str] = "{name.lower()}"'] if base == "Document" else []
        for key, part in properties.items():
            found = self.types_of(part, key)
            lines += commented(key, part["description"], found, required=key in schema["required"])
        return name


def united(found: Iterable[list[str]]) -> list[str]:
    """What any of them may be; None last."""
    return sorted(dict.fromkeys(itertools.chain(*found)), key=lambda one: one == "None")


def documented(text: str) -> list[str]:
    """A class's docstring, its last quotes on a line of their own where it has several."""
    lines = wrapped(f'"""{text}', 7)
    return [f"    {line}" for line in ([*lines, '"""'] if len(lines) > 1 else [f'{lines[0]}"""'])]


def commented(key: str, description: str, found: list[str], *, required: bool) -> list[str]:
    """A field, its description above it."""
    nullable = "None" in found or "Any" in found
    default = "" if required else "UNSET" if nullable else "None"
    kind = " | ".join(found if required else united([found, ["UnsetType" if nullable else "None"]]))
    lines = [f"    # {text}" for text in wrapped(description, 6)]
    return [*lines, f"    {key}: {kind}{f' = {default}' if default else ''}"]


def wrapped(text: str, indent: int) -> list[str]:
    """A description in lines."""
    return textwrap.wrap(" ".join(text.split()), WIDTH - indent, break_on_hyphens=False)


def module(name: str) -> str:
    """The text of a contract's module."""
    schema = json.loads((CONTRACTS / f"schemas/{name}.schema.json").read_text(encoding="utf-8"))
    made = Module(name)
    made.add(schema, name.capitalize(), "Document")
    body = "\n\n\n".join("\n".join(lines) for lines in made.classes.values())
    typing = ["ClassVar", *(word for word in ("Any", "Literal") if word in body)]
    unset = ["from msgspec import UNSET, UnsetType"] if "UNSET" in body else []
    others = [
        f"from netjoule_contracts.types.{one} import {one.capitalize()}" for one in sorted(made.imports)
    ]
    bases = "Document, Part" if len(made.classes) > 1 else "Document"
    lines = [
        "# SPDX-License-Identifier: Apache-2.0\n"
        f'"""Types of the contract ``{name}``. Generated from its schema by scripts/contract_types.py."""',
        "from __future__ import annotations",
        f"from typing import {', '.join(typing)}",
        *unset,
        f"from netjoule_contracts.documents import {bases}",
        *others,
        body,
    ]
    return "\n\n".join(lines) + "\n"


def formatted(text: str, name: str) -> str:
    """The same as the linter wants it."""
    ruff = [sys.executable, "-m", "ruff"]
    for command in (["check", "--quiet", "--select=I", "--fix", "-"], ["format", "--quiet", "-"]):
        options = ["--config", str(ROOT / "pyproject.toml"), "--stdin-filename", str(PACKAGE / f"{name}.py")]
        done = subprocess.run(
            [*ruff, *command, *options], input=text, capture_output=True, text=True, check=True
        )
        text = done.stdout
    return text


def main() -> None:
    """Write the modules, or hold those that there are to the schemas."""
    texts = {PACKAGE / f"{name}.py": formatted(module(name), name) for name in DOCUMENTS}
    if "--check" not in sys.argv:
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return
    stale = [
        path for path, text in texts.items() if not path.exists() or path.read_text(encoding="utf-8") != text
    ]
    if stale:
        names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
        sys.exit(f"{names}: not those of the schemas; run scripts/contract_types.py")


def entries(name: str) -> list[Schema]:
    """What a document beside the schemas lists."""
    document = json.loads((CONTRACTS / f"{name}.json").read_text(encoding="utf-8"))
    found: list[Schema] = document[name]
    return found


FACTORS = {entry["name"]: entry["value"] for entry in entries("factors")}
# Settings of every load that has some, as fields of a workload.
SETTINGS = {
    load["name"]: {"description": f"Settings of the load {load['name']}.", "type": "object"}
    for load in entries("loads")
    if (CONTRACTS / f"schemas/workload_{load['name']}.schema.json").is_file()
}

if __name__ == "__main__":
    main()
