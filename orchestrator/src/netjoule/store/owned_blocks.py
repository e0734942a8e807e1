# SPDX-License-Identifier: Apache-2.0
"""Blocks of a campaign on rigs as its one writer keeps them: who has which, and which are a part of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from netjoule.design import run_table
from netjoule.design.run_table import PlanRow
from netjoule.store import blocks, planfile, recovery, simulated_blocks
from netjoule.store.ledger import Ledger, with_state


class OwnedBlocks:
    """Blocks and their owners, in status.csv and in the campaign's folder.

    Args:
        campaign: folder.
        ledger: of its runs.
        is_simulated: whether its blocks are simulated.
        rows_in: runs of a block that is a part of the campaign, as its own files have them.
    """

    def __init__(
        self,
        campaign: Path,
        ledger: Ledger,
        *,
        is_simulated: bool,
        rows_in: Callable[[int], Sequence[PlanRow]],
    ) -> None:
        self._campaign, self._ledger = campaign, ledger
        self._is_simulated, self._rows_in = is_simulated, rows_in
        self._owners: dict[int, tuple[int, str]] | None = None

    def owner_of(self, block: int) -> tuple[int, str]:
        """The greatest owner_token that status.csv knows of a block, and its rig; 0 and none without any."""
        if self._owners is None:
            known = planfile.owners(self._campaign)
            self._owners = {}
            for row in self._ledger.rows:
                self._owners[row.block] = max(
                    self._owners.get(row.block, (0, "")), known.get(row.run_id, (0, ""))
                )
        return self._owners.get(block, (0, ""))

    def begin(self, tokens: Mapping[int, int], rig: str) -> None:
        """Record that a rig has blocks, by their owner_tokens, on disk when this returns."""
        self._record([with_state(row, "running") for row in self._unsettled(tokens)], rig, tokens)

    def lose(self, tokens: Mapping[int, int], rig: str) -> None:
        """Record that the owner of blocks was lost: their runs are planned again."""
        running = [row for row in self._unsettled(tokens) if row.status == "running"]
        self._plan_again(running, planfile.LOST, rig, tokens)

    def commit(self, tokens: Mapping[int, int], rig: str) -> list[int]:
        """Make whole blocks that a worker has written a part of the campaign, on disk when this returns.

        Returns:
            those that are in; the others have another owner by now.
        """
        committed = []
        for block, token in tokens.items():
            with suppress(blocks.StaleOwner):
                blocks.commit(self._campaign, block, token)
                committed.append(block)
        self._adopt({block: tokens[block] for block in committed}, rig)
        return committed

    def recover(self, *, every: bool) -> dict[str, str]:
        """Settle what a crash left: what is in is taken over, what has lost something goes on as private.

        Args:
            every: look at all blocks, else at those that are not finished.

        Returns:
            what finished runs have lost, by run_id; their blocks are planned again.
        """
        found: dict[str, str] = {}
        committed = set(blocks.committed(self._campaign))
        unfinished = {row.block for row in self._ledger.rows if row.status not in run_table.FINAL}
        happened: dict[int, list[PlanRow]] = {}
        for row in self._ledger.finished() if every else ():
            happened.setdefault(row.block, []).append(row)
        for block in sorted(unfinished | set(happened)):
            token, rig = self.owner_of(block)
            is_new = block in unfinished and block in committed
            if lost := self._lost(block, happened.get(block, ()), is_new):
                found |= lost
                if block in committed:
                    blocks.take_out(self._campaign, block, token + 1)
                self._plan_again(self._ledger.rows_of(block), planfile.STOPPED, rig, {block: token + 1})
            elif is_new:
                self._adopt({block: token}, rig)
            else:
                running = [row for row in self._unsettled((block,)) if row.status == "running"]
                self._plan_again(running, planfile.STOPPED, rig, {block: token})
        return found

    def _lost(self, block: int, happened: Sequence[PlanRow], is_new: bool) -> dict[str, str]:
        """What a block has lost of runs that happened, and of all if it is in and nobody knows it yet."""
        rows = list(happened)
        if self._is_simulated and is_new:  # any other was on disk before it was committed
            rows += [row for row in self._ledger.rows_of(block) if row.attempt == 1]
        if not rows:
            return {}
        lost = simulated_blocks.lost if self._is_simulated else recovery.lost
        return lost(blocks.folder(self._campaign, block), rows)

    def _adopt(self, tokens: Mapping[int, int], rig: str) -> None:
        """Take over what blocks' own files say of their runs."""
        rows = [row for block in tokens for row in self._rows_in(block)]
        self._ledger.add(rows)
        self._record(rows, rig, tokens)

    def _plan_again(
        self, rows: Sequence[PlanRow], why: tuple[str, str], rig: str, tokens: Mapping[int, int]
    ) -> None:
        if rows:
            self._record([with_state(row, *why) for row in rows], rig, tokens)
            self._ledger.plan_again({row.run_id for row in rows})

    def _unsettled(self, of: Container[int]) -> list[PlanRow]:
        return [row for row in self._ledger.rows if row.block in of and row.status not in run_table.FINAL]

    def _record(self, rows: Sequence[PlanRow], rig: str, tokens: Mapping[int, int]) -> None:
        """Record the state of runs that a rig has or had."""
        self._ledger.settle(rows, rig, tokens)
        for block, token in tokens.items():
            if token >= self.owner_of(block)[0] and self._owners is not None:
                self._owners[block] = (token, rig)
