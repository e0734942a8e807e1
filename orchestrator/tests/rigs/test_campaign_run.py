# SPDX-License-Identifier: Apache-2.0
"""A campaign's blocks over rigs: every block exactly once, whatever became of workers and of the campaign."""

from __future__ import annotations

import csv
import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rack import Clock, Heard, Threads, campaign, fake_execution, run

from netjoule.core.errors import InvalidData, RunFailed
from netjoule.rigs.block import Done
from netjoule.rigs.campaign_run import BlocksRun
from netjoule.store import blocks
from netjoule.store.campaign import Campaign
from netjoule.validation.check import check_campaign, unfinished

Tell = Callable[[Mapping[str, Any]], None]


@pytest.fixture(autouse=True)
def _own_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NETJOULE_LOCKS", str(tmp_path))


def statuses(of: Path) -> list[dict[str, str]]:
    with (of / "status.csv").open() as table:
        return list(csv.DictReader(table))


def require_whole(of: Path) -> None:
    """Every block is there once, and nothing is wrong or left over."""
    assert list(check_campaign(of)) == []
    assert unfinished(of) == ""
    valid = [row["run_id"] for row in statuses(of) if row["status"] == "valid"]
    assert sorted(valid) == sorted({row.run_id for row in Campaign.read(of).rows()})
    assert not (of / ".blocks").exists() or list((of / ".blocks").iterdir()) == []


def test_blocks_run_side_by_side_and_each_is_there_once(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", blocks=4) as of:
        heard, threads = run(of)
        assert of.document["status"] == "complete"
    assert sorted(block for block, _ in heard.blocks) == [1, 2, 3, 4]
    assert {rig for _, rig in threads.given} == {"rig1", "rig2"}
    assert threads.given[:2] == [(1, "rig1"), (2, "rig2")]
    require_whole(tmp_path / "c")
    for row in statuses(tmp_path / "c"):
        assert row["rig"] == dict(heard.blocks)[int(row["run_id"][1:3])]
    started = [event for event in heard.events if event["event"] == "run_started"]
    assert len(started) == 8
    assert {event["rig"] for event in started} == {"rig1", "rig2"}


def test_a_block_is_a_campaign_of_its_own_that_knows_its_rig(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", blocks=2) as of:
        heard, _ = run(of)
    for block, rig in heard.blocks:
        home = blocks.home(tmp_path / "c", block)
        assert list(check_campaign(home)) == []
        document = Campaign.read(home).document
        assert document["topology"]["rig"] == rig
        assert document["block"]["number"] == block
        assert {row.block for row in Campaign.read(home).rows()} == {block}


def test_a_block_that_one_rig_loses_runs_on_the_other(tmp_path: Path) -> None:
    def broken_on_rig1(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        if rig == "rig1":
            raise RunFailed("two workers died of it", code="worker_lost")
        return fake_execution(of, block, rig, above, tell)

    with campaign(tmp_path / "c", blocks=3) as of:
        heard, threads = run(of, broken_on_rig1)
    require_whole(tmp_path / "c")
    assert {rig for _, rig in heard.blocks} == {"rig2"}
    assert threads.names == ["rig2"]  # it lost two in a row
    assert [rig for _, rig, _ in heard.losses] == ["rig1", "rig1"]


def test_a_block_that_every_rig_loses_ends_the_campaign_and_what_is_in_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never_the_second(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        if block == 2:
            raise RunFailed("it never works", code="worker_lost")
        return fake_execution(of, block, rig, above, tell)

    with campaign(tmp_path / "c", blocks=4) as of, pytest.raises(RunFailed, match="block 2 was lost on rig"):
        run(of, never_the_second)
    assert "incomplete" in unfinished(tmp_path / "c")
    with Campaign.open(tmp_path / "c") as of:
        before = set(blocks.committed(of.path))
        heard, _ = run(of)
        assert 2 in {block for block, _ in heard.blocks}
        assert before.isdisjoint(block for block, _ in heard.blocks)
    require_whole(tmp_path / "c")


def test_what_a_rig_says_before_it_ends_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_BROKEN", "rig2")
    with campaign(tmp_path / "c", blocks=3) as of:
        heard, _ = run(of)
    assert {(rig, why) for _, rig, why in heard.losses} == {("rig2", "the meter of rig2 is silent")}
    require_whole(tmp_path / "c")


def test_a_rig_in_use_gets_no_block(tmp_path: Path) -> None:
    def in_use(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        if rig == "rig1":
            raise InvalidData("the rig is in use", code="rig_busy")
        return fake_execution(of, block, rig, above, tell)

    with campaign(tmp_path / "c", blocks=2) as of:
        heard, threads = run(of, in_use)
    assert [rig for _, rig in heard.blocks] == ["rig2", "rig2"]
    assert threads.names == ["rig2"]


def test_without_a_rig_the_campaign_ends_and_can_go_on(tmp_path: Path) -> None:
    def in_use(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        raise InvalidData("the rig is in use", code="rig_busy")

    with campaign(tmp_path / "c", blocks=1) as of, pytest.raises(RunFailed):
        run(of, in_use)
    with Campaign.open(tmp_path / "c") as of:
        run(of)
    require_whole(tmp_path / "c")


def test_a_late_owner_changes_nothing(tmp_path: Path) -> None:
    """A worker was cut off, the block ran elsewhere, and the late one comes back with the same block."""
    late: list[Done] = []

    def twice(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        if block == 1 and not late:
            late.append(fake_execution(of, block, rig, above, tell))
            again = fake_execution(of, block, "rig2" if rig == "rig1" else "rig1", above, tell)
            assert again.token > late[0].token
            return again
        return fake_execution(of, block, rig, above, tell)

    with campaign(tmp_path / "c", blocks=2, rigs=2) as of:
        heard, _ = run(of, twice)
        assert of.document["status"] != "running"
        assert of.owned.commit({1: late[0].token}, late[0].rig) == []
    assert sorted(block for block, _ in heard.blocks) == [1, 2]
    require_whole(tmp_path / "c")


def test_a_block_whose_owner_is_not_the_newest_runs_again(tmp_path: Path) -> None:
    overtaken: list[int] = []

    def overtake(of: Path, block: int, rig: str, above: int, tell: Tell) -> Done:
        done = fake_execution(of, block, rig, above, tell)
        if not overtaken:
            overtaken.append(blocks.claim(of, block, above))
        return done

    with campaign(tmp_path / "c", blocks=2) as of:
        run(of, overtake)
    require_whole(tmp_path / "c")


def test_a_kill_between_rename_and_status_is_settled_when_it_goes_on(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", blocks=2) as of:
        work = BlocksRun(of, Clock(), Heard())
        of.begin_session(boot_id="b", monotonic_ns=0, utc=Clock().utc_now())
        done = fake_execution(of.path, 1, "rig1", 0, lambda event: None)
        of.owned.begin({1: done.token}, "rig1")
        blocks.commit(of.path, 1, done.token)  # and here it is killed
        del work
    with Campaign.open(tmp_path / "c") as of:
        assert {row.status for row in of.rows_of(1)} == {"valid"}
        heard, _ = run(of)
        assert [block for block, _ in heard.blocks] == [2]
    require_whole(tmp_path / "c")


def test_a_block_under_way_goes_on_where_the_same_rig_left_it(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", blocks=1, rigs=1) as of:
        of.begin_session(boot_id="b", monotonic_ns=0, utc=Clock().utc_now())
        token = blocks.claim(of.path, 1, 0)
        whole = fake_execution(of.path, 1, "rig1", token, lambda event: None)
        folder = blocks.private_folder(of.path, 1, whole.token)
        first = Campaign.read(folder).rows()[0].run_id
        made = (folder / "runs" / first / "run.json").stat().st_mtime_ns
        shutil.rmtree(folder / "runs" / Campaign.read(folder).rows()[1].run_id)
    with Campaign.open(tmp_path / "c") as of:
        run(of)
        assert (of.run_dir(first) / "run.json").is_file()
    require_whole(tmp_path / "c")
    assert made


def test_a_block_that_lost_files_runs_again_what_is_lost(tmp_path: Path) -> None:
    with campaign(tmp_path / "c", blocks=2) as of:
        run(of)
    lost = Campaign.read(tmp_path / "c").rows_of(2)[0]
    shutil.rmtree(blocks.run_folder(tmp_path / "c", lost))
    assert list(check_campaign(tmp_path / "c")) != []
    with Campaign.open(tmp_path / "c") as of:
        assert of.lost == {lost.run_id: "its files are gone"}
        heard, _ = run(of)
        assert [block for block, _ in heard.blocks] == [2]
    assert list(check_campaign(tmp_path / "c")) == []
    assert unfinished(tmp_path / "c") == ""


@pytest.mark.parametrize("change", ["block", "rig", "status"])
def test_check_names_a_block_that_is_not_what_the_campaign_says(tmp_path: Path, change: str) -> None:
    with campaign(tmp_path / "c", blocks=2) as of:
        run(of)
    home = blocks.home(tmp_path / "c", 1)
    if change == "block":
        home.rename(home.with_name("7"))
    elif change == "rig":
        path = home / "campaign.json"
        path.write_text(
            path.read_text()
            .replace('"rig": "rig1"', '"rig": "rig9"')
            .replace('"rig": "rig2"', '"rig": "rig9"')
        )
    else:
        row = Campaign.read(home).rows()[0]
        with Campaign.open(home) as of:
            of.owned._record([replace(row, status="invalid", reason="meter_gap")], "rig1", {row.block: 99})
    assert any(defect.file.startswith("blocks") for defect in check_campaign(tmp_path / "c"))


def test_threads_are_workers() -> None:
    """The stand-in for Dask has what the campaign asks of workers."""
    from netjoule.rigs.cluster import Workers

    wanted = {"rigs", "submit", "retire"}
    assert wanted <= set(dir(Workers)) & set(dir(Threads))
