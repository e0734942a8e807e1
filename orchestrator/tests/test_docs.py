# SPDX-License-Identifier: Apache-2.0
"""The documents: every link within the repository leads somewhere, every flag is one, words are defined."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from netjoule.core import programs

ROOT = Path(__file__).parents[2]
_ELSEWHERE = {"target", "node_modules", "__pycache__", "dist"}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"\]\(\s*<?([^)>\s]+)>?[^)]*\)|<(?:img|a)\s[^>]*?(?:src|href)=\"([^\"]+)\"")
_HEADING = re.compile(r"^#{1,6}\s+(.+?)\s*#*$", re.MULTILINE)


def pages() -> list[Path]:
    """Markdown files of the source tree; campaigns, builds and hidden folders are none."""
    found = []
    for folder, folders, names in os.walk(ROOT):
        here = Path(folder)
        folders[:] = [
            name
            for name in folders
            if not name.startswith(".")
            and name not in _ELSEWHERE
            and not (here / name / "campaign.json").exists()
        ]
        found += [here / name for name in names if name.endswith(".md")]
    return sorted(found)


def anchors(text: str) -> set[str]:
    """Headings as GitHub names them in addresses."""
    found: set[str] = set()
    for heading in _HEADING.findall(_FENCE.sub("", text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", plain.lower()).replace(" ", "-")
        number = 0
        while (slug if not number else f"{slug}-{number}") in found:
            number += 1
        found.add(slug if not number else f"{slug}-{number}")
    return found


def dead_links(page: Path, text: str) -> Iterator[str]:
    """Links of a page that lead nowhere; those to other hosts are not asked."""
    prose = re.sub(r"`[^`\n]*`", "", _FENCE.sub("", text))
    for match in _LINK.finditer(prose):
        link = match.group(1) or match.group(2)
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            yield f"{link}: there is no such file"
        elif anchor and target.suffix == ".md" and anchor not in anchors(target.read_text(encoding="utf-8")):
            yield f"{link}: there is no such heading"


def test_no_link_of_any_page_is_dead() -> None:
    found = pages()
    assert ROOT / "README.md" in found
    assert ROOT / "docs" / "method" / "measurement-protocol.md" in found
    dead = [
        f"{page.relative_to(ROOT)}: {words}"
        for page in found
        for words in dead_links(page, page.read_text(encoding="utf-8"))
    ]
    assert dead == []


@pytest.mark.parametrize(
    ("text", "dead"),
    [
        ("[a](b.md) [a](b.md#one-two) [a](#here)\n# Here\n", []),
        ("[a](c.md)", ["c.md: there is no such file"]),
        ("[a](b.md#three)", ["b.md#three: there is no such heading"]),
        ("[a](#gone)", ["#gone: there is no such heading"]),
        ('<img alt="x" src="c.png">', ["c.png: there is no such file"]),
        ("[a](https://example.org/x) `[a](c.md)`\n```\n[a](c.md)\n```\n", []),
    ],
)
def test_a_dead_link_is_found(text: str, dead: list[str], tmp_path: Path) -> None:
    (tmp_path / "b.md").write_text("# One `two`!\n")
    page = tmp_path / "a.md"
    page.write_text(text)
    assert list(dead_links(page, text)) == dead


_TERMS = [r"\bseed study\b", r"\bblocks?\b", r"\bfloors?\b", r"\barms?\b"]
_WRITTEN_BY_A_PROGRAM = {"benchmarks.md", "coverage.md", "interoperability.md", "soak.md"}


def undefined(text: str) -> Iterator[str]:
    """First uses in a page's prose of words that are neither bold, so defined there, nor linked to where."""
    prose = re.sub(r"`[^`\n]*`|^#.*$", "", re.sub(r"(?ms)^ *```.*?^ *```", "", text), flags=re.MULTILINE)
    prose = re.sub(r"\]\((?!(?:method/)?measurement-protocol\.md#words\))[^)]*\)", "]", prose)
    for term in _TERMS:
        first = re.search(f"(?<!-){term}.{{0,30}}", prose, re.IGNORECASE)
        if first and not re.match(rf"{term}(?:\*\*|\]\((?:method/)?measurement-)", first[0], re.IGNORECASE):
            yield first[0]


def test_words_of_the_measurement_are_defined_where_a_page_first_uses_them() -> None:
    pages_of_docs = [
        p
        for folder in ("docs", "docs/method")
        for p in (ROOT / folder).glob("*.md")
        if p.name not in _WRITTEN_BY_A_PROGRAM
    ]
    found = {
        p.name: list(undefined(p.read_text(encoding="utf-8"))) for p in [ROOT / "README.md", *pages_of_docs]
    }
    assert {name: uses for name, uses in found.items() if uses} == {}
    assert list(undefined("A floor of **blocks** and `arms`.")) == ["floor of **blocks** and ."]


def test_every_flag_that_the_page_on_traffic_names_is_one() -> None:
    program = programs.find("netjoule-traffic")

    def help_of(*words: str) -> str:
        return subprocess.run([program, *words, "--help"], capture_output=True, check=True, text=True).stdout

    verbs = set(re.findall(r"^  ([a-z]+)  ", help_of(), re.MULTILINE)) - {"help"}
    assert {"serve", "send", "selftest"} <= verbs
    known = set(
        re.findall(
            r"(?<!\S)--?[A-Za-z0-9][a-z0-9-]*", " ".join(help_of(*v) for v in [(), *([v] for v in verbs)])
        )
    )
    text = (ROOT / "docs" / "traffic.md").read_text(encoding="utf-8")
    code = [*_FENCE.findall(text), *re.findall(r"`[^`\n]+`", _FENCE.sub("", text))]
    named = set(re.findall(r"(?<![\w-])--?[A-Za-z4-6][a-z0-9-]*", " ".join(code)))
    assert len(named) > 40
    others = {"-c", "-N"}  # of head; what is the default anyway is not listed

    def is_answered(flag: str) -> bool:
        said = subprocess.run(
            [program, "send", flag, "1"], capture_output=True, check=False, text=True
        ).stderr
        return f"{flag} is iperf3's" in said

    assert {flag for flag in named - known - others if not is_answered(flag)} == set()
