# SPDX-License-Identifier: Apache-2.0
"""kill -9 and full disks at random moments of a record: the history is whole, and nothing is left behind."""

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from verdicts import session, verdict

from netjoule.gate.history import store

FEW, MANY = range(3), range(3, 50)
RECORDER = [sys.executable, str(Path(__file__).with_name("recorder.py"))]
# A small disk, of which some room is freed once the recorder has been refused.
FULL_DISK = """
set -e
mount -t tmpfs -o size=$1k tmpfs "$2"
head -c 100000 /dev/zero >"$2/ballast"
shift
place=$1
shift
set +e
"$@" "$place/history.sqlite" "$FOLDER" full
code=$?
rm "$place/ballast"
cp -a "$place" "$KEPT" || exit 9
exit $code
"""


def assert_whole(history: Path, told: list[str]) -> None:
    """All that was told is there, all that is there is whole, and one file holds it."""
    listed = [row["id"] for row in store.listed(url=str(history))]
    assert set(told) <= set(listed)
    # Whoever opens it takes over what a killed writer left in the log.
    assert not store.record(verdict(id=listed[0]), history.parent, str(history)) if listed else True
    assert [path.name for path in history.parent.iterdir()] == ([history.name] if history.exists() else [])
    if not listed:
        return
    raw = sqlite3.connect(history)
    try:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
        for table, rows in (("arms", 2), ("sessions", 1), ("cells", len(session()["cells"]))):
            found = raw.execute(f"SELECT gate, count(*) FROM {table} GROUP BY gate").fetchall()
            assert sorted(found) == sorted((gate, rows) for gate in listed)
    finally:
        raw.close()


def kill_once(folder: Path, history: Path, number: int) -> None:
    moment_s = random.Random(number).uniform(0, 0.6)
    writer = subprocess.Popen(
        [*RECORDER, str(history), str(folder), f"trial-{number}"], stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    assert writer.stdout.readline() == "ready\n"
    try:
        writer.wait(moment_s)
    except subprocess.TimeoutExpired:
        writer.kill()
    # A last line may be cut.
    told = [line.strip() for line in writer.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
    writer.stdout.close()
    assert writer.wait(30) == -9
    assert_whole(history, told)


def fill_once(folder: Path, tmp_path: Path, number: int) -> None:
    size_kb = random.Random(number).randrange(140, 700)
    disk, kept = tmp_path / f"disk-{number}", tmp_path / f"kept-{number}"
    disk.mkdir()
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
    ended = subprocess.run(
        [*own, "sh", "-c", FULL_DISK, "sh", str(size_kb), str(disk), *RECORDER],
        env={**os.environ, "FOLDER": str(folder), "KEPT": str(kept)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert ended.returncode == 3, ended.stderr
    assert ended.stderr.count("\n") == 1, ended.stderr
    assert "free some space" in ended.stderr or "not full" in ended.stderr, ended.stderr
    assert_whole(kept / "history.sqlite", ended.stdout.split()[1:])


@pytest.mark.parametrize("number", FEW)
def test_a_killed_writer_leaves_whole_verdicts(gate_folder, tmp_path, number):
    kill_once(gate_folder(), tmp_path / "kept" / "history.sqlite", number)


@pytest.mark.parametrize("number", FEW)
def test_a_full_disk_leaves_whole_verdicts(gate_folder, tmp_path, number):
    fill_once(gate_folder(), tmp_path, number)


@pytest.mark.slow
def test_many_kills_and_full_disks(gate_folder, tmp_path):
    """Of the kills, two in three go on with the history that the last one left."""
    folder = gate_folder()
    for number in MANY:
        if number % 2:
            fill_once(folder, tmp_path, number)
        else:
            kill_once(folder, tmp_path / f"kept-{number // 6}" / "history.sqlite", number)
