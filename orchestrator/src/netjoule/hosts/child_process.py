# SPDX-License-Identifier: Apache-2.0
"""A child program that does not outlive the command which started it, whenever a signal comes."""

from __future__ import annotations

import json
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

from netjoule.core.errors import HostLacks
from netjoule.core.signals import exit_on_signals, handled_by, termination_signals


def run_for_events(
    command: Sequence[str],
    env: Mapping[str, str],
    sink: Callable[[Mapping[str, Any]], None],
    *,
    ask: Sequence[signal.Signals],
    grace_s: float,
) -> tuple[int, str]:
    """Run a program to its end; its exit code, and what it wrote on stderr.

    Args:
        sink: gets each event, a JSON document per line of its output, as it comes; what else stands there is
            of programs that it starts.
        command, env, ask, grace_s: as `held` has them.

    Raises:
        HostLacks: when the program cannot be started.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as stderr:
        with held(command, env, stderr, ask=ask, grace_s=grace_s) as process:
            assert process.stdout is not None
            for line in process.stdout:
                try:
                    document = json.loads(line)
                except ValueError:
                    continue
                if isinstance(document, dict) and "event" in document:
                    sink(document)
            code = process.wait()
        stderr.seek(0)
        return code, stderr.read()


@contextmanager
def held(
    command: Sequence[str],
    env: Mapping[str, str],
    stderr: IO[str],
    *,
    ask: Sequence[signal.Signals],
    grace_s: float,
) -> Iterator[subprocess.Popen[str]]:
    """Start a program whose output is read; where it still runs after the body, it is asked to end.

    SIGTERM and SIGHUP to us raise SystemExit in the body, as Ctrl-C raises KeyboardInterrupt.

    Args:
        command: the program and its arguments.
        env: its whole environment.
        stderr: a file; a full pipe that nobody reads yet would stop the program.
        ask: signals that ask it to end, the mildest first; SIGKILL comes after them.
        grace_s: how long each of them is given.

    Raises:
        HostLacks: when the program cannot be started.
    """
    child: subprocess.Popen[str] | None = None
    with exit_on_signals():
        try:
            with _signals_wait():
                child = _started(command, env, stderr)
            yield child
        finally:
            if child is not None:
                with child:  # closes its pipe
                    _end(child, ask, grace_s)


def in_utf_8(env: Mapping[str, str]) -> dict[str, str]:
    """An environment in which R and Ansible read paths and texts as we do, whatever the user's locale is."""
    return {**env, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}


def _started(command: Sequence[str], env: Mapping[str, str], stderr: IO[str]) -> subprocess.Popen[str]:
    try:
        return subprocess.Popen(
            command,
            env=in_utf_8(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
            encoding="utf-8",
            errors="replace",
        )
    except OSError as error:
        raise HostLacks(f"cannot start {command[0]}: {error.strerror}") from error


@contextmanager
def _signals_wait() -> Iterator[None]:
    """Let SIGINT, SIGTERM and SIGHUP be felt after the body: in between, a child would run that nobody knows.

    They are not blocked instead, for the child would inherit that.
    """
    came: list[int] = []
    try:
        with handled_by(lambda number, _frame: came.append(number), termination_signals()):
            yield
    finally:
        for first in came[:1]:
            signal.raise_signal(first)


def _end(child: subprocess.Popen[str], ask: Sequence[signal.Signals], grace_s: float) -> None:
    try:
        for number in ask:
            if child.poll() is not None:
                return
            child.send_signal(number)
            with suppress(subprocess.TimeoutExpired):
                child.wait(grace_s)
    finally:
        child.kill()  # also after a second Ctrl-C; nothing to one that has ended
        child.wait()  # the pipe's end leaves this out after Ctrl-C
