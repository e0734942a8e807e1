# SPDX-License-Identifier: Apache-2.0
"""The contracts of netjoule for Python: where the schemas are and how a document is held to them.

The schemas themselves are the JSON files of ``protocols/contracts``; Rust and R read the same files.
"""

from __future__ import annotations

import functools
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from netjoule_contracts import reading
from netjoule_contracts.lift import plan as older_plan

if TYPE_CHECKING:
    import jsonschema

_FINITE = sys.float_info.max
OF_BLOCK = "block_"


class ContractError(ValueError):
    """A document or table does not fit its contract; the text names the place and the rule."""


@functools.cache
def root() -> Path:
    """Folder that holds ``schemas`` and ``tables`` (and in a source tree ``vectors``).

    ``NETJOULE_CONTRACTS`` wins; otherwise it is the folder this source tree stands in, or for an installed
    package its own copy of that folder.

    Raises:
        ContractError: when none of these has the schemas.
    """
    named = os.environ.get("NETJOULE_CONTRACTS")
    here = Path(__file__).resolve()
    places = [Path(named)] if named else [here.parents[2], here.parent / "data"]
    for place in places:
        if (place / "schemas").is_dir():
            return place
    raise ContractError(
        f"no contracts in {places[0]}: "
        "set NETJOULE_CONTRACTS to the folder protocols/contracts of a netjoule checkout"
    )


@functools.cache
def transports() -> dict[str, dict[str, Any]]:
    """Description of every transport by its name, in the order of netjoule-traffic's registry."""
    return {entry["name"]: entry for entry in _load(root() / "transports.json")["transports"]}


@functools.cache
def loads() -> dict[str, dict[str, Any]]:
    """What loads.json says of every load, by its name."""
    return {entry["name"]: entry for entry in _load(root() / "loads.json")["loads"]}


@functools.cache
def factors() -> dict[str, dict[str, Any]]:
    """What factors.json says of every factor, by its name, with the transports that there are."""
    return {entry["name"]: _expanded(entry) for entry in _load(root() / "factors.json")["factors"]}


@functools.cache
def datasets() -> dict[str, dict[str, Any]]:
    """What datasets.json says of every set of files that transfers move, by its name."""
    return {entry["name"]: entry for entry in _load(root() / "datasets.json")["datasets"]}


def factor(name: str) -> dict[str, Any] | None:
    """What factors.json says of a factor, also of one that is known by the form of its name; else None."""
    found = factors().get(name, {})
    if found and "names" not in found:
        return found
    return next((one for one in factors().values() if "names" in one and has_form(name, one["names"])), None)


def factor_documents() -> dict[str, str]:
    """The contracts of factors whose values may be documents, by the factor's name."""
    return {name: entry["document"] for name, entry in factors().items() if "document" in entry}


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """JSON Schema ``name`` (for example ``"run"``), with the transports and ranges of factors there are."""
    made: dict[str, Any] = _expanded(_load(root() / "schemas" / f"{name}.schema.json"))
    return made


@functools.cache
def table(name: str) -> dict[str, Any]:
    """Table Schema ``name`` (for example ``"plan"``), with the transports that there are.

    ``block_NAME``: of a simulated block, which holds the rows of all its runs.
    """
    if name.startswith(OF_BLOCK):
        return _of_block(name, table(name.removeprefix(OF_BLOCK)))
    made: dict[str, Any] = _expanded(_load(root() / "tables" / f"{name}.table.json"))
    return made


def _of_block(name: str, of_run: dict[str, Any]) -> dict[str, Any]:
    run_id = next(field for field in table("plan")["fields"] if field["name"] == "run_id")
    rules = {rule: value for rule, value in run_id["constraints"].items() if rule != "unique"}
    made = of_run | {"name": name, "fields": [run_id | {"constraints": rules}, *of_run["fields"]]}
    return made | {"primaryKey": ["run_id", *of_run["primaryKey"]]} if "primaryKey" in of_run else made


def _expanded(node: Any) -> Any:
    """The same with what a contract leaves to factors.json (ranges) and transports.json (names, options)."""
    if isinstance(node, list):
        return [_expanded(entry) for entry in node]
    if not isinstance(node, dict):
        return node
    made = {key: _expanded(value) for key, value in node.items() if not key.startswith("x-")}
    if "x-factor" in node:
        made = {**factors()[node["x-factor"]]["value"], **made}
    if node.get("x-transports") == "names":
        # The pattern is for readers of the file itself.
        made.pop("pattern")
        made["enum"] = list(transports())
    elif node.get("x-transports") == "options":
        options = {name: _options_of(entry) for name, entry in transports().items() if entry["options"]}
        made |= _closed(made.get("properties", {}) | options)
    if "x-factors" in node:
        made |= _factor_fields(as_lists=node["x-factors"] == "lists")
    if node.get("x-loads") == "names":
        made["enum"] = list(loads())
    elif node.get("x-loads") == "settings":
        made["properties"] |= {name: schema(f"workload_{name}") for name in loads() if _has_settings(name)}
    return made


def _factor_fields(*, as_lists: bool) -> dict[str, Any]:
    """Fields of an object with values of factors: one of each, or a list."""
    found: dict[str, dict[str, Any]] = {"properties": {}, "patternProperties": {}}
    for name, entry in factors().items():
        described = {key: entry[key] for key in ("description", "unit") if key in entry}
        value = {**described, **entry["value"]}
        value = _or_list(value) if as_lists else value
        if "names" in entry:
            found["patternProperties"][entry["names"]] = value
        else:
            found["properties"][name] = value
    return {**found, "additionalProperties": False, "required": []}


def _or_list(value: dict[str, Any]) -> dict[str, Any]:
    """A value, or a list of such: what is said of the value holds of no list, what of lists of no value."""
    kinds = value["type"] if isinstance(value["type"], list) else [value["type"]]
    own = {rule: said for rule, said in value.items() if rule != "enum"}
    if "enum" in value:
        own["pattern"] = f"^({'|'.join(map(re.escape, value['enum']))})$"
    lists = {"type": [*kinds, "array"], "items": value, "minItems": 1, "uniqueItems": True}
    return {**own, **lists}


def _has_settings(load: str) -> bool:
    return (root() / "schemas" / f"workload_{load}.schema.json").is_file()


def _options_of(transport: dict[str, Any]) -> dict[str, Any]:
    options = {
        option["name"]: {"description": option["description"], **option["value"]}
        for option in transport["options"]
        if not option.get("seldom", False)
    }
    return {"description": f"Options of {transport['label']}.", "type": "object"} | _closed(options)


def _closed(properties: dict[str, Any]) -> dict[str, Any]:
    return {"properties": properties, "required": [], "additionalProperties": False}


def has_form(text: str, pattern: str) -> bool:
    """Whether ``text`` matches a pattern of a contract: its ``$`` is the end, not also before a line feed."""
    return re.search(re.sub(r"(?<!\\)\$$", r"\\Z", pattern), text) is not None


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """What holds documents to schema ``name``, formats included."""
    import jsonschema  # here: it takes longer to load than all else of ours, and most of it never asks

    def pattern(_: Any, rule: str, instance: Any, __: Any) -> Iterator[jsonschema.ValidationError]:
        if isinstance(instance, str) and not has_form(instance, rule):
            yield jsonschema.ValidationError(f"{instance!r} does not match {rule!r}")

    base = jsonschema.Draft202012Validator
    ours: type[jsonschema.Draft202012Validator] = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
        base,
        {"pattern": pattern},
        # a tuple is written to a file as an array
        type_checker=base.TYPE_CHECKER.redefine("array", lambda _, value: isinstance(value, list | tuple)),
    )
    return ours(schema(name), format_checker=jsonschema.FormatChecker())


@functools.cache
def _surely_fits(name: str) -> Callable[[Any], bool]:
    """Says yes of documents that fit schema ``name``, a hundred times as fast; a no decides nothing."""
    try:
        import jsonschema_rs
    except ImportError:  # there is not one built for every machine
        return lambda _: False
    is_valid = jsonschema_rs.validator_for(schema(name), validate_formats=True).is_valid

    def surely_fits(document: Any) -> bool:
        try:
            return bool(is_valid(document))
        except (TypeError, ValueError):  # what no JSON file has, or deeper than it looks
            return False

    return surely_fits


def errors(name: str, document: Any) -> list[jsonschema.ValidationError]:
    """Every place where ``document`` breaks schema ``name``, in the order of places; empty when it fits."""
    if _surely_fits(name)(document):
        return []
    return sorted(validator(name).iter_errors(document), key=lambda e: list(map(str, e.absolute_path)))


def document_defects(name: str, document: Any) -> list[str]:
    """Every place where ``document`` breaks schema ``name``, one sentence each; empty when it fits."""
    return [f"{_place(e.absolute_path)}: {_message(e)}" for e in errors(name, document)]


def _message(error: jsonschema.ValidationError) -> str:
    """What is wrong; a literal secret is not quoted."""
    if isinstance(error.schema, dict) and error.schema.get("secret"):
        return "a secret is given by reference (env:NAME or file:PATH), never as a literal"
    return str(error.message)


def validate(name: str, document: Any) -> None:
    """Hold ``document`` to schema ``name``.

    Raises:
        ContractError: naming every offending field.
    """
    defects = document_defects(name, document)
    if defects:
        raise ContractError(f"does not fit the contract '{name}': " + "; ".join(defects))


def table_defects(name: str, path: Path, *, torn: bool = False) -> Iterator[str]:
    """Every place where the CSV file ``path`` breaks Table Schema ``name``, one sentence each.

    The header must be one that ``fields_of`` knows; a row that was cut off by a crash (last line without
    its newline) is reported as such unless it may be there (``torn``), and one that cannot be read by itself
    leaves those behind it.

    Raises:
        Unreadable, OSError: as `reading.rows`.
    """
    names = [str(f["name"]) for f in table(name)["fields"]]
    rows = reading.rows(path, whole_lines=torn)
    _, header, defect = next(rows, reading.Row(1, []))
    fields = fields_of(name, header)
    if defect or fields is None:
        yield f"line 1: {defect or f'the header is {_shown(header)}, the contract {name!r} wants {names}'}"
        return
    fits = [_quick_fit(field) for field in fields]
    for line, row, defect in rows:
        if defect:
            yield f"line {line}: {defect}"
        elif len(row) != len(fits) or not all(fit(cell) for fit, cell in zip(fits, row, strict=True)):
            yield from _row_defects(line, row, fields)


def fields_of(name: str, header: Sequence[str]) -> list[dict[str, Any]] | None:
    """Fields of Table Schema ``name`` that a file with this header has; None for a header that does not fit.

    The header equals the schema's columns. A field with a ``default`` was added to the contract later: a file
    from before it lacks the column, and the default is what such a file means. Behind the columns of a plan
    stand those of its factors.
    """
    schema = table(older_plan.contract_of(name, header))
    fields = [f for f in schema["fields"] if f["name"] in header or "default" not in f]
    if schema.get("factorColumns"):
        fields += [_factor_field(factor_name) for factor_name in header[len(fields) :] if factor(factor_name)]
    names = [str(f["name"]) for f in fields]
    return fields if names == list(header) and len(set(names)) == len(names) else None


_COLUMN_RULES = ("minimum", "maximum", "exclusiveMinimum", "enum")


def _factor_field(name: str) -> dict[str, Any]:
    """The column of a factor that there is; values of several types are text."""
    entry = factor(name) or {}
    value = entry["value"]
    kind = value["type"] if value["type"] in ("integer", "number", "boolean") else "string"
    rules = {rule: value[rule] for rule in _COLUMN_RULES if rule in value}
    unit = {"unit": entry["unit"]} if "unit" in entry else {}
    described = {"name": name, "type": kind, "description": entry["description"], **unit}
    return described | {"constraints": {"required": True, **rules}}


def _quick_fit(field: dict[str, Any]) -> Callable[[str], bool]:
    """Says yes of most cells that fit, in a third of the time that naming a defect takes."""
    constraints = field.get("constraints", {})
    allowed = frozenset(constraints.get("enum", ()))
    if allowed and field["type"] == "string":
        return allowed.__contains__
    if allowed or field["type"] not in ("integer", "number"):
        return lambda cell: _cell_problem(cell, field) is None
    number: Callable[[str], float] = int if field["type"] == "integer" else float
    least, most = constraints.get("minimum", -_FINITE), constraints.get("maximum", _FINITE)
    required = bool(constraints.get("required"))

    def fits(cell: str) -> bool:
        try:
            return least <= number(cell) <= most and len(cell) <= reading.MOST_DIGITS
        except ValueError:
            return not (cell or required)

    return fits


def _row_defects(line: int, row: Sequence[str], fields: Sequence[dict[str, Any]]) -> Iterator[str]:
    if len(row) != len(fields):
        yield f"line {line}: {len(row)} columns instead of {len(fields)}"
        return
    for cell, field in zip(row, fields, strict=True):
        problem = _cell_problem(cell, field)
        if problem:
            yield f"line {line}, column {field['name']}: {problem}"


def _cell_problem(cell: str, field: dict[str, Any]) -> str | None:
    constraints = field.get("constraints", {})
    if cell == "":
        return "is empty but required" if constraints.get("required") else None
    allowed = constraints.get("enum")
    if allowed is not None and cell not in allowed:
        return f"{_shown(cell)} is not one of {allowed}"
    kind = field["type"]
    if kind == "boolean":
        return None if cell in ("true", "false") else f"{_shown(cell)} is neither true nor false"
    if kind not in ("integer", "number"):
        return None
    return _number_problem(cell, kind, constraints)


def _number_problem(cell: str, kind: str, constraints: dict[str, Any]) -> str | None:
    if len(cell) > reading.MOST_DIGITS:
        return f"a number of {len(cell)} digits; {reading.MOST_DIGITS} are the most"
    try:
        value = int(cell) if kind == "integer" else float(cell)
    except ValueError:
        return f"{_shown(cell)} is not a valid {kind}"
    if not math.isfinite(value):
        return f"{cell!r} is not finite; a missing value is written as an empty cell"
    if "minimum" in constraints and value < constraints["minimum"]:
        return f"{cell} is below the least allowed {constraints['minimum']}"
    if "maximum" in constraints and value > constraints["maximum"]:
        return f"{cell} is above the greatest allowed {constraints['maximum']}"
    return None


def _shown(value: object) -> str:
    """A value as messages quote it: no more of it than a line takes."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _place(path: Sequence[Any]) -> str:
    return ".".join(str(part) for part in path) or "(document)"


def _load(path: Path) -> dict[str, Any]:
    try:
        document: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ContractError(f"no contract file {path.name} in {path.parent}") from None
    return document
