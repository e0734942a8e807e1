# SPDX-License-Identifier: Apache-2.0
"""Blocks of a campaign that runs on rigs: who may write one, and how it becomes a part of the campaign.

A worker writes a block into a private folder, .blocks/<block>-<owner_token>/, which has the form of a
campaign. The campaign's one writer commits it: a rename makes it blocks/<block>/. Who claims a block gets a
greater token than all before; whoever finds that his is not the greatest any more has to stop.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from netjoule.core.errors import RunFailed, file_errors, refused
from netjoule.design.run_table import PlanRow

BLOCKS = "blocks"
_PRIVATE = ".blocks"
_STOP = "stop"


class StaleOwner(RunFailed):
    """A block has another owner by now."""


def run_folder(campaign: Path, row: PlanRow) -> Path:
    """Folder of a run of a campaign of either form."""
    return home(campaign, row.block) / "runs" / row.run_id


def document_name(load: str, part: int = 1) -> str:
    """File of a load's document of a part in its run's folder; the first is that of a run with one part."""
    return f"{load}.json" if part == 1 else f"{load}s/{part}.json"


def home(campaign: Path, block: int) -> Path:
    """Folder that holds runs and logs of a block: on rigs its own, else the campaign's."""
    return campaign / BLOCKS / str(block) if (campaign / BLOCKS).is_dir() else campaign


def folder(campaign: Path, block: int) -> Path:
    """Folder of a block that is a part of a campaign on rigs."""
    return campaign / BLOCKS / str(block)


def committed(campaign: Path) -> list[int]:
    """Blocks that are a part of the campaign, in order; none of one without rigs."""
    return sorted(int(path.name) for path in (campaign / BLOCKS).glob("*") if path.name.isdecimal())


def private_folder(campaign: Path, block: int, token: int) -> Path:
    """Where the owner of a block with this token writes."""
    return campaign / _PRIVATE / f"{block}-{token}"


def tokens(campaign: Path, block: int) -> list[int]:
    """Tokens of a block's private folders, the newest last."""
    names = [path.name.partition("-") for path in (campaign / _PRIVATE).glob(f"{block}-*")]
    return sorted(int(token) for _, _, token in names if token.isdecimal())


def claim(campaign: Path, block: int, above: int, take_over: int | None = None) -> int:
    """Become the owner of a block; the token.

    Args:
        campaign: its folder.
        block: number.
        above: greatest token that the campaign knows of the block.
        take_over: token of a private folder that is gone on with.

    Returns:
        token of a private folder that is empty, or has what was taken over.
    """
    token = max(above, *tokens(campaign, block), 0)
    while True:
        token += 1
        mine = private_folder(campaign, block, token)
        try:
            mine.mkdir(parents=True)
            break
        except (
            FileExistsError,
            FileNotFoundError,
        ):  # another's; or the folder went, as it was empty just then
            continue
        except OSError as error:
            raise refused("create", mine, error) from error
    if take_over is not None:
        with suppress(OSError):  # it is gone: the block begins anew
            private_folder(campaign, block, take_over).rename(mine)
    return token


def is_stale(campaign: Path, block: int, token: int) -> bool:
    """Whether the owner with this token has to stop: another has the block, or it is in already."""
    mine = private_folder(campaign, block, token)
    return not mine.is_dir() or max(tokens(campaign, block), default=token) > token


def commit(campaign: Path, block: int, token: int) -> Path:
    """Make a block a part of the campaign; its folder there.

    Raises:
        StaleOwner: its owner is not the newest, or the block is in already.
    """
    target = folder(campaign, block)
    if target.exists() or is_stale(campaign, block, token):
        raise StaleOwner(f"block {block} has another owner than {token}")
    with file_errors("commit", target):
        private_folder(campaign, block, token).rename(target)
    discard(campaign, block)
    return target


def take_out(campaign: Path, block: int, token: int) -> None:
    """Undo a commit: the block has lost something and goes on as private, under a new token."""
    private = private_folder(campaign, block, token)
    with file_errors("move", private):
        private.parent.mkdir(exist_ok=True)
        folder(campaign, block).rename(private)


def discard(campaign: Path, block: int) -> None:
    """Remove what other owners of a block have begun."""
    for token in tokens(campaign, block):
        shutil.rmtree(private_folder(campaign, block, token), ignore_errors=True)
    with suppress(OSError):  # other blocks are there
        (campaign / _PRIVATE).rmdir()


def ask_to_stop(campaign: Path, *, wanted: bool) -> None:
    """Ask whoever writes a block to end, or not any more: all of them look here, wherever they run."""
    mark = campaign / _PRIVATE / _STOP
    with file_errors("write", mark):
        if wanted:
            mark.parent.mkdir(exist_ok=True)
            mark.touch()
        else:
            mark.unlink(missing_ok=True)


def stop_asked(campaign: Path) -> bool:
    """Whether the campaign is to stop."""
    return (campaign / _PRIVATE / _STOP).exists()
