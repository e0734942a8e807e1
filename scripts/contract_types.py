#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes netjoule_contracts/types/: msgspec types of the documents whose JSON Schemas are the contracts.

A module per contract. An object is a frozen Struct, a list a tuple, an enumeration a Literal; what may be
absent is None, or UNSET where null means something else. Types of equal fields are one type. Ranges and
patterns stay the schema's: `netjoule_contracts.documents.typed` holds a document to it first.

Usage: scripts/contract_types.py            writes the modules
       scripts/contract_types.py --check    fails when they are not those of the schemas
"""

from __future__ import annotations

import itertools
import json
import keyword
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = ROOT / "protocols/contracts"
PACKAGE = CONTRACTS / "python/netjoule_contracts/types"
DOCUMENTS = ("workload", "topology", "campaign", "run", "result")
SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}
WIDTH = 110

Schema = dict[str, Any]


@dataclass
class Module:
    """What the module of one contract will hold.

    Attributes:
        classes: lines of each class by its name, in order.
        names: of the classes by their fields, so that equal ones are one.
        imports: contracts whose types it uses.
    """

    classes: dict[str, list[str]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    imports: set[str] = field(default_factory=set)

    def types_of(self, schema: Schema, name: str, owner: str) -> list[str]:
        """What a value may be; an object of its own becomes a class called `name`, or after its owner too."""
        if "x-factor" in schema:
            schema = {**FACTORS[schema["x-factor"]], **schema}
        if schema.get("x-transports") == "names":
            return ["str"]
        if "const" in schema:
            return [f"Literal[{schema['const']!r}]"]
        if "anyOf" in schema:
            return united(self.types_of(part, name, owner) for part in schema["anyOf"])
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        return united([self._of_kind(kind, schema, name, owner)] for kind in kinds) or ["Any"]

    def _of_kind(self, kind: str, schema: Schema, name: str, owner: str) -> str:
        if kind == "object":
            return self._object(schema, name, owner)
        if kind == "array":
            return f"tuple[{' | '.join(self.types_of(schema.get('items', {}), singular(name), owner))}, ...]"
        values = [repr(value) for value in schema.get("enum", ()) if type(value) in (str, int)]
        return f"Literal[{', '.join(values)}]" if values and kind in ("string", "integer") else SCALARS[kind]

    def _object(self, schema: Schema, name: str, owner: str) -> str:
        if "contract" in schema:
            if schema["contract"] not in DOCUMENTS:
                return "dict[str, Any]"
            self.imports.add(schema["contract"])
            return class_name(schema["contract"])
        if "properties" in schema:
            return self.add(schema, name, owner)
        values = [schema.get("additionalProperties"), *schema.get("patternProperties", {}).values()]
        found = [self.types_of(part, singular(name), owner) for part in values if isinstance(part, dict)]
        return f"dict[str, {' | '.join(united(found)) or 'Any'}]"

    def add(self, schema: Schema, name: str, owner: str = "") -> str:
        """Take in an object and what it holds; the name of its class."""
        assert schema["additionalProperties"] is False, f"{name} is open"
        fields = shape({key: schema[key] for key in ("properties", "required")})
        if fields in self.names:
            return self.names[fields]
        if name in self.classes or name in ("Document", "Part"):  # those are the bases
            name = f"{owner}{name}"
        self.names[fields] = name
        described = f"One of {owner}." if name == singular(owner) else schema["description"]
        lines = self.classes[name] = [
            f"class {name}({'Part' if owner else 'Document'}, frozen=True, kw_only=True):",
            *documented(described),
        ]
        lines += [] if owner else [f'    contract: ClassVar[str] = "{schema["$id"].partition(".")[0]}"']
        properties = schema["properties"] | (SETTINGS if schema.get("x-loads") == "settings" else {})
        for key, part in properties.items():
            found = self.types_of(part, hint(properties, key, name), name)
            lines += commented(key, part["description"], found, required=key in schema["required"])
        return name


def hint(siblings: Schema, key: str, owner: str) -> str:
    """What the class of a property is called; of several with the same fields, what they have in common."""
    own = shape(siblings[key])
    alike = [other for other, part in siblings.items() if shape(part) == own and '"properties"' in own]
    first, *others = {other.partition("_")[0] for other in alike} or {""}
    return class_name(key) if len(alike) < 2 else singular(owner) if others else class_name(first)


def united(found: Iterable[list[str]]) -> list[str]:
    """What any of them may be; None last."""
    return sorted(dict.fromkeys(itertools.chain(*found)), key=lambda one: one == "None")


def documented(text: str) -> list[str]:
    """A class's docstring, its last quotes on a line of their own where it has several."""
    lines = wrapped(f'"""{text}', 7)
    return [f"    {line}" for line in ([*lines, '"""'] if len(lines) > 1 else [f'{lines[0]}"""'])]


def commented(key: str, description: str, found: list[str], *, required: bool) -> list[str]:
    """A field, its description above it."""
    label = f"{key}_" if keyword.iskeyword(key) else key
    nullable = "None" in found or "Any" in found
    default = "" if required else "UNSET" if nullable else "None"
    kind = " | ".join(found if required else united([found, ["UnsetType" if nullable else "None"]]))
    if label != key:
        default = f"msgspec.field({f'default={default}, ' if default else ''}name={key!r})"
    lines = [f"    # {text}" for text in wrapped(description, 6)]
    return [*lines, f"    {label}: {kind}{f' = {default}' if default else ''}"]


def shape(schema: Schema) -> str:
    """A schema without words, so that equal types are equal."""

    def bare(node: Any) -> Any:
        if isinstance(node, list):
            return [bare(part) for part in node]
        if not isinstance(node, dict):
            return node
        return {
            key: bare(part) for key, part in node.items() if key != "description" or isinstance(part, dict)
        }

    return json.dumps(bare(schema), sort_keys=True)


def class_name(key: str) -> str:
    """``idle_before`` as IdleBefore."""
    return "".join(part.capitalize() for part in key.split("_"))


def singular(name: str) -> str:
    """One of several: Windows is of Window."""
    return name if name.endswith("ss") else name.removesuffix("s")


def wrapped(text: str, indent: int) -> list[str]:
    """A description in lines."""
    return textwrap.wrap(" ".join(text.split()), WIDTH - indent, break_on_hyphens=False)


def module(name: str) -> str:
    """The text of a contract's module."""
    schema = json.loads((CONTRACTS / f"schemas/{name}.schema.json").read_text(encoding="utf-8"))
    made = Module()
    made.add(schema, class_name(name))
    body = "\n\n\n".join("\n".join(lines) for lines in made.classes.values())
    typing = ["ClassVar", *(word for word in ("Any", "Literal") if word in body)]
    unset = ["from msgspec import UNSET, UnsetType"] if "UNSET" in body else []
    renamed = ["import msgspec"] if "msgspec.field" in body else []
    others = [f"from netjoule_contracts.types.{one} import {class_name(one)}" for one in sorted(made.imports)]
    bases = "Document, Part" if len(made.classes) > 1 else "Document"
    lines = [
        "# SPDX-License-Identifier: Apache-2.0\n"
        f'"""Types of the contract ``{name}``. Generated from its schema by scripts/contract_types.py."""',
        "from __future__ import annotations",
        f"from typing import {', '.join(typing)}",
        *renamed,
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


def _factors() -> dict[str, Schema]:
    document = json.loads((CONTRACTS / "factors.json").read_text(encoding="utf-8"))
    return {entry["name"]: entry["value"] for entry in document["factors"]}


def _settings() -> dict[str, Schema]:
    """Of every load that has some, as fields of a workload."""
    document = json.loads((CONTRACTS / "loads.json").read_text(encoding="utf-8"))
    return {
        load["name"]: {"description": f"Settings of the load {load['name']}.", "type": "object"}
        for load in document["loads"]
        if (CONTRACTS / f"schemas/workload_{load['name']}.schema.json").is_file()
    }


FACTORS = _factors()
SETTINGS = _settings()

if __name__ == "__main__":
    main()
