# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import errno
import fcntl
import os
import threading
from pathlib import Path

import pytest
import serial
from golden_sentences import raises
from meter_processes import PATIENCE_S

import netjoule_meters.transports.serial_port
from netjoule_meters.clock import SystemClock
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout, UsageError
from netjoule_meters.transports.serial_port import SerialPort, serial_port


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
    assert [opened.read_line(PATIENCE_S), opened.read_line(PATIENCE_S)] == [b"one", b"two"]


def test_a_partial_line_is_kept_for_the_next_wait(pty, opened):
    pty.write(b"230.1")
    with pytest.raises(ReplyTimeout):
        opened.read_line(0.02)
    pty.write(b"2E+00\r\n")
    assert opened.read_line(PATIENCE_S) == b"230.12E+00"


def test_bytes_split_anywhere_make_the_same_line(pty, opened):
    for byte in b"230.12E+00,0.2E+00,22.95E+00\r\n":
        pty.write(bytes([byte]))
    assert opened.read_line(PATIENCE_S) == b"230.12E+00,0.2E+00,22.95E+00"


def test_lines_that_end_with_cr_and_the_time_of_their_first_byte(pty, clock):
    port = SerialPort(pty.device, clock=clock, line_end="cr")
    port.open()
    port.write_line(b"VAL?")
    assert pty.read() == b"VAL?\r"
    for now_ns, piece in ((10, b"U3 I1 "), (20, b"W=1.0E+0\r"), (30, b"\nU3 I1 W=2.0E+0\r\n")):
        clock.now_ns = now_ns
        pty.write(piece)
        port._lines.add(port._receive(0.1), clock.now_ns)
    assert (port.read_line(0), port.first_byte_ns) == (b"U3 I1 W=1.0E+0", 10)
    assert (port.read_line(0), port.first_byte_ns) == (b"U3 I1 W=2.0E+0", 30)
    port.close()


def test_flow_control_of_the_instrument_is_obeyed_and_taken_out(pty):
    port = SerialPort(pty.device, clock=SystemClock(), handshake="xon_xoff", line_end="cr")
    port.open()
    pty.write(b"U3 \x13I1 \x11W=1.0E+0\r")
    assert port.read_line(PATIENCE_S) == b"U3 I1 W=1.0E+0"
    port.write_line(b"one")
    assert pty.read() == b"one\r"
    port.close()


def test_an_xoff_that_nobody_took_back_does_not_hold_the_next_connection(pty):
    port = SerialPort(pty.device, clock=SystemClock(), handshake="xon_xoff", line_end="cr")
    port.open()
    pty.write(b"\x13")
    port.open()
    port.write_line(b"*IDN?")
    assert pty.read() == b"*IDN?\r"
    port.close()


def test_drain_throws_input_away(pty, opened):
    pty.write(b"old\nstale")
    opened.drain(0.02)
    pty.write(b"new\n")
    assert opened.read_line(PATIENCE_S) == b"new"


def test_drain_does_not_wait_for_something_that_never_stops(opened, monkeypatch, clock):
    monkeypatch.setattr(opened, "_clock", clock)

    def endless(quiet_s):
        clock.advance(quiet_s)
        return b"x"

    monkeypatch.setattr(opened, "_receive", endless)
    began_ns = clock.now_ns
    opened.drain(0.05)
    assert (clock.now_ns - began_ns) / 1e9 == pytest.approx(3.0, abs=0.1)


def test_the_other_end_closing_is_a_lost_connection(pty, opened):
    pty.close()
    with pytest.raises(ConnectionLost):
        opened.read_line(1)
    with pytest.raises(ConnectionLost):
        opened.write_line(b"x")


def test_a_closed_port_is_a_lost_connection(opened):
    opened.close()
    with raises(ConnectionLost):
        opened.read_line(1)


def test_a_wait_can_be_called_off_from_another_thread(opened):
    caller = threading.Timer(0.05, opened.cancel)
    caller.start()
    with pytest.raises(Cancelled):
        opened.read_line(30)
    caller.join()


def test_no_path_and_no_such_baud_rate(pty):
    with raises(UsageError):
        serial_port("serial:", clock=SystemClock())
    with raises(UsageError):
        SerialPort(pty.device, clock=SystemClock(), baud_rate=10**20).open()


@pytest.mark.parametrize(
    "number",
    [
        errno.ENOENT,
        errno.EACCES,
        errno.EBUSY,
        errno.EAGAIN,
        errno.EIO,
    ],
)
def test_each_reason_not_to_open_has_its_next_step(monkeypatch, number):
    def refuse(*_arguments, **_options):
        raise serial.SerialException(number, os.strerror(number))

    monkeypatch.setattr(serial, "Serial", refuse)
    monkeypatch.setattr(netjoule_meters.transports.serial_port, "_PATIENCE_NS", 0)
    with raises(PortUnavailable) as error:
        SerialPort("/dev/ttyX", clock=SystemClock()).open()
    assert error.value.exit_code == 3


def test_a_port_that_another_program_gives_up_meanwhile_is_opened(pty):
    with Path(pty.device).open("rb", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        leaving = threading.Timer(0.3, fcntl.flock, (other, fcntl.LOCK_UN))
        leaving.start()
        port = SerialPort(pty.device, clock=SystemClock())
        port.open()
        leaving.join()
        port.write_line(b"X")
        port.close()


def test_waiting_for_a_port_can_be_called_off(pty):
    with Path(pty.device).open("rb", buffering=0) as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        port = SerialPort(pty.device, clock=SystemClock())
        port.cancel()
        with pytest.raises(Cancelled):
            port.open()
