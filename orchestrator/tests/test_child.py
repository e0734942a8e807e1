# SPDX-License-Identifier: Apache-2.0
"""A child ends with the command that started it, also where a signal comes before it is known."""

import errno
import os
import signal
import subprocess
import threading

import pytest

from netjoule import child

SIGNALS = [(signal.SIGTERM, SystemExit), (signal.SIGINT, KeyboardInterrupt)]
ASK = (signal.SIGINT, signal.SIGTERM)


def sleeper(script="exec sleep 60"):
    return subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)


@pytest.fixture
def handlers():
    """The handlers are those of before, whatever happened."""
    before = [signal.getsignal(number) for number, _ in SIGNALS]
    yield
    assert [signal.getsignal(number) for number, _ in SIGNALS] == before


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_a_signal_before_the_child_is_known_ends_it(handlers, number, raised):
    started = []

    def start():
        started.append(sleeper())
        os.kill(os.getpid(), number)
        os.getpid()  # the handler has run
        return started[0]

    with pytest.raises(raised), child.held(start, ASK, 2.0):
        pytest.fail("the body was reached")
    assert started[0].returncode == -signal.SIGINT
    assert started[0].stdout.closed


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_so_does_one_in_the_body(handlers, number, raised):
    with pytest.raises(raised), child.held(sleeper, ASK, 2.0) as process:
        os.kill(os.getpid(), number)
        process.wait()
    assert process.returncode == -signal.SIGINT


@pytest.mark.parametrize(("number", "raised"), SIGNALS)
def test_a_child_that_cannot_be_started_says_why_and_the_signal_is_felt(handlers, number, raised):
    def start():
        os.kill(os.getpid(), number)
        raise OSError(errno.ENOENT, "no such program")

    with pytest.raises(raised) as seen, child.held(start, ASK, 2.0):
        pytest.fail("the body was reached")
    assert isinstance(seen.value.__context__, OSError)


@pytest.mark.parametrize(("deaf", "ended_by"), [("", "SIGINT"), ("INT", "SIGTERM"), ("INT TERM", "SIGKILL")])
def test_it_is_asked_mildly_first(handlers, deaf, ended_by):
    with child.held(lambda: sleeper(f"trap '' {deaf or 'USR1'}; echo; exec sleep 60"), ASK, 1.0) as process:
        process.stdout.readline()  # the trap is set
    assert process.returncode == -signal.Signals[ended_by]


def test_a_second_signal_ends_the_patience(handlers):
    """It would have ten minutes."""
    deaf = "trap 'echo asked' INT; trap '' TERM; echo; while :; do sleep 0.1; done"

    def again(words):
        assert words.readline() == "asked\n"
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt), child.held(lambda: sleeper(deaf), ASK, 600.0) as process:
        process.stdout.readline()
        threading.Thread(target=again, args=(process.stdout,)).start()
    assert process.returncode == -signal.SIGKILL


def test_one_that_has_ended_is_left_alone(handlers):
    with child.held(lambda: sleeper("exit 3"), ASK, 2.0) as process:
        assert process.wait() == 3
    assert process.returncode == 3


def test_a_failure_of_the_body_ends_it(handlers):
    with pytest.raises(ValueError, match="odd"), child.held(sleeper, ASK, 2.0) as process:
        raise ValueError("odd")
    assert process.returncode == -signal.SIGINT


def test_a_thread_holds_one_without_handlers(handlers):
    seen = []

    def work():
        with child.held(sleeper, ASK, 2.0) as process:
            seen.append(process)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(30)
    assert seen[0].returncode == -signal.SIGINT
