# SPDX-License-Identifier: Apache-2.0
"""Two passes over the texts of a campaign: ``Collector`` meets every name, ``Masker`` then puts stand-ins.

Two, because a name may be met last where it is plain (a field of its own) and first where it is not (inside
an error message). A text knows the field it stands in: `identifiers.FIELDS` says what a field holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Protocol

from netjoule.core.errors import InvalidData
from netjoule.core.secrets import is_reference
from netjoule.publishing import detection
from netjoule.publishing.addresses import Address, IpBook, MacBook, from_mac, names_nobody, parsed, spelled
from netjoule.publishing.identifiers import FIELDS, KEPT, SECRET_FIELD, Kind, device_models, own_words
from netjoule.publishing.vocabulary import SECRET, Replacement, Vocabulary
from netjoule_contracts.reading import Unreadable, value_of

_NETWORK_FIELDS = ("addresses", "ipv4", "ipv6", "to")
# Where a meter is: INTERFACE:HOST[:PORT], as netjoule_meters.transports reads it, or a VISA address.
_RESOURCE = re.compile(
    r"^(?:prologix|vxi11|tcp|snmp|modbus|kasa|text):(?!/)(\w[\w.-]*)|TCPIP\d*::(\w[\w.-]*)"
)
_CACHED_CHARS = 300
_CACHED_TEXTS = 200_000


class Visitor(Protocol):
    """What is done with each text."""

    def text(self, field: str, text: str) -> str:
        """A value, by the name of its field or column; a key has the field ''."""

    def number(self, field: str, value: float) -> Any:
        """A number; one that stands where a name or a secret does is one."""


class Books:
    """All that was met in a campaign, with the stand-ins.

    Args:
        kept: kinds that stay as they are.

    Attributes:
        references: to secrets, with their stand-ins.
        unsearched: those of them whose value cannot be looked for in running text.
    """

    def __init__(self, kept: frozenset[Kind]) -> None:
        self.kept = kept
        self.vocabulary = Vocabulary(kept)
        self.ips = IpBook()
        self.macs = MacBook()
        self.references: dict[str, str] = {}
        self.unsearched: list[str] = []

    def freeze(self) -> None:
        """Settle all stand-ins; nothing is met afterwards."""
        self.ips.freeze()
        if Kind.IP not in self.kept:
            for address in self.ips.addresses():
                for sign, instead in ((".", "-"), (".", "_"), (":", "%3A")):
                    if sign in str(address):
                        masked = str(self.ips.mask(address)).replace(sign, instead)
                        self.vocabulary.note_literal(str(address).replace(sign, instead), masked)
        if Kind.MAC not in self.kept:
            for digits in self.macs.addresses():
                masked = self.macs.mask(digits)
                self.vocabulary.note_literal(digits, masked)
                self.vocabulary.note_literal(_in_pairs(digits), _in_pairs(masked))
        self.vocabulary.freeze()

    def keeps(self, address: Address) -> bool:
        """Whether an IP address stays; one that was made from a MAC address tells that one, too."""
        return Kind.IP in self.kept and (Kind.MAC in self.kept or not from_mac(address))

    def counts(self) -> dict[Kind, int]:
        """How many values of each kind are masked; a kind that is kept is left out."""
        found = self.vocabulary.counts()
        for kind, book in ((Kind.IP, self.ips), (Kind.MAC, self.macs)):
            if kind not in self.kept:
                found[kind] = sum(1 for _ in book.addresses())
        return {kind: found[kind] for kind in Kind if kind in found}


def transformed(visitor: Visitor, value: Any, field: str = "") -> Any:
    """A JSON value with every text and key as the visitor gives it back.

    Args:
        visitor: collects or masks.
        value: JSON.
        field: the field that it stands in; the items of a list stand in the list's, all that a field of
            secrets holds in that one.

    Raises:
        InvalidData: when two keys would have one stand-in.
    """
    if isinstance(value, str):
        return visitor.text(field, value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return visitor.number(field, value)
    if isinstance(value, list):
        return [transformed(visitor, item, field) for item in value]
    secret = bool(SECRET_FIELD.search(field))
    keys: dict[str, str] = {}
    found = {}
    for key, child in value.items():
        changed = _key(visitor, field, key, child)
        if changed in keys:
            raise InvalidData(
                f"'{keys[changed]}' and '{key}' are one name, '{changed}', when they are masked",
                next_step="rename one of them",
            )
        keys[changed] = key
        found[changed] = transformed(visitor, child, field if secret else key)
    return found


def _key(visitor: Visitor, field: str, key: str, child: Any) -> str:
    """A key: under hosts it is a host's name (where documents of hosts stand there), else a text."""
    if key in own_words() and field != "hosts":
        return key
    if field == "hosts" and isinstance(child, dict):
        return visitor.text("host", key)
    program, on, host = key.partition(" on ")
    if field == "versions" and on:
        return program + on + visitor.text("host", host)
    return visitor.text("", key)


class Collector:
    """First pass: takes in every name, address and secret. Gives all texts back as they are."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._seen: set[tuple[str, str]] = set()

    def text(self, field: str, text: str) -> str:
        """Take in what a text holds."""
        if not text or (field, text) in self._seen:
            return text
        if len(text) <= _CACHED_CHARS and len(self._seen) < _CACHED_TEXTS:
            self._seen.add((field, text))
        self._books.vocabulary.see(text)
        if keeps_form(field, text):
            return text
        document = embedded(text)
        if document is not None:
            transformed(self, document, field)
        self._field(field, text)
        self._running(text)
        return text

    def number(self, field: str, value: float) -> float:
        """Take in a name or a secret that is written as a number."""
        kind = FIELDS.get(field)
        if SECRET_FIELD.search(field):
            self._books.vocabulary.note_secret(str(value))
        elif kind is not None:
            self._books.vocabulary.note(kind, str(value))
        return value

    def _field(self, field: str, text: str) -> None:
        books = self._books
        if SECRET_FIELD.search(field):
            if is_reference(text):
                books.references.setdefault(text, f"env:NETJOULE_SECRET_{len(books.references) + 1}")
            else:
                books.vocabulary.note_secret(text)
            return
        if field in _NETWORK_FIELDS and "/" in text:
            books.ips.note_network(text)
        kind = FIELDS.get(field)
        if kind is Kind.HOST:
            host = _host_of(text)
            if host is not None:
                books.vocabulary.note_host(host)
        elif kind is not None:
            books.vocabulary.note(kind, text)
        elif field == "resource":
            match = _RESOURCE.search(text)
            host = _host_of(match.group(1) or match.group(2)) if match else None
            if host is not None:
                books.vocabulary.note_host(host)
        elif field == "identification":
            # IEEE 488.2, 10.14: maker, model, serial number, firmware.
            parts = text.split(",")
            if len(parts) == 4 and any(char.isdigit() for char in parts[2]):
                books.vocabulary.note(Kind.SERIAL, parts[2])

    def _running(self, text: str) -> None:
        ssids: list[str] = []
        for reading in detection.readings(text):
            found = list(detection.spans(reading))
            for span in found:
                # Without its escapes a network's name with quotes in it seems to end at the first of them.
                if span.kind is None:
                    self._books.vocabulary.note_secret(span.value)
                elif span.kind is not Kind.SSID or not any(span.value in ssid for ssid in ssids):
                    self._books.vocabulary.note(span.kind, span.value)
            ssids += [span.value for span in found if span.kind is Kind.SSID]
            for mac in detection.macs(reading):
                self._books.macs.note(mac.value)
            for ip in detection.ips(reading):
                if ip.certain:
                    self._books.ips.note(ip.address)


class Masker:
    """Second pass: every name and address becomes its stand-in, every secret three stars."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._done: dict[tuple[str, str], str] = {}

    def text(self, field: str, text: str) -> str:
        """A text with stand-ins."""
        known = self._done.get((field, text))
        if known is not None:
            return known
        masked = self._masked(field, text)
        if len(text) <= _CACHED_CHARS and len(self._done) < _CACHED_TEXTS:
            self._done[field, text] = masked
        return masked

    def number(self, field: str, value: float) -> Any:
        """The stand-in of a name, or of a secret, that is written as a number."""
        if SECRET_FIELD.search(field):
            return SECRET
        kind = FIELDS.get(field)
        masked = str(value) if kind is None else self._books.vocabulary.mask(kind, str(value))
        return value if masked == str(value) else masked

    def free(self, text: str) -> str:
        """Running text with stand-ins."""
        pieces, at = [], 0
        parts = sorted(self._parts(text), key=lambda part: (part.start, -part.end))
        for part in _joined(parts):
            pieces.append(text[at : part.start])
            pieces.append(text[part.start : part.end] if part.stand_in is None else part.stand_in)
            at = part.end
        return "".join([*pieces, text[at:]])

    def _masked(self, field: str, text: str) -> str:
        if not text or keeps_form(field, text):
            return text
        if SECRET_FIELD.search(field):
            return self._books.references.get(text, SECRET)
        document = embedded(text)
        if document is not None:
            masked = transformed(self, document, field)
            return text if masked == document else json.dumps(masked, ensure_ascii=False)
        kind = FIELDS.get(field)
        if kind is Kind.HOST:
            host = _host_of(text)
            if host is not None:
                return text.replace(host, self._books.vocabulary.mask(kind, host), 1)
        elif kind is not None:
            return self._books.vocabulary.mask(kind, text)
        return self.free(text)

    def _parts(self, text: str) -> Iterator[Replacement]:
        books = self._books
        for span in detection.spans(text):
            masked = SECRET if span.kind is None else books.vocabulary.mask(span.kind, span.value)
            yield Replacement(span.start, span.end, None if masked == span.value else masked)
        yield from books.vocabulary.hits(text)
        for mac in detection.macs(text):
            kept = Kind.MAC in books.kept
            yield Replacement(mac.start, mac.end, None if kept else books.macs.mask(mac.value))
        for ip in detection.ips(text):
            kept = books.keeps(ip.address)
            if not names_nobody(ip.address) and (ip.certain or books.ips.knows(ip.address)):
                masked = spelled(books.ips.mask(ip.address, ip.prefix))
                yield Replacement(ip.start, ip.end, None if kept else masked)


def _joined(parts: list[Replacement]) -> Iterator[Replacement]:
    """Parts that overlap as one. The longest decides, but a kept one only where it holds the others."""
    group: list[Replacement] = []
    end = -1
    for part in parts:
        if group and part.start >= end:
            yield _one(group, end)
            group, end = [], -1
        group.append(part)
        end = max(end, part.end)
    if group:
        yield _one(group, end)


def _one(group: list[Replacement], end: int) -> Replacement:
    longest = max(group, key=lambda part: (part.end - part.start, part.stand_in is not None))
    masked = [part for part in group if part.stand_in is not None]
    holds_all = longest.start == group[0].start and longest.end == end
    if longest.stand_in is None and not holds_all and masked:
        longest = max(masked, key=lambda part: part.end - part.start)
    return Replacement(group[0].start, end, longest.stand_in)


def keeps_form(field: str, text: str) -> bool:
    """Whether a value stays because it has the form that netjoule gives to its field."""
    form = KEPT.get(field)
    if form is not None:
        return bool(form.fullmatch(text))
    return field in ("model", "device_model") and text in device_models()


def embedded(text: str) -> Any:
    """The JSON object or list that a text is; None when it is none, or nested beyond reason."""
    if text[:1] not in ("{", "["):
        return None
    try:
        document = value_of(text)
    except Unreadable:
        return None
    return document if isinstance(document, (dict, list)) else None


def _host_of(text: str) -> str | None:
    """The name of ``HOST`` or ``HOST:PORT``; None when an address or a path stands there."""
    match = re.fullmatch(r"([^:/]+)(?::\d+)?", text.strip())
    host = match.group(1) if match else None
    return None if host is None or parsed(host) is not None else host


def _in_pairs(digits: str) -> str:
    """A MAC address as addresses of pages escape it."""
    return "%3A".join(digits[place : place + 2] for place in range(0, len(digits), 2))
