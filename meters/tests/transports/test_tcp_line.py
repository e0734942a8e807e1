# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest
from golden_sentences import raises
from meter_processes import PATIENCE_S

from netjoule_meters.clock import SystemClock
from netjoule_meters.errors import Cancelled, ConnectionLost, PortUnavailable, ReplyTimeout, UsageError
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.tcp_line import tcp_line


class Server:
    """One listening socket and the connection it accepts."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.peer: socket.socket | None = None

    def accept(self) -> socket.socket:
        self.peer, _ = self.listener.accept()
        self.peer.settimeout(PATIENCE_S)
        return self.peer

    def close(self) -> None:
        for open_socket in (self.peer, self.listener):
            if open_socket is not None:
                open_socket.close()


@pytest.fixture
def server():
    with contextlib.closing(Server()) as server:
        yield server


@pytest.fixture
def line(server):
    transport = tcp_line(f"tcp:127.0.0.1:{server.port}", clock=SystemClock())
    transport.open()
    server.accept()
    with contextlib.closing(transport):
        yield transport


def test_lines_both_ways(server, line):
    line.write_line(b"Hello")
    assert server.peer.recv(100) == b"Hello\r\n"
    server.peer.sendall(b"one\r\ntwo\nthr")
    assert [line.read_line(PATIENCE_S), line.read_line(PATIENCE_S)] == [b"one", b"two"]
    with pytest.raises(ReplyTimeout):
        line.read_line(0.02)
    server.peer.sendall(b"ee\r\n")
    assert line.read_line(PATIENCE_S) == b"three"


def test_drain_throws_away(server, line):
    server.peer.sendall(b"left over\r\n")
    line.drain(0.1)
    server.peer.sendall(b"new\r\n")
    assert line.read_line(PATIENCE_S) == b"new"


def test_the_other_end_hangs_up(server, line):
    server.peer.close()
    with raises(ConnectionLost):
        line.read_line(PATIENCE_S)
    line.close()
    with raises(ConnectionLost):
        line.write_line(b"x")


def test_bytes_without_a_line_end_are_no_line_and_fill_no_memory(server, line):
    server.peer.sendall(b"x" * 70_000)
    with raises(ReplyTimeout):
        line.read_line(0.3)
    assert len(line._lines._part) <= 16_384


def test_a_wait_can_be_called_off_and_stays_so(line):
    began = time.monotonic()
    threading.Timer(0.02, line.cancel).start()
    with pytest.raises(Cancelled):
        line.read_line(20)
    assert time.monotonic() - began < 10
    with pytest.raises(Cancelled):
        line.open()


def test_open_again_forgets_what_was_received(server, line):
    server.peer.sendall(b"old\r\nolder")
    assert line.read_line(PATIENCE_S) == b"old"
    server.peer.close()
    line.open()
    server.accept().sendall(b"new\r\n")
    assert line.read_line(PATIENCE_S) == b"new"


def test_nothing_listens():
    with socket.socket() as silent, raises(PortUnavailable):
        silent.bind(("127.0.0.1", 0))
        tcp_line(f"tcp:127.0.0.1:{silent.getsockname()[1]}", clock=SystemClock()).open()


def test_no_such_host():
    with raises(PortUnavailable):
        tcp_line("tcp:no-such-host.invalid:8888", clock=SystemClock()).open()


@pytest.mark.parametrize(
    "resource", ["tcp:lab1", "tcp:lab1:", "tcp::8888", "tcp:lab1:0", "tcp:lab1:99999", "tcp:lab1:x"]
)
def test_what_names_no_port(resource):
    with raises(UsageError):
        host_and_port(resource)


def test_names_of_both_internet_protocols():
    assert host_and_port("tcp:lab1:8888") == ("lab1", 8888)
    assert host_and_port("tcp:[::1]:8888") == ("::1", 8888)
