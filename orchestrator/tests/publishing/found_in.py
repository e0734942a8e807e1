# SPDX-License-Identifier: Apache-2.0
"""Whether a name stands anywhere in a folder: in a file's name or content, however it is written there.

Written without the code that masks: files are read as what they are (JSON, CSV, YAML, text), texts inside
texts too, escapes undone, addresses compared as addresses.
"""

from __future__ import annotations

import csv
import html
import io
import ipaddress
import json
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import yaml

_SHORT = 3


class Found:
    """Everything that a folder says, to be asked with ``in``."""

    def __init__(self, folder: Path) -> None:
        self._texts: set[str] = set()
        self._addresses: set[ipaddress.IPv4Address | ipaddress.IPv6Address] = set()
        for path in sorted(folder.rglob("*")):
            self._take(path.relative_to(folder).as_posix())
            if path.is_file() and not path.name.startswith(".") and path.suffix != ".pcapng":
                for text in _texts_of(path):
                    self._take(text)
        self._all = "\n".join(sorted(self._texts))
        self._digits = re.sub("[.:_-]", "", self._all)

    def __contains__(self, name: str) -> bool:
        try:
            return ipaddress.ip_address(name) in self._addresses
        except ValueError:
            pass
        if re.fullmatch(r"[0-9a-fA-F]{2}([:-][0-9a-fA-F]{2}){5}|([0-9a-fA-F]{4}\.){2}[0-9a-fA-F]{4}", name):
            return re.sub("[.:-]", "", name).lower() in self._digits
        plain = unicodedata.normalize("NFC", name).lower()
        if len(plain) <= _SHORT:
            return bool(re.search(rf"(?<![a-z0-9]){re.escape(plain)}(?![a-z0-9])", self._all))
        return plain in self._all

    def _take(self, text: str) -> None:
        for reading in _readings(text):
            self._texts.add(unicodedata.normalize("NFC", reading).lower())
            for word in re.findall(r"[0-9A-Fa-f:.]{3,}", reading):
                for candidate in (word, word.strip(":."), word.rpartition(":")[0], word.lstrip(":")):
                    try:
                        self._addresses.add(ipaddress.ip_address(candidate))
                    except ValueError:
                        continue


def _readings(text: str) -> Iterator[str]:
    for _ in range(5):
        yield text
        plain = re.sub(r"\\u([0-9a-fA-F]{4})", lambda m: chr(int(m.group(1), 16)), text)
        plain = re.sub(r"\\(.)", r"\1", plain).replace('""', '"').replace("''", "'")
        plain = html.unescape(unquote(plain))
        if plain == text:
            return
        text = plain


def _texts_of(path: Path) -> Iterator[str]:
    text = path.read_text(encoding="utf-8")
    yield text
    if path.suffix == ".json":
        yield from _inside(json.loads(text))
    elif path.suffix == ".ndjson":
        for line in text.splitlines()[:50]:
            yield from _inside(json.loads(line))
    elif path.suffix == ".csv":
        for row in csv.reader(io.StringIO(text)):
            yield from _inside(row)
    elif path.suffix in (".yaml", ".cff"):
        yield from _inside(yaml.safe_load(text))


def _inside(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, child in value.items():
            yield str(key)
            yield from _inside(child)
    elif isinstance(value, list):
        for child in value:
            yield from _inside(child)
    elif isinstance(value, str):
        yield value
        if value[:1] in ("{", "["):
            try:
                yield from _inside(json.loads(value))
            except ValueError:
                return
