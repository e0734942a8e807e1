# SPDX-License-Identifier: Apache-2.0
"""The names of one campaign and their stand-ins: ``host-1``, ``user-2``, ``ssid-1``, ``serial-3``.

Names are numbered in the order in which they were met, so a stand-in holds nothing of the name. One name has
one stand-in in all files, whatever its case and however a file escapes it.
"""

from __future__ import annotations

import html
import json
import re
import shlex
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from urllib.parse import quote, quote_plus

from netjoule.publishing.detection import domain_of
from netjoule.publishing.identifiers import Kind, nobody, own_prose, own_words

SECRET = "***"  # noqa: S105 - what stands in place of one
_DOMAIN = "domain"
_LIKE_A_STAND_IN = re.compile(rf"(?:{'|'.join(Kind)}|{_DOMAIN})-(\d+)", re.IGNORECASE)
# A shorter name would blot out ordinary words; it is masked where a field or a path holds it.
_LEAST_IN_TEXT = 3
_LEAST_ANYWHERE = 6
_LEAST_SECRET = 4
_WORDS = re.compile(r"\w+", re.ASCII)


class _Reach(IntEnum):
    """Where a name is looked for."""

    FIELD = 0  # only where a field's name or the words around it show what it is
    WORD = 1  # between characters that are neither letters nor digits
    ANYWHERE = 2  # also inside longer words


@dataclass(frozen=True, slots=True)
class Replacement:
    """A part of a text and what takes its place; None leaves it."""

    start: int
    end: int
    stand_in: str | None


class Vocabulary:
    """Takes names in (``note``, ``note_secret``, ``see``), then is settled (``freeze``) and asked.

    Args:
        kept: kinds whose names stay as they are.
    """

    def __init__(self, kept: frozenset[Kind]) -> None:
        self._kept = kept
        self._names: dict[tuple[str, str], str] = {}  # stem and folded name -> name as first met
        self._domains: set[str] = set()  # those that only a field of host names shows to be one
        self._secrets: dict[str, None] = {}
        self._literals: dict[str, str] = {}
        self._taken: set[str] = set()
        self._given: frozenset[str] = frozenset()
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._by_variant: dict[str, str | None] = {}
        self._pattern: re.Pattern[str] | None = None
        self._telling: dict[str, str | None] = {}
        self._short: re.Pattern[str] | None = None

    # -- taking in -------------------------------------------------------------------------------

    def note(self, kind: Kind, text: str) -> None:
        """Take a name in; of a fully qualified host name its first label and its domain too."""
        name = _bare(kind, text)
        if nobody(kind, name):
            return
        if kind is Kind.HOST:
            label, domain = self._split(name)
            if domain:
                self._remember(_DOMAIN, domain)
            if not label or nobody(kind, label):
                return
            self._remember(kind, label)
            if not domain:
                return
        self._remember(kind, name)

    def note_host(self, name: str) -> None:
        """Take in a name from a field of host names, where a domain may end as it likes."""
        _, dot, rest = name.strip().rstrip(".").partition(".")
        if dot and rest:
            self._domains.add(_folded(rest))
        self.note(Kind.HOST, name)

    def note_secret(self, value: str) -> bool:
        """Take in what must stand nowhere; whether it can be looked for in running text."""
        if len(value) < _LEAST_SECRET or value.casefold() in own_words():
            return False
        self.see(value)
        self._secrets.setdefault(value)
        return True

    def note_literal(self, text: str, stand_in: str) -> None:
        """Take in another writing of something that has a stand-in of its own, such as an address."""
        self._literals.setdefault(text, stand_in)

    def see(self, text: str) -> None:
        """Take note of what looks like a stand-in without being one, so that none is given twice."""
        self._taken.update(match.group().lower() for match in _LIKE_A_STAND_IN.finditer(text))

    # -- asking ----------------------------------------------------------------------------------

    def freeze(self) -> None:
        """Number the names and make ready for ``mask`` and ``hits``."""
        numbers: dict[str, int] = {}
        for (stem, folded), name in self._names.items():
            if name in self._secrets or (stem == Kind.HOST and self._split(folded)[1]):
                continue  # the latter are made of their parts
            number = numbers.get(stem, 0) + 1
            while f"{stem}-{number}" in self._taken:
                number += 1
            numbers[stem] = number
            self._stand_ins[stem, folded] = f"{stem}-{number}"
        self._given = frozenset(self._stand_ins.values())
        self._index()

    def counts(self) -> dict[Kind, int]:
        """How many names of each kind are masked; a host counts once, by whichever of its names."""
        wanted = [kind for kind in (Kind.SSID, Kind.HOST, Kind.USER, Kind.SERIAL) if kind not in self._kept]
        return {kind: sum(stem == kind for stem, _ in self._stand_ins) for kind in wanted}

    def only_in_fields(self) -> tuple[str, ...]:
        """Names that are masked, but not in running text, where they mostly mean something else."""
        return tuple(
            name
            for (stem, _), name in self._names.items()
            if stem != _DOMAIN and Kind(stem) not in self._kept and _reach(Kind(stem), name) is _Reach.FIELD
        )

    def mask(self, kind: Kind, text: str) -> str:
        """The stand-in for a name that is known to be of a kind; the name where it is kept or nobody's."""
        name = _bare(kind, text)
        if name in self._secrets:
            return SECRET
        if nobody(kind, name) and _folded(name) in own_words():
            return text
        stand_in = None if nobody(kind, name) else self._stand_in(kind, name)
        if stand_in is None:  # kept or nobody's, unless the same text is also a name of another kind
            others = (self._stand_in(other, name) for other in Kind if other not in (*self._kept, kind))
            stand_in = next((other for other in others if other is not None), None)
        return text if stand_in is None else text.replace(name, stand_in)

    def hits(self, text: str) -> Iterator[Replacement]:
        """Names that stand in a text, in any of their writings."""
        if self._pattern is None:
            return
        for match in self._pattern.finditer(text):
            # A letter may match one that it is no other case of; whatever it was, it does not stay.
            yield Replacement(*match.span(), self._by_variant.get(match.group().lower(), SECRET))

    def left_in(self, text: str) -> Iterator[str]:
        """Masked names that stand in a masked text; a part of a stand-in (host-1 of host-12) is none."""
        own = [match.span() for match in _LIKE_A_STAND_IN.finditer(text) if self._gave(match)]
        at = 0
        while self._pattern is not None and (match := self._pattern.search(text, at)):
            start, at = match.span()
            name = match.group()
            if any(start < end and begin < at for begin, end in own):
                at = start + 1
            elif self._by_variant.get(name.lower(), SECRET) is not None and set(name) != {"*"}:
                yield name

    def longer_words(self, text: str) -> Iterator[str]:
        """Words that have a masked name as a part: it is masked only as a word of its own."""
        if self._short is None or not self._short.search(text):
            return
        for match in _WORDS.finditer(text):
            word = match.group()
            part = self._short.search(word)
            # In a digest or a number it is chance.
            by_chance = re.fullmatch(r"[0-9A-Fa-f]+", word) or word.casefold() in own_prose()
            if part and part.group() != word and not by_chance:
                yield word

    def leaks(self, text: str) -> bool:
        """Whether a masked name that cannot be an ordinary word still stands in a text: the check at the end.

        Independent of how texts are masked: a plain search for every writing.
        """
        lower = text.lower()
        if not self._tells(lower):
            return False
        return self._tells(_LIKE_A_STAND_IN.sub(lambda it: " " if self._gave(it) else it.group(), lower))

    def leaks_in_bytes(self, content: bytes) -> bool:
        """Whether any masked name stands in bytes that are no text; one of three characters may by chance."""
        lower = content.lower()
        names = (name for name, stand_in in self._by_variant.items() if stand_in is not None)
        return any(
            name.encode(errors="replace").lower() in lower for name in names if len(name) > _LEAST_IN_TEXT
        )

    # -- internals -------------------------------------------------------------------------------

    def _gave(self, match: re.Match[str]) -> bool:
        return match.group().lower() in self._given

    def _tells(self, lower: str) -> bool:
        for variant, stand_in in self._telling.items():
            if stand_in is None:
                lower = lower.replace(variant, " ")
        return any(variant in lower for variant, stand_in in self._telling.items() if stand_in is not None)

    def _remember(self, stem: str, name: str) -> None:
        self.see(name)
        self._names.setdefault((stem, _folded(name)), name)

    def _split(self, host: str) -> tuple[str, str]:
        """First label and domain of a host's name; no domain when it is not fully qualified."""
        labels = host.rstrip(".").split(".")
        domain = domain_of(host)
        if domain is None:
            rest = ".".join(labels[1:])
            domain = rest if _folded(rest) in self._domains else ""
        if not domain:
            return host, ""
        return labels[0] if len(labels) > domain.count(".") + 1 else "", domain

    def _stand_in(self, kind: Kind, name: str) -> str | None:
        """None when names of this kind are kept, or this one was never noted."""
        if kind in self._kept:
            return None
        if kind is not Kind.HOST:
            return self._stand_ins.get((kind, _folded(name)))
        label, domain = self._split(_folded(name))
        parts = []
        if label:
            parts.append(label if nobody(kind, label) else self._stand_ins.get((kind, label)))
        if domain:
            parts.append(self._stand_ins.get((_DOMAIN, domain)))
        known = [part for part in parts if part is not None]
        return ".".join(known) if len(known) == len(parts) else None

    def _index(self) -> None:
        """Every writing of every name, and the pattern that finds them, longest first."""
        reaches: dict[str, _Reach] = {}
        for value in self._secrets:
            self._add(value, SECRET, max(_Reach.WORD, _reach(None, value)), reaches, in_hex=True)
        for (stem, folded), name in self._names.items():
            if name in self._secrets:
                continue
            kind = Kind.HOST if stem == _DOMAIN else Kind(stem)
            stand_in = None
            if kind not in self._kept:
                stand_in = self._stand_ins[stem, folded] if stem == _DOMAIN else self._stand_in(kind, name)
            # A private domain such as lan is a word.
            is_word = stem == _DOMAIN and "." not in name
            reach = _Reach.FIELD if is_word else _reach(kind, name)
            self._add(name, stand_in, reach, reaches, in_hex=kind is Kind.SSID)
        for literal, stand_in in self._literals.items():
            self._by_variant.setdefault(literal.lower(), stand_in)
            reaches.setdefault(literal, _Reach.WORD)
        self._telling = {
            variant.lower(): self._by_variant[variant.lower()]
            for variant, reach in reaches.items()
            if reach is _Reach.ANYWHERE
        }
        short = [variant for variant, reach in reaches.items() if reach is _Reach.WORD]
        self._short = self._pattern_of_parts(short)
        before, behind = "(?<![0-9A-Za-z])", "(?![0-9A-Za-z])"
        alternatives = [
            re.escape(variant)
            if reaches[variant] is _Reach.ANYWHERE
            else before + re.escape(variant) + behind
            for variant in sorted(reaches, key=lambda variant: (-len(variant), variant))
        ]
        self._pattern = re.compile("|".join(alternatives), re.IGNORECASE) if alternatives else None

    def _pattern_of_parts(self, variants: list[str]) -> re.Pattern[str] | None:
        """What finds masked names within words; numbers are within many."""
        names = sorted(
            variant
            for variant in variants
            if re.fullmatch(r"\d*[A-Za-z]\w*", variant, re.ASCII)
            and self._by_variant[variant.lower()] not in (None, SECRET)
        )
        return re.compile("|".join(names), re.IGNORECASE) if names else None

    def _add(
        self, name: str, stand_in: str | None, reach: _Reach, reaches: dict[str, _Reach], *, in_hex: bool
    ) -> None:
        if reach is _Reach.FIELD:
            return
        for variant in _writings(name, in_hex=in_hex):
            # A text that is a kept name and a masked one is masked.
            if self._by_variant.get(variant.lower()) is None:
                self._by_variant[variant.lower()] = stand_in
            reaches[variant] = max(reach, reaches.get(variant, reach))


def _bare(kind: Kind, text: str) -> str:
    """A name without the blanks around it, which only an SSID may have."""
    return text if kind is Kind.SSID else text.strip()


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()


def _reach(kind: Kind | None, name: str) -> _Reach:
    """How widely a name (kind None: a secret) may be looked for without hitting what it does not mean."""
    folded = _folded(name)
    number = folded.isdigit() and kind in (Kind.HOST, Kind.USER)
    if folded in own_words() or len(folded) < _LEAST_IN_TEXT or number:
        return _Reach.FIELD
    # Digits, dots and the letters of hexadecimal numbers alone stand in figures and digests as well.
    telling = len(folded) >= _LEAST_ANYWHERE and re.search(r"[^0-9a-f.\-]", folded)
    if telling and not any(folded in word for word in own_words()):
        return _Reach.ANYWHERE
    return _Reach.WORD


def _writings(name: str, *, in_hex: bool) -> set[str]:
    """A name as JSON, CSV, YAML, HTML, addresses, shells and Wi-Fi tools write it."""
    cases = {name, name.strip(), name.upper()}  # the last for letters that become two
    plain = {unicodedata.normalize(form, case) for case in cases for form in ("NFC", "NFD")} | {name}
    if all(re.fullmatch(r"[A-Za-z0-9._-]+", one) for one in plain):
        found = set(plain)
    else:
        found = {writing for one in plain for writing in _escaped(one)}
    if in_hex:
        found |= {name.encode(errors="replace").hex(), name.strip().encode(errors="replace").hex()}
    return {writing for writing in found if len(writing) >= _LEAST_IN_TEXT}


def _escaped(name: str) -> Iterator[str]:
    in_json = [json.dumps(name, ensure_ascii=ascii_only)[1:-1] for ascii_only in (True, False)]
    twice = [
        json.dumps(one, ensure_ascii=ascii_only)[1:-1] for one in in_json for ascii_only in (True, False)
    ]
    in_html = html.escape(name)
    in_bytes = "".join(
        f"\\x{byte:02x}" if not 0x20 <= byte < 0x7F else f"\\{chr(byte)}" if byte in b'"\\' else chr(byte)
        for byte in name.encode(errors="replace")
    )
    # As Python and shells quote; as iw and wpa_supplicant print.
    yield from (name, *in_json, *twice, repr(name)[1:-1], in_bytes, in_bytes.replace(" ", "\\x20"))
    yield from (one.replace('"', '""') for one in (name, *in_json, *twice))
    yield from (name.replace("'", "''"), name.replace("'", "\\'"), name.replace(" ", "\\ "))
    yield from (in_html, in_html.replace("&#x27;", "&#39;"), html.escape(name, quote=False))
    yield from (quote(name), quote(name, safe=""), quote_plus(name))
    yield shlex.quote(name).removeprefix("'").removesuffix("'")
