# SPDX-License-Identifier: Apache-2.0
"""The last look at a bundle: nothing that was to be masked is in it, whatever was done to mask it.

Searched are names of files, every text of the campaign's files by its field, and what netjoule writes beside
them: for names in all their writings, for addresses and for secrets. Not searched for are, outside fields of
their own, names that are masked only there (words of netjoule, one or two characters), and, in what netjoule
writes, names of letters or of digits alone and words that it uses itself. Names within longer words are told.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

import yaml

from netjoule.core.errors import RunFailed
from netjoule.publishing import archive, detection, papers
from netjoule.publishing.campaign_files import Form, Part, holds_texts, parts, visit
from netjoule.publishing.identifiers import FIELDS, SECRET_FIELD, Kind, own_prose
from netjoule.publishing.masking import Books, Masker, embedded, keeps_form, transformed
from netjoule.publishing.vocabulary import SECRET
from netjoule.validation.check import check_campaign

LONGEST_SEARCHED = 4096
_BLOCK = 1 << 20


def require_masked(folder: Path, books: Books, authors: Iterable[str]) -> tuple[str, ...]:
    """Check a bundle: no defect, and nothing that was to be masked. What fails here is a fault of ours.

    Args:
        folder: the bundle, without its checksums.
        books: what was met.
        authors: names that the publisher wants to be in it.

    Returns:
        words of the bundle that a masked name is a part of; whether they tell it, somebody has to see.

    Raises:
        RunFailed: naming the file.
    """
    for defect in check_campaign(folder):
        raise RunFailed(
            f"the masked campaign has a defect: {defect}", next_step="this is a defect of netjoule, report it"
        )
    searcher = Searcher(books)
    own = {part.name: part for part in parts(folder)}
    for name in archive.file_names(folder):
        try:
            _search_file(folder, name, own.get(name), searcher, authors)
        except Left:
            raise RunFailed(
                "it would still hold a name that is to be masked; nothing was written",
                where=name,
                next_step="this is a defect of netjoule, report it",
            ) from None
    return tuple(sorted(searcher.longer_words))


class Left(Exception):
    """Something that was to be masked; what it is, nobody shall read."""


class Searcher:
    """A visitor that raises at the first value which was to be masked."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._masker = Masker(books)
        self._own = {"", SECRET, *books.references.values()}
        self._sound: set[tuple[str, str]] = set()
        self.longer_words: set[str] = set()

    def text(self, field: str, text: str) -> str:
        """Search a value of a field, or a key."""
        if (field, text) in self._sound or keeps_form(field, text):
            return text
        document = embedded(text)
        if document is not None and not SECRET_FIELD.search(field):
            transformed(self, document, field)
        else:
            kind = FIELDS.get(field)
            unmasked = kind is not None and self._books.vocabulary.mask(kind, text) != text
            if unmasked or (SECRET_FIELD.search(field) and text not in self._own):
                raise Left
            if text not in self._own and any(True for _ in self.left_in(text)):
                raise Left
            self.longer_words.update(self._books.vocabulary.longer_words(text))
        self._sound.add((field, text))
        return text

    def number(self, field: str, value: float) -> float:
        """Search a number, which may be a name or a secret."""
        if self._masker.number(field, value) != value:
            raise Left
        return value

    def prose(self, text: str) -> None:
        """Search what netjoule writes, in words of its own."""
        for left in self.left_in(text):
            may_be_ours = re.fullmatch("[A-Za-z]+|[^A-Za-z]+", left) or left.casefold() in own_prose()
            if not may_be_ours:
                raise Left
        self.longer_words.update(self._books.vocabulary.longer_words(text))

    def plain(self, text: str) -> None:
        """Search any text for names that cannot be ordinary words."""
        if self._books.vocabulary.leaks(text) and self._books.vocabulary.leaks(self._without_stand_ins(text)):
            raise Left

    def left_in(self, text: str) -> Iterator[str]:
        """Everything that was to be masked and stands in a text, addresses first."""
        books = self._books
        addresses = []
        for ip in detection.ips(text):
            if ip.certain or books.ips.knows(ip.address):
                addresses.append((ip.start, ip.end))
            if books.ips.leaks(ip.address) and not books.keeps(ip.address):
                yield f"IP {ip.written}"
        for mac in detection.macs(text):
            addresses.append((mac.start, mac.end))
            if books.macs.leaks(mac.value) and Kind.MAC not in books.kept:
                yield f"MAC {mac.value}"
        for start, end in addresses:  # stand-ins, or kept: a number in them is no name
            text = text[:start] + " " * (end - start) + text[end:]
        yield from books.vocabulary.left_in(text)

    def _without_stand_ins(self, text: str) -> str:
        """A text without the addresses and references that the bundle gives: a name may be a part of one."""
        books = self._books
        for reference in sorted(books.references.values(), key=len, reverse=True):
            text = text.replace(reference, " ")
        given = {mac.value for mac in detection.macs(text) if not books.macs.leaks(mac.value)}
        given |= {ip.written for ip in detection.ips(text) if not books.ips.leaks(ip.address)}
        for address in sorted(given, key=len, reverse=True):
            text = text.replace(address, " ")
        return text


def _search_file(
    folder: Path, name: str, part: Part | None, searcher: Searcher, authors: Iterable[str]
) -> None:
    path, place = folder / name, PurePosixPath(name)
    if part is not None:
        if place.parts[0] in ("meters", "devices", "radio") or part.form is Form.CAPTURE:
            searcher.text("", place.stem)
        visit(folder, part, searcher)
        if not holds_texts(part):
            return
    elif name in (papers.WORKLOAD, papers.TOPOLOGY):
        transformed(searcher, yaml.safe_load(path.read_text(encoding="utf-8")))
    elif name in papers.beside():
        transformed(searcher, json.loads(path.read_text(encoding="utf-8")))
    else:
        searcher.prose(_without(authors, name, path.read_text(encoding="utf-8")))
        return
    for block in _blocks(path):
        searcher.plain(block)


def _without(authors: Iterable[str], name: str, text: str) -> str:
    """A text of a file without the names that are meant to be in it."""
    if name == papers.CITATION:
        citation = yaml.safe_load(text)
        citation.pop("authors")
        return str(yaml.safe_dump(citation, allow_unicode=True))
    for author in sorted(authors, key=len, reverse=True):
        text = text.replace(author, " ")
    return text


def _blocks(path: Path) -> Iterator[str]:
    """A text file in pieces that overlap, so that no name is cut."""
    tail = ""
    with path.open(encoding="utf-8") as handle:
        while block := handle.read(_BLOCK):
            yield tail + block
            tail = block[-LONGEST_SEARCHED:]
