# SPDX-License-Identifier: Apache-2.0
"""Rendered configuration: as reviewed (golden), and read by hostapd and wpa_supplicant themselves.

Golden files are rewritten with NETJOULE_REWRITE_GOLDEN=1; review the difference.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from networks import GOLDEN, HWSIM, MODERN, PARSED, SEED_2013
from render import PASSPHRASE, filters, plans, render

HERE = Path(__file__).resolve().parent
NO_RADIO = "nj-no-radio"


@pytest.mark.parametrize("name", GOLDEN)
@pytest.mark.parametrize("program", ["hostapd", "wpa_supplicant"])
def test_configuration_is_the_reviewed_one(name: str, program: str) -> None:
    golden = HERE / "golden" / f"{name}.{program}.conf"
    rendered = render(*GOLDEN[name])[f"{program}.conf"]
    if os.environ.get("NETJOULE_REWRITE_GOLDEN"):
        golden.write_text(rendered)
    assert rendered == golden.read_text()


def _needs(program: str) -> str:
    found = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if found is None:
        pytest.skip(
            f"NOT CHECKED: {program} is missing here, so nothing has read its rendered files; install it"
        )
    return found


def hostapd_complaints(configuration: str, folder: Path) -> str:
    """What hostapd says about a file: it reads it before it opens the driver, which fails without a radio."""
    file = folder / "hostapd.conf"
    file.write_text(configuration)
    done = subprocess.run(
        [_needs("hostapd"), str(file)], capture_output=True, text=True, timeout=20, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", PARSED)
def test_hostapd_reads_every_rendered_file(name: str, tmp_path: Path) -> None:
    text = render(*PARSED[name], interface=NO_RADIO, run_dir=str(tmp_path))["hostapd.conf"]
    said = hostapd_complaints(re.sub(r"(?m)^bridge=.*\n", "", text), tmp_path)
    assert not re.search(
        r"(?m)^Line \d+|errors? found in configuration file|Failed to set up interface", said
    ), said
    assert "nl80211" in said, f"hostapd did not come as far as the driver: {said}"


def test_hostapd_says_which_line_is_wrong(tmp_path: Path) -> None:
    text = render(*GOLDEN["seed-2013-hwsim"], interface=NO_RADIO, run_dir=str(tmp_path))["hostapd.conf"]
    said = hostapd_complaints(text + "noscan=1\n", tmp_path)
    assert "unknown configuration item 'noscan'" in said
    assert "errors found in configuration file" in said


@pytest.mark.parametrize("name", PARSED)
def test_wpa_supplicant_reads_every_rendered_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "wpa_supplicant.conf"
    file.write_text(render(*PARSED[name], run_dir=str(tmp_path))["wpa_supplicant.conf"])
    command = [_needs("wpa_supplicant"), "-D", "nl80211", "-i", NO_RADIO, "-c", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    said = done.stdout + done.stderr
    assert not re.search(r"(?m)^Line \d+|Failed to read or parse configuration", said), said
    assert "nl80211" in said, f"wpa_supplicant did not come as far as the driver: {said}"


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
