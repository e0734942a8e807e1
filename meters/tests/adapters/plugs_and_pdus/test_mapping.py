# SPDX-License-Identifier: Apache-2.0
"""From an answer to watts: formats, paths, units, presets as data."""

from __future__ import annotations

import json
import math

import pytest
from golden_sentences import raises
from hypothesis import given
from hypothesis import strategies as st

from netjoule_meters.adapters.plugs_and_pdus import units
from netjoule_meters.adapters.plugs_and_pdus.mapping import mapping_of
from netjoule_meters.adapters.plugs_and_pdus.networked_socket import NetworkedSocket, recognise
from netjoule_meters.adapters.plugs_and_pdus.presets import (
    all_presets,
    load_preset,
    parse_preset,
    preset_names,
)
from netjoule_meters.adapters.plugs_and_pdus.response_values import NotThere, finder
from netjoule_meters.errors import DialogueError, GarbageReply, UsageError, WrongInstrument
from netjoule_meters.reading import Flag
from netjoule_meters.settings import resolve


def mapping(**settings):
    return mapping_of(resolve(NetworkedSocket.settings_declared, settings, "socket"))


def found(form, answer, path, pattern="", separator=","):
    return finder(form, answer, pattern, separator)(path)


def test_json_pointers():
    answer = b'{"a": [{"b/c": 1, "d~": "2", "": 3}], "e": null}'
    assert found("json", answer, "/a/0/b~1c") == 1
    assert found("json", answer, "/a/0/d~0") == "2"
    assert found("json", answer, "/a/0/") == 3
    assert found("json", answer, "/e") is None


@pytest.mark.parametrize(
    "path",
    [
        "/x",
        "/a/1",
        "/a/0/b/c",
        "/a/-1",
        "/a",
    ],
)
def test_a_pointer_to_nothing_says_what_is_there(path):
    with raises(NotThere):
        found("json", b'{"a": [{"b": 1}]}', path)


def test_csv_by_name_and_number_takes_the_last_line():
    answer = b"time; power (W) ;u\r\n1;2.5;230\r\n2;3.5;231\r\n\r\n"
    assert found("csv", answer, "power (W)", separator=";") == "3.5"
    assert found("csv", answer, "3", separator=";") == "231"
    for path in ("watts", "4", "0"):
        with raises(NotThere):
            found("csv", answer, path, separator=";")


def test_text_by_groups():
    pattern = r"power=(?P<power>[\d.]+) W, (\d+) V"
    assert found("text", b"ok power=12.5 W, 230 V", "power", pattern) == "12.5"
    assert found("text", b"ok power=12.5 W, 230 V", "2", pattern) == "230"
    with raises(NotThere):
        found("text", b"booting", "power", pattern)


@given(st.binary(max_size=80), st.sampled_from(("json", "csv", "text", "snmp", "modbus")))
def test_any_bytes_are_values_or_an_error_of_the_dialogue(answer, form):
    try:
        found(form, answer, "/0", pattern="(.)") if form == "json" else found(
            form, answer, "1", pattern="(.)"
        )
    except DialogueError as error:
        assert str(error)
    except TypeError:
        assert form in ("snmp", "modbus"), "their transports give objects only"


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("W", units.POWER, 1.0),
        ("0.01 kW", units.POWER, 10.0),
        ("mW", units.POWER, 1e-3),
        ("Wmin", units.ENERGY, 60.0),
        ("mWh", units.ENERGY, 3.6),
        ("0.1 kWh", units.ENERGY, 360000.0),
        ("-1 A", units.CURRENT, -1.0),
    ],
)
def test_units(text, kind, expected):
    assert units.factor(text, kind, "unit") == pytest.approx(expected)


@pytest.mark.parametrize("text", ["", "PS", "W W", "1 2 W", "nan W", "inf W", "0 W", "kw", "W 0.01"])
def test_no_units(text):
    with raises(UsageError):
        units.factor(text, units.POWER, "power_unit")


def test_a_sample_in_si_units():
    sample = mapping(
        power_path="/p",
        power_unit="mW",
        current_path="/i",
        current_unit="mA",
        energy_path="/e",
        time_path="/t",
    ).sample(b'{"p": "12500", "i": 54, "e": 2, "t": 17}')
    assert (sample.power_w, sample.current_a, sample.energy_j) == pytest.approx((12.5, 0.054, 7200.0))
    assert (sample.mark, sample.flag) == ("17", Flag.GOOD)


@pytest.mark.parametrize("value", ["null", '"nan"', "NaN", '""', '"--"', "-1"])
def test_values_that_are_none(value):
    sample = mapping(power_path="/p", no_data_value=-1).sample(b'{"p": %s}' % value.encode())
    assert (sample.power_w, sample.flag) == (None, Flag.NO_DATA)


def test_infinity_is_over_range():
    sample = mapping(power_path="/p", voltage_path="/u").sample(b'{"p": Infinity, "u": 230}')
    assert (sample.power_w, sample.voltage_v, sample.flag) == (None, 230.0, Flag.OVERRANGE)


@pytest.mark.parametrize("value", ['"12,5"', "true", '"12.5 W"'])
def test_values_that_are_no_numbers(value):
    with raises(GarbageReply):
        mapping(power_path="/p").sample(b'{"p": %s}' % value.encode())


@pytest.mark.parametrize(("valid", "flag"), [("true", Flag.GOOD), ('"OK"', Flag.GOOD), ("0", Flag.NO_DATA)])
def test_a_device_may_say_that_its_value_is_none(valid, flag):
    sample = mapping(power_path="/p", valid_path="/ok").sample(b'{"p": 0, "ok": %s}' % valid.encode())
    assert sample.flag is flag
    assert sample.power_w == (0.0 if flag is Flag.GOOD else None)


def test_the_value_that_readings_are_made_of_must_be_there():
    answer = b'{"p": 1.5, "e": null}'
    counter = mapping(power_path="/p", energy_path="/e", semantics="energy_counter")
    assert counter.sample(answer).flag is Flag.NO_DATA
    assert mapping(power_path="/p", energy_path="/e").sample(answer).flag is Flag.GOOD


def test_requests_of_snmp_and_modbus_hold_each_value_once():
    snmp = mapping(format="snmp", power_path="1.3.6.1.{outlet}", time_path="1.3.6.1.{outlet}", outlet=3)
    assert snmp.request == "1.3.6.1.3"
    modbus = mapping(
        format="modbus", power_path="input:0:float32", voltage_path="input:2:int16", modbus_unit=7
    )
    assert modbus.request == "unit=7 input:0:float32 input:2:int16"


def test_the_presets_that_there_are():
    assert {"netio", "gude", "shelly1", "shelly2", "tasmota", "kasa", "apc"} <= set(preset_names())


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_is_complete_and_names_its_source(name):
    preset = load_preset(name)
    assert preset.make and preset.model and preset.source and preset.interfaces
    settings = resolve(NetworkedSocket.settings_declared, preset.settings, name)
    for variant in ({}, *preset.variants):
        assert mapping_of({**settings, **variant}).complete
    assert settings["accuracy_reading_percent"] is None, "no maker states one"


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "- 1",
        "settings: 1",
        "{settings: {}, colour: red}",
        "{settings: {}, variants: [1]}",
        "{settings: {}, interfaces: http}",
    ],
)
def test_no_preset(text):
    with raises(UsageError):
        parse_preset(text, "mine.yaml")


def test_an_answer_is_recognised_by_the_preset_that_fits_only():
    plain = {
        "netio": b'{"GlobalMeasure": {"Voltage": 230}, "Outputs": [{"Current": 1, "Load": 1, "Energy": 0}]}',
        "shelly1": b'{"meters": [{"power": 1.0, "total": 2, "is_valid": true}]}',
        "shelly2": b'{"apower": 1.0, "aenergy": {"total": 1}}',
        "tasmota": b'{"StatusSNS": {"Time": "t", '
        b'"ENERGY": {"Power": [1, 2], "Current": [0, 0], "Voltage": 230}}}',
    }
    for name, answer in plain.items():
        assert [other for other in plain if recognise(other, answer)] == [name]
    assert not recognise("netio", b"<html>")
    assert all_presets()["shelly2"].first_request == "/rpc/Switch.GetStatus?id=0"


@pytest.mark.parametrize(
    ("preset", "energy", "power_w"),
    [
        ("tasmota", {"Power": [10, 20, 30], "Voltage": [229, 230, 231], "Current": [0.1, 0.2, 0.3]}, 20.0),
        ("tasmota", {"Power": [10, 20], "Voltage": 230, "Current": [0.1, 0.2]}, 20.0),
        ("shelly1", {"power": 7.5, "is_valid": True}, 7.5),
    ],
)
def test_devices_of_one_kind_differ_in_what_they_state(clock, preset, energy, power_w):
    """Answers as read in devices: a meter of three phases, one of two channels, an RGBW2 without a total."""

    class Device:
        resource = "http://192.0.2.1"

        def fetch(self, _request: str, _timeout_s: float) -> bytes:
            status = {"StatusSNS": {"Time": "t", "ENERGY": {"Total": 3.1, **energy}}}
            return json.dumps(status if preset == "tasmota" else {"meters": [{}, energy]}).encode()

        def __getattr__(self, _name: str):
            return lambda *_: None

    meter = NetworkedSocket(Device(), {"preset": preset, "outlet": 2}, clock=clock)
    meter.open()
    assert meter.read().power_w == power_w


def test_a_phase_that_a_meter_of_three_does_not_have_is_told_with_those_it_has(clock):
    class Device:
        resource = "http://192.0.2.1"

        def fetch(self, _request: str, _timeout_s: float) -> bytes:
            energy = {"Power": [1, 2, 3], "Voltage": [4, 5, 6], "Current": [7, 8, 9]}
            return json.dumps({"StatusSNS": {"Time": "t", "ENERGY": energy}}).encode()

        def __getattr__(self, _name: str):
            return lambda *_: None

    with raises(WrongInstrument):
        NetworkedSocket(Device(), {"preset": "tasmota", "outlet": 4}, clock=clock).open()


@given(st.floats(-1e6, 1e6), st.sampled_from(sorted(units.POWER)))
def test_a_value_and_its_unit_are_watts(value, unit):
    sample = mapping(power_path="/p", power_unit=unit).sample(b'{"p": %s}' % repr(value).encode())
    assert math.isclose(sample.power_w, value * units.POWER[unit])


def test_the_passport_says_which_settings_changed_a_preset(clock):
    class Nowhere:
        resource = "http://10.0.0.1"

    meter = NetworkedSocket(Nowhere(), {"preset": "netio", "power_path": "/x", "outlet": 2}, clock=clock)
    assert meter.mapping_source.endswith("AN21; changed by settings: power_path")
    assert meter.settings["energy_path"] == "/Outputs/{index}/Energy"
    own = NetworkedSocket(Nowhere(), {"power_path": "/x", "mapping_source": "its page"}, clock=clock)
    assert own.mapping_source == "its page"


def test_accuracy_is_unknown_until_settings_say_it(clock):
    class Nowhere:
        resource = "http://10.0.0.1"

    silent = NetworkedSocket(Nowhere(), {"preset": "netio"}, clock=clock)
    assert silent.accuracy(10.0).status == "unknown"
    told = NetworkedSocket(
        Nowhere(),
        {"preset": "netio", "accuracy_reading_percent": 1.0, "accuracy_w": 2.3, "range_w": 2300.0},
        clock=clock,
    )
    assert told.accuracy(None).status == "unknown"
    assert (told.accuracy(10.0).reading_ratio, told.accuracy(10.0).range_ratio) == pytest.approx(
        (0.01, 0.001)
    )
    assert told.measuring_range.power_w == 2300.0
