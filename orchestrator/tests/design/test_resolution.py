# SPDX-License-Identifier: Apache-2.0
from datetime import date
from pathlib import Path

import pytest
import synthetic

from netjoule.cli import launch, plan
from netjoule.core.errors import HostLacks, UsageError
from netjoule.design import resolution
from netjoule.design.instruments import pace_of
from netjoule.loads import load_of

SETTINGS = {"update_interval_s": 0.1, "voltage_range_v": 15, "current_range_a": 2, "mode": "DC"}
TODAY = date(2026, 10, 1)


def bench(calibrated="2026-09-01", model="constant", **settings):
    meter = synthetic.topology().document["meters"][0]
    changed = {
        **meter,
        "settings": SETTINGS | settings,
        "calibration_date": calibrated,
        "device": {"model": model},
    }
    return synthetic.topology(meters=[changed])


def test_an_unknown_device_model_is_refused_with_the_known_ones():
    with pytest.raises(UsageError, match=r"meter m: no device model 'nope'; there are constant, .*linear"):
        resolution.check_models(synthetic.workload(), bench(model="nope"))
    resolution.check_models(synthetic.workload(), bench(model="linear"))


CPU_WANTED = {"device_form": "cpu"}


def test_a_question_about_the_sender_needs_a_device_model_that_sees_its_cpu():
    asking = synthetic.workload(**CPU_WANTED)
    with pytest.raises(
        UsageError,
        match=r"workload tiny needs a device model of form cpu, and the meters read linear \(linear\);"
        r".*the device model laptop-cpu of form cpu",
    ):
        resolution.check_form(asking, bench(model="linear"))
    resolution.check_form(asking, bench(model="laptop-cpu"))
    resolution.check_form(synthetic.workload(), bench(model="linear"))


def test_a_real_device_and_a_model_that_cannot_be_asked_about_are_let_through(monkeypatch):
    meter = synthetic.topology().document["meters"][0] | {"resource": "/dev/ttyUSB0"}
    del meter["device"]
    resolution.check_form(synthetic.workload(**CPU_WANTED), synthetic.topology(meters=[meter]))
    monkeypatch.setattr(resolution, "describe_model", lambda name: None)
    resolution.check_form(synthetic.workload(**CPU_WANTED), bench(model="linear"))


def test_models_that_cannot_be_asked_about_are_left_to_the_run(monkeypatch):
    def lacking(name):
        raise HostLacks(name)

    monkeypatch.setattr(resolution.programs, "find", lacking)
    resolution.check_models(synthetic.workload(), bench(model="nope"))


def sends(workload):
    return load_of(workload, synthetic.topology()).sends()


def test_the_range_error_gives_what_a_meter_resolves():
    # WT210, DC, 15 V x 2 A: 0.2 % of 30 W plus 10 uA x 15 V; u = sqrt(2/3) x that, and three of them.
    least_w = resolution.least_resolved_w(bench().meters[0], TODAY)
    assert least_w == pytest.approx(3 * (2 / 3) ** 0.5 * (0.002 + 10e-6 / 2) * 30, rel=1e-3)


@pytest.mark.parametrize("calibrated", [None, "2020-01-01"])
def test_an_unknown_accuracy_stays_unknown(calibrated):
    found = resolution.estimate(sends(synthetic.workload()), bench(calibrated), TODAY)
    assert (found[0].least_w, found[0].below) == (None, None)


@pytest.mark.parametrize(
    ("model", "expected_w"),
    [
        ({"form": "constant", "parameters": {"p0_w": 8.0}}, 0.0),
        ({"form": "linear", "parameters": {"p0_w": 5.0, "frame_j": 1e-3, "air_time_w": 0.0}}, 1.0),
        ({"form": "cross_factor", "parameters": {"gamma_xg_j": 1e-4}}, 0.1),
        ({"form": "magic", "parameters": {}}, None),
    ],
)
def test_added_power_of_the_forms(model, expected_w):
    # 1000 bytes at 8 Mb/s are 1000 messages a second.
    assert resolution.added_power_w(model, 1000, 8.0) == (
        None if expected_w is None else pytest.approx(expected_w)
    )


def test_cells_below_resolution_are_named_by_a_model(monkeypatch):
    model = {"form": "linear", "parameters": {"frame_j": 1e-4, "air_time_w": 0.0}}
    monkeypatch.setattr(resolution, "describe_model", lambda name: model)
    workload = synthetic.workload(offered_rate_mbps=[1, 30])
    found = resolution.estimate(sends(workload), bench(), TODAY)
    assert found[0].below == ("1000 B, 1 Mb/s",)  # 125 frames/s x 0.1 mJ = 12.5 mW; 30 Mb/s gives 375 mW


def test_without_a_model_no_cell_is_judged(monkeypatch):
    monkeypatch.setattr(resolution, "describe_model", lambda name: None)
    assert resolution.estimate(sends(synthetic.workload()), bench(), TODAY)[0].below is None


def test_a_wrong_setting_or_adapter_is_named_with_its_meter():
    with pytest.raises(UsageError, match=r"topology, meter m: .*voltage_range_v"):
        pace_of(bench(voltage_range_v=17).meters[0])
    topology = synthetic.topology()
    meter = topology.document["meters"][0] | {"adapter": "wt999"}
    with pytest.raises(UsageError, match="no adapter 'wt999'"):
        pace_of(synthetic.topology(meters=[meter]).meters[0])


def test_a_range_that_is_not_told_is_missed_before_any_host_is_asked():
    where = bench()
    settings = {name: value for name, value in SETTINGS.items() if name != "current_range_a"}
    meter = where.document["meters"][0] | {"settings": settings}
    with pytest.raises(UsageError, match=r"topology, meter m: .*'current_range_a' is missing"):
        pace_of(synthetic.topology(meters=[meter]).meters[0])


def test_a_range_that_is_left_to_a_ranging_pass_gives_no_estimate():
    where = bench(voltage_range_v="auto")
    (found,) = resolution.estimate(sends(synthetic.workload()), where, TODAY)
    assert found.range_open and found.least_w is None
    (line,) = [text for text in plan_lines(where, [found]) if text.startswith("resolution")]
    assert line.endswith("a ranging pass finds its range first, so no estimate")


def plan_lines(where, estimates):
    inputs = launch.Inputs(synthetic.workload(), where, Path("w"), Path("t"))
    return plan.text(inputs, 1, estimates)
