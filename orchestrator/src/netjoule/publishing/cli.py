# SPDX-License-Identifier: Apache-2.0
"""The command ``netjoule publish``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from netjoule.publishing.bundle import Published
    from netjoule.publishing.identifiers import Kind


def publish_campaign(
    campaign: Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="Folder of a campaign.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="New .zip, .tar.gz, .tgz or .tar.xz [default: MASKED-NAME.zip beside the campaign].",
        ),
    ] = None,
    include: Annotated[
        list[str] | None,
        typer.Option(metavar="KINDS", help="Do not mask these: ssid,mac,ip,host,user,serial."),
    ] = None,
    licence: Annotated[
        str | None,
        typer.Option(
            "--licence", "--license", metavar="ID", help="Of the data, e.g. CC-BY-4.0 [default: none]."
        ),
    ] = None,
    author: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="To be cited: 'Family, Given', or a group; repeatable."),
    ] = None,
    incomplete: Annotated[
        bool, typer.Option("--incomplete", help="Also a campaign that lacks runs of its plan.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="One JSON document per line on stdout.")] = False,
) -> None:
    """Make a checked bundle for others: data package, checksums, citation, masked names.

    Example: netjoule publish results/skype-1 --author 'Doe, Jo' --licence CC-BY-4.0
    """
    from netjoule.core.console import Output
    from netjoule.core.safe_text import escaped
    from netjoule.publishing.bundle import publish

    made = publish(
        campaign,
        out,
        kept=_kinds(include or []),
        licence=None if licence is None else _known(licence),
        authors=_named(author or []),
        incomplete=incomplete,
    )
    output = Output(json_lines=json)
    for line in _told(made):
        output.say(escaped(line))
    output.event(_event(made))


def _told(made: Published) -> Iterator[str]:
    """What was done, for people."""
    terms = made.terms
    counted = ", ".join(f"{kind} {number}" for kind, number in terms.masked.items())
    yield f"masked: {counted or 'nothing'}"
    if terms.kept:
        yield f"kept: {', '.join(sorted(terms.kept))}"
    for name in made.only_in_fields:
        yield f"'{name}' may stay in running text (a word of netjoule, a number, or short): look for it"
    for reference in made.unsearched:
        yield f"what {reference} means may stay in running text (short, or a word of netjoule): look for it"
    for word in made.longer_words:
        yield f"'{word}' has a masked name as a part: look whether it tells it"
    for name in terms.left_out:
        yield f"left out: {name}"
    for name in made.absent:
        yield f"not in the bundle, though topology.yaml names it: {name}"
    if terms.licence is None:
        yield "licence of the data: none, so others may not reuse them (--licence CC-BY-4.0 would let them)"
    else:
        yield f"licence of the data: {terms.licence}"
    if not terms.authors:
        yield "authors: anonymous (--author names them)"
    yield f"{made.path}: {made.files} files, SHA-256 {made.sha256}"


def _event(made: Published) -> dict[str, Any]:
    """What was done, for machines."""
    from dataclasses import asdict

    terms = made.terms
    told = asdict(made) | asdict(terms) | {"path": str(made.path), "kept": sorted(terms.kept)}
    told["left_out"] = terms.left_out
    beside = ("terms", "captures", "others")
    return {"event": "published"} | {name: value for name, value in told.items() if name not in beside}


def _kinds(words: list[str]) -> frozenset[Kind]:
    from netjoule.core.errors import UsageError
    from netjoule.publishing.identifiers import Kind

    found = set()
    for word in ",".join(words).split(","):
        name = word.strip().lower()
        if not name:
            continue
        if name not in set(Kind):
            raise UsageError(f"no kind '{name}' to include", next_step=f"there are {', '.join(Kind)}")
        found.add(Kind(name))
    return frozenset(found)


def _known(licence: str) -> str:
    from netjoule.core.errors import UsageError
    from netjoule.publishing.papers import LICENCES

    found = {name.lower(): name for name in LICENCES}.get(licence.lower())
    if found is None:
        raise UsageError(f"no licence '{licence}' for data", next_step=f"there are {', '.join(LICENCES)}")
    return found


def _named(authors: list[str]) -> tuple[str, ...]:
    from netjoule.core.errors import UsageError

    for author in authors:
        family, comma, given = author.partition(",")
        if not family.strip() or (comma and not given.strip()) or not author.isprintable():
            raise UsageError(
                f"--author '{author}' is no name", next_step="write 'Family, Given', or a group's name"
            )
    return tuple(authors)
