# SPDX-License-Identifier: Apache-2.0
"""Which sentences of an RFC lay down a requirement?

`extract.py RFC.txt > rfcNNNN.toml` quotes, in order, each sentence of the RFC's paginated text that holds a
key word of RFC 2119 in capitals: level MUST (MUST, MUST NOT, REQUIRED, SHALL, SHALL NOT) or SHOULD (SHOULD,
SHOULD NOT, RECOMMENDED, NOT RECOMMENDED). Page breaks and line wraps are taken out; items of a list join the
sentence that introduces them where one needs the other. Verified errata come from errata.toml beside
this file. It reads no network and gives the same bytes for the same text.
"""

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MUST = re.compile(r"\b(?:MUST|SHALL|REQUIRED)\b")
SHOULD = re.compile(r"\b(?:SHOULD|RECOMMENDED)\b")
PAGE_FOOT = re.compile(r"^\S.*\[Page \d+\]$")
SECTION = re.compile(r"^(?:Appendix )?((?:\d+|[A-Z])(?:\.\d+)*)\.\s+\S")
UNNUMBERED = re.compile(r"^[A-Z]")
BULLET = re.compile(r"^( *)((?:[o*+-]|\d+[.)]|\([a-z0-9]\)|[A-Z]\.)\s+)(?=\S)")
TERM = re.compile(r"^( *)(/\* |\S+(?: \S+)*(?: {2,}))(?=\S)")
DRAWING = re.compile(r"[+|]-|-[+|]|\+=|^\s*[|/.+].*[|/.+]$")
# A full stop ends a sentence when a capital, digit, quotation mark or bracket follows, but not after these.
ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|etc|vs|cf|al|resp|Sec|Fig|No)\.$")
SENTENCE_END = re.compile(r"[.!?][\"')\]]*(?=\s+[\"'(\[]*[A-Z0-9])")
# A line that ends in a hyphen is one word with the next line's first, save in "one- or two-byte".
WRAPPED_HYPHEN = re.compile(r"(?<=[A-Za-z0-9])- (?!and |or |to )(?=[A-Za-z0-9])")


@dataclass(frozen=True)
class Block:
    """A paragraph or an item of a list."""

    section: str
    indent: int
    item: bool
    text: str


@dataclass(frozen=True)
class Requirement:
    """A sentence and where it stands."""

    section: str
    level: str
    quote: str
    erratum: str = ""


def indent_of(line: str) -> int:
    """Columns of white space before the text."""
    return len(line) - len(line.lstrip(" "))


def text_column(line: str) -> int:
    """Column at which a line's own text starts: after the bullet of an item."""
    bullet = BULLET.match(line)
    return bullet.end() if bullet else indent_of(line)


def hanging_column(line: str, following: str) -> int | None:
    """Column of a bullet's, term's ("FGSR   Feature ...") or comment's text that `following` goes on."""
    for pattern in (BULLET, TERM):
        match = pattern.match(line)
        if match and match.end() == indent_of(following) > indent_of(line):
            return match.end()
    return None


def goes_on_after_page(last: str, first: str) -> bool:
    """Whether a paragraph that a page break interrupts goes on."""
    return (
        not re.search(r"[.:;!?][\"')]*$", last)
        and not BULLET.match(first)
        and indent_of(first) in (indent_of(last), text_column(last))
    )


def without_pages(text: str) -> list[str]:
    """Lines without headers and footers; a paragraph over two pages is whole again."""
    lines: list[str] = []
    page_break = False
    for raw in text.replace("\r", "").split("\n"):
        line = raw.rstrip()
        if PAGE_FOOT.match(line):
            page_break = True
        elif page_break and (not line.strip("\f ") or line.lstrip("\f").startswith("RFC ")):
            continue
        elif page_break:
            page_break = False
            while lines and not lines[-1]:
                lines.pop()
            if not (lines and goes_on_after_page(lines[-1], line)):
                lines.append("")
            lines.append(line)
        else:
            lines.append(line)
    return lines


def paragraphs(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Section number and lines of each run of lines without a blank one, inside numbered sections."""
    section = ""
    current: list[str] = []
    for line in [*lines, ""]:
        heading = SECTION.match(line)
        if line and not heading and not UNNUMBERED.match(line):
            current.append(line)
            continue
        if current and section:
            yield section, current
        current = []
        if heading and not re.search(r"\.{4}", line):
            section = heading.group(1)
        elif UNNUMBERED.match(line):
            section = ""


def blocks_of(section: str, lines: list[str]) -> Iterator[Block]:
    """Split a run of lines where its indentation changes, other than under a bullet or a term."""
    group: list[str] = []
    column = 0
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if group and (indent_of(line) != column or BULLET.match(line)):
            yield block(section, group, column)
            group = []
        if not group:
            column = hanging_column(line, following) or indent_of(line)
        group.append(line)
    yield block(section, group, column)


def block(section: str, lines: list[str], column: int) -> Block:
    """Lines to one block of running text."""
    item = BULLET.match(lines[0]) is not None
    start = text_column(lines[0]) if item else max(column, indent_of(lines[0]))
    words = " ".join([lines[0][start:], *lines[1:]]).removesuffix(" */").split()
    return Block(section, indent_of(lines[0]), item, WRAPPED_HYPHEN.sub("-", " ".join(words)))


def sentences(text: str) -> list[str]:
    """Running text to sentences."""
    found: list[str] = []
    start = 0
    for end in SENTENCE_END.finditer(text):
        if not ABBREVIATION.search(text[start : end.start() + 1]):
            found.append(text[start : end.end()].strip())
            start = end.end()
    rest = text[start:].strip()
    return [*found, rest] if rest else found


def level_of(sentence: str) -> str | None:
    """The strongest key word's level."""
    if MUST.search(sentence):
        return "MUST"
    return "SHOULD" if SHOULD.search(sentence) else None


def items_after(blocks: list[Block], index: int) -> list[Block]:
    """Items of the list that block `index` introduces."""
    items: list[Block] = []
    for candidate in blocks[index + 1 :]:
        if candidate.section != blocks[index].section or candidate.indent < blocks[index].indent:
            break
        if candidate.item:
            items.append(candidate)
        elif not items or candidate.indent <= items[0].indent:
            break
    return items


def is_boilerplate(sentence: str) -> bool:
    """The paragraph about the key words themselves."""
    return 'key words "MUST"' in sentence


def requirements(blocks: list[Block]) -> Iterator[Requirement]:
    """Each sentence with a key word, in order."""
    for index, current in enumerate(blocks):
        if DRAWING.search(current.text) or is_boilerplate(current.text):
            continue
        parts = sentences(current.text)
        for number, sentence in enumerate(parts):
            level = level_of(sentence)
            if level is None:
                continue
            quote = sentence
            if number == len(parts) - 1:
                quote = completed(sentence, blocks, index)
            if number == 0:
                quote = introduced(quote, blocks, index)
            yield Requirement(current.section, level, quote)


def completed(sentence: str, blocks: list[Block], index: int) -> str:
    """The last sentence of a block, with the list or the formula that it introduces."""
    following = blocks[index + 1] if index + 1 < len(blocks) else None
    if sentence.endswith(":"):
        firsts = [sentences(item.text)[0] for item in items_after(blocks, index)]
        # Items that are requirements of their own stand by themselves.
        return sentence if any(map(level_of, firsts)) else " ".join([sentence, *firsts])
    if following and not re.search(r"[.;!?][\"')]*$", sentence) and following.indent > blocks[index].indent:
        return f"{sentence} {following.text}"
    return sentence


def introduced(sentence: str, blocks: list[Block], index: int) -> str:
    """The first sentence of a block, after the label or introduction without which it is no sentence."""
    current = blocks[index]
    if re.match(r"MUST|SHALL|SHOULD", sentence) and index and blocks[index - 1].indent < current.indent:
        return f"{blocks[index - 1].text} {sentence}"
    if not (current.item and sentence[0].islower()):
        return sentence
    for candidate in reversed(blocks[:index]):
        if candidate.section != current.section:
            break
        if candidate.text.endswith(":") and candidate.indent <= current.indent:
            return f"{sentences(candidate.text)[-1]} {sentence}"
    return sentence


def read_errata(number: str) -> list[dict[str, Any]]:
    """Errata of this RFC that change what a requirement says."""
    text = (Path(__file__).parent / "errata.toml").read_text(encoding="utf-8")
    return [entry for entry in tomllib.loads(text)["erratum"] if entry["rfc"] == number]


def with_errata(number: str, found: list[Requirement]) -> list[Requirement]:
    """Errata noted at the requirements that they change, or added at the end of their section."""
    result = list(found)
    for entry in read_errata(number):
        note = f"{entry['id']}: {entry['says']}"
        inside = [index for index, one in enumerate(result) if one.section == entry["section"]]
        if not inside:
            raise SystemExit(f"erratum {entry['id']} of RFC {number}: no such section {entry['section']}")
        added = [
            Requirement(entry["section"], level, sentence, note)
            for sentence in sentences(entry.get("adds", ""))
            if (level := level_of(sentence))
        ]
        result[inside[-1] + 1 : inside[-1] + 1] = added
        concerned = [i for i in inside if "quote" in entry and entry["quote"] in result[i].quote]
        if not added and not concerned:
            raise SystemExit(f"erratum {entry['id']} of RFC {number} matches no requirement")
        for index in concerned:
            result[index] = replace(result[index], erratum=note)
    return result


def toml_of(number: str, found: list[Requirement]) -> str:
    """The document."""
    out = [
        "# SPDX-License-Identifier: Apache-2.0",
        f"# Sentences of RFC {number} that hold a key word of RFC 2119, quoted in order by extract.py.",
        "# The quoted text is its authors' and the IETF Trust's.",
        f'rfc = "{number}"',
    ]
    for requirement in found:
        out += [
            "",
            "[[requirement]]",
            f'section = "{requirement.section}"',
            f'level = "{requirement.level}"',
            f"quote = {json.dumps(requirement.quote)}",
        ]
        if requirement.erratum:
            out.append(f"erratum = {json.dumps(requirement.erratum)}")
    return "\n".join([*out, ""])


def main() -> None:
    """Read the RFC that the argument names, write its requirements."""
    if len(sys.argv) != 2:
        raise SystemExit("usage: extract.py RFC.txt > rfcNNNN.toml")
    text = Path(sys.argv[1]).read_text(encoding="utf-8-sig", errors="replace")
    number = re.search(r"Request for Comments: (\d+)", text)
    if number is None:
        raise SystemExit(f"{sys.argv[1]} is no RFC: it has no line 'Request for Comments: N'")
    blocks = [
        entry for section, lines in paragraphs(without_pages(text)) for entry in blocks_of(section, lines)
    ]
    sys.stdout.write(toml_of(number.group(1), with_errata(number.group(1), list(requirements(blocks)))))


if __name__ == "__main__":
    main()
