# SPDX-License-Identifier: Apache-2.0
"""A child ends with the command that started it, also where a signal comes before it is known."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from golden_sentences import raises

from netjoule.core.errors import HostLacks
from netjoule.hosts import child_process

SIGNALS = [(signal.SIGTERM, SystemExit), (signal.SIGHUP, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
ASK = (signal.SIGINT, signal.SIGTERM)


def sleeper(script="exec sleep 60", grace_s=2.0, program="sh"):
    return child_process.held([program, "-c", script], os.environ, sys.stderr, ask=ASK, grace_s=grace_s)


class SignalledAtItsStart(subprocess.Popen):
    """A program during whose start a signal comes, whether it can be started or not."""

    number = signal.SIGTERM
    last = None

    def __init__(self, *args, **kwargs):
        os.kill(os.getpid(), self.number)
        super().__init__(*args, **kwargs)
        type(self).last = self


@pytest.fixture
def handlers():
    """The handlers are those of before, whatever happened."""
    before = [signal.getsignal(number) for number, _ in SIGNALS]
    yield
    assert [signal.getsignal(number) for number, _ in SIGNALS] == before


@pytest.fixture
def signalled(monkeypatch):
    monkeypatch.setattr(subprocess, "Popen", SignalledAtItsStart)
    return SignalledAtItsStart


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_a_signal_before_the_child_is_known_ends_it(handlers, monkeypatch, signalled, number, raised):
    monkeypatch.setattr(signalled, "number", number)
    with pytest.raises(raised), sleeper():
        pytest.fail("the body was reached")
    assert signalled.last.returncode == -signal.SIGINT
    assert signalled.last.stdout.closed


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_so_does_one_in_the_body(handlers, number, raised):
    with pytest.raises(raised), sleeper() as process:
        os.kill(os.getpid(), number)
        process.wait()
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_it_is_felt_where_the_child_cannot_be_started(handlers, monkeypatch, signalled, number, raised):
    monkeypatch.setattr(signalled, "number", number)
    with pytest.raises(raised) as seen, sleeper(program="./no-such-program"):
        pytest.fail("the body was reached")
    assert isinstance(seen.value.__context__, HostLacks)


def test_a_child_that_cannot_be_started_is_named(handlers):
    with raises(HostLacks), sleeper(program="./no-such-program"):
        pytest.fail("the body was reached")


@pytest.mark.parametrize(("deaf", "ended_by"), [("", "SIGINT"), ("INT", "SIGTERM"), ("INT TERM", "SIGKILL")])
def test_it_is_asked_mildly_first(handlers, deaf, ended_by):
    with sleeper(f"trap '' {deaf or 'USR1'}; echo; exec sleep 60", grace_s=1.0) as process:
        process.stdout.readline()  # the trap is set
    assert process.returncode == -signal.Signals[ended_by]


def test_a_second_signal_ends_the_patience(handlers):
    """It would have ten minutes."""
    deaf = "trap 'echo asked' INT; trap '' TERM; echo; while :; do sleep 0.1; done"

    def again(words):
        assert words.readline() == "asked\n"
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), sleeper(deaf, grace_s=600.0) as process:
        process.stdout.readline()
        threading.Thread(target=again, args=(process.stdout,)).start()
    assert process.returncode == -signal.SIGKILL


def test_one_that_has_ended_is_left_alone(handlers):
    with sleeper("exit 3") as process:
        assert process.wait() == 3
    assert process.returncode == 3


def test_a_failure_of_the_body_ends_it(handlers):
    with pytest.raises(ValueError, match="odd"), sleeper() as process:
        raise ValueError("odd")
    assert process.returncode == -signal.SIGINT


def test_a_thread_holds_one_without_handlers(handlers):
    seen = []

    def work():
        with sleeper() as process:
            seen.append(process)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen[0].returncode == -signal.SIGINT
