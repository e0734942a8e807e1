# SPDX-License-Identifier: Apache-2.0
"""Calibration: points, the line through them, limits that hold, and a passport that cites the document."""

from __future__ import annotations

import json
import random
from dataclasses import asdict, replace
from datetime import date

import pytest
from golden_sentences import raises
from meter_dialogue import Dialogue

from netjoule_contracts import validate
from netjoule_meters.adapters import adapter
from netjoule_meters.calibration import (
    Instrument,
    Point,
    Reference,
    document,
    fit,
    limits,
    load,
    point,
    points_of,
)
from netjoule_meters.config import MeterConfig
from netjoule_meters.errors import UsageError, WrongInstrument
from netjoule_meters.passport import Identification, MeasuringRange

DAY = date(2026, 3, 1)
WHO = Identification("YOKOGAWA,760401,0,F2.01", "Yokogawa", "WT210", "91K1", "F2.01")
RANGE = MeasuringRange(300.0, 0.1, 30.0)
REFERENCE = Reference("known_load", "60 W heater, checked with a WT310E", "its certificate")


def instrument(limits: MeasuringRange = RANGE) -> Instrument:
    return Instrument("wt210", WHO, limits, {"current_range_a": 0.1}, "active_power", "measured")


def made_of(gain: float, offset_w: float, powers: tuple[float, ...], u95_true_w: float = 1e-4) -> list[Point]:
    return [Point(p, u95_true_w, gain * p + offset_w, 1e-4, 50) for p in powers]


def test_the_line_is_found_again():
    line = fit(made_of(1.02, -0.3, (5.0, 10.0, 20.0)))
    assert (line.gain, line.offset_w) == pytest.approx((1.02, -0.3))
    assert line.residual_w == pytest.approx(0, abs=1e-9)


def test_one_point_gives_the_gain_alone():
    line = fit(made_of(1.01, 0.0, (12.0,), u95_true_w=0.06))
    assert line.gain == pytest.approx(1.01) and line.offset_w == 0.0
    assert line.u95_gain == pytest.approx(1.01 * 0.06 / 12.0, rel=1e-3)


def test_points_close_together_cannot_tell_gain_from_offset():
    assert fit(made_of(1.0, 0.5, (10.0, 11.0))).offset_w == 0.0


def test_the_references_own_error_does_not_shrink_with_points():
    few, many = (fit(made_of(1.0, 0.0, (5.0, 20.0) * n, u95_true_w=0.1)) for n in (1, 100))
    assert many.u95_gain < few.u95_gain
    assert many.u95_gain > 0.1 / 5.0 * 0.99, "2 % of the reference at 5 W is common to all"


@pytest.mark.parametrize("range_w", [30.0, None])
def test_limits_hold_what_an_uncorrected_meter_shows(range_w):
    for seed in range(200):
        draw = random.Random(seed)
        gain, offset_w = draw.uniform(0.97, 1.03), draw.uniform(-0.3, 0.3)
        points = made_of(gain, offset_w, (4.0, 9.0, 25.0))
        found = limits(fit(points), points, range_w)
        for true_w in (4.0, 7.0, 15.0, 25.0):
            shown_w = gain * true_w + offset_w
            allowed_w = found.reading_ratio * true_w + found.range_ratio * (range_w or 0.0)
            assert abs(shown_w - true_w) <= allowed_w + 1e-9


def test_a_point_is_made_of_ten_readings_and_a_known_power():
    made = point(10.0, 0.1, [10.0, 10.2] * 5)
    assert (made.shown_w, made.readings) == (pytest.approx(10.1), 10)
    assert made.u95_shown_w == pytest.approx(2 * 0.10541 / 10**0.5, rel=1e-3)
    with raises(UsageError):
        point(10.0, 0.1, [10.0] * 9)
    with raises(UsageError):
        point(10.0, 0.0, [10.0] * 10)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "cal.json"
    path.write_text(json.dumps(document(instrument(), REFERENCE, made_of(1.01, 0.02, (5.0, 25.0)), DAY)))
    return path


def test_the_document_fits_its_contract_and_gives_its_points_back(written):
    content = json.loads(written.read_text())
    validate("calibration", content)
    assert points_of(content) == made_of(1.01, 0.02, (5.0, 25.0))
    assert content["range"] == asdict(RANGE)


def test_a_passport_cites_the_document_and_takes_its_limits(written, clock):
    settings = {"voltage_range_v": 300, "current_range_a": 0.1}
    meter = adapter("wt210")(Dialogue([]), settings, clock=clock)
    meter.identification = WHO
    config = MeterConfig("m", "client", "wt210", "/dev/ttyS0", settings, calibration=str(written))
    passport = meter.passport(config, date(2026, 4, 1)).document()
    validate("meter_passport", passport)
    assert passport["calibration"]["document"] == "cal.json"
    assert passport["calibration"]["least_w"] == 5.0 and passport["calibration"]["most_w"] == 25.0
    assert passport["accuracy"]["reading_ratio"] == pytest.approx(0.01, rel=0.02)
    assert "against 60 W heater" in passport["accuracy"]["source"]


def test_a_document_over_a_year_old_leaves_the_accuracy_unknown(written):
    found = load(written)
    assert found.accuracy(date(2027, 3, 1)).status == "known"
    old = found.accuracy(date(2027, 3, 5))
    assert old.status == "unknown" and "older than a year" in old.source


def test_a_document_of_a_day_to_come_leaves_the_accuracy_unknown(written):
    early = load(written).accuracy(date(2026, 1, 1))
    assert early.status == "unknown" and "lies in the future" in early.source


def test_a_serial_number_that_the_instrument_does_not_tell_comes_from_the_configuration(clock):
    settings = {"voltage_range_v": 300, "current_range_a": 0.1}
    meter = adapter("wt210")(Dialogue([]), settings, clock=clock)
    config = MeterConfig("m", "client", "wt210", "/dev/ttyS0", settings, serial="91K123")
    meter.identification = replace(WHO, serial=None)
    passport = meter.passport(config, date(2026, 4, 1)).document()
    validate("meter_passport", passport)
    assert passport["serial"] == "91K123"
    meter.identification = replace(WHO, serial="91K123")
    assert meter.identity(config) == meter.identification


def test_an_instrument_that_tells_another_serial_number_is_refused(clock):
    settings = {"voltage_range_v": 300, "current_range_a": 0.1}
    meter = adapter("wt210")(Dialogue([]), settings, clock=clock)
    meter.identification = replace(WHO, serial="91K124")
    config = MeterConfig("m", "client", "wt210", "/dev/ttyS0", settings, serial="91K123")
    with raises(WrongInstrument):
        meter.passport(config, date(2026, 4, 1))


@pytest.mark.parametrize(
    ("adapter_name", "who", "limits"),
    [
        ("hm8115", WHO, RANGE),
        ("wt210", Identification("x", "Yokogawa", "WT210", "other"), RANGE),
        ("wt210", WHO, MeasuringRange(300.0, 0.2, 60.0)),
    ],
)
def test_a_document_of_another_instrument_or_range_is_refused(written, adapter_name, who, limits):
    with raises(UsageError):
        load(written).require(adapter_name, who, limits)


def test_what_is_no_document_is_refused(tmp_path):
    (tmp_path / "x.json").write_text("{}")
    with raises(UsageError):
        load(tmp_path / "x.json")
    with raises(UsageError):
        load(tmp_path / "absent.json")
