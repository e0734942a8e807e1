# SPDX-License-Identifier: Apache-2.0
"""Model values against published ones worked by hand, and what must hold for any activity."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import netjoule_contracts
from netjoule_devices.model import DeviceModel, load_model, model_names
from netjoule_devices.power import Activity, is_extrapolated, rho_w, terms_w

# Energy per frame of 802.11g at 48 Mb/s and 15 dBm, one frame on air for 20 us + (66 + size) * 8 / 48 us.
# device, mJ per frame at 1472 B, J/Mb at 1472 B, gamma's share there, J/Mb at 100 B, gamma's share there,
# and idle power over extra power at 1000 frames/s of 1472 B.
ORACLE = [
    ("soekris-net4826-48", 1.367, 0.1161, 0.68, 1.2566, 0.93, 2.6),
    ("linksys-wrt54g", 0.758, 0.0644, 0.61, 0.6393, 0.90, 3.6),
    ("htc-legend", 0.322, 0.0273, 0.40, 0.2033, 0.80, 2.0),
    ("galaxy-note-10-1", 0.284, 0.0241, 0.31, 0.1522, 0.72, 2.1),
    ("raspberry-pi", 0.349, 0.0296, 0.36, 0.2056, 0.77, 6.4),
]


def sending(size_bytes: int, frames_per_s: int = 1000) -> Activity:
    """One second of sending at 48 Mb/s."""
    on_air_s = (20 + (66 + size_bytes) * 8 / 48) * 1e-6
    return Activity(1.0, airtime_tx_s=frames_per_s * on_air_s, frames_tx=frames_per_s, phy_rate_mbps=48.0)


@pytest.mark.parametrize(("name", "mj", "large", "large_share", "small", "small_share", "ratio"), ORACLE)
def test_cross_factor_meets_published_values(
    name: str, mj: float, large: float, large_share: float, small: float, small_share: float, ratio: float
) -> None:
    model = load_model(name)
    for size, j_per_mbit, share in ((1472, large, large_share), (100, small, small_share)):
        terms = terms_w(model, sending(size))
        extra_w = sum(terms.values()) - terms["idle"]
        assert extra_w / (1000 * size * 8e-6) == pytest.approx(j_per_mbit, rel=3e-3)
        assert terms["generated_frames"] / extra_w == pytest.approx(share, abs=0.006)
    terms = terms_w(model, sending(1472))
    extra_w = sum(terms.values()) - terms["idle"]
    assert extra_w == pytest.approx(mj, abs=0.0006)  # 1000 frames/s: W are mJ per frame
    assert terms["idle"] / extra_w == pytest.approx(ratio, abs=0.06)
    assert not is_extrapolated(model, sending(1472))


def test_cross_factor_charges_generated_frames_not_retries() -> None:
    model = load_model("raspberry-pi")
    activity = Activity(0.5, frames_tx=120, retries=20, frames_rx=50, airtime_rx_s=0.1, phy_rate_mbps=48.0)
    terms = terms_w(model, activity)
    assert terms["generated_frames"] == pytest.approx(0.126e-3 * 200)
    assert terms["rx"] == pytest.approx(0.0634 * 0.2)
    assert "cpu" not in terms


@pytest.mark.parametrize(
    ("activity", "outside"),
    [
        (Activity(0.1), False),
        (Activity(0.1, phy_rate_mbps=216.0), False),  # nothing on air: the rate does not matter
        (Activity(0.1, airtime_tx_s=0.01, frames_tx=10, phy_rate_mbps=216.0), True),
        (Activity(0.1, airtime_tx_s=0.01, frames_tx=10, phy_rate_mbps=54.0), False),
        (Activity(0.1, airtime_tx_s=0.01, frames_tx=10), True),
        (Activity(0.1, airtime_tx_s=0.01, frames_tx=200, phy_rate_mbps=48.0), False),
        (Activity(0.1, airtime_tx_s=0.01, frames_tx=200, frames_rx=1, phy_rate_mbps=48.0), True),
    ],
)
def test_validity_of_a_published_model(activity: Activity, outside: bool) -> None:
    assert is_extrapolated(load_model("raspberry-pi"), activity) is outside


def test_nothing_is_clamped_outside_validity() -> None:
    model = load_model("soekris-net4826-48")
    flood = Activity(1.0, airtime_tx_s=0.5, frames_tx=90_000, phy_rate_mbps=216.0)
    assert terms_w(model, flood)["generated_frames"] == pytest.approx(83.7)
    assert is_extrapolated(model, flood)


def test_rho_between_and_beyond_tabulated_rates() -> None:
    points = ((6.0, 1.0), (12.0, 2.0), (24.0, 5.0))
    rates = (3.0, 6.0, 9.0, 18.0, 24.0, 48.0)
    assert [rho_w(points, rate) for rate in rates] == pytest.approx([0.5, 1.0, 1.5, 3.5, 5.0, 11.0])
    assert rho_w(points, None) == 5.0


def test_default_device_covers_the_sweep_and_charges_cpu() -> None:
    model = load_model("laptop-cpu")
    activity = Activity(
        0.1, airtime_tx_s=0.05, airtime_rx_s=0.02, frames_tx=9000, phy_rate_mbps=216.0, cpu_s=0.15
    )
    assert not is_extrapolated(model, activity)
    assert terms_w(model, activity) == pytest.approx(
        {"base": 8.0, "radio_idle": 1.36 * 0.3, "radio_tx": 3.1 * 0.5, "radio_rx": 1.373 * 0.2, "cpu": 15.0}
    )
    assert is_extrapolated(model, Activity(0.1, cpu_s=7.0))


def test_a_phone_draws_what_its_profile_declares() -> None:
    activity = Activity(2.0, airtime_tx_s=0.2, airtime_rx_s=0.8, frames_rx=900, cpu_s=0.5)
    terms = terms_w(load_model("galaxy-s5:cpu_scale=4"), activity)
    mw = {"cpu_idle": 3.1, "cpu": 348 * 4 * 0.25, "wifi_on": 3, "wifi_active": 240 * 0.5}
    assert terms == pytest.approx({name: 3.8e-3 * ma for name, ma in mw.items()})
    assert not is_extrapolated(load_model("galaxy-s5"), activity)


def test_an_equal_transfer_costs_phones_what_their_profiles_say() -> None:
    """100 s with 10 % air time and 5 % of a core, above idle: mA of Wi-Fi and CPU, times 3.8 V."""
    transfer = Activity(100.0, airtime_rx_s=10.0, frames_rx=9000, cpu_s=5.0)
    declared = {"galaxy-s5": (240, 348), "galaxy-s4": (145, 118), "galaxy-nexus-l700": (150, 397)}
    declared["nexus-s"] = (120, 259)
    for name, (wifi_ma, core_ma) in declared.items():
        model = load_model(name)
        above_w = sum(terms_w(model, transfer).values()) - sum(terms_w(model, Activity(100.0)).values())
        assert 100 * above_w == pytest.approx(3.8e-3 * (10 * wifi_ma + 5 * core_ma))


@pytest.mark.parametrize(
    ("reference", "share"), [("", 0.015), (":connection_w=0", 0), (":connection_w=0.03", 0.03)]
)
def test_the_fitted_phone_has_the_closed_form_of_its_source(reference: str, share: float) -> None:
    model = load_model(f"s5-seed{reference}")
    activity = Activity(0.1, received_bytes=42e6 / 8 * 0.1, connections=16)
    terms = terms_w(model, activity)
    assert sum(terms.values()) - terms["idle"] == pytest.approx(1 + 0.075 * 42 + share * 16)
    assert sum(terms_w(model, Activity(0.1)).values()) == terms["idle"]
    assert not is_extrapolated(model, activity)


def test_what_comes_without_a_tcp_connection_is_flagged() -> None:
    model = load_model("s5-seed")
    assert is_extrapolated(model, Activity(0.1, received_bytes=1e6))
    assert not is_extrapolated(model, Activity(0.1, received_bytes=1e3))
    assert is_extrapolated(model, Activity(0.1, received_bytes=1e5, connections=65))


def test_test_devices_have_closed_forms() -> None:
    busy = Activity(2.0, airtime_tx_s=0.4, airtime_rx_s=0.1, frames_tx=900, frames_rx=100, cpu_s=9.0)
    assert sum(terms_w(load_model("constant"), busy).values()) == 8.0
    assert sum(terms_w(load_model("linear"), busy).values()) == pytest.approx(5 + 0.0002 * 500 + 4 * 0.25)


activities = st.builds(
    Activity,
    length_s=st.floats(0.05, 5.0),
    airtime_tx_s=st.floats(0.0, 0.05),
    airtime_rx_s=st.floats(0.0, 0.05),
    frames_tx=st.integers(0, 10_000),
    frames_rx=st.integers(0, 10_000),
    phy_rate_mbps=st.sampled_from([None, 6.0, 54.0, 216.0, 780.0]),
    cpu_s=st.floats(0.0, 0.1),
    received_bytes=st.floats(0.0, 1e7),
    connections=st.integers(0, 64),
)


@given(st.sampled_from(model_names()), activities, st.integers(2, 9))
def test_power_depends_on_rates_not_on_the_length_of_a_sample(name: str, one: Activity, factor: int) -> None:
    longer = Activity(
        one.length_s * factor,
        one.airtime_tx_s * factor,
        one.airtime_rx_s * factor,
        one.frames_tx * factor,
        one.frames_rx * factor,
        0,
        one.phy_rate_mbps,
        one.cpu_s * factor,
        one.received_bytes * factor,
        one.connections,
    )
    model = load_model(name)
    assert terms_w(model, longer) == pytest.approx(terms_w(model, one))


@given(st.sampled_from(model_names()), activities)
def test_activity_never_draws_less_than_idle(name: str, activity: Activity) -> None:
    model = load_model(name)
    idle_w = sum(terms_w(model, Activity(activity.length_s)).values())
    assert sum(terms_w(model, activity).values()) >= idle_w - 1e-9


def scaled(model: DeviceModel, parameter: str, factor: float) -> DeviceModel:
    """The model with one parameter, or all points of a table, times a factor."""
    if parameter in ("rho_tx", "rho_rx"):
        points = tuple((rate, factor * rho) for rate, rho in getattr(model, parameter))
        return replace(model, **{parameter: points})
    return replace(model, parameters=model.parameters | {parameter: factor * model.parameters[parameter]})


@pytest.mark.parametrize("name", ["constant", "linear", "raspberry-pi", "laptop-cpu", "nexus-s", "s5-seed"])
def test_each_term_moves_with_the_parameter_that_the_analysis_draws_for_it(name: str) -> None:
    vectors = netjoule_contracts.root() / "vectors" / "device_terms.json"
    model = load_model(name)
    expected = json.loads(vectors.read_text(encoding="utf-8"))["forms"][model.form]
    busy = Activity(
        1.0,
        0.3,
        0.1,
        frames_tx=900,
        frames_rx=300,
        retries=50,
        phy_rate_mbps=30.0,
        cpu_s=0.4,
        received_bytes=1e6,
        connections=3,
    )
    before = terms_w(model, busy)
    assert before.keys() == expected.keys()
    for moved, parameter in expected.items():
        after = terms_w(scaled(model, parameter, 1.01), busy)
        for term, power_w in before.items():
            assert after[term] == pytest.approx(power_w * (1.01 if term == moved else 1.0), rel=1e-12)
