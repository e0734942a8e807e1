# SPDX-License-Identifier: Apache-2.0
"""Connections with an event loop of their own: each wait has an end, and nothing is left behind."""

from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import pytest
from golden_sentences import raises

from netjoule_meters.clock import SystemClock
from netjoule_meters.errors import Cancelled, ConnectionLost, NoAnswer, ReplyTimeout, UsageError
from netjoule_meters.transports.base import host_and_port
from netjoule_meters.transports.event_loop import EventLoopSource
from netjoule_meters.transports.http import HttpSource
from netjoule_meters.transports.kasa import KasaSource
from netjoule_meters.transports.modbus import ModbusSource, Register, parse_register
from netjoule_meters.transports.snmp import SnmpSource
from netjoule_meters.transports.tcp_text import TextSource

LONG_S = 60.0


class Slow(EventLoopSource):
    """Waits for ever, and says when it began to."""

    def __init__(self) -> None:
        super().__init__("slow", clock=SystemClock())
        self.waiting = threading.Event()
        self.ended = False

    async def _answer(self, request, timeout_s):
        self.waiting.set()
        await asyncio.sleep(LONG_S)
        return b""

    async def _end(self):
        self.ended = True


@pytest.fixture
def slow():
    source = Slow()
    source.open()
    yield source
    source.close()


def outcome_in_thread(call, *arguments):
    """What a call raises in another thread."""
    raised = []

    def work():
        try:
            call(*arguments)
        except Exception as error:
            raised.append(type(error))

    thread = threading.Thread(target=work)
    thread.start()
    return thread, raised


def test_cancel_ends_a_fetch_of_another_thread(slow):
    thread, raised = outcome_in_thread(slow.fetch, "", LONG_S)
    assert slow.waiting.wait(60)
    slow.cancel()
    thread.join(60)
    assert raised == [Cancelled]


def test_cancel_ends_a_pause_and_everything_after(slow):
    thread, raised = outcome_in_thread(slow.pause, LONG_S)
    slow.cancel()
    thread.join(60)
    assert raised == [Cancelled]
    for call, arguments in ((slow.fetch, ("", 1.0)), (slow.pause, (0.0,)), (slow.open, ())):
        with pytest.raises(Cancelled):
            call(*arguments)


def test_the_time_out_is_kept(slow):
    with raises(ReplyTimeout):
        slow.fetch("", 0.02)


def test_a_closed_connection_is_lost_and_closing_twice_is_harmless(slow):
    slow.close()
    slow.close()
    assert slow.ended
    slow.cancel()
    with raises(ConnectionLost):
        slow.fetch("", 1.0)


def test_what_a_library_left_running_ends_with_the_loop(slow):
    ended = []

    async def background():
        try:
            await asyncio.sleep(LONG_S)
        finally:
            ended.append(True)

    async def start():
        slow.kept = asyncio.ensure_future(background())
        await asyncio.sleep(0)

    slow._run(start(), 1.0)
    slow.close()
    assert ended == [True]


def test_a_failure_while_opening_closes_the_loop():
    class Refusing(Slow):
        async def _begin(self):
            raise ConnectionLost("refused")

    source = Refusing()
    with raises(NoAnswer):
        source.open()
    assert source._loop is None


def test_inside_a_running_loop_it_is_refused_with_the_way_out():
    async def notebook():
        with raises(UsageError):
            Slow().open()

    asyncio.run(notebook())


def descriptors():
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(
    ("model", "variant"), [("socket", "netio"), ("socket", "apc"), ("isockets", "modbus"), ("socket", "kasa")]
)
def test_no_descriptor_is_left_behind(serve, model, variant):
    device = serve(model, variant)
    meter = device.meter()
    meter.open()  # loads what stays loaded
    meter.close()
    before = descriptors()
    for _ in range(3):
        meter.open()
        for _ in range(3):
            meter.read()
        meter.open()
        meter.close()
    deadline_s = time.monotonic() + LONG_S
    while descriptors() > before:  # the device's end is closed by its own thread
        assert time.monotonic() < deadline_s
        time.sleep(0.01)


def test_a_logger_ends_at_once_while_a_device_is_silent(serve):
    """As the logger does it: readings in a thread, ``cancel`` from another."""
    device = serve("socket", "apc")
    meter = device.meter()
    meter.open()
    meter.settings["answer_timeout_s"] = LONG_S
    device.mute = True
    stop = threading.Event()
    thread = threading.Thread(target=lambda: list(meter.readings(stop)))
    thread.start()
    time.sleep(0.05)
    stop.set()
    meter.cancel()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.parametrize(
    ("resource", "default", "expected"),
    [
        ("snmp:pdu", 161, ("pdu", 161)),
        ("snmp:pdu:1161", 161, ("pdu", 1161)),
        ("modbus://10.0.0.1", 502, ("10.0.0.1", 502)),
        ("kasa:[fe80::1]", 9999, ("fe80::1", 9999)),
        ("kasa:[fe80::1]:99", 9999, ("fe80::1", 99)),
        ("text:host:23", None, ("host", 23)),
    ],
)
def test_host_and_port(resource, default, expected):
    assert host_and_port(resource, default) == expected


@pytest.mark.parametrize("resource", ["snmp:", "snmp:host:0", "snmp:host:65536", "snmp:host:x", "snmp::161"])
def test_no_host_and_port(resource):
    with raises(UsageError):
        host_and_port(resource, 161)


def test_registers():
    assert parse_register("input:2001:float32") == Register("input", 2001, "float32")
    assert parse_register("holding:0:uint16").count == 1
    assert parse_register("holding:0:int64").count == 4
    assert Register("input", 0, "float32").value([0x4148, 0x0000]) == 12.5
    assert Register("input", 0, "float32", low_word_first=True).value([0x0000, 0x4148]) == 12.5
    assert Register("input", 0, "int16").value([0xFFFF]) == -1
    for text in (
        "coil:1:int16",
        "input:x:int16",
        "input:1:word",
        "input:1",
        "input:65536:int16",
        "input:1:int16:x",
    ):
        with raises(UsageError):
            parse_register(text)


@pytest.mark.parametrize(
    ("library", "make"),
    [
        ("httpx", lambda: HttpSource("http://h", clock=SystemClock())),
        ("pysnmp", lambda: SnmpSource("snmp:h", clock=SystemClock())),
        ("pymodbus", lambda: ModbusSource("modbus:h", clock=SystemClock())),
        ("kasa", lambda: KasaSource("kasa:h", clock=SystemClock())),
    ],
)
def test_a_missing_library_is_named_with_the_extra(library, make, monkeypatch):
    import sys

    from netjoule_meters.errors import MeterUnavailable

    for name in [name for name in sys.modules if name == library or name.startswith(f"{library}.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    with raises(MeterUnavailable):
        make().open()


def test_an_unknown_host_is_named():
    source = TextSource("text:no-such-host.invalid:23", clock=SystemClock())
    source.open()
    with raises((ConnectionLost, ReplyTimeout)):
        source.fetch("\nx", 5.0)
    source.close()
