# SPDX-License-Identifier: Apache-2.0
"""The USB-TMC transport; a pseudo-terminal stands for the device node, the driver's ioctl is written down."""

from __future__ import annotations

import errno
import os
import struct
import threading

import pytest
from golden_sentences import raises
from meter_processes import PATIENCE_S

from netjoule_meters.clock import SystemClock
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout
from netjoule_meters.transports.usbtmc import UsbTmcPort, usbtmc

CLEAR, SET_TIMEOUT, AUTO_ABORT = 0x5B02, 0x40045B0A, 0x40015B19


@pytest.fixture
def pty():
    port = PtyPort(None)
    yield port
    port.close()


@pytest.fixture
def asked():
    return []


@pytest.fixture
def opened(pty, asked):
    def ioctl(_descriptor, request, argument):
        asked.append((request, argument))

    port = UsbTmcPort("usbtmc:x", pty.device, clock=SystemClock(), ioctl=ioctl)
    port.open()
    yield port
    port.close()


def test_open_clears_the_device(opened, asked):
    assert asked == [(AUTO_ABORT, b"\1"), (CLEAR, b"")]


def test_messages_both_ways(pty, opened, asked, monkeypatch, clock):
    monkeypatch.setattr(opened, "_clock", clock)  # stands still, so that the time-out is known
    opened.write_line(b"")
    opened.write_line(b"*IDN?")
    assert pty.read() == b"*IDN?\n"
    pty.write(b"YOKOGAWA,WT310,X,F1.03\r\n")
    assert opened.read_line(2) == b"YOKOGAWA,WT310,X,F1.03"
    (timeout_ms,) = struct.unpack("=I", dict(asked)[SET_TIMEOUT])
    assert timeout_ms == 2500, "the driver gives up after the call, never before"


def test_a_wait_that_was_given_up_goes_on_with_the_next_call(pty, opened, asked):
    with pytest.raises(ReplyTimeout):
        opened.read_line(0.05)
    pty.write(b"1\n")
    assert opened.read_line(PATIENCE_S) == b"1"
    assert [request for request, _ in asked].count(SET_TIMEOUT) == 1, "one read in the driver, not two"


def test_a_read_that_the_driver_gave_up_is_begun_again(opened, monkeypatch):
    answers = [OSError(errno.ETIMEDOUT, "timed out"), b"1\n"]

    def read(_descriptor, _count):
        answer = answers.pop(0)
        if isinstance(answer, OSError):
            raise answer
        return answer

    monkeypatch.setattr(os, "read", read)
    assert opened.read_line(PATIENCE_S) == b"1"


def test_an_unplugged_instrument_is_a_lost_connection(pty, opened):
    pty.close()
    with raises(ConnectionLost):
        opened.read_line(2)
    with pytest.raises(ConnectionLost):
        opened.write_line(b"x")


def test_drain_clears_and_forgets_what_was_under_way(pty, opened, asked):
    with pytest.raises(ReplyTimeout):
        opened.read_line(0.02)
    pty.write(b"stale\n")
    opened.drain(0.2)
    assert asked[-1] == (CLEAR, b"")
    pty.write(b"new\n")
    assert opened.read_line(PATIENCE_S) == b"new"


def test_a_wait_can_be_called_off_from_another_thread(pty, opened):
    caller = threading.Timer(0.05, opened.cancel)
    caller.start()
    with pytest.raises(Cancelled):
        opened.read_line(30)
    caller.join()
    pty.write(b"x\n")  # ends the read in the driver


def test_closed_and_opened_again(pty, opened):
    opened.close()
    with raises(ConnectionLost):
        opened.read_line(1)
    opened.open()
    pty.write(b"1\n")
    assert opened.read_line(PATIENCE_S) == b"1"


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOENT,
        errno.EACCES,
        errno.EBUSY,
        errno.EIO,
    ],
)
def test_each_reason_not_to_open_has_its_next_step(monkeypatch, number):
    def refuse(*_):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "open", refuse)
    with raises(PortUnavailable) as error:
        usbtmc("usbtmc:/dev/usbtmc9", clock=SystemClock()).open()
    assert error.value.exit_code == 3


def test_a_file_is_no_usb_instrument(tmp_path):
    (tmp_path / "file").write_text("")
    with raises(PortUnavailable):
        usbtmc(f"usbtmc:{tmp_path / 'file'}", clock=SystemClock()).open()
