# SPDX-License-Identifier: Apache-2.0
"""Git refs checked out and built side by side for a gate, gone again behind it.

Each in a worktree below one folder, with paths of equal length: a path's length alone moves what a program
has in memory. Those of a gate that was killed are removed by the next one: nobody holds their lock any more.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from netjoule import loads
from netjoule.core import programs
from netjoule.core.errors import HostLacks, InvalidData, UsageError, file_errors
from netjoule.core.signals import exit_on_signals
from netjoule.gate import sources
from netjoule.gate.sources import Arm, Source

TREES, LOGS = "trees", "build-logs"
_LOCK = "netjoule-gate.lock"
_FOLDERS = {sources.BASE: "base", sources.HEAD: "head", sources.ANCHOR: "anch", sources.REFERENCE: "refr"}
"""Equal lengths."""
_OF_GIT = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX")
_LAST_LINES = 3


@contextmanager
def ready(
    asked: Sequence[Source],
    document: Mapping[str, Any],
    *,
    folder: Path,
    repository: Path,
    build: str | None,
    say: Callable[[str], None],
) -> Iterator[tuple[Arm, ...]]:
    """The arms of a gate, built; what was checked out for them is gone behind the body.

    Args:
        asked: by `sources.parse`.
        document: the workload, effective.
        folder: of the gate: worktrees and logs of builds come below it.
        repository: a folder of the git repository that has the refs.
        build: the shell command that is run at the top of each worktree.
        say: told in a sentence what happens.

    Raises:
        UsageError: for an unknown ref, no repository, no such file.
        InvalidData: when a build fails or makes no program, which says nothing about energy.
        HostLacks: without git.
    """
    if all(one.kind == sources.SETTING for one in asked):
        yield _looked_at(sources.arms_of_settings(asked), say)
        return
    refs = [one for one in asked if one.kind == sources.GIT]
    with exit_on_signals(), ExitStack() as trees:
        places: dict[str, tuple[Path, str]] = {}
        if refs:
            top = repository_of(repository)
            commits = {one.role: commit_of(one, top) for one in refs}  # all, before anything is built
            if _git(top, "status", "--porcelain", "--untracked-files=no").stdout.strip():
                say(f"uncommitted changes in {top} are not measured")
            where = trees.enter_context(_checked_out(commits, top, folder.absolute() / TREES))
            for one in refs:
                log = folder / LOGS / f"{one.role}.log"
                say(f"building {one.role}: {one.text} ({commits[one.role][:12]}), log {log}")
                run_build(str(build), where[one.role], log, one)
            places = {role: (place, commits[role]) for role, place in where.items()}
        arms = tuple(_arm(one, document, *places.get(one.role, (None, None))) for one in asked)
        yield _looked_at(_with_reference(arms, document, say), say)


def _with_reference(
    arms: tuple[Arm, ...], document: Mapping[str, Any], say: Callable[[str], None]
) -> tuple[Arm, ...]:
    """The same, the base once more as the reference where none is named and only builds have the program."""
    base = next(one for one in arms if one.role == sources.BASE)
    program = document.get(document["load"], {}).get("run", ("",))[0]
    in_builds = "directory" in base.build and "/" in program and not Path(program).is_absolute()
    if not in_builds or any(one.role == sources.REFERENCE for one in arms):
        return arms
    say("the reference workload runs the base, since only builds have its program: name one with --reference")
    return (*arms, replace(base, role=sources.REFERENCE, name=sources.REFERENCE))


def require(asked: Sequence[Source], repository: Path) -> None:
    """Refuse what names nothing, before anything is made.

    Raises:
        UsageError: for an unknown ref, no repository, no such file.
        HostLacks: without git.
    """
    for one in asked:
        if one.kind == sources.GIT:
            commit_of(one, repository_of(repository))
        elif one.kind == sources.PATH:
            sources.program_or_folder(one)


def _looked_at(arms: tuple[Arm, ...], say: Callable[[str], None]) -> tuple[Arm, ...]:
    if sources.same_programs(arms):
        say("base and head are the same program: any difference comes from the rig (an A/A gate)")
    return arms


def repository_of(folder: Path) -> Path:
    """The top of the git repository around a folder. Raises UsageError without one, HostLacks without git."""
    said = _git(folder, "rev-parse", "--show-toplevel")
    if said.returncode:
        words = (said.stderr.strip().splitlines() or ["no answer"])[0].removeprefix("fatal: ")
        step = "go to the repository that has the refs, or name a folder or a program"
        raise UsageError(f"{folder} is no git repository: {words}", next_step=step)
    return Path(said.stdout.rstrip("\n"))


def commit_of(source: Source, top: Path) -> str:
    """Full commit id of a ref. Raises UsageError for one that the repository does not have."""
    said = _git(top, "rev-parse", "--verify", "--quiet", f"{source.text}^{{commit}}")
    if said.returncode == 0:
        return said.stdout.strip()
    what = f"--{source.role} {source.text}: {top} has no such commit, branch or tag"
    step = f"'git fetch' may bring it; a folder is written as ./{source.text}"
    if _git(top, "rev-parse", "--verify", "--quiet", f"origin/{source.text}^{{commit}}").returncode == 0:
        step = f"write origin/{source.text}"
    elif _git(top, "rev-parse", "--is-shallow-repository").stdout.strip() == "true":
        what += ", and it is a shallow clone"
        step = "'git fetch --unshallow --tags' brings it (in GitHub's checkout action: fetch-depth: 0)"
    raise UsageError(what, next_step=step)


def run_build(command: str, tree: Path, log: Path, source: Source) -> None:
    """Run a build command in a worktree; it ends with this process, however that ends.

    Raises:
        InvalidData: `build_failed`, with the last lines of its log.
    """
    with ExitStack() as stack:
        with file_errors("write", log):
            log.parent.mkdir(parents=True, exist_ok=True)
            out = stack.enter_context(log.open("wb"))
        lifeline, held = os.pipe()
        child = subprocess.Popen(
            [*programs.PYTHON, "-m", "netjoule.gate.build_command", str(lifeline), command],
            cwd=tree,
            env=_environment(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=(lifeline,),
            process_group=0,  # a Ctrl-C is ours alone: the end of the pipe ends it
        )
        os.close(lifeline)
        stack.enter_context(child)  # waits for its end
        stack.callback(os.close, held)
        code = child.wait()
    if code:
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        said = " / ".join(lines[-_LAST_LINES:]) or "it printed nothing"
        raise InvalidData(
            f"--{source.role} {source.text}: the build ended with code {code}: {said}",
            next_step=f"see {log}",
            code="build_failed",
        )


def digest(content: Path) -> str:
    """SHA-256 of a program, or over all files of a folder, sorted by name, without .git."""
    with file_errors("read", content):
        if not content.is_dir():
            return _sha256(content)
        whole = hashlib.sha256()
        for path in sorted(content.rglob("*")):
            within = path.relative_to(content)
            if within.parts[0] != ".git" and not (path.is_dir() and not path.is_symlink()):
                of = f"link to {path.readlink()}" if path.is_symlink() else _sha256(path)
                whole.update(f"{within.as_posix()}\0{of}\0".encode(errors="surrogateescape"))
        return whole.hexdigest()


def installed(document: Mapping[str, Any]) -> str | None:
    """SHA-256 of the program that a workload runs as it is; None where its load does not say which."""
    try:
        content = loads.build_settings(document, None, {}).content
    except UsageError:  # of a load without builds
        return None
    return None if content is None else digest(content)


def _sha256(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _arm(source: Source, document: Mapping[str, Any], tree: Path | None, commit: str | None) -> Arm:
    place = sources.program_or_folder(source) if source.kind == sources.PATH else tree
    variables = dict([source.setting]) if source.setting else {}
    try:
        made = loads.build_settings(document, place, variables)
    except UsageError as error:
        what = f"--{source.role} {source.text}: {error.what}"
        if tree is not None:  # built, and not to what was wanted
            raise InvalidData(what, next_step=error.next_step, code="build_failed") from error
        raise UsageError(what, next_step=error.next_step) from error
    kind = source.kind
    if kind == sources.PATH:
        kind = sources.DIRECTORY if place is not None and place.is_dir() else sources.BINARY
    sha256 = None if made.content is None else digest(made.content)
    return Arm(source.role, source.role, kind, source.text, commit, sha256, made.said)


# --- worktrees ------------------------------------------------------------------------------------


@contextmanager
def _checked_out(commits: Mapping[str, str], top: Path, folder: Path) -> Iterator[dict[str, Path]]:
    """A worktree of each commit, by role."""
    remove_left_behind(top)
    with file_errors("write", folder):
        folder.mkdir(parents=True)
        lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        found = {}
        for role, commit in commits.items():
            found[role] = folder / _FOLDERS[role]
            said = _git(top, "worktree", "add", "--detach", str(found[role]), commit)
            if said.returncode:
                last = (said.stderr.strip().splitlines() or ["no answer"])[-1].removeprefix("fatal: ")
                raise InvalidData(f"git makes no worktree of {commit}: {last}", code="build_failed")
        yield found
    finally:
        _remove(top, folder)
        os.close(lock)


def remove_left_behind(top: Path) -> None:
    """Remove worktrees of gates that are over: nobody holds their lock."""
    listed = _git(top, "worktree", "list", "--porcelain").stdout.splitlines()
    trees = [Path(line.removeprefix("worktree ")) for line in listed if line.startswith("worktree ")]
    for folder in dict.fromkeys(tree.parent for tree in trees):
        with suppress(OSError):
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _remove(top, folder)
            finally:
                os.close(lock)
    _git(top, "worktree", "prune")


def _remove(top: Path, folder: Path) -> None:
    """Remove a folder with the worktrees in it, from git's books too."""
    for name in _FOLDERS.values():
        if (folder / name).exists():
            _git(top, "worktree", "remove", "--force", "--force", str(folder / name))
    shutil.rmtree(folder, ignore_errors=True)
    _git(top, "worktree", "prune")


def _git(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    try:
        return programs.said_by(["git", "-C", str(folder), *words], env=_environment())
    except OSError as error:
        raise HostLacks("git cannot be started", next_step="install the package git") from error


def _environment() -> dict[str, str]:
    """Without what a git hook tells of its own repository; messages of git in one language."""
    return {name: value for name, value in os.environ.items() if name not in _OF_GIT} | {"LC_ALL": "C.UTF-8"}
