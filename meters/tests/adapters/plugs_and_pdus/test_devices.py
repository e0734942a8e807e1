# SPDX-License-Identifier: Apache-2.0
"""Each preset against an emulated device that speaks its real protocol on 127.0.0.1."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
from datetime import date

import pytest
from golden_sentences import raises

from netjoule_meters.config import MeterConfig
from netjoule_meters.emulated.registry import EMULATED
from netjoule_meters.errors import NoAnswer
from netjoule_meters.reading import Flag

# What 12.5 W at 230 V is on each display; energy after 9 updates of 12.5 Ws, in the steps of its counter.
SHOWN = {
    ("socket", "netio"): (12.0, 230.0, 0.054, 0.0),
    ("socket", "gude"): (12.5, None, None, None),
    ("socket", "shelly1"): (12.5, None, None, 120.0),
    ("socket", "shelly2"): (12.5, 230.0, 0.054, 111.6),
    ("socket", "tasmota"): (12.0, 230.0, 0.054, 0.0),
    ("socket", "kasa"): (12.5, 230.0, 0.054, 0.0),
    ("socket", "kasa_old"): (12.5, 230.0, 0.054, 0.0),
    ("socket", "apc"): (10.0, None, None, None),
    ("socket", "apc_outlet"): (12.0, None, 0.1, 0.0),
    ("isockets", "json"): (12.5, 230.0, None, 108.0),
    ("isockets", "csv"): (12.5, 230.0, None, None),
    ("isockets", "text"): (12.5, 230.0, None, None),
    ("isockets", "tcp_text"): (12.5, 230.0, None, None),
    ("isockets", "snmp"): (12.5, 230.0, None, None),
    ("isockets", "modbus"): (12.5, 230.0, None, None),
}


def taken(meter, count):
    readings = []
    for reading in meter.readings(threading.Event()):
        readings.append(reading)
        if len(readings) == count:
            return readings
    raise AssertionError("ended")


def test_every_emulated_variant_is_tested_here():
    variants = {(model, name) for model in ("socket", "isockets") for name in EMULATED[model].variants}
    assert variants == set(SHOWN)


@pytest.mark.parametrize(("model", "variant"), SHOWN)
def test_the_values_of_a_device_arrive_in_si_units(serve, model, variant):
    device = serve(model, variant)
    meter = device.meter()
    meter.open()
    reading = meter.read()
    shown = (reading.power_w, reading.voltage_v, reading.current_a, reading.energy_j)
    for got, wanted in zip(shown, SHOWN[model, variant], strict=True):
        assert got is None if wanted is None else got == pytest.approx(wanted, abs=1e-6)
    assert reading.flag is Flag.GOOD


@pytest.mark.parametrize(("model", "variant"), SHOWN)
def test_no_value_yet_is_no_data_and_no_zero(serve, model, variant):
    device = serve(model, variant)
    device.tick(1003.0)  # the power stream ended at 1000 s
    meter = device.meter()
    meter.open()
    reading = meter.read()
    assert (reading.power_w, reading.flag) == (None, Flag.NO_DATA)


@pytest.mark.parametrize("variant", ["netio", "shelly1", "shelly2", "kasa", "apc"])
def test_the_identity_is_in_the_passport(serve, variant):
    device = serve("socket", variant)
    meter = device.meter()
    identity = meter.open()
    assert "emulated" in identity.model
    config = MeterConfig("m1", "client", "socket", device.resource, {}, power_source="modelled")
    passport = meter.passport(config, date(2026, 1, 1)).document()
    assert passport["accuracy"]["status"] == "unknown"
    assert passport["semantics"] == "instantaneous"
    assert passport["mapping_source"].startswith(f"preset {variant}: ")


def test_a_mark_tells_an_answer_that_was_read_before_from_a_new_one(serve):
    device = serve("isockets", "json")
    meter = device.meter()
    meter.open()
    assert [reading.flag for reading in taken(meter, 3)] == [Flag.GOOD, Flag.DUPLICATE, Flag.DUPLICATE]
    device.tick(device.now_s + 1)
    assert meter.read().flag is Flag.GOOD


def test_another_seed_is_another_device_within_the_assumed_limits(serve):
    readings = {}
    for seed in (1, 2):
        meter = serve("isockets", "modbus", seed=seed).meter()
        meter.open()
        readings[seed] = meter.read().power_w
    assert readings[1] != readings[2]
    assert all(abs(power_w / 12.5 - 1) <= 0.01 for power_w in readings.values())


def test_an_outlet_that_does_not_meter_has_no_data(serve):
    for variant in ("netio", "shelly1", "apc_outlet"):
        meter = serve("socket", variant).meter(outlet=2)
        meter.open()
        assert (meter.read().power_w, meter.read().flag) == (None, Flag.NO_DATA)


def test_two_outlets_of_one_device_are_two_meters():
    from netjoule_meters.config import meter_configs
    from netjoule_meters.errors import UsageError

    def document(*outlets):
        meters = [
            {"meter_id": f"m{number}", "node": "client", "adapter": "socket", "resource": "http://strip"}
            | {"settings": {"preset": "netio", "outlet": outlet}}
            for number, outlet in enumerate(outlets)
        ]
        return {"schema_version": 1, "meters": meters}

    assert len(meter_configs(document(1, 2))) == 2
    with raises(UsageError):
        meter_configs(document(1, 1))


def test_an_energy_counter_by_setting(serve):
    device = serve("isockets", "json", power_w=3600.0)
    meter = device.meter(semantics="energy_counter", counter_modulus_j=3.6e9, power_path=None)
    meter.open()
    config = MeterConfig("m1", "client", "isockets", device.resource, {})
    passport = meter.passport(config, date(2026, 1, 1))
    assert (passport.semantics, passport.counter_modulus_j) == ("energy_counter", 3.6e9)
    before = meter.read()
    device.tick(device.now_s + 10)
    after = meter.read()
    assert before.power_w is None
    assert after.energy_j - before.energy_j == pytest.approx(36000.0)


@pytest.mark.parametrize(("variant", "scheme"), [("netio", "basic"), ("shelly2", "digest")])
def test_a_password_is_given_by_reference_in_the_scheme_that_is_asked_for(
    serve, variant, scheme, monkeypatch, tmp_path
):
    device = serve("socket", variant, extra={"username": "admin", "password": "s3cret"})
    monkeypatch.setenv("SOCKET_PASSWORD", "s3cret")
    (tmp_path / "password").write_text("s3cret\n")
    for reference in ("env:SOCKET_PASSWORD", f"file:{tmp_path / 'password'}"):
        meter = device.meter(password=reference)
        meter.open()
        assert meter.read().power_w == pytest.approx(12.25, abs=0.3), scheme


def test_an_snmp_community_is_given_by_reference(serve, monkeypatch):
    device = serve("socket", "apc", extra={"community": "lab"})
    monkeypatch.setenv("COMMUNITY", "lab")
    meter = device.meter(community="env:COMMUNITY")
    meter.open()
    assert meter.read().power_w == 10.0


def test_snmp_version_1(serve):
    meter = serve("socket", "apc_outlet").meter(snmp_version="1")
    meter.open()
    assert meter.read().power_w == 12.0


def test_a_mapping_of_ones_own_in_a_file(serve, tmp_path):
    own = tmp_path / "mine.yaml"
    own.write_text(
        "make: Mine\nsource: its manual, page 7\n"
        "settings: {format: json, request: /reading.json, power_path: /power_w, update_interval_s: 30}\n"
    )
    device = serve("isockets", "json")
    config = MeterConfig("m1", "client", "isockets", device.resource, {"preset": str(own)})
    from netjoule_meters.clock import SystemClock
    from netjoule_meters.meter_factory import build_meter

    meter = build_meter(config, clock=SystemClock())
    device.meters.append(meter)
    meter.open()
    assert meter.read().power_w == 12.5
    assert meter.update_interval_s == 30
    passport = meter.passport(config, date(2026, 1, 1))
    assert passport.mapping_source == f"preset {own}: its manual, page 7"
    assert any("i-Sockets" in statement for statement in passport.provisional)


def test_what_a_look_at_the_device_shows_stands_beside_each_provisional_statement(serve):
    device = serve("socket", "apc")
    meter = device.meter()
    meter.open()
    assert meter.resolution == 10
    (finding,) = meter.confirm(updates=2)
    assert finding.statement == meter.preset.provisional[0]
    assert finding.holds is None
    assert re.fullmatch(r"2 answers, [\d.]+ s apart: power 10, 10 W; no counter", finding.seen)
    device.fault("snmp_error")
    with raises(NoAnswer):
        meter.confirm(updates=2)


def test_reading_and_emulating_as_two_processes(tmp_path):
    """The command line: an emulated device says how it is variant_of, and is read there."""
    command = [sys.executable, "-m", "netjoule_meters"]
    emulate = ["emulate", "isockets", "--power-w", "12.5", "--update-interval-s", "0.1"]
    with subprocess.Popen([*command, *emulate], stdout=subprocess.PIPE, text=True) as emulator:
        try:
            ready = json.loads(emulator.stdout.readline())
            mapping = {**EMULATED["isockets"].variants["json"].settings, "update_interval_s": 0.1}
            settings = [f"--set={name}={json.dumps(value)}" for name, value in mapping.items()]
            read = ["read", ready["adapter"], "--port", ready["resource"], "--json", "-n", "20", *settings]
            done = subprocess.run([*command, *read], capture_output=True, text=True, timeout=120, check=True)
        finally:
            emulator.terminate()
            assert emulator.wait(60) == 0
    good = [row for row in map(json.loads, done.stdout.splitlines()) if row.get("flag") == ""]
    assert len(good) >= 5
    assert {row["power_w"] for row in good} == {12.5}
