# SPDX-License-Identifier: Apache-2.0
"""From a campaign's folder to a bundle: checked, masked, checked again, packed, then given its name."""

from __future__ import annotations

import fcntl
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from netjoule import files, secrets
from netjoule.check import check_campaign
from netjoule.errors import HostLacks, InvalidData, RunFailed, UsageError, file_errors
from netjoule.planfile import read_plan
from netjoule.publishing import archive, papers
from netjoule.publishing.kinds import Kind
from netjoule.publishing.masking import Books, Collector, Masker
from netjoule.publishing.papers import Terms
from netjoule.publishing.parts import Form, Part, holds_texts, left_out, name_in_bundle, parts, visit, write

__all__ = ["Published", "publish"]

_LONGEST_NAME = 64
_LARGEST_SECRET_BYTES = 64_000  # a file of more holds something else
_BLOCK = 1 << 20
_LONGEST_SEARCHED = 4096
_FOR_CAPTURES = frozenset((Kind.IP, Kind.MAC))


@dataclass(frozen=True, slots=True)
class Published:
    """A bundle.

    Attributes:
        path: its file.
        sha256: of the file.
        files: how many files it holds.
        terms: licence, what was masked, kept and left out.
    """

    path: Path
    sha256: str
    files: int
    terms: Terms


def publish(
    campaign: Path,
    out: Path | None = None,
    *,
    kept: frozenset[Kind] = frozenset(),
    licence: str = papers.DEFAULT_LICENCE,
    authors: tuple[str, ...] = (),
) -> Published:
    """Make a bundle of a campaign.

    Args:
        campaign: folder of the campaign; nothing in it is changed or executed.
        out: file to make, its end one of `archive.SUFFIXES`; by default the masked name of the campaign,
            .zip, beside it.
        kept: kinds of identifying values that stay as they are.
        licence: SPDX identifier of the data's licence, one of `papers.LICENCES`.
        authors: who is to be cited: ``Family, Given``, or a group's name.

    Raises:
        UsageError: when it is no campaign, is being written, or ``out`` cannot be the bundle's name.
        InvalidData: when the campaign has a defect.
        RunFailed: when the bundle cannot be written.
    """
    if out is not None:
        archive.require_free(out)
    _require_sound(campaign)
    taken = parts(campaign)
    books = _met(campaign, taken, kept)
    masker = Masker(books)
    document = files.read_json(campaign / "campaign.json")
    name = _safe(masker.text("campaign", str(document["campaign"])))
    if out is None:
        out = campaign.resolve().parent / f"{name}.zip"
        archive.require_free(out)
    with archive.writing(out), TemporaryDirectory(prefix=".netjoule-publish-", dir=out.parent) as work:
        folder = Path(work) / name
        made, omitted = _write_parts(campaign, taken, masker, books, folder)
        others = [masker.free(other) for other in left_out(campaign, taken)]
        terms = Terms(licence, authors, books.counts(), kept, (*omitted, *others))
        papers.write(folder, files.read_json(folder / "campaign.json"), _runs_done(campaign), terms)
        _require_masked(folder, (*made, papers.WORKLOAD, papers.TOPOLOGY), books)
        papers.write_sums(folder)
        packed = Path(work) / f"bundle{_suffix(out)}"
        archive.written(folder, packed, datetime.fromisoformat(str(document["created_utc"])))
        archive.place(packed, out)
        return Published(out, archive.sha256(out), len(archive.file_names(folder)), terms)


def _require_sound(campaign: Path) -> None:
    """Refuse a campaign with a defect, and one that another process writes."""
    defects = list(check_campaign(campaign))
    if defects:
        more = f" (and {len(defects) - 1} more)" if len(defects) > 1 else ""
        raise InvalidData(
            f"{defects[0]}{more}",
            where=str(campaign),
            next_step=f"'netjoule check {campaign}' names every defect; nothing was written",
        )
    lock = campaign / ".lock"
    if not lock.exists():
        return
    with file_errors("open", lock), lock.open("rb") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another netjoule is writing {campaign}", next_step="wait for it to end, or stop it first"
            ) from None


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
            books.vocabulary.note_secret(secrets.resolve(reference).reveal())


def _write_parts(
    campaign: Path, taken: Iterable[Part], masker: Masker, books: Books, folder: Path
) -> tuple[list[str], list[str]]:
    """Write the masked files: names of those that hold texts; those that had to stay out, with the reason."""
    made, omitted = [], []
    for part in taken:
        name = name_in_bundle(part, masker)
        if part.form is Form.CAPTURE:
            why = _why_not(campaign / part.name, books)
            if why:
                omitted.append(f"{name} ({why})")
                continue
        if (folder / name).exists():
            raise RunFailed(
                f"two files would be {name}; this is a defect of netjoule, report it", where=part.name
            )
        write(campaign, part, masker, folder / name)
        if holds_texts(part):
            made.append(name)
    return made, omitted


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
            tail = block[-_LONGEST_SEARCHED:]
    return ""


def _runs_done(campaign: Path) -> int:
    return sum(row.status == "done" for row in read_plan(campaign / "plan.csv"))


def _require_masked(folder: Path, names: Iterable[str], books: Books) -> None:
    """Check the bundle: no defect, and no name that was to be masked. What fails here is a fault of ours.

    What netjoule itself writes beside the campaign is made of what is searched here, and of words of its own.
    """
    for defect in check_campaign(folder):
        raise RunFailed(
            f"the masked campaign has a defect: {defect}", next_step="this is a defect of netjoule, report it"
        )
    for name in names:
        if books.vocabulary.leaks(name) or any(map(books.vocabulary.leaks, _blocks(folder / name))):
            raise RunFailed(
                "it would still hold a name that is to be masked; nothing was written",
                where=name,
                next_step="this is a defect of netjoule, report it",
            )


def _blocks(path: Path) -> Iterator[str]:
    """A text file in pieces that overlap, so that no name is cut."""
    tail = ""
    with path.open(encoding="utf-8") as handle:
        while block := handle.read(_BLOCK):
            yield tail + block
            tail = block[-_LONGEST_SEARCHED:]


def _safe(name: str) -> str:
    """A folder's name for every system."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:_LONGEST_NAME] or "campaign"


def _suffix(out: Path) -> str:
    return next(suffix for suffix in archive.SUFFIXES if out.name.endswith(suffix))
