# SPDX-License-Identifier: Apache-2.0
"""Reads a YAML file and holds it to a contract, naming file, line and field of what does not fit.

Values of secret fields never enter a message: a literal where a reference is wanted is a secret.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

import netjoule_contracts as contracts
from netjoule.core.errors import InvalidData, UsageError, did_you_mean, file_errors
from netjoule_contracts import reading

if TYPE_CHECKING:
    import jsonschema

Place = tuple[str | int, ...]
Beside = Callable[[dict[str, Any]], Iterable[tuple[Place, str]]]

# Far above what people write; beyond it PyYAML takes seconds to minutes.
_MOST_BYTES = 500_000
_MOST_LEVELS = 50
# Defects that a sentence names.
_MOST_DEFECTS = 6


@dataclass(frozen=True)
class Document:
    """A YAML document with the line of each of its fields.

    Attributes:
        source: file name for messages.
        value: the document as plain JSON types; dates stay text.
        lines: line (from 1) by path.
        written: where a field stands in the file, when `value` has another shape.
    """

    source: str
    value: dict[str, Any]
    lines: dict[Place, int]
    written: Callable[[Place], Place] = tuple

    def where(self, place: Sequence[str | int]) -> str:
        """``file, line N, field a.b`` for a path; falls back to the nearest known parent's line."""
        parent = field = self.written(tuple(place))
        while parent and parent not in self.lines:
            parent = parent[:-1]
        line = self.lines.get(parent)
        text = f"{self.source}, line {line}" if line else self.source
        return f"{text}, field {'.'.join(map(str, field))}" if field else text

    def refuse(self, place: Sequence[str | int], what: str, next_step: str = "") -> UsageError:
        """The error for a field; raise it."""
        return UsageError(what, where=self.where(place), next_step=next_step)

    def need(self, place: Sequence[str | int], field: str, next_step: str, why: str = "") -> None:
        """Refuse a part of the document without a field; `why` it is needed, as a clause about it."""
        part: Any = self.value
        for step in place:
            part = part[step]
        if not part.get(field):
            raise self.refuse(place, f"the field '{field}' is missing{why}", next_step)


class _Loader(yaml.SafeLoader):
    """YAML as JSON knows it: a date stays text, numbers are finite, little nesting, and none of aliases.

    An alias inside a value that has an anchor is what lets a few lines grow without bound.
    """

    _anchored = 0  # depth of anchored values being read
    _level = 0

    def fetch_flow_collection_start(self, token_class: Any) -> None:
        # The scanner reads far ahead of the composer behind an opening bracket.
        if self.flow_level >= _MOST_LEVELS:
            raise yaml.scanner.ScannerError(None, None, "nested too deeply", self.get_mark())
        super().fetch_flow_collection_start(token_class)

    def compose_node(self, parent: Any, index: Any) -> yaml.Node | None:
        event = self.peek_event()  # type: ignore[no-untyped-call]
        alias = isinstance(event, yaml.AliasEvent)
        if alias and self._anchored:
            what = "an alias inside an anchored value; write the value out"
            raise yaml.composer.ComposerError(None, None, what, event.start_mark)
        anchored = not alias and event.anchor is not None
        if self._level >= _MOST_LEVELS:
            raise yaml.composer.ComposerError(None, None, "nested too deeply", event.start_mark)
        self._anchored += anchored
        self._level += 1
        node: yaml.Node | None = super().compose_node(parent, index)
        self._anchored -= anchored
        self._level -= 1
        return node

    def construct_yaml_int(self, node: Any) -> int:
        if len(node.value) > reading.MOST_DIGITS:
            what = f"a number of {len(node.value)} digits; {reading.MOST_DIGITS} are the most"
            raise yaml.constructor.ConstructorError(None, None, what, node.start_mark)
        return int(super().construct_yaml_int(node))

    def construct_yaml_float(self, node: Any) -> float:
        value = float(super().construct_yaml_float(node))
        if not math.isfinite(value):
            raise yaml.constructor.ConstructorError(
                None, None, f"{node.value} is not a finite number", node.start_mark
            )
        return value


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_yaml_float)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def load(path: Path) -> Document:
    """Read a YAML mapping.

    Raises:
        UsageError: when it is not YAML, not a mapping, beyond all reason, or names a key twice.
        RunFailed: when the file cannot be read.
    """
    return parse(_text(path), path)


def parse(text: str, path: Path) -> Document:
    """Read a YAML mapping that was taken out of a file; as `load` does.

    Raises:
        UsageError: as `load` does.
    """
    node, value = _parsed(text, path)
    if not isinstance(value, dict) or not isinstance(node, yaml.MappingNode):
        raise UsageError(
            "not a YAML mapping", where=f"{path}, line 1", next_step="start with 'schema_version: 1'"
        )
    lines: dict[Place, int] = {}
    _collect(node, (), lines, str(path))
    return Document(str(path), value, lines)


def _text(path: Path) -> str:
    if not path.is_file():
        raise UsageError(f"no file {path}", next_step="check the path")
    try:
        with file_errors("read", path):
            content = reading.content(path, _MOST_BYTES)
    except InvalidData as error:
        raise UsageError(error.what, where=error.where, next_step="is it the file you meant?") from error
    return decoded(content, path)


def decoded(content: bytes, path: Path) -> str:
    """The text of a YAML file. Raises UsageError when it is not UTF-8."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UsageError(
            "not UTF-8", where=f"{path}, line {line}", next_step="save the file with this encoding"
        ) from error


def _parsed(text: str, path: Path) -> tuple[yaml.Node | None, Any]:
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        return node, None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        raise UsageError(f"not YAML: {error.problem or error.context}", where=f"{path}{line}") from error
    except yaml.reader.ReaderError as error:
        line_number = text.count("\n", 0, error.position) + 1
        raise UsageError(
            f"not YAML: the character U+{error.character:04X} may not stand in it",
            where=f"{path}, line {line_number}",
        ) from error
    except (yaml.YAMLError, ValueError) as error:
        raise UsageError(f"not YAML: {error}", where=str(path)) from error


def newer(value: Any, contract: str) -> str:
    """What is to be said of a document of a later version of its contract; empty for any other."""
    version = value.get("schema_version") if isinstance(value, Mapping) else None
    known = contracts.schema(contract)["properties"]["schema_version"].get("const", 1)
    if not isinstance(version, int) or version <= known:
        return ""
    return f"this netjoule reads versions up to {known}, and the file is of a newer one, {version}"


def hold(document: Document, contract: str, beside: Beside = lambda _: ()) -> None:
    """Hold a document to a contract.

    Args:
        document: to be held.
        contract: its name.
        beside: what else is wrong with it, told when the contract finds something and not of the same place.

    Raises:
        UsageError: for its defects, each with its place; of many the first ones and the number of the others.
    """
    if what := newer(document.value, contract):  # every other field may be another version's
        raise document.refuse(("schema_version",), what, "use a newer netjoule")
    found = list(defects(document.value, contract))
    if not found:
        return
    places = {place for place, _ in found}
    found += [one for one in beside(document.value) if one[0] not in places]
    (place, message), *others = found
    also = [f"; also {document.where(at)}: {what}" for at, what in others[: _MOST_DEFECTS - 1]]
    more = f" (and {len(found) - _MOST_DEFECTS} more)" if len(found) > _MOST_DEFECTS else ""
    raise document.refuse(place, message + "".join(also) + more)


def defects(value: Any, contract: str) -> Iterator[tuple[Place, str]]:
    """Path and sentence of every place where ``value`` breaks the contract; never shows a secret."""
    for error in contracts.errors(contract, value):
        yield from _sentences(error)


def _sentences(error: jsonschema.ValidationError) -> Iterator[tuple[Place, str]]:
    place: Place = tuple(error.absolute_path)
    schema = error.schema if isinstance(error.schema, dict) else {}
    if schema.get("secret"):
        yield place, "a secret is given by reference (env:NAME, file:PATH or vault:NAME), never as a literal"
    elif error.validator == "additionalProperties" and isinstance(error.instance, dict):
        known = schema.get("properties", {})
        for name in sorted(set(map(str, error.instance)) - set(known)):
            guess = did_you_mean(name, known)
            yield (*place, name), f"unknown field{guess or ';'} known here: {', '.join(known)}"
    elif error.validator == "required":
        yield place, f"the field {str(error.message).removesuffix(' is a required property')} is missing"
    else:
        yield place, _short(error, schema)


def _short(error: jsonschema.ValidationError, schema: dict[str, Any]) -> str:
    """One sentence for a value that is out of bounds; containers are not printed."""
    rule = error.validator_value
    shown = repr(error.instance) if not isinstance(error.instance, (dict, list)) else _kind(error.instance)
    if len(shown) > 60:
        shown = shown[:57] + "..."
    unit = f" {schema['unit']}" if schema.get("unit") not in (None, "1") else ""
    sentences = {
        "type": f"{shown} is not {_types(rule)}{_quoted(error.instance, rule)}",
        "enum": f"{shown} is not one of {', '.join(map(str, rule)) if isinstance(rule, list) else rule}"
        + did_you_mean(str(error.instance), rule if isinstance(rule, list) else []),
        "const": f"{shown} must be {rule!r}",
        "minimum": f"{shown} is below the least allowed {rule}{unit}",
        "exclusiveMinimum": f"{shown} must be above {rule}{unit}",
        "maximum": f"{shown} is above the greatest allowed {rule}{unit}",
        "minItems": "the list is too short",
        "uniqueItems": "a value stands twice in the list",
        "minProperties": f"at least {rule} entries are needed",
        "minLength": "the text is too short",
        "maxLength": f"the text is longer than {rule} characters",
        "pattern": f"{shown} does not have the form {rule}",
        "format": f"{shown} is no {rule}",
    }
    return sentences.get(str(error.validator), f"{shown} breaks the rule '{error.validator}'")


def _kind(value: object) -> str:
    return "a mapping" if isinstance(value, dict) else "a list"


_WORDS = {"object": "a mapping", "array": "a list", "string": "text", "number": "a number",
          "integer": "a whole number", "boolean": "true or false", "null": "empty"}  # fmt: skip


def _types(rule: object) -> str:
    names = rule if isinstance(rule, list) else [rule]
    return " or ".join(_WORDS.get(str(n), str(n)) for n in names)


def _quoted(value: object, rule: object) -> str:
    """YAML 1.1 reads the bare words no, off, on and yes as truth values."""
    bare = isinstance(value, bool) and rule == "string"
    return "; put the word into quotes" if bare else _exponent(value, rule)


_EXPONENT = re.compile(r"([-+]?\d+)(\.\d*)?[eE]([-+]?)(\d+)")


def _exponent(value: object, rule: object) -> str:
    """YAML 1.1 reads a number with an exponent as text where its point or the exponent's sign is missing."""
    parts = _EXPONENT.fullmatch(value) if isinstance(value, str) else None
    if parts is None or not {"number", "integer"} & set(rule if isinstance(rule, list) else [rule]):
        return ""
    whole, fraction, sign, exponent = parts.groups(default=".0")
    return f"; write {whole}{fraction}e{sign or '+'}{exponent}"


def _collect(node: yaml.Node, place: Place, lines: dict[Place, int], source: str) -> None:
    """Note the line of each field; refuse a key that stands twice."""
    lines.setdefault(place, node.start_mark.line + 1)
    if isinstance(node, yaml.MappingNode):
        seen: set[str] = set()
        for key, child in node.value:
            name = str(key.value)
            if name in seen:
                raise UsageError(
                    "the field stands twice", where=f"{source}, line {key.start_mark.line + 1}, field {name}"
                )
            seen.add(name)
            lines[(*place, name)] = key.start_mark.line + 1
            _collect(child, (*place, name), lines, source)
    elif isinstance(node, yaml.SequenceNode):
        for index, child in enumerate(node.value):
            _collect(child, (*place, index), lines, source)
