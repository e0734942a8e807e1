# SPDX-License-Identifier: Apache-2.0
"""The emulated devices' own protocols, byte by byte, and what they measure."""

from __future__ import annotations

import json
import struct

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.emulated.plugs_and_pdus.http import HttpServer, Login, Page
from netjoule_meters.emulated.plugs_and_pdus.kasa import KasaPlug, decipher, frame
from netjoule_meters.emulated.plugs_and_pdus.modbus import ModbusServer
from netjoule_meters.emulated.plugs_and_pdus.snmp import SnmpAgent
from netjoule_meters.emulated.power_history import PowerInterval
from netjoule_meters.emulated.registry import EMULATED, EmulationOptions, make_instrument
from netjoule_meters.errors import UsageError

GET = b"GET /a?b=1 HTTP/1.1\r\nHost: x\r\n\r\n"


def pages(target):
    return Page(b"[1]") if target == "/a?b=1" else None


def test_http_takes_a_request_in_pieces():
    server = HttpServer(pages)
    for byte in GET[:-1]:
        server.receive(bytes([byte]))
        assert server.answers() == b""
    server.receive(GET[-1:])
    head, _, body = server.answers().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n") and b"Content-Length: 3" in head and body == b"[1]"


def test_http_forgets_the_rest_of_a_client_that_went_away():
    server = HttpServer(pages)
    server.receive(b"GET /half HTTP/1.1\r\nHo")
    server.receive(GET)
    assert server.answers().count(b"200 OK") == 1


def test_http_says_what_it_does_not_do():
    server = HttpServer(pages)
    server.receive(GET.replace(b"/a", b"/x") + GET.replace(b"GET", b"POST"))
    answers = server.answers()
    assert b"404 Not Found" in answers and b"405 Method Not Allowed" in answers


@pytest.mark.parametrize("scheme", ["basic", "digest"])
def test_http_wants_its_password(scheme):
    server = HttpServer(pages, Login("admin", "s3cret", scheme))
    for header in (b"", b"Authorization: Basic YTpi\r\n", b'Authorization: Digest uri="/a?b=1"\r\n'):
        server.receive(GET[:-2] + header + b"\r\n")
        answer = server.answers()
        assert b"401 Unauthorized" in answer and f"WWW-Authenticate: {scheme}".encode() in answer.replace(
            b"Basic", b"basic"
        ).replace(b"Digest", b"digest")


@given(st.binary(max_size=120))
def test_the_agent_is_silent_to_noise(datagram):
    assert SnmpAgent(dict).answer(datagram) == b""


def test_the_agent_is_silent_to_a_wrong_community_and_a_cut_off_datagram():
    # GET of 1.3.6.1.4.1.318 with community "public", version 2c, request 7 (RFC 3416); enterprise 318 takes
    # two octets (X.690, 8.19).
    name = bytes.fromhex("06072b06010401823e")
    bindings = b"\x30\x0d\x30\x0b" + name + b"\x05\x00"
    pdu = b"\xa0" + bytes([9 + len(bindings)]) + b"\x02\x01\x07\x02\x01\x00\x02\x01\x00" + bindings
    body = b"\x02\x01\x01\x04\x06public" + pdu
    datagram = b"\x30" + bytes([len(body)]) + body
    agent = SnmpAgent(lambda: {"1.3.6.1.4.1.318": -1})
    answer = agent.answer(datagram)
    assert answer.endswith(name + b"\x02\x01\xff")
    assert agent.answer(datagram[:-1]) == b""
    assert agent.answer(datagram.replace(b"public", b"wrong!")) == b""


def modbus(function, address, count, unit=1):
    return struct.pack(">HHHBBHH", 5, 0, 6, unit, function, address, count)


@pytest.mark.parametrize(
    ("request_bytes", "reply"),
    [
        (modbus(4, 10, 2), bytes((4, 4, 0, 1, 0, 2))),
        (modbus(3, 11, 1), bytes((3, 2, 0, 2))),
        (modbus(4, 11, 2), bytes((0x84, 2))),
        (modbus(4, 10, 0), bytes((0x84, 3))),
        (modbus(4, 10, 126), bytes((0x84, 3))),
        (modbus(1, 10, 1), bytes((0x81, 1))),
    ],
)
def test_modbus_frames(request_bytes, reply):
    server = ModbusServer(lambda: {10: 1, 11: 2})
    server.receive(request_bytes[:5])
    assert server.answers() == b""
    server.receive(request_bytes[5:])
    assert server.answers() == struct.pack(">HHHB", 5, 0, len(reply) + 1, 1) + reply


def test_modbus_drops_noise_and_leaves_other_units_alone():
    server = ModbusServer(lambda: {10: 1})
    server.receive(b"\xff" * 12)
    assert server.answers() == b""
    server.receive(modbus(4, 10, 1, unit=9) + modbus(4, 10, 1))
    assert len(server.answers()) == 11


def test_kasa_frames():
    # The first four bytes of any request {"sy.. are known from captures: d0 f2 81 f8 (0xAB ^ '{', ...).
    assert frame(b'{"sy')[4:] == bytes.fromhex("d0f281f8")
    assert decipher(frame(b"text")[4:]) == b"text"
    plug = KasaPlug(lambda request: {"asked": request})
    data = frame(b'{"a": 1}') + frame(b"no json") + frame(b'{"a": 2}')
    plug.receive(data[:7])
    assert plug.answers() == b""
    plug.receive(data[7:])
    assert plug.answers() == frame(b'{"asked": {"a": 1}}') + frame(b'{"asked": {"a": 2}}')


def page(device, target):
    device.receive(f"GET {target} HTTP/1.1\r\n\r\n".encode())
    return json.loads(device.step(page.now_s).partition(b"\r\n\r\n")[2])


def test_the_mean_of_an_interval_is_shown_one_interval_later():
    device = make_instrument("isockets", EmulationOptions())
    device.feed(PowerInterval(0.0, 30.0, 10.0))
    device.feed(PowerInterval(30.0, 120.0, 20.0))
    shown = {}
    for now_s in (59.0, 60.0, 89.0, 90.0):
        page.now_s = now_s
        shown[now_s] = page(device, "/reading.json")["power_w"]
    assert shown == {59.0: None, 60.0: 10.0, 89.0: 10.0, 90.0: 20.0}
    assert page(device, "/reading.json")["energy_wh"] == pytest.approx((10 * 30 + 20 * 30) / 3600, abs=0.005)


@pytest.mark.parametrize("name", ["socket", "isockets"])
def test_variants_that_there_are_not_and_faults_that_it_has_not(name):
    with raises(UsageError):
        make_instrument(name, EmulationOptions(variant="x"))
    with raises(UsageError):
        make_instrument(name, EmulationOptions(update_interval_s=0.0))
    with raises(UsageError):
        make_instrument(name, EmulationOptions(extra={"colour": "red"}))
    device = make_instrument(name, EmulationOptions())
    assert not device.take_fault("modbus_exception", {}, 0.0)
    assert device.take_fault("http_500", {}, 0.0) and device.take_fault("stuck", {}, 0.0)


def test_a_broken_page_comes_back_whole_when_the_fault_is_over():
    device = make_instrument("socket", EmulationOptions(variant="shelly2"))
    device.take_fault("wrong_json", {"seconds": 2}, 10.0)
    page.now_s = 11.0
    with raises(ValueError):
        page(device, "/rpc/Switch.GetStatus?id=0")
    page.now_s = 12.0
    assert page(device, "/rpc/Switch.GetStatus?id=0")["output"] is True


def test_each_variant_says_how_it_is_reached():
    for model in ("socket", "isockets"):
        for variant in EMULATED[model].variants.values():
            assert variant.resource.count("{port}") == 1
            assert variant.ports[0] in ("tcp", "tcp-once", "udp")
