# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import os
import threading

import pytest
import serial

from netjoule_meters.clock import SystemClock
from netjoule_meters.emulated.pty_port import PtyPort
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout
from netjoule_meters.transports.serial_port import SerialPort


@pytest.fixture
def pty():
    port = PtyPort(None)
    yield port
    port.close()


@pytest.fixture
def opened(pty):
    port = SerialPort(pty.device, clock=SystemClock())
    port.open()
    yield port
    port.close()


@pytest.mark.parametrize("terminator", [b"\n", b"\r\n"])
def test_lines_both_ways(pty, opened, terminator):
    opened.write_line(b"*IDN?")
    assert pty.read() == b"*IDN?\n"
    pty.write(b"one" + terminator + b"two" + terminator)
    assert [opened.read_line(1), opened.read_line(1)] == [b"one", b"two"]


def test_a_partial_line_is_kept_for_the_next_wait(pty, opened):
    pty.write(b"230.1")
    with pytest.raises(ReplyTimeout):
        opened.read_line(0.02)
    pty.write(b"2E+00\r\n")
    assert opened.read_line(1) == b"230.12E+00"


def test_bytes_split_anywhere_make_the_same_line(pty, opened):
    for byte in b"230.12E+00,0.2E+00,22.95E+00\r\n":
        pty.write(bytes([byte]))
    assert opened.read_line(1) == b"230.12E+00,0.2E+00,22.95E+00"


def test_drain_throws_input_away(pty, opened):
    pty.write(b"old\nstale")
    opened.drain(0.02)
    pty.write(b"new\n")
    assert opened.read_line(1) == b"new"


def test_the_other_end_closing_is_a_lost_connection(pty, opened):
    pty.close()
    with pytest.raises(ConnectionLost):
        opened.read_line(1)
    with pytest.raises(ConnectionLost):
        opened.write_line(b"x")


def test_a_closed_port_is_a_lost_connection(opened):
    opened.close()
    with pytest.raises(ConnectionLost, match="is not open"):
        opened.read_line(1)


def test_a_wait_can_be_called_off_from_another_thread(opened):
    caller = threading.Timer(0.05, opened.cancel)
    caller.start()
    with pytest.raises(Cancelled):
        opened.read_line(30)
    caller.join()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOENT, "no serial port /dev/ttyX.*plug it in"),
        (errno.EACCES, "no permission to open /dev/ttyX.*dialout"),
        (errno.EBUSY, "/dev/ttyX is in use"),
        (errno.EAGAIN, "/dev/ttyX is in use"),
        (errno.EIO, "cannot be used as a serial port"),
    ],
)
def test_each_reason_not_to_open_has_its_next_step(monkeypatch, number, words):
    def refuse(*_arguments, **_options):
        raise serial.SerialException(number, os.strerror(number))

    monkeypatch.setattr(serial, "Serial", refuse)
    with pytest.raises(PortUnavailable, match=words) as error:
        SerialPort("/dev/ttyX", clock=SystemClock()).open()
    assert error.value.exit_code == 3
