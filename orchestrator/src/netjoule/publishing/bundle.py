# SPDX-License-Identifier: Apache-2.0
"""From a campaign's folder to a bundle: checked, masked, checked again, packed, then given its name."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from netjoule.core import files, secrets
from netjoule.core.errors import HostLacks, InvalidData, file_errors
from netjoule.core.signals import exit_on_signals
from netjoule.publishing import archive, papers
from netjoule.publishing.campaign_files import Form, Part, left_out, name_in_bundle, parts, visit, write
from netjoule.publishing.identifiers import Kind
from netjoule.publishing.leak_check import LONGEST_SEARCHED, require_masked
from netjoule.publishing.masking import Books, Collector, Masker
from netjoule.publishing.papers import Terms
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign, unfinished

_LONGEST_NAME = 64
_LARGEST_SECRET_BYTES = 64_000  # a file of more holds something else
_BLOCK = 1 << 20
_FOR_CAPTURES = frozenset((Kind.IP, Kind.MAC))


@dataclass(frozen=True, slots=True)
class Published:
    """A bundle.

    Attributes:
        path: its file.
        sha256: of the file.
        files: how many files it holds.
        terms: licence, what was masked, kept and left out.
        only_in_fields: names that are masked where a field holds them, but may be there in running text.
        longer_words: words that are there and have a masked name as a part.
        unsearched: references to secrets whose value cannot be looked for in running text.
        absent: files that the topology names and the bundle does not hold.
    """

    path: Path
    sha256: str
    files: int
    terms: Terms
    only_in_fields: tuple[str, ...]
    longer_words: tuple[str, ...]
    unsearched: tuple[str, ...]
    absent: tuple[str, ...]


def publish(
    campaign: Path,
    out: Path | None = None,
    *,
    kept: frozenset[Kind] = frozenset(),
    licence: str | None = None,
    authors: tuple[str, ...] = (),
    incomplete: bool = False,
) -> Published:
    """Make a bundle of a campaign.

    Args:
        campaign: folder of the campaign; nothing in it is changed or executed.
        out: file to make, its end one of `archive.SUFFIXES`; by default the masked name of the campaign,
            .zip, beside it.
        kept: kinds of identifying values that stay as they are.
        licence: SPDX identifier of the data's licence, one of `papers.LICENCES`; by default none is granted.
        authors: who is to be cited: ``Family, Given``, or a group's name.
        incomplete: whether a campaign that lacks runs of its plan may be published as it is.

    Raises:
        UsageError: when it is no campaign, is being written, or ``out`` cannot be the bundle's name.
        InvalidData: when the campaign has a defect, or lacks runs and ``incomplete`` is false.
        RunFailed: when the bundle cannot be written.
    """
    if out is not None:
        archive.require_free(out)
    with exit_on_signals(), _held(campaign):
        _require_sound(campaign)
        if not incomplete:
            _require_whole(campaign)
        taken = parts(campaign)
        books = _met(campaign, taken, kept)
        masker = Masker(books)
        name = masker.text("campaign", str(files.read_json(campaign / "campaign.json")["campaign"]))
        # A folder's name for every system.
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST_NAME] or "campaign"
        if out is None:
            out = campaign.resolve().parent / f"{name}.zip"
            archive.require_free(out)
        with archive.writing(out), TemporaryDirectory(prefix=".netjoule-publish-", dir=out.parent) as work:
            folder = Path(work) / name
            captures = _write_parts(campaign, taken, masker, books, folder)
            others = [masker.free(other) for other in left_out(campaign, taken)]
            terms = Terms(licence, authors, books.counts(), kept, tuple(captures), tuple(others))
            return _packed(campaign, folder, out, terms, books)


def _packed(campaign: Path, folder: Path, out: Path, terms: Terms, books: Books) -> Published:
    """Write what a bundle has beside the campaign, look at all of it once more, pack it."""
    masked = papers.write(folder, sum(row.status == "valid" for row in read_plan(campaign)), terms)
    longer_words = require_masked(folder, books, terms.authors)
    papers.write_sums(folder)
    suffix = next(suffix for suffix in archive.SUFFIXES if out.name.endswith(suffix))
    packed = folder.parent / f"bundle{suffix}"
    archive.written(folder, packed, datetime.fromisoformat(masked.created_utc))
    archive.place(packed, out)
    return Published(
        path=out,
        sha256=archive.sha256(out),
        files=len(archive.file_names(folder)),
        terms=terms,
        only_in_fields=books.vocabulary.only_in_fields(),
        longer_words=longer_words,
        unsearched=tuple(books.unsearched),
        absent=tuple(papers.absent(masked.topology)),
    )


@contextmanager
def _held(campaign: Path) -> Iterator[None]:
    """Keep writers out meanwhile; a folder without a lock file was never written on this machine."""
    if not (campaign / ".lock").is_file() or (campaign / ".lock").is_symlink():
        yield
        return
    with file_errors("open", campaign / ".lock"):
        lock = files.take_lock(campaign, shared=True)
    try:
        yield
    finally:
        os.close(lock)


def _require_sound(campaign: Path) -> None:
    """Refuse a campaign with a defect."""
    defects = check_campaign(campaign)
    first = next(defects, None)
    if first is not None:
        others = sum(1 for _ in defects)
        raise InvalidData(
            f"{first} (and {others} more)" if others else str(first),
            where=str(campaign),
            next_step=f"'netjoule check {campaign}' names every defect; nothing was written",
        )


def _require_whole(campaign: Path) -> None:
    """Refuse a campaign that lacks runs of its plan."""
    if lacking := unfinished(campaign):
        raise InvalidData(
            lacking,
            where=str(campaign),
            next_step=f"'netjoule resume {campaign}' runs the rest; --incomplete publishes it as it is",
        )


def _met(campaign: Path, taken: Iterable[Part], kept: frozenset[Kind]) -> Books:
    """Everything that identifies, of all files, numbered."""
    books = Books(kept)
    collector = Collector(books)
    for part in taken:
        visit(campaign, part, collector)
        collector.text("host" if part.table == "radio" else "", Path(part.name).stem)
    for name in left_out(campaign, list(taken)):
        collector.text("", name)
    for reference in books.references:
        _note_resolved(reference, books)
    books.freeze()
    return books


def _note_resolved(reference: str, books: Books) -> None:
    """Take in what a reference to a secret means, where this host can tell without running a program."""
    form, _, name = reference.partition(":")
    path = Path(name).expanduser() if form == "file" else None
    if form == "env" or (
        path is not None and path.is_file() and path.stat().st_size <= _LARGEST_SECRET_BYTES
    ):
        with suppress(HostLacks):
            if not books.vocabulary.note_secret(secrets.resolve(reference).reveal()):
                books.unsearched.append(reference)


def _write_parts(
    campaign: Path, taken: Iterable[Part], masker: Masker, books: Books, folder: Path
) -> list[str]:
    """Write the masked files: captures that had to stay out, with the reason."""
    omitted = []
    for part in taken:
        name = name_in_bundle(part, masker)
        if part.form is Form.CAPTURE:
            why = _why_not(campaign / part.name, books)
            if why:
                omitted.append(f"{name} ({why})")
                continue
        if (folder / name).exists():
            raise InvalidData(
                f"two files of the campaign have one name, '{name}', when they are masked",
                where=part.name,
                next_step="rename what one of them is called after, such as a meter, and measure again,"
                " or keep the kind of the name (--include)",
            )
        write(campaign, part, masker, folder / name)
    return omitted


def _why_not(capture: Path, books: Books) -> str:
    """Why a capture stays out; empty when it may go in.

    Packets hold addresses, and nobody has looked at what else: they are copied as they are or not at all.
    """
    if not books.kept >= _FOR_CAPTURES:
        return "a capture; --include ip,mac keeps captures"
    tail = b""
    with capture.open("rb") as handle:
        while block := handle.read(_BLOCK):
            if books.vocabulary.leaks_in_bytes(tail + block):
                return "a capture that holds a name which is masked"
            tail = block[-LONGEST_SEARCHED:]
    return ""
