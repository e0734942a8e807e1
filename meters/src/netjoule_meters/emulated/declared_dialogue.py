# SPDX-License-Identifier: Apache-2.0
"""Dialogues of emulated instruments declared as YAML, in pyvisa-sim's form (its documentation, "Building
your own simulated instruments").

Understood: ``spec``, ``devices``, and of a device ``eom``, ``error``, ``dialogues`` (``q``, ``r``) and
``properties`` (``default``, ``getter``, ``setter``, ``specs`` with ``type``, ``min``, ``max``, ``valid``).
A dialogue without ``r`` has no answer. Four things are added for instruments whose answers take time or
whose commands carry no number: ``r`` may name properties (``{function}``), ``set`` gives properties new
values, ``call`` leaves the dialogue to a function of the instrument, ``ignore_case`` is for a whole device.
Anything else in a file is refused: an instrument must not seem to know what it does not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from netjoule_meters.errors import UsageError

_NULL_RESPONSE = "null_response"
_TYPES: Mapping[str, Callable[[str], Any]] = {"int": int, "float": float, "str": str}
_INPUT_BYTES = 256

Call = Callable[[], str | None]


@dataclass(frozen=True, slots=True)
class Dialogue:
    """One question or command.

    Attributes:
        answer: format of the answer, with properties by name; None for no answer.
        call: name of the function that answers instead.
        new_values: properties that it sets.
    """

    answer: str | None
    call: str | None
    new_values: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Specs:
    """What values a property may take."""

    type: str = "str"
    min: float | None = None
    max: float | None = None
    valid: tuple[Any, ...] = ()

    def value(self, text: str) -> Any:
        """The value that ``text`` stands for.

        Raises:
            ValueError: when the property cannot take it.
        """
        value = _TYPES[self.type](text.strip())
        if self.valid and value not in self.valid:
            raise ValueError(text)
        if (self.min is not None and value < self.min) or (self.max is not None and value > self.max):
            raise ValueError(text)
        return value


@dataclass(frozen=True, slots=True)
class Property:
    """A property with its query and its command; ``{}`` in them is the value."""

    name: str
    default: Any
    getter: tuple[str, str] | None
    setter: tuple[str, str | None, str | None] | None
    specs: Specs


@dataclass(frozen=True, slots=True)
class Declaration:
    """One device of a file.

    Attributes:
        ends: what ends a question and an answer.
        error: answer to what is not understood; None for none.
        dialogues: by the question.
    """

    name: str
    ends: tuple[bytes, bytes]
    error: str | None
    ignore_case: bool
    dialogues: Mapping[str, Dialogue]
    properties: tuple[Property, ...]


@dataclass
class DeclaredDialogue:
    """A device that answers as declared.

    Attributes:
        calls: functions for dialogues with ``call``; None as their answer stands for no answer now.
        changed: told name, old and new value of each property that is set.
    """

    declaration: Declaration
    calls: Mapping[str, Call] = field(default_factory=dict)
    changed: Callable[[str, Any, Any], None] = lambda _name, _old, _new: None
    values: dict[str, Any] = field(init=False)
    _input: bytearray = field(init=False, default_factory=bytearray)

    def __post_init__(self) -> None:
        self.values = {property_.name: property_.default for property_ in self.declaration.properties}
        wanted = {dialogue.call for dialogue in self.declaration.dialogues.values() if dialogue.call}
        if wanted != set(self.calls):
            raise UsageError(f"{self.declaration.name}: calls are {sorted(wanted)}, not {sorted(self.calls)}")

    def receive(self, data: bytes) -> bytes:
        """Take bytes from a client; the answers to whole questions, each with its end."""
        end_of_question, end_of_answer = self.declaration.ends
        self._input += data
        *questions, rest = bytes(self._input).split(end_of_question)
        self._input = bytearray(rest[-_INPUT_BYTES:])
        answers = [self.answer(question.decode("latin-1").strip("\r\n \0")) for question in questions]
        return b"".join(text.encode("latin-1") + end_of_answer for text in answers if text is not None)

    def answer(self, question: str) -> str | None:
        """The answer to one question or command; None when there is none."""
        if not question:
            return None
        key = self._key(question)
        dialogue = self.declaration.dialogues.get(key)
        if dialogue is not None:
            for name, value in dialogue.new_values.items():
                self.set(name, value)
            if dialogue.call is not None:
                return self.calls[dialogue.call]()
            return None if dialogue.answer is None else dialogue.answer.format(**self.values)
        return self._answer_of_property(key)

    def set(self, name: str, value: Any) -> None:
        """Give a property a new value."""
        old, self.values[name] = self.values[name], value
        self.changed(name, old, value)

    def _answer_of_property(self, key: str) -> str | None:
        for property_ in self.declaration.properties:
            if property_.getter is not None and key == self._key(property_.getter[0]):
                return property_.getter[1].format(self.values[property_.name])
        for property_ in self.declaration.properties:
            if property_.setter is None:
                continue
            pattern, answer, error = property_.setter
            found = re.fullmatch(_as_regex(self._key(pattern)), key)
            if found is None:
                continue
            try:
                value = property_.specs.value(found[1])
            except ValueError:
                return error if error is not None else self.declaration.error
            self.set(property_.name, value)
            return answer
        return self.declaration.error

    def _key(self, question: str) -> str:
        return question.upper() if self.declaration.ignore_case else question


def load_declaration(path: Path, device: str) -> Declaration:
    """The device called ``device`` in a file.

    Raises:
        UsageError: saying what in the file is not understood.
    """
    import yaml

    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    where = f"{path.name}, {device}"
    _demand_keys(document, {"spec", "devices"}, {"spec", "devices"}, path.name)
    if device not in document["devices"]:
        raise UsageError(f"{path.name} declares no device '{device}'")
    declared = document["devices"][device]
    _demand_keys(declared, {"eom"}, {"eom", "error", "ignore_case", "dialogues", "properties"}, where)
    ignore_case = bool(declared.get("ignore_case", False))
    dialogues = {
        question.upper() if ignore_case else question: dialogue
        for question, dialogue in (_dialogue(entry, where) for entry in declared.get("dialogues", []))
    }
    properties = tuple(
        _property(name, entry, f"{where}, property {name}")
        for name, entry in declared.get("properties", {}).items()
    )
    unknown = {name for dialogue in dialogues.values() for name in dialogue.new_values}
    unknown -= {property_.name for property_ in properties}
    if unknown:
        raise UsageError(f"{where}: a dialogue sets {', '.join(sorted(unknown))}, which is no property")
    error = declared.get("error", _NULL_RESPONSE)
    return Declaration(
        device,
        _ends(declared["eom"], where),
        None if error == _NULL_RESPONSE else str(error),
        ignore_case,
        dialogues,
        properties,
    )


def _ends(eom: Mapping[str, Any], where: str) -> tuple[bytes, bytes]:
    """Ends of the first kind of port declared."""
    kinds = list(eom.values())
    if not kinds:
        raise UsageError(f"{where}: eom names no kind of port")
    _demand_keys(kinds[0], {"q", "r"}, {"q", "r"}, f"{where}, eom")
    return kinds[0]["q"].encode("latin-1"), kinds[0]["r"].encode("latin-1")


def _dialogue(entry: Mapping[str, Any], where: str) -> tuple[str, Dialogue]:
    _demand_keys(entry, {"q"}, {"q", "r", "set", "call"}, f"{where}, dialogue {entry.get('q')!r}")
    if "r" in entry and "call" in entry:
        raise UsageError(f"{where}, dialogue {entry['q']!r}: give r or call, not both")
    return str(entry["q"]), Dialogue(entry.get("r"), entry.get("call"), dict(entry.get("set", {})))


def _property(name: str, entry: Mapping[str, Any], where: str) -> Property:
    _demand_keys(entry, {"default"}, {"default", "getter", "setter", "specs"}, where)
    getter, setter = entry.get("getter"), entry.get("setter")
    if getter is not None:
        _demand_keys(getter, {"q", "r"}, {"q", "r"}, f"{where}, getter")
    if setter is not None:
        _demand_keys(setter, {"q"}, {"q", "r", "e"}, f"{where}, setter")
        if len(re.findall(r"\{[^{}]*\}", setter["q"])) != 1:
            raise UsageError(f"{where}: a setter holds its value once, as {{}}")
    specs = dict(entry.get("specs", {}))
    _demand_keys(specs, set(), {"type", "min", "max", "valid"}, f"{where}, specs")
    if specs.get("type", "str") not in _TYPES:
        raise UsageError(f"{where}: type is {specs['type']!r}, not one of {', '.join(_TYPES)}")
    specs["valid"] = tuple(specs.get("valid", ()))
    return Property(
        name,
        entry["default"],
        None if getter is None else (getter["q"], getter["r"]),
        None if setter is None else (setter["q"], setter.get("r"), setter.get("e")),
        Specs(**specs),
    )


def _demand_keys(entry: Any, needed: set[str], known: set[str], where: str) -> None:
    if not isinstance(entry, Mapping):
        raise UsageError(f"{where}: expected names and values, not {entry!r}")
    missing, unknown = needed - set(entry), set(map(str, entry)) - known
    if missing:
        raise UsageError(f"{where}: {', '.join(sorted(missing))} is missing")
    if unknown:
        raise UsageError(f"{where}: {', '.join(sorted(unknown))} is not understood")


def _as_regex(pattern: str) -> str:
    """A setter's format as a regular expression; its one field takes the value."""
    before, after = re.split(r"\{[^{}]*\}", pattern)
    return re.escape(before) + "(.+)" + re.escape(after)
