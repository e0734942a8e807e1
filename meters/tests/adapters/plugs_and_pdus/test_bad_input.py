# SPDX-License-Identifier: Apache-2.0
"""What goes wrong between a program and a networked socket: each gets a clear sentence, and no reading."""

from __future__ import annotations

import contextlib
import socket
import threading

import pytest
from golden_sentences import raises, same_sentence

from netjoule_meters.clock import SystemClock
from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.ports.network import TcpPort, UdpPort
from netjoule_meters.errors import MeterUnavailable, NoAnswer, ReplyTimeout, UsageError, WrongInstrument
from netjoule_meters.meter_factory import build_meter
from netjoule_meters.reading import Flag


def meter_at(resource, adapter="socket", **settings):
    return build_meter(MeterConfig("m1", "client", adapter, resource, settings), clock=SystemClock())


def no_answer(meter):
    """The sentence that ``open`` gives."""
    try:
        with pytest.raises(NoAnswer) as caught:
            meter.open()
    finally:
        meter.close()
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.fixture
def deaf():
    """A port that takes connections or datagrams and never answers."""
    ports = [TcpPort(), UdpPort()]
    yield ports
    for port in ports:
        port.close()


@pytest.fixture
def banner():
    """A service that is none of ours: it sends its banner and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        ending = threading.Event()
        listener.settimeout(0.05)

        def serve():
            while not ending.is_set():
                try:
                    client, _ = listener.accept()
                except TimeoutError:
                    continue
                with client:
                    client.settimeout(1.0)  # a client that talks first is as_received, else it would be reset
                    with contextlib.suppress(TimeoutError):
                        client.recv(4096)
                    client.sendall(b"SSH-2.0-OpenSSH_9.2\r\n\xff\xfe\x00\x10")

        thread = threading.Thread(target=serve)
        thread.start()
        yield "{}:{}".format(*listener.getsockname())
        ending.set()
        thread.join(60)


@pytest.fixture
def nobody():
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return "{}:{}".format(*listener.getsockname())


# -- at the first contact -----------------------------------------------------------------------------


def test_http_500_at_the_first_contact(serve):
    device = serve("socket", "netio")
    device.fault("http_500")
    text = no_answer(device.meter())
    same_sentence(text)


def test_wrong_json_at_the_first_contact(serve):
    device = serve("socket", "shelly2")
    device.fault("wrong_json")
    same_sentence(no_answer(device.meter()))


def test_no_password_where_one_is_wanted(serve):
    device = serve("socket", "netio", extra={"password": "s3cret"})
    same_sentence(no_answer(device.meter()))


@pytest.mark.parametrize("variant", ["netio", "shelly2"])
def test_a_wrong_password_is_refused_and_not_shown(serve, variant, monkeypatch):
    device = serve("socket", variant, extra={"password": "s3cret"})
    monkeypatch.setenv("SOCKET_PASSWORD", "guessed-wrong")
    text = no_answer(device.meter(password="env:SOCKET_PASSWORD"))
    same_sentence(text)
    assert "guessed-wrong" not in text


def test_a_literal_secret_is_refused_and_not_shown():
    for name, resource in (("password", "http://10.0.0.1"), ("community", "snmp:10.0.0.1")):
        with raises(UsageError) as caught:
            meter_at(resource, preset="netio", **{name: "s3cret"})
        assert "s3cret" not in str(caught.value)
    with raises(UsageError) as caught:
        meter_at("http://admin:s3cret@10.0.0.1", preset="netio")
    assert "s3cret" not in str(caught.value)


def test_a_secret_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "empty").write_text("")
    for reference in ("env:NOT_SET", f"file:{tmp_path / 'none'}", f"file:{tmp_path / 'empty'}"):
        meter = meter_at("http://127.0.0.1:9", preset="netio", password=reference)
        with raises(MeterUnavailable):
            meter.open()
        meter.close()


def test_another_device_answers(serve):
    device = serve("socket", "netio")
    meter = device.meter(preset="tasmota")
    text = no_answer(meter)
    same_sentence(text)


def test_the_mapping_does_not_fit_the_answer(serve):
    device = serve("isockets", "json")
    meter = device.meter(power_path="/watts")
    with raises(WrongInstrument):
        meter.open()


def test_an_outlet_that_is_not_there(serve):
    meter = serve("socket", "netio").meter(outlet=7)
    with raises(WrongInstrument):
        meter.open()


def test_an_object_that_the_agent_does_not_have(serve):
    device = serve("socket", "apc")
    meter = device.meter(preset="apc_outlet")
    with raises(WrongInstrument):
        meter.open()
    assert "noSuchName" in no_answer(device.meter(preset="apc_outlet", snmp_version="1"))


def test_a_register_that_the_device_does_not_have(serve):
    text = no_answer(serve("isockets", "modbus").meter(power_path="input:100:float32"))
    same_sentence(text)


def test_a_plug_without_an_energy_meter(serve, monkeypatch):
    from netjoule_meters.emulated.plugs_and_pdus import sockets

    answer = {"emeter": {"err_code": -1, "err_msg": "module not support"}}
    monkeypatch.setitem(sockets._KASA, "kasa", lambda _request, _shown: answer)
    meter = serve("socket", "kasa").meter()
    with raises(WrongInstrument):
        meter.open()


@pytest.mark.parametrize(
    ("resource", "settings", "words"),
    [
        ("http://{}", {"preset": "netio"}, "may not speak HTTP"),
        ("kasa:{}", {"preset": "kasa"}, "no usable answer"),
        ("text:{}", {"format": "text", "pattern": r"(\d+) W", "power_path": "1"}, "did not match"),
    ],
)
def test_another_service_answers(banner, resource, settings, words):
    assert words in no_answer(meter_at(resource.format(banner), **settings))


@pytest.mark.parametrize(
    ("resource", "settings"),
    [
        ("http://{}", {"preset": "netio"}),
        ("modbus:{}", {"format": "modbus", "power_path": "input:0:float32"}),
        ("kasa:{}", {"preset": "kasa"}),
        ("text:{}", {"format": "text", "pattern": r"(\d+) W", "power_path": "1"}),
    ],
)
def test_nobody_listens(nobody, resource, settings):
    text = no_answer(meter_at(resource.format(nobody), **settings))
    assert nobody in text and "check the address" in text


@pytest.mark.parametrize(
    ("resource", "settings"),
    [
        ("http://{}", {"preset": "netio"}),
        ("snmp:{}", {"preset": "apc"}),
        ("modbus:{}", {"format": "modbus", "power_path": "input:0:float32"}),
        ("kasa:{}", {"preset": "kasa"}),
        ("text:{}", {"format": "text", "pattern": r"(\d+) W", "power_path": "1"}),
    ],
)
def test_a_device_that_is_silent(deaf, resource, settings):
    port = deaf[1] if resource.startswith("snmp") else deaf[0]
    text = no_answer(meter_at(resource.format(port.name), **settings, answer_timeout_s=0.1))
    assert "no answer from" in text and "within 0.1 s" in text
    assert ("as with a wrong community or version" in text) == resource.startswith("snmp")


# -- while it is read -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "variant", "fault", "words"),
    [
        ("socket", "netio", "http_500", "HTTP 500 from"),
        ("socket", "netio", "wrong_json", "the answer is not JSON"),
        ("isockets", "csv", "http_500", "HTTP 500 from"),
        ("socket", "apc", "snmp_error", "SNMP error genErr for 1.3.6.1.4.1.318"),
        ("isockets", "modbus", "modbus_exception", "Modbus exception 4 (server device failure)"),
        ("isockets", "text", "wrong_json", "the text does not match"),
    ],
)
def test_an_error_in_place_of_a_reading_is_a_flagged_row(serve, model, variant, fault, words):
    device = serve(model, variant)
    meter = device.meter()
    meter.open()
    assert meter.read().flag is Flag.GOOD
    device.fault(fault, seconds=5.0)
    broken = meter.read()
    assert (broken.power_w, broken.flag) == (None, Flag.GARBAGE)
    assert meter.read().flag is Flag.GARBAGE
    (note,) = device.notes
    assert words in note
    device.tick(device.now_s + 6)
    assert meter.read().flag is Flag.GOOD


@pytest.mark.parametrize(
    ("model", "variant"), [("socket", "netio"), ("socket", "apc"), ("isockets", "modbus"), ("socket", "kasa")]
)
def test_silence_is_a_time_out_and_ends_with_the_next_answer(serve, model, variant):
    device = serve(model, variant)
    meter = device.meter()
    meter.open()
    meter.settings["answer_timeout_s"] = 0.1
    device.mute = True
    with raises(ReplyTimeout):
        meter.read()
    device.mute = False
    meter.settings["answer_timeout_s"] = 60.0
    assert meter.read().flag is Flag.GOOD


def test_text_that_never_matches_is_a_time_out_that_quotes_it(serve):
    device = serve("isockets", "tcp_text")
    device.port._once = False  # a console that stays connected
    meter = device.meter()
    meter.open()
    meter.settings["answer_timeout_s"] = 0.1
    device.fault("babble")
    with raises(ReplyTimeout):
        meter.read()


def test_a_device_that_freezes_on_one_value_is_stale(serve):
    device = serve("isockets", "json")
    meter = device.meter(stale_after_updates=3)
    meter.open()
    device.fault("stuck")
    flags = []
    for _ in range(6):
        device.tick(device.now_s + 1)
        flags.append(meter.read().flag)
    assert flags == [Flag.GOOD, Flag.DUPLICATE, Flag.DUPLICATE, Flag.STALE, Flag.STALE, Flag.STALE]
    assert device.notes == ["the same values 4 times: the device measures no more"]


def test_without_a_mark_the_values_together_tell_a_frozen_device(serve):
    device = serve("isockets", "json")
    meter = device.meter(stale_after_updates=2, time_path=None)
    meter.open()
    moving = [meter.read().flag]
    for _ in range(4):  # the counter moves by 0.01 Wh in three updates at 12.5 W
        device.tick(device.now_s + 3)
        moving.append(meter.read().flag)
    assert set(moving) == {Flag.GOOD}
    device.fault("stuck")
    assert [meter.read().flag for _ in range(3)][-1] is Flag.STALE


@pytest.mark.parametrize(("model", "variant"), [("socket", "netio"), ("isockets", "modbus")])
def test_a_device_that_goes_away_is_a_gap_and_a_reconnection(serve, model, variant):
    device = serve(model, variant)
    meter = device.meter(time_path=None)
    meter.open()
    flags = []
    for reading in meter.readings(threading.Event()):
        flags.append(reading.flag)
        if len(flags) == 2:
            device.unplug()
        if flags.count(Flag.TIMEOUT) == 1 and flags[-1] is Flag.TIMEOUT:
            serve(model, variant, listen=device.port.port)
        if flags[-1] is Flag.GOOD and Flag.TIMEOUT in flags:
            break
        assert len(flags) < 50
    assert flags == [Flag.GOOD, Flag.GOOD, Flag.TIMEOUT, Flag.RECONNECT, Flag.GOOD]
    assert device.notes[-1].startswith("connected again")


# -- a configuration that cannot work ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("resource", "adapter", "settings", "words"),
    [
        ("http://10.0.0.1", "socket", {}, "choose a preset or set power_path, format and request"),
        ("http://10.0.0.1", "isockets", {}, "isockets: nothing says where the reading is"),
        ("http://10.0.0.1", "isockets", {"semantics": "energy_counter"}, "set energy_path"),
        ("http://10.0.0.1", "isockets", {"preset": "netio"}, "no document of its interface is public"),
        ("http://10.0.0.1", "socket", {"preset": "fritz"}, "no preset 'fritz': there are apc, "),
        ("http://10.0.0.1", "socket", {"preset": "none.yaml"}, "cannot read the preset none.yaml"),
        ("snmp:10.0.0.1", "socket", {"preset": "netio"}, "preset netio is spoken over http"),
        ("snmp:10.0.0.1", "socket", {"power_path": "/a"}, "format json does not come over snmp"),
        ("http://10.0.0.1", "socket", {"power_path": "a"}, "'a' is no JSON Pointer"),
        ("http://10.0.0.1", "socket", {"power_path": "/a", "power_unit": "PS"}, "power_unit cannot be 'PS'"),
        ("snmp:10.0.0.1", "socket", {"format": "snmp", "power_path": "sysUpTime"}, "no object identifier"),
        ("modbus:10.0.0.1", "socket", {"format": "modbus", "power_path": "40001"}, "is no register: write"),
        ("text:10.0.0.1", "socket", {}, "write text:HOST:PORT"),
        ("http://[::1", "socket", {}, "write http://HOST or https://HOST:PORT"),
        ("http://10.0.0.1:99999", "socket", {}, "write http://HOST or https://HOST:PORT"),
        ("http://10.0.0.1:x", "socket", {}, "write http://HOST or https://HOST:PORT"),
        ("", "socket", {}, "no resource says where the meter is: it is connected by http, snmp"),
        ("snmp:10.0.0.1:x", "socket", {}, "write snmp:HOST or snmp:HOST:PORT"),
        (
            "http://10.0.0.1",
            "socket",
            {"format": "text", "pattern": "(", "power_path": "1"},
            "is no regular expression",
        ),
        (
            "http://10.0.0.1",
            "socket",
            {"format": "text", "pattern": "W", "power_path": "power"},
            "has no group 'power'",
        ),
        (
            "http://10.0.0.1",
            "socket",
            {"power_path": "/a", "accuracy_w": 1.0},
            "accuracy_w wants range_w",
        ),
        ("/dev/ttyUSB0", "socket", {}, "it is connected by http, snmp, modbus, kasa, text"),
    ],
)
def test_a_configuration_that_cannot_work_is_refused_before_anything_is_sent(
    resource, adapter, settings, words
):
    with pytest.raises(UsageError) as caught:
        meter_at(resource, adapter, **settings).open()
    assert words in str(caught.value)
