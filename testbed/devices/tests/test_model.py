# SPDX-License-Identifier: Apache-2.0
"""Every model that comes with the package is sound, and a broken one is named with its fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from golden_sentences import raises

from netjoule_devices.errors import UsageError
from netjoule_devices.model import load_model, model_names, parse_model

PUBLISHED = ("galaxy-note-10-1", "htc-legend", "linksys-wrt54g", "raspberry-pi", "soekris-net4826-48")
PHONES = ("galaxy-nexus-l700", "galaxy-s4", "galaxy-s5", "nexus-s")
CONSTANT = """
schema_version: 1
name: lamp
title: A lamp
form: constant
status: test
source: Exact by construction.
parameters:
  p0_w: {value: 3, unit: W}
validity:
  note: Everywhere.
"""


@pytest.mark.parametrize("name", model_names())
def test_model_of_the_package_loads_under_its_name(name: str) -> None:
    assert load_model(name).name == name


def test_every_form_has_its_models() -> None:
    forms = {name: load_model(name).form for name in model_names()}
    assert forms == dict.fromkeys(PUBLISHED, "cross_factor") | {
        **dict.fromkeys(PHONES, "phone"),
        "laptop-cpu": "cpu",
        "s5-seed": "connections",
        "constant": "constant",
        "linear": "linear",
    }


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tables_are_complete_at_their_power(name: str) -> None:
    model = load_model(name)
    assert [rate for rate, _ in model.rho_tx] == [6, 12, 24, 48]
    assert [rate for rate, _ in model.rho_rx] == [6, 12, 24, 48]
    assert model.parameters["tx_power_dbm"] == 15
    assert model.validity == {"frames_per_s": (0, 2000), "phy_rate_mbps": (6, 54)}


@pytest.mark.parametrize("name", PHONES)
def test_phones_say_whose_word_they_are_and_where_it_stands(name: str) -> None:
    model = load_model(name)
    assert model.status == "vendor_declared"
    assert "@" in model.source
    assert "power_profile.xml" in model.source
    assert not any(model.relative_uncertainty.values())


def test_a_changed_parameter_is_part_of_the_name() -> None:
    model = load_model("s5-seed:connection_w=0.03,active_w=2")
    assert (model.name, model.status) == ("s5-seed:connection_w=0.03,active_w=2", "fitted")
    unchanged = load_model("s5-seed").parameters
    assert model.parameters == unchanged | {"connection_w": 0.03, "active_w": 2.0}


def test_a_changed_parameter_has_no_uncertainty_of_its_source() -> None:
    ratios = load_model("laptop-cpu:rho_tx_w=2").relative_uncertainty
    assert (ratios["rho_tx_w"], ratios["rho_rx_w"]) == (None, 0.0007)


@pytest.mark.parametrize(
    "reference",
    [
        "s5-seed:connections_w=1",
        "s5-seed:connection_w=much",
        "s5-seed:connection_w=-1",
        "raspberry-pi:tx_power_dbm=9",
    ],
)
def test_a_change_that_is_none_is_named(reference: str) -> None:
    with raises(UsageError):
        load_model(reference)


def test_model_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "lamp.yaml"
    path.write_text(CONSTANT)
    assert load_model(str(path)).parameters == {"p0_w": 3.0}


@pytest.mark.parametrize(
    "name",
    [
        "nokia",
        "missing.yaml",
    ],
)
def test_unknown_model_says_what_there_is(name: str) -> None:
    with raises(UsageError):
        load_model(name)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("form: constant", "form: quadratic"),
        ("p0_w:", "p1_w:"),
        ("form: constant", "form: cpu"),
        ("unit: W", "units: W"),
        ("schema_version: 1", "schema_version: 2"),
        ("title: A lamp", "title: ["),
        (
            "validity:",
            "tables: {tx: [{phy_rate_mbps: 6, rho_w: 1}], rx: [{phy_rate_mbps: 6, rho_w: 1}]}\nvalidity:",
        ),
    ],
)
def test_broken_model_is_named_with_its_fault(old: str, new: str) -> None:
    with raises(UsageError) as caught:
        parse_model(CONSTANT.replace(old, new), "lamp.yaml")
    assert "lamp.yaml" in str(caught.value)


def test_a_description_says_how_sure_each_value_is() -> None:
    described = load_model("raspberry-pi").describe()
    assert described["relative_uncertainty"]["gamma_xg_j"] == 0.0334
    assert described["relative_uncertainty"]["gamma_xr_j"] is None
    assert described["rho_tx"][-1] == {"phy_rate_mbps": 48, "rho_w": 0.8066, "relative_uncertainty": 0.0256}
    assert [point["relative_uncertainty"] for point in described["rho_rx"]] == [0.353, 0.236, 0.237, 0.0806]
    laptop = load_model("laptop-cpu").describe()
    assert laptop["relative_uncertainty"] == {
        "base_w": None,
        "core_w": None,
        "rho_idle_w": 0.0029,
        "rho_tx_w": 0.0065,
        "rho_rx_w": 0.0007,
    }
    assert "rho_tx" not in laptop
