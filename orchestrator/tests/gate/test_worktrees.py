# SPDX-License-Identifier: Apache-2.0
"""Git refs built side by side, in real repositories; nothing of them is left behind."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from netjoule.core.errors import HostLacks, InvalidData, UsageError
from netjoule.gate import sources, worktrees
from netjoule.gate.sources import Arm, parse

COMMAND: dict[str, Any] = {"load": "command", "command": {"run": ["./tool"]}}
FLOWS: dict[str, Any] = {"load": "flow", "flow": {}}
BUILD = "mkdir -p bin && cp source bin/netjoule-traffic && chmod +x bin/netjoule-traffic"
OUR_GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    **{f"GIT_{who}_{what}": "t@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-C", str(folder), *words],
        env=os.environ | OUR_GIT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Two commits: v1, and main on top of it."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for tag in ("v1", "v2"):
        (folder / "source").write_text(f"#!/bin/sh\necho {tag}\n")
        git(folder, "add", "source")
        git(folder, "commit", "-q", "-m", tag)
        git(folder, "tag", tag)
    return folder


class Gate:
    """A gate's folder and what it was told."""

    def __init__(self, repository: Path) -> None:
        self.repository, self.folder = repository, repository / "results/gate-1"
        self.said: list[str] = []

    def arms(
        self,
        base: str,
        head: str,
        anchor: str | None = None,
        *,
        reference: str | None = None,
        build: str | None = BUILD,
        document: dict[str, Any] = FLOWS,
        inside: Callable[[tuple[Arm, ...]], None] = lambda _: None,
    ) -> tuple[Arm, ...]:
        load, with_build = document["load"], build is not None
        asked = parse(base, head, anchor, load, reference=reference, with_build=with_build)
        with worktrees.ready(
            asked,
            document,
            folder=self.folder,
            repository=self.repository,
            build=build,
            say=self.said.append,
        ) as arms:
            inside(arms)
            return arms

    def trees(self) -> list[str]:
        """Worktrees that git knows beside the repository's own, and folders that are there."""
        listed = git(self.repository, "worktree", "list").splitlines()[1:]
        return [*listed, *map(str, (self.repository / "results").glob("*/trees/????"))]


@pytest.fixture
def gate(repository: Path) -> Gate:
    return Gate(repository)


def test_refs_are_built_apart_in_paths_of_equal_length_and_gone_afterwards(
    gate: Gate, repository: Path
) -> None:
    paths: dict[str, Path] = {}

    def look(arms: tuple[Arm, ...]) -> None:
        for one in arms:
            paths[one.role] = Path(one.build["programs"])
            said = subprocess.run([paths[one.role]], capture_output=True, text=True, check=True).stdout
            assert said.strip() == {"base": "v1", "head": "v2", "anchor": "v1"}[one.role]
            assert one.sha256 == hashlib.sha256(paths[one.role].read_bytes()).hexdigest()

    arms = gate.arms("v1", "main", "v2~1", inside=look)
    assert [one.commit for one in arms] == [git(repository, "rev-parse", ref) for ref in ("v1", "v2", "v1")]
    assert [one.kind for one in arms] == ["git"] * 3
    assert len({len(str(path)) for path in paths.values()}) == 1 and len(set(paths.values())) == 3
    assert not gate.trees()
    logs = sorted(path.name for path in (gate.folder / worktrees.LOGS).iterdir())
    assert logs == ["anchor.log", "base.log", "head.log"]


def test_a_pilot_builds_one_ref_twice_and_says_that_the_programs_are_the_same(gate: Gate) -> None:
    asked = sources.pilot(parse("main", "v1", None, "flow", with_build=True))
    with worktrees.ready(
        asked, FLOWS, folder=gate.folder, repository=gate.repository, build=BUILD, say=gate.said.append
    ) as arms:
        assert arms[0].build != arms[1].build
        assert sources.same_programs(arms)
    assert gate.said[-1].startswith("base and head are the same program")


def test_a_program_that_only_builds_have_is_its_own_reference_and_a_tag_is_a_better_one(
    gate: Gate, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository)
    (repository / "program").write_text("built here by somebody\n")
    (repository / "program").chmod(0o755)
    document = {"load": "command", "command": {"run": ["./program"]}}
    copy = "cp source program"
    arms = {one.role: one for one in gate.arms("v1", "main", build=copy, document=document)}
    assert arms["reference"].build == arms["base"].build and "--reference" in gate.said[-1]
    gate.folder = gate.folder.with_name("gate-2")
    arms = {one.role: one for one in gate.arms("v2", "main", reference="v1", build=copy, document=document)}
    assert arms["reference"].commit == git(repository, "rev-parse", "v1")
    assert arms["reference"].build["directory"].endswith("/refr") and not gate.trees()


def test_what_is_not_committed_takes_no_part_and_is_said(gate: Gate, repository: Path) -> None:
    (repository / "source").write_text("changed\n")
    arms = gate.arms("v1", "v2")
    assert not sources.same_programs(arms)
    assert "uncommitted" in gate.said[0]
    assert (repository / "source").read_text() == "changed\n"


@pytest.mark.parametrize("ref", ["nothing", "v1:source", "v9"])
def test_an_unknown_ref_is_told_before_anything_is_built(gate: Gate, ref: str) -> None:
    with pytest.raises(UsageError, match=f"--head {ref}: .* has no such commit"):
        gate.arms("v1", ref, build="touch ../built")
    assert not (gate.folder / worktrees.TREES).exists() and not gate.said


def test_a_branch_that_only_the_remote_has_is_told_by_its_name(gate: Gate, repository: Path) -> None:
    clone = repository.parent / "clone"
    git(repository, "branch", "feature", "v1")
    git(repository.parent, "clone", "-q", str(repository), str(clone))
    gate.repository = clone
    with pytest.raises(UsageError, match="write origin/feature"):
        gate.arms("main", "feature")


def test_a_shallow_clone_is_told(gate: Gate, repository: Path) -> None:
    clone = repository.parent / "clone"
    git(repository.parent, "clone", "-q", "--depth", "1", f"file://{repository}", str(clone))
    gate.repository = clone
    with pytest.raises(UsageError, match=r"shallow clone; 'git fetch --unshallow"):
        gate.arms("HEAD~1", "HEAD")


def test_without_a_repository_and_without_git(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate.repository = tmp_path
    with pytest.raises(UsageError, match="is no git repository"):
        gate.arms("v1", "v2")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostLacks, match="git"):
        gate.arms("v1", "v2")


def test_a_build_that_fails_is_no_regression_and_leaves_nothing(gate: Gate) -> None:
    with pytest.raises(
        InvalidData, match="--base v1: the build ended with code 7: two / three / 4"
    ) as caught:
        gate.arms("v1", "v2", build="echo one; echo two; echo three >&2; echo 4; exit 7")
    assert caught.value.code == "build_failed"
    assert not gate.trees()
    assert (gate.folder / worktrees.LOGS / "base.log").read_text() == "one\ntwo\nthree\n4\n"


def test_a_build_that_makes_no_program_is_no_regression(gate: Gate) -> None:
    with pytest.raises(InvalidData, match=r"--base v1: .* has no program netjoule-traffic") as caught:
        gate.arms("v1", "v2", build="true")
    assert caught.value.code == "build_failed"
    assert not gate.trees()


def test_a_gate_in_a_hook_builds_the_commit_and_not_the_hooks_index(
    gate: Gate, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / "no-index"))
    arms = gate.arms("v1", "v2", build=f"git rev-parse HEAD && {BUILD}")
    logs = [(gate.folder / worktrees.LOGS / f"{one.role}.log").read_text().strip() for one in arms]
    assert logs == [one.commit for one in arms]


def test_the_worktrees_of_a_killed_gate_go_with_the_next_one_and_those_of_a_running_one_stay(
    gate: Gate, repository: Path
) -> None:
    program = (
        "import sys, time; from pathlib import Path; from netjoule.gate import worktrees;"
        " from netjoule.gate.sources import parse\n"
        f"asked = parse('v1', 'v2', None, 'flow', with_build=True)\n"
        f"with worktrees.ready(asked, {FLOWS!r}, folder=Path(sys.argv[1]),"
        f" repository=Path({str(repository)!r}), build={BUILD!r}, say=print):\n"
        "  print('ready', flush=True); time.sleep(600)\n"
    )

    def started(name: str) -> subprocess.Popen[str]:
        child = subprocess.Popen(
            [sys.executable, "-c", program, str(repository / "results" / name)],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert child.stdout is not None
        while child.stdout.readline() not in ("ready\n", ""):
            pass
        return child

    killed, running = started("gate-a"), started("gate-b")
    try:
        killed.kill()
        killed.wait()
        assert len(gate.trees()) == 8
        gate.arms("v1", "v2")
        assert sorted(Path(one).parents[1].name for one in gate.trees()[2:] if "gate-a" in one) == []
        assert len(gate.trees()) == 4, "two of the running gate, by git and by their folders"
        running.send_signal(signal.SIGTERM)
        assert running.wait(30) == 128 + signal.SIGTERM
        assert not gate.trees()
    finally:
        for child in (killed, running):
            child.kill()
            child.wait()
            assert child.stdout is not None
            child.stdout.close()


def test_a_build_ends_with_the_gate_that_is_killed(gate: Gate, repository: Path, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    build = f"sleep 600 & echo $! >{pid}; wait"
    program = (
        "import sys; from pathlib import Path; from netjoule.gate import worktrees;"
        " from netjoule.gate.sources import Source\n"
        f"worktrees.run_build({build!r}, Path({str(repository)!r}), Path({str(tmp_path / 'log')!r}),"
        " Source('base', 'git', 'v1'))\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program])
    until(lambda: pid.exists() and pid.read_text().strip() != "")
    child.kill()
    child.wait()
    until(lambda: not runs(int(pid.read_text())))


def test_what_a_build_leaves_running_ends_with_it(gate: Gate, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    gate.arms("v1", "v2", build=f"{BUILD}; sleep 600 >/dev/null 2>&1 & echo $! >{pid}")
    assert not runs(int(pid.read_text()))


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except FileNotFoundError:
        return False


# --- what is there already ------------------------------------------------------------------------


def test_folders_and_programs_are_taken_as_they_are(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "a/bin").mkdir(parents=True)
    program = tmp_path / "a/bin/netjoule-traffic"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    gate.repository = tmp_path
    base, head, anchor = gate.arms(str(tmp_path / "a"), str(program), "MODE=old", build=None)
    assert [one.kind for one in (base, head, anchor)] == ["directory", "binary", "environment"]
    assert base.build == head.build == {"programs": str(program)}
    assert sources.same_programs((base, head))
    assert (anchor.build, anchor.commit) == ({"environment": {"MODE": "old"}}, None)
    assert anchor.sha256 == worktrees.installed(FLOWS) is not None


def test_a_relative_path_is_from_where_the_command_runs(
    gate: Gate, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir()
    monkeypatch.chdir(tmp_path)
    base, *_ = gate.arms("./a", "a", build=None, document=COMMAND)
    assert base.build == {"directory": str(tmp_path / "a")}


def test_a_folder_is_known_by_all_that_is_in_it_but_git(tmp_path: Path) -> None:
    def folder(name: str, **files: str) -> str:
        for file, text in files.items():
            path = tmp_path / name / file.replace("_", "/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return worktrees.digest(tmp_path / name)

    one = folder("one", bin_tool="1", lib_x="2")
    assert folder("same", lib_x="2", bin_tool="1") == one
    assert folder("other", bin_tool="1", lib_x="3") != one
    assert folder("named", bin_tool="1", lib_y="2") != one
    (tmp_path / "one/.git").write_text("gitdir: elsewhere")
    assert worktrees.digest(tmp_path / "one") == one
    (tmp_path / "one/link").symlink_to("lib/x")
    linked = worktrees.digest(tmp_path / "one")
    assert linked != one
    (tmp_path / "one/link").unlink()
    (tmp_path / "one/link").symlink_to("nowhere")
    assert worktrees.digest(tmp_path / "one") != linked


def test_settings_need_neither_repository_nor_files(gate: Gate, tmp_path: Path) -> None:
    gate.repository = tmp_path / "nothing"
    arms = gate.arms("transport=udp", "transport=quic", build=None)
    assert [one.name for one in arms] == ["udp", "quic"]
    assert not gate.folder.exists()
