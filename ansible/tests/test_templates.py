# SPDX-License-Identifier: Apache-2.0
"""Rendered configuration: as reviewed (golden), and read by hostapd and wpa_supplicant themselves.

Golden files are rewritten with NETJOULE_REWRITE_GOLDEN=1; review the difference.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from networks import GOLDEN, HWSIM, MODERN, PARSED, SEED_2013
from parsers import NO_RADIO, assert_read, said_of
from render import PASSPHRASE, filters, plans, render

HERE = Path(__file__).resolve().parent


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("program", ["hostapd", "wpa_supplicant"])
def test_configuration_is_the_reviewed_one(name: str, program: str) -> None:
    golden = HERE / "golden" / f"{name}.{program}.conf"
    rendered = render(*GOLDEN[name])[f"{program}.conf"]
    if os.environ.get("NETJOULE_REWRITE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


@pytest.mark.parametrize("program", ["hostapd", "wpa_supplicant"])
@pytest.mark.parametrize("name", PARSED)
def test_the_program_itself_reads_every_rendered_file(name: str, program: str, tmp_path: Path) -> None:
    rendered = render(*PARSED[name], interface=NO_RADIO, run_dir=str(tmp_path))
    assert_read(program, rendered[f"{program}.conf"], tmp_path)


def test_hostapd_says_which_line_is_wrong(tmp_path: Path) -> None:
    text = render(*GOLDEN["seed-2013-hwsim"], interface=NO_RADIO, run_dir=str(tmp_path))["hostapd.conf"]
    said = said_of("hostapd", text + "noscan=1\n", tmp_path)
    assert "unknown configuration item 'noscan'" in said
    assert "errors found in configuration file" in said


@pytest.mark.parametrize("name", PARSED)
def test_no_option_that_debians_hostapd_lacks_and_wmm_is_on(name: str) -> None:
    text = render(*PARSED[name])["hostapd.conf"]
    assert "noscan" not in text
    assert "ht_coex" not in text
    assert "\nwmm_enabled=1\n" in text
    assert "\nieee80211d=1\n" in text


def test_radar_duty_only_when_asked_for() -> None:
    wifi = SEED_2013 | {"country": "US", "rates": "automatic", "channel": 52}
    assert "ieee80211h" not in render(*GOLDEN["seed-2013-hwsim"])["hostapd.conf"]
    assert "\nieee80211h=1\n" in render(wifi | {"dfs": True}, HWSIM)["hostapd.conf"]
    (problem, *_) = plans(wifi, HWSIM)[0]["problems"]
    assert "use one of 36, 40, 44, 48, 149, 153, 157, 161, or set dfs: true" in problem


def test_plans_and_problems_never_hold_the_passphrase() -> None:
    for wrong in (
        {},
        {"channel": 52},
        {"passphrase": PASSPHRASE + "\n"},
        {"passphrase": PASSPHRASE * 4, "security": "wpa2"},
    ):
        assert "battery" not in repr(plans(MODERN | wrong, HWSIM))


@pytest.mark.parametrize(
    ("text", "written"),
    [("net joule", '"net joule"'), ('a"b', "612262"), ("é", "c3a9"), ("", '""')],
)
def test_strings_of_wpa_supplicant(text: str, written: str) -> None:
    assert filters()["netjoule_wpa_string"](text) == written
