# SPDX-License-Identifier: Apache-2.0
"""Who owns a block, and how it becomes a part of the campaign."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from netjoule.store import blocks


def test_every_claim_has_a_greater_token_than_all_before(tmp_path: Path) -> None:
    assert blocks.claim(tmp_path, 3, above=0) == 1
    assert blocks.claim(tmp_path, 3, above=0) == 2
    assert blocks.claim(tmp_path, 3, above=7) == 8
    assert blocks.claim(tmp_path, 4, above=0) == 1
    assert blocks.tokens(tmp_path, 3) == [1, 2, 8]


def test_of_claims_at_once_no_two_have_one_token(tmp_path: Path) -> None:
    found: list[int] = []
    claims = [
        threading.Thread(target=lambda: found.append(blocks.claim(tmp_path, 1, above=0))) for _ in range(16)
    ]
    for one in claims:
        one.start()
    for one in claims:
        one.join()
    assert sorted(found) == list(range(1, 17))


def test_only_the_newest_owner_is_not_stale(tmp_path: Path) -> None:
    first, second = blocks.claim(tmp_path, 1, above=0), blocks.claim(tmp_path, 1, above=0)
    assert blocks.is_stale(tmp_path, 1, first)
    assert not blocks.is_stale(tmp_path, 1, second)


def test_a_commit_is_a_rename_and_whoever_comes_later_is_refused(tmp_path: Path) -> None:
    (tmp_path / blocks.BLOCKS).mkdir()
    late, newest = blocks.claim(tmp_path, 1, above=0), blocks.claim(tmp_path, 1, above=0)
    (blocks.private_folder(tmp_path, 1, newest) / "campaign.json").write_text("{}")
    with pytest.raises(blocks.StaleOwner):
        blocks.commit(tmp_path, 1, late)
    home = blocks.commit(tmp_path, 1, newest)
    assert home == blocks.home(tmp_path, 1)
    assert (home / "campaign.json").read_text() == "{}"
    assert blocks.committed(tmp_path) == [1]
    assert blocks.tokens(tmp_path, 1) == []
    assert blocks.is_stale(tmp_path, 1, newest)
    again = blocks.claim(tmp_path, 1, above=newest)
    with pytest.raises(blocks.StaleOwner):  # the block is in
        blocks.commit(tmp_path, 1, again)


def test_what_was_begun_can_be_gone_on_with_by_one(tmp_path: Path) -> None:
    first = blocks.claim(tmp_path, 1, above=0)
    (blocks.private_folder(tmp_path, 1, first) / "plan.csv").write_text("begun")
    second = blocks.claim(tmp_path, 1, above=0, take_over=first)
    assert (blocks.private_folder(tmp_path, 1, second) / "plan.csv").read_text() == "begun"
    assert blocks.is_stale(tmp_path, 1, first)
    third = blocks.claim(tmp_path, 1, above=0, take_over=first)  # it is gone
    assert list(blocks.private_folder(tmp_path, 1, third).iterdir()) == []


def test_all_owners_see_that_the_campaign_is_to_stop(tmp_path: Path) -> None:
    assert not blocks.stop_asked(tmp_path)
    blocks.ask_to_stop(tmp_path, wanted=True)
    assert blocks.stop_asked(tmp_path)
    blocks.ask_to_stop(tmp_path, wanted=False)
    assert not blocks.stop_asked(tmp_path)
