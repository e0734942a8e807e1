# SPDX-License-Identifier: Apache-2.0
"""VXI-11: the adapter through PyVISA-py against the emulated instrument's server; the server by itself."""

from __future__ import annotations

import contextlib
import gc
import socket
import struct
import threading
import time

import pytest
from golden_sentences import raises
from instrument_threads import (
    assert_counts_whole_updates,
    assert_each_update_once,
    next_update,
    running,
    spacing_s,
    until_good,
)
from meter_processes import PATIENCE_S

from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.ports.vxi11 import Vxi11Port
from netjoule_meters.emulated.power_analysers.wt310 import EmulatedWT310
from netjoule_meters.errors import (
    Cancelled,
    ConnectionLost,
    MeterUnavailable,
    PortUnavailable,
    ReplyTimeout,
    UsageError,
    WrongInstrument,
)
from netjoule_meters.meter_factory import open_meter
from netjoule_meters.reading import Flag
from netjoule_meters.transports.visa import VisaPort, visa

# PyVISA-py leaves the socket of a refused connection to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 300, "current_range_a": 0.1}


@pytest.fixture(autouse=True)
def _collected():
    yield
    gc.collect()


@pytest.fixture
def port():
    with running(EmulatedWT310(update_interval_s=0.1), Vxi11Port()) as port:
        yield port


@pytest.fixture
def opened(port):
    connection = visa(f"vxi11:{port.name}", clock=SystemClock())
    connection.open()
    yield connection
    connection.close()


def meter_on(port, **settings):
    return open_meter(MeterConfig("m1", "client", "wt310", f"vxi11:{port.name}", {**SETTINGS, **settings}))


def test_a_wt310_over_vxi_11_is_read_once_per_update(port):
    meter = meter_on(port)
    try:
        readings = until_good(meter, 5)
    finally:
        meter.close()
    assert_each_update_once(readings, 12.5)
    assert 0.075 < spacing_s(readings) < 0.25


def test_the_integrator_over_vxi_11(port):
    meter = meter_on(port)
    try:
        meter.integrate_start()
        readings = [next_update(meter) for _ in range(6)]
    finally:
        meter.close()
    assert_counts_whole_updates(readings, 12.5, 0.1)


def test_another_model_is_named(port):
    with raises(WrongInstrument):
        meter_on(port, model="WT310E")


def test_a_pulled_cable_is_a_gap_and_a_reconnection(port):
    meter = meter_on(port)
    stop = threading.Event()
    flags = []
    try:
        for reading in meter.readings(stop):
            flags.append(reading.flag)
            if flags.count(Flag.GOOD) == 3 and flags[-1] is Flag.GOOD:
                port.unplug()
            if flags[-1] is Flag.TIMEOUT:
                port.plug_in()
            if flags[-1] is Flag.GOOD and Flag.RECONNECT in flags:
                stop.set()
    finally:
        meter.close()
    assert flags.count(Flag.RECONNECT) == 1 and flags[flags.index(Flag.RECONNECT) - 1] is Flag.TIMEOUT


# -- the transport ---------------------------------------------------------------------------------------


def test_a_question_without_an_answer_times_out_and_the_answer_is_not_lost(opened):
    with pytest.raises(ReplyTimeout):
        opened.read_line(0.1)
    opened.write_line(b"*IDN?")
    assert opened.read_line(PATIENCE_S) == b"YOKOGAWA,WT310,EMULATED,F1.03"


def test_drain_is_a_device_clear(opened):
    opened.write_line(b"*IDN?")
    opened.drain(0.05)
    opened.write_line(b"*OPC?")
    assert opened.read_line(PATIENCE_S) == b"1"


def test_a_wait_can_be_called_off_from_another_thread(opened):
    caller = threading.Timer(0.05, opened.cancel)
    caller.start()
    began = time.monotonic()
    with pytest.raises(Cancelled):
        opened.read_line(30)
    assert time.monotonic() - began < 20
    caller.join()


def test_a_server_that_goes_away_is_a_lost_connection(port, opened):
    port.unplug()
    with raises(ConnectionLost):
        opened.write_line(b"*IDN?")
        opened.read_line(1)
    opened.close()
    with raises(ConnectionLost):
        opened.read_line(1)


def test_nobody_there_is_one_sentence():
    with socket.socket() as silent, raises(PortUnavailable):
        silent.bind(("127.0.0.1", 0))
        visa(f"vxi11:127.0.0.1:{silent.getsockname()[1]}", clock=SystemClock()).open()


def test_what_is_no_address_and_a_library_that_is_not_there():
    with raises(UsageError):
        visa("visa:NONSENSE", clock=SystemClock()).open()
    with raises(MeterUnavailable):
        visa("vxi11:wt310", clock=SystemClock(), visa_library="@none").open()


def test_a_package_that_pyvisa_wants_is_named_with_what_to_do(monkeypatch):
    class Manager:
        def __init__(self, library):
            assert library == "@py"

        def open_resource(self, *_arguments, **_options):
            raise ValueError("Please install linux-gpib to use this resource type.")

        def close(self):
            pass

    monkeypatch.setattr("pyvisa.ResourceManager", Manager)
    with raises(PortUnavailable):
        visa("visa:GPIB0::5::INSTR", clock=SystemClock()).open()


def test_addresses():
    def address(resource):
        return visa(resource, clock=SystemClock())._address

    assert address("vxi11:wt310") == "TCPIP::wt310::INSTR"
    assert address("vxi11:wt310:1024") == "TCPIP::wt310,1024::INSTR"
    assert address("visa:GPIB0::5::INSTR") == "GPIB0::5::INSTR"
    assert isinstance(visa("visa:USB0::1::2::3::INSTR", clock=SystemClock()), VisaPort)


# -- the server by itself ----------------------------------------------------------------------------------


@contextlib.contextmanager
def caller(port):
    with socket.create_connection(("127.0.0.1", port.port), timeout=PATIENCE_S) as client:

        def call(procedure, arguments=b"", program=0x0607AF, version=1, fragments=1):
            body = struct.pack(">10I", 77, 0, 2, program, version, procedure, 0, 0, 0, 0) + arguments
            size = -(-len(body) // fragments)
            for start in range(0, len(body), size):
                piece = body[start : start + size]
                last = 0x80000000 if start + size >= len(body) else 0
                client.sendall(struct.pack(">I", last | len(piece)) + piece)
            (mark,) = struct.unpack(">I", client.recv(4, socket.MSG_WAITALL))
            reply = client.recv(mark & 0x7FFFFFFF, socket.MSG_WAITALL)
            words = struct.unpack_from(">6I", reply)
            assert words[:5] == (77, 1, 0, 0, 0)
            return words[5], reply[24:]

        yield call


def opaque(data):
    return struct.pack(">I", len(data)) + data + bytes(-len(data) % 4)


def uints(data):
    return struct.unpack(f">{len(data) // 4}I", data)


LINK = struct.pack(">3I", 1, 0, 0) + opaque(b"inst0")


def test_a_link_a_question_and_its_answer_in_pieces(port):
    with caller(port) as call:
        status, result = call(10, LINK, fragments=3)
        error, link, abort_port, largest = uints(result)
        assert (status, error, abort_port) == (0, 0, 0) and largest >= 1024
        _, result = call(11, struct.pack(">4I", link, 1000, 0, 8) + opaque(b"*IDN?"))
        assert uints(result) == (0, 5)
        _, result = call(12, struct.pack(">6I", link, 8, 1000, 0, 0, 0))
        assert (uints(result[:8]), result[12:20]) == ((0, 1), b"YOKOGAWA")
        _, result = call(12, struct.pack(">6I", link, 4096, 1000, 0, 0, 0))
        assert uints(result[:8]) == (0, 4) and result[12:].startswith(b",WT310,EMULATED,F1.03\r\n")
        _, result = call(12, struct.pack(">6I", link, 4096, 10, 0, 0, 0))
        assert uints(result[:4]) == (15,), "nothing to read is a time-out"
        assert uints(call(13, struct.pack(">4I", link, 0, 0, 0))[1]) == (0, 0)
        assert uints(call(16, struct.pack(">4I", link, 0, 0, 0))[1]) == (0,)
        assert uints(call(23, struct.pack(">I", link))[1]) == (0,)
        assert uints(call(15, struct.pack(">4I", link, 0, 0, 0))[1]) == (4,), "the link is gone"


def test_calls_that_the_server_does_not_have(port):
    with caller(port) as call:
        assert call(10, LINK, program=100000)[0] == 1
        assert call(10, LINK, version=2) == (2, struct.pack(">2I", 1, 1))
        assert call(22)[0] == 3
        assert call(10, b"\0\0")[0] == 4
        assert uints(call(10, LINK[:12] + opaque(b"gpib0,5"))[1]) == (3, 0, 0, 0)
        assert uints(call(11, struct.pack(">4I", 9, 0, 0, 8) + opaque(b"x"))[1]) == (4, 0)


@pytest.mark.parametrize(
    "record",
    [b"\x80\x00\x00\x04abcd", b"\xff\xff\xff\xff", b"GET / HTTP/1.1\r\n\r\n", b"\x80\0\0\x28" + b"\0" * 40],
)
def test_what_is_no_call_ends_the_connection_and_nothing_else(port, record):
    with socket.create_connection(("127.0.0.1", port.port), timeout=PATIENCE_S) as client:
        client.sendall(record)
        with contextlib.suppress(OSError):
            client.shutdown(socket.SHUT_WR)
            assert client.recv(100) == b""
    with caller(port) as call:
        assert call(10, LINK)[0] == 0
