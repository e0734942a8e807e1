# SPDX-License-Identifier: Apache-2.0
"""What the radio roles say when a real radio, hostapd or wpa_supplicant cannot do what is wanted.

These come after all other tests of their network: they leave it as it was refused.
A missing regulatory database needs no radio: ansible/tests/test_radio_roles.py.
"""

import secrets
from pathlib import Path

import pytest
from guest_lab import GuestLab

pytestmark = [
    pytest.mark.guest,
    pytest.mark.slow,
    pytest.mark.parametrize("network", ["ht40-wpa2"], indirect=True),
]

SOFT_BLOCK = "for radio in /sys/class/net/wlan0/phy80211/rfkill*; do echo $0 >$radio/soft; done"


def refusal(lab: GuestLab, host: str, topology: Path) -> str:
    """Why a host cannot be provisioned."""
    options = ["--limit", host, "--extra-vars", "wifi_client_associate_within_s=30"]
    (failure,) = lab.play(topology, "main", *options).failures
    assert failure.host == host
    return failure.message


def begun_again(lab: GuestLab) -> None:
    """An access point whose client was never associated.

    All radios of the guest share one kernel and so one regulatory domain. A client that leaves its network
    makes the kernel fall back to the world's domain for a moment, in which an access point at 5 GHz can lose
    its channel (`iw dev` names none any more, hostapd is not told): then no passphrase is ever tried.
    """
    topology = lab.topology("ht40-wpa2")
    for entry, options in (("teardown", []), ("main", ["--limit", "access_point"])):
        assert lab.play(topology, entry, *options).failures == []


def test_a_wrong_passphrase(lab: GuestLab, network: str) -> None:
    begun_again(lab)
    wrong = lab.folder / "wrong-passphrase"
    wrong.touch(mode=0o600)
    wrong.write_text(secrets.token_urlsafe(18))
    said = refusal(lab, "client", lab.topology("ht40-wpa2", "wrong", passphrase=f"file:{wrong}"))
    assert "The client is not associated" in said
    assert "the passphrase differs from the access point's: both must come from the same reference" in said
    assert wrong.read_text() not in said


def test_a_blocked_radio(lab: GuestLab, network: str) -> None:
    lab.ask("client", "sh", "-c", SOFT_BLOCK, "1")
    try:
        said = refusal(lab, "client", lab.topology("ht40-wpa2", "blocked"))
    finally:
        lab.ask("client", "sh", "-c", SOFT_BLOCK, "0")
    assert "the radio is blocked by software: `rfkill unblock wifi`" in said


def test_a_channel_that_the_country_does_not_allow(lab: GuestLab, network: str) -> None:
    said = refusal(lab, "access_point", lab.topology("ht40-wpa2", "thirteen", channel=13, width_mhz=20))
    assert "channel 13 is not allowed in US" in said
    assert "choose another (`iw phy` lists them)" in said
