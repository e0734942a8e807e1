# SPDX-License-Identifier: Apache-2.0
"""The campaign that results/golden/guest-hwsim keeps, run anew."""

import json
from pathlib import Path

import pytest
from golden_campaign import fly, provision
from guest_lab import ROOT, GuestLab

from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign

GOLDEN = ROOT / "results/golden/guest-hwsim"


def done(campaign: Path) -> set[tuple[int, str]]:
    """Block and transport of each run that counts."""
    return {(row.block, row.arm) for row in read_plan(campaign) if row.status == "valid"}


@pytest.mark.guest
@pytest.mark.slow
def test_the_kept_campaign_can_be_run_again(lab: GuestLab, tmp_path: Path) -> None:
    out = tmp_path / GOLDEN.name
    facts = provision(lab)
    for host, kind in (("access_point", "AP"), ("client", "managed")):
        found, wanted = facts["radio"][host], facts["network"]
        assert (found["type"], found["frequency_mhz"]) == (kind, 5180)
        assert {
            name: found[name] for name in ("ssid", "country", "mode", "width_mhz")
        }.items() <= wanted.items()
        assert found["streams"] >= wanted["rates"]["streams"]
    assert facts["radio"]["client"]["power_save"] == wanted["power_save"]
    fly(lab, out)
    assert list(check_campaign(out)) == []
    assert done(out) == done(GOLDEN)
    results = [json.loads(path.read_text()) for path in out.glob("runs/*/result.json")]
    nodes = [node for result in results for node in result["nodes"]]
    assert {(node["radio_source"], node["power_source"], node["ea_reason"]) for node in nodes} == {
        ("hwsim", "modelled", "radio_without_air_time")
    }
    names = {
        path.relative_to(GOLDEN) for folder in ("radio", "tables") for path in (GOLDEN / folder).iterdir()
    }
    assert names <= {path.relative_to(out) for path in out.rglob("*.csv")}
