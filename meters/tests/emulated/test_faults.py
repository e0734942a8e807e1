# SPDX-License-Identifier: Apache-2.0
from __future__ import annotations

import contextlib
import os
import socket

import pytest
from golden_sentences import raises
from meter_processes import PATIENCE_S

from netjoule_meters.emulated.control import Control, request_fault
from netjoule_meters.emulated.faults import FAULTS, Faults, parse_request
from netjoule_meters.emulated.ports.network import TcpPort, UdpPort
from netjoule_meters.emulated.ports.pseudo_terminal import PtyPort
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.errors import MeterUnavailable, UsageError


def said(faults: Faults, data: bytes, now_s: float) -> bytes:
    faults.queue_output(data, now_s)
    return b"".join(piece for piece, _ in faults.output_due(now_s))


def test_without_faults_everything_goes_through():
    faults = Faults()
    interval = PowerInterval(0, 1, 5.0)
    assert faults.plugged(0) and faults.filter_power(interval, 0) is interval
    assert faults.filter_input(b"*IDN?", 0) == b"*IDN?" and said(faults, b"answer", 0) == b"answer"
    assert faults.wake_s(0) is None


def test_a_disconnection_ends_by_itself():
    faults = Faults()
    faults.request({"fault": "disconnect", "seconds": 1.5}, 10.0)
    assert not faults.plugged(11.4) and faults.plugged(11.5)
    assert faults.wake_s(10.0) == 11.5
    assert faults.filter_input(b"x", 11.0) == b"" and said(faults, b"x", 11.0) == b""
    assert said(faults, b"x", 12.0) == b"x"


def test_silence_leaves_the_port():
    faults = Faults()
    faults.request({"fault": "silence", "seconds": 1}, 0.0)
    assert faults.plugged(0.5) and faults.filter_input(b"x", 0.5) == b"" and said(faults, b"x", 0.5) == b""
    assert faults.filter_input(b"x", 1.0) == b"x"


def test_frozen_power_stays_what_it_was_and_moves_on_after():
    faults = Faults()
    faults.request({"fault": "freeze", "seconds": 1}, 0.0)
    powers = [faults.filter_power(PowerInterval(t, t + 0.5, 5.0 + t), t).power_w for t in (0.1, 0.6, 1.0)]
    assert powers == [5.1, 5.1, 6.0]


def test_garbage_at_once_or_ahead_of_the_next_answer_and_drawn_by_seed():
    bursts = []
    for seed in (1, 1, 2):
        faults = Faults(seed)
        faults.request({"fault": "garbage", "bytes": 16}, 0.0)
        bursts.append(said(faults, b"", 0.0))
        assert said(faults, b"", 0.1) == b""
    assert bursts[0] == bursts[1] != bursts[2] and len(bursts[0]) == 16
    faults.request({"fault": "garbage", "bytes": 16, "with_answer": 1}, 1.0)
    assert said(faults, b"", 1.0) == b""
    both = said(faults, b"answer", 1.1)
    assert len(both) == 22 and both.endswith(b"answer")


def test_dropped_answers_are_counted():
    faults = Faults()
    faults.request({"fault": "drop", "count": 2}, 0.0)
    assert [said(faults, answer, 0.0) for answer in (b"a", b"", b"b", b"c")] == [b"", b"", b"", b"c"]


def test_pieces_come_one_by_one_and_in_order():
    faults = Faults(3)
    faults.request({"fault": "split", "seconds": 5, "gap_s": 0.02}, 0.0)
    text = b"YOKOGAWA,760401,0,F2.01\r\n"
    faults.queue_output(text, 0.0)
    pieces, unfinished, now_s, wake_s = [], [], 0.0, 0.0
    while wake_s is not None:
        now_s = wake_s
        for piece, more in faults.output_due(now_s):
            pieces.append(piece)
            unfinished.append(more)
        wake_s = faults.wake_s(now_s)
    assert b"".join(pieces) == text and len(pieces) >= 5 and max(map(len, pieces)) <= 5
    assert unfinished == [True] * (len(pieces) - 1) + [False]
    assert now_s == pytest.approx(0.02 * (len(pieces) - 1))


@pytest.mark.parametrize(
    "data",
    [
        b"disconnect",
        b"[]",
        b'{"fault": 3}',
        b'{"fault": "fire"}',
        b'{"fault": "freeze", "minutes": 1}',
        b'{"fault": "freeze", "seconds": -1}',
        b'{"fault": "freeze", "seconds": true}',
    ],
)
def test_wrong_requests_are_one_sentence(data):
    with raises(UsageError):
        Faults().request(parse_request(data), 0.0)


def fed_w(faults: Faults, t_s: float) -> float:
    return faults.filter_power(PowerInterval(t_s, t_s + 0.01, 1.0 + t_s), t_s).power_w


DEFAULTS = {
    "disconnect": lambda faults: [faults.plugged(now_s) for now_s in (1.99, 2.0)] == [False, True],
    "silence": lambda faults: [faults.filter_input(b"x", now_s) for now_s in (1.99, 2.0)] == [b"", b"x"],
    "freeze": lambda faults: [fed_w(faults, t_s) for t_s in (0.0, 4.99, 5.0)] == [1.0, 1.0, 6.0],
    "garbage": lambda faults: len(said(faults, b"", 0.0)) == 24,
    "split": lambda faults: (
        len(said(faults, b"0123456789", 4.0)) <= 5 and faults.wake_s(4.0) == pytest.approx(4.02)
    ),
    "drop": lambda faults: [said(faults, answer, 0.0) for answer in (b"a", b"b")] == [b"", b"b"],
}


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_has_defaults(name):
    faults = Faults()
    faults.request({"fault": name}, 0.0)
    assert DEFAULTS[name](faults)


# -- cables ------------------------------------------------------------------------------------------


def test_a_pulled_pseudo_terminal_is_gone_and_comes_back_under_its_name(tmp_path):
    port = PtyPort(tmp_path / "wt")
    client = os.open(tmp_path / "wt", os.O_RDWR | os.O_NOCTTY)
    try:
        port.unplug()
        assert not (tmp_path / "wt").exists() and port.descriptors() == [] and port.read() == b""
        with contextlib.suppress(OSError):
            assert os.read(client, 1) == b"", "the client's end is dead"
        port.plug_in()
        os.close(client)
        client = os.open(tmp_path / "wt", os.O_RDWR | os.O_NOCTTY)
        os.write(client, b"x")
        assert port.read() == b"x"
    finally:
        os.close(client)
        port.close()
    assert not (tmp_path / "wt").is_symlink()


def test_a_pulled_tcp_port_refuses_and_comes_back_at_its_number():
    port = TcpPort()
    try:
        with socket.create_connection((port.host, port.port), 5) as client:
            port.read()
            port.unplug()
            assert client.recv(1) == b""
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((port.host, port.port), 5)
        port.plug_in()
        with socket.create_connection((port.host, port.port), 5):
            pass
    finally:
        port.close()


def test_an_answer_in_pieces_is_hung_up_after_the_last():
    port = TcpPort(once=True)
    try:
        with socket.create_connection((port.host, port.port), 5) as client:
            port.read()
            port.write(b"ab", more=True)
            port.write(b"c")
            client.settimeout(PATIENCE_S)
            received = b""
            while data := client.recv(10):
                received += data
        assert received == b"abc"
    finally:
        port.close()


def test_a_pulled_udp_port_says_nothing():
    port = UdpPort()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.connect((port.host, port.port))
        port.unplug()
        client.send(b"?")
        assert port.read() == b""
        port.plug_in()
        client.send(b"!")
        assert port.read() == b"!"
        port.write(b"answer")
        assert client.recv(10) == b"answer"
    port.close()


# -- asking ------------------------------------------------------------------------------------------


def test_requests_arrive_and_nobody_there_is_a_sentence(tmp_path):
    control = Control(tmp_path / "faults")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as nameless:
        nameless.sendto(b"{}", str(control.path))
    assert control.receive() == (b"{}", None) and control.receive() is None
    control.answer(None, {"ok": True})
    control.close()
    assert not control.path.exists()
    with raises(MeterUnavailable):
        request_fault(control.path, {"fault": "freeze"})


def test_a_socket_left_behind_is_replaced_and_anything_else_is_kept(tmp_path):
    Control(tmp_path / "faults")._socket.close()
    control = Control(tmp_path / "faults")
    with raises(UsageError):
        Control(tmp_path / "faults")
    control.close()
    (tmp_path / "file").write_text("mine")
    with raises(UsageError):
        Control(tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"
