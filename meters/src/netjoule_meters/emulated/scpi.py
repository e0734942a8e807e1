# SPDX-License-Identifier: Apache-2.0
"""The grammar of IEEE 488.2 instruments as Yokogawa's WT family speaks it (IM 760401-01E p. 14-6..14-8).

Knows headers, short forms, groups, queries, values and the error queue; knows nothing of what a command
does. A command that must wait (``COMMUNICATE:WAIT``) leaves the rest of the dialogue pending.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

DEVICE_CLEAR = b"\x14"
"""DCL of IEEE 488.1: how ports pass a device clear on, in its place among the bytes."""
COMMAND_ERRORS = range(100, 200)
ERROR_TEXTS = {
    0: "No error",
    102: "Syntax error",
    108: "Parameter not allowed",
    109: "Missing parameter",
    113: "Undefined header",
    114: "Header suffix out of range",
    120: "Numeric data error",
    131: "Invalid suffix",
    141: "Invalid character data",
    221: "Setting conflict",
    222: "Data out of range",
    350: "Queue overflow",
    813: "Cannot be set during integration",
    842: "Attempted to start integration while integrating",
    844: "Attempted to stop integration while not integrating",
    845: "Attempted to reset integration while integrating",
}
_QUEUE_LENGTH, _INPUT_BYTES = 20, 256
_MULTIPLIERS = {"P": 1e-12, "N": 1e-9, "U": 1e-6, "M": 1e-3, "K": 1e3, "MA": 1e6, "G": 1e9, "": 1.0}


class ScpiError(Exception):
    """An error for the instrument's error queue."""

    def __init__(self, code: int) -> None:
        super().__init__(ERROR_TEXTS.get(code, ""))
        self.code = code


@dataclass(frozen=True, slots=True)
class Node:
    """One level of a header: ``VOLTage``, ``[:NORMal]``, ``FILTer<n>``."""

    short: str
    long: str
    optional: bool
    numbered: bool

    def matches(self, token: str) -> int | None:
        """Suffix number of ``token`` (1 when it has none), None when it is another word."""
        found = re.fullmatch(r"([A-Z*]+)(\d*)", token)
        if not found or (found[2] and not self.numbered):
            return None
        word = found[1]
        if not (self.long.startswith(word) and word.startswith(self.short)):
            return None
        return int(found[2]) if found[2] else 1


def pattern_nodes(pattern: str) -> tuple[Node, ...]:
    """Levels of a header as manuals print it, for example ``MEASure[:NORMal]:VALue``."""
    nodes = []
    for optional, word, numbered in re.findall(r"(\[?):?([A-Za-z*]+)(<n>)?\]?", pattern):
        short = "".join(letter for letter in word if not letter.islower())
        nodes.append(Node(short, word.upper(), bool(optional), bool(numbered)))
    return tuple(nodes)


def match_header(nodes: Sequence[Node], tokens: Sequence[str]) -> list[int] | None:
    """Suffix numbers of the numbered levels when ``tokens`` name this command, else None."""
    if not nodes:
        return None if tokens else []
    if tokens:
        suffix = nodes[0].matches(tokens[0])
        if suffix is not None:
            rest = match_header(nodes[1:], tokens[1:])
            if rest is not None:
                return [suffix, *rest] if nodes[0].numbered else rest
    return match_header(nodes[1:], tokens) if nodes[0].optional else None


def is_group(nodes: Sequence[Node], tokens: Sequence[str]) -> bool:
    """Whether ``tokens`` name a level above this command."""
    return any(match_header(nodes[:depth], tokens) is not None for depth in range(1, len(nodes)))


def parse_number(text: str, unit: str = "") -> float:
    """``<NRf>`` with an optional multiplier and unit; MA before A is milli, mega is written MAA.

    Raises:
        ScpiError: 120 no number, 131 wrong suffix.
    """
    found = re.fullmatch(r"([+-]?(?:\d+\.?\d*|\.\d+)(?:E[+-]?\d{1,2})?)\s*([A-Z]*)", text.strip().upper())
    if not found:
        raise ScpiError(120)
    suffix = found[2]
    if not suffix:
        return float(found[1])
    if unit and suffix.endswith(unit) and suffix[: -len(unit)] in _MULTIPLIERS:
        return float(found[1]) * _MULTIPLIERS[suffix[: -len(unit)]]
    raise ScpiError(131)


def parse_boolean(text: str) -> bool:
    """``ON``, ``OFF`` or a number (0 is off)."""
    word = text.strip().upper()
    if word in ("ON", "OFF"):
        return word == "ON"
    try:
        return round(parse_number(text)) != 0
    except ScpiError:
        raise ScpiError(141) from None


def parse_word(text: str, choices: Sequence[str]) -> str:
    """One of ``choices`` (written as ``NORMal``) by its short or long form."""
    for choice in choices:
        if pattern_nodes(choice)[0].matches(text.strip().upper()) == 1:
            return choice
    raise ScpiError(141)


@dataclass(frozen=True, slots=True)
class Entry:
    """One command of an instrument.

    Attributes:
        pattern: header as manuals print it.
        get: makes the answer to the query; takes suffix numbers. None: there is no query.
        put: does the command; takes suffix numbers and parameters. None: query only.
        bare: the answer never carries a header.
        grouped: the query of a level above includes this one.
        asks_number: the query takes a number (``VALUE? 3``), given to ``get`` after the suffix numbers.
    """

    pattern: str
    get: Callable[[list[int]], str] | None = None
    put: Callable[[list[int], list[str]], None] | None = None
    bare: bool = False
    grouped: bool = True
    asks_number: bool = False


class ErrorQueue:
    """Errors, oldest first."""

    def __init__(self) -> None:
        self._codes: deque[int] = deque()

    def push(self, code: int) -> None:
        """Add an error; a full queue ends with 350."""
        if len(self._codes) < _QUEUE_LENGTH:
            self._codes.append(code)
        else:
            self._codes[-1] = 350

    def pop(self, with_text: bool) -> str:
        """Take the oldest, as the answer to ``STATUS:ERROR?``."""
        code = self._codes.popleft() if self._codes else 0
        return f'{code},"{ERROR_TEXTS.get(code, "")}"' if with_text else str(code)

    def clear(self) -> None:
        """Forget all."""
        self._codes.clear()


class Interpreter:
    """Takes received bytes, gives bytes to send; ``blocked`` tells when the dialogue is held."""

    def __init__(self, entries: Sequence[Entry], blocked: Callable[[], bool]) -> None:
        self.header = True
        self.verbose = True
        self.errors = ErrorQueue()
        self._entries = [(pattern_nodes(entry.pattern), entry) for entry in entries]
        self._blocked = blocked
        self._input = bytearray()
        self._units: deque[str] = deque()
        self._in_message = False
        self._path: list[str] = []
        self._replies: list[str] = []

    def receive(self, data: bytes) -> None:
        """Put bytes into the input buffer; what does not fit is lost, as on the instrument."""
        self._input += data[: max(0, _INPUT_BYTES - len(self._input))]

    def clear(self) -> None:
        """Device clear: forget what was received and what was to be sent."""
        self._input.clear()
        self._units.clear()
        self._replies.clear()
        self._path, self._in_message = [], False

    def run(self) -> bytes:
        """Do what can be done now and return what is to be sent."""
        output = bytearray()
        while not self._blocked():
            if self._units:
                self._do(self._units.popleft())
            elif self._in_message:
                output += self._finish_message()
            elif not self._next_message():
                break
        return bytes(output)

    def _next_message(self) -> bool:
        line, found, rest = self._input.partition(b"\n")
        if not found:
            return False
        self._input = rest
        text = line.decode("latin-1").strip("\r\n \t\0")
        self._units.extend(unit for unit in text.split(";") if unit.strip())
        self._in_message = True
        return True

    def _finish_message(self) -> bytes:
        replies, self._replies = self._replies, []
        self._path, self._in_message = [], False
        return (";".join(replies) + "\r\n").encode("ascii") if replies else b""

    def _do(self, unit: str) -> None:
        try:
            self._execute(unit.strip())
        except ScpiError as error:
            self.errors.push(error.code)
            if error.code in COMMAND_ERRORS:  # the rest of the message can no longer be trusted
                self._units.clear()

    def _execute(self, unit: str) -> None:
        header, _, data = unit.partition(" ")
        if not data and "?" in header:  # ``FILT? 1`` and ``FILT?1`` alike
            header, _, data = unit.partition("?")
            header += "?"
        is_query = header.endswith("?")
        tokens = self._tokens(header.removesuffix("?").upper())
        parameters = [part.strip() for part in data.split(",")] if data.strip() else []
        for nodes, entry in self._entries:
            suffixes = match_header(nodes, tokens)
            if suffixes is not None and (entry.get if is_query else entry.put) is not None:
                if is_query and entry.asks_number:
                    suffixes = [*suffixes, *(round(parse_number(text)) for text in parameters)]
                self._call(nodes, entry, suffixes, parameters if not is_query else None)
                return
        if is_query and self._answer_group(tokens):
            return
        raise ScpiError(113)

    def _tokens(self, header: str) -> list[str]:
        """Levels of a header; without a leading colon it stands on the level of the unit before it."""
        if header.startswith("*"):
            return [header]
        tokens = header.removeprefix(":").split(":")
        if not header.startswith(":"):
            tokens = [*self._path, *tokens]
        self._path = tokens[:-1]
        return tokens

    def _call(
        self, nodes: Sequence[Node], entry: Entry, suffixes: list[int], parameters: list[str] | None
    ) -> None:
        if parameters is not None:
            assert entry.put is not None
            entry.put(suffixes, parameters)
            return
        assert entry.get is not None
        answer = entry.get(suffixes)
        prefix = "" if entry.bare or not self.header else self._printed(nodes, suffixes) + " "
        self._replies.append(prefix + answer)

    def _answer_group(self, tokens: Sequence[str]) -> bool:
        """Answer the query of an upper level with all settings below it."""
        members = [
            (nodes, entry)
            for nodes, entry in self._entries
            if entry.get
            and entry.grouped
            and not any(node.numbered for node in nodes)
            and is_group(nodes, tokens)
        ]
        if not members:
            return False
        values = []
        for nodes, entry in members:
            assert entry.get is not None
            name = self._printed(nodes[1:], []) + " " if self.header else ""
            values.append(name + entry.get([]))
        group = self._printed(members[0][0][:1], []) + ":" if self.header else ""
        self._replies.append(group + ";".join(values))
        return True

    def _printed(self, nodes: Sequence[Node], suffixes: Sequence[int]) -> str:
        numbers = list(suffixes)
        words = []
        for node in nodes:
            word = node.long if self.verbose else node.short
            words.append(word + (str(numbers.pop(0)) if node.numbered and numbers else ""))
        return ":".join(words)
