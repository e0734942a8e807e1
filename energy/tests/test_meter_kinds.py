# SPDX-License-Identifier: Apache-2.0
"""From campaign files to result.json for coarse, apparent, spot and counting meters."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from typing import Any

import pytest

import netjoule_contracts
from netjoule_contracts.types.result import Result
from netjoule_energy import compute_and_write

Build = Callable[..., Any]


def state(campaign: Any, **changes: Any) -> None:
    """Change the first passport of a campaign."""
    path = campaign.folder / "campaign.json"
    document = json.loads(path.read_text())
    document["meters"][0] |= changes
    path.write_text(json.dumps(document))


def rewrite(campaign: Any, row_of: Callable[[int, float, float], dict[str, Any]]) -> None:
    """Write the first meter's log again; `row_of` gets number, time and power of each row."""
    path = campaign.folder / "meters" / "m1.csv"
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    names = ["t_s", "seq", "power_w", "voltage_v", "current_a", "energy_j", "flag"]
    with path.open("w", newline="") as handle:
        writer = csv.DictWriter(handle, names, restval="", lineterminator="\n")
        writer.writeheader()
        for k, row in enumerate(rows):
            kept = {"t_s": row["t_s"], "seq": row["seq"], "flag": ""}
            writer.writerow(kept | row_of(k, float(row["t_s"]), float(row["power_w"])))


def only(campaign: Any) -> Result:
    result = compute_and_write(campaign.folder, campaign.run_ids[:1])[0]
    written = json.loads((campaign.folder / "runs" / result.run_id / "result.json").read_text())
    netjoule_contracts.validate("result", written)
    return result


UNKNOWN = {"reading_ratio": None, "range_ratio": None, "source": "unknown: none stated", "status": "unknown"}


def test_a_meter_of_whole_watts_gives_no_tight_number(build: Build, flow: Any) -> None:
    """8.2 W and 9.4 W read 8 W and 9 W for ever: 1 W where 1.2 W are, and no scatter that would tell."""
    campaign = build(flows=[flow(extra_w={"m1": 1.2})])
    rewrite(campaign, lambda _k, _t, power_w: {"power_w": f"{round(power_w + 0.2)}"})
    state(campaign, accuracy=UNKNOWN)
    node = only(campaign).nodes[0]
    assert node.delta_p_w == pytest.approx(1.0, abs=0.05)
    assert node.u95_components.resolution > 0.05
    assert node.u95_energy_per_work_j > 0.02
    assert node.grade in {"C", "below_resolution"}
    assert "accuracy_unknown" in node.grade_limits


def test_a_meter_that_sees_no_difference_gives_no_energy(build: Build, flow: Any) -> None:
    campaign = build(flows=[flow(extra_w={"m1": 0.3})])
    rewrite(campaign, lambda _k, _t, _power_w: {"power_w": "8"})
    state(campaign, accuracy=UNKNOWN)
    coarse = only(campaign).nodes[0]
    assert (coarse.below_resolution, coarse.grade) == (True, "below_resolution")
    assert coarse.upper_limit_energy_per_work_j > 0.03  # the true 0.03 J/Mb are not excluded
    rewrite(campaign, lambda _k, _t, _power_w: {"power_w": "8.000000000000"})
    blind = only(campaign).nodes[0]
    assert (blind.grade, blind.ea_reason) == ("below_resolution", "below_resolution")
    assert (blind.energy_per_work_j, blind.u95_energy_per_work_j, blind.upper_limit_energy_per_work_j) == (
        None,
    ) * 3


def test_a_stated_resolution_comes_before_the_written_digits(build: Build) -> None:
    campaign = build()
    state(campaign, resolution=10.0)
    node = only(campaign).nodes[0]
    assert node.u95_components.resolution > 0.4
    assert node.grade == "below_resolution"


def test_apparent_power_is_at_most_grade_c_and_says_so(build: Build) -> None:
    campaign = build()
    state(campaign, quantity="apparent_power")
    result = only(campaign)
    node = result.nodes[0]
    assert (node.quantity, node.grade, node.grade_limits) == ("apparent_power", "C", ("apparent_power",))
    assert "apparent_power" in {reason.code for reason in result.reasons}
    assert result.valid


def test_a_provisional_accuracy_of_a_real_meter_is_at_most_grade_b(build: Build, meter: Any) -> None:
    campaign = build(meters=[meter(power_source="measured")])
    passport = json.loads((campaign.folder / "campaign.json").read_text())["meters"][0]
    state(campaign, accuracy=passport["accuracy"] | {"source": "provisional: from memory"})
    node = only(campaign).nodes[0]
    assert (node.grade, node.grade_limits) == ("B", ("accuracy_provisional",))


def test_terms_of_the_specification_are_listed(build: Build) -> None:
    campaign = build()
    passport = json.loads((campaign.folder / "campaign.json").read_text())["meters"][0]
    terms = [
        {"term": "reading", "reading_ratio": 0.001, "range_ratio": 0.0},
        {"term": "calibration_age", "reading_ratio": 0.0005, "range_ratio": 0.0},
        {"term": "range", "reading_ratio": 0.0, "range_ratio": 0.0001},
    ]
    state(campaign, accuracy=passport["accuracy"] | {"terms": terms})
    node = only(campaign).nodes[0]
    parts = node.specification
    assert parts is not None
    assert parts["reading"] + parts["calibration_age"] == pytest.approx(node.u95_components.gain, rel=0.03)
    assert parts["range"] == pytest.approx(node.u95_components.offset, rel=0.03)


def test_spot_readings_of_a_campaign(build: Build) -> None:
    campaign = build()
    state(campaign, semantics="instantaneous", lag_s=0.15)
    node = only(campaign).nodes[0]
    assert node.semantics == "instantaneous"
    assert node.energy_per_work_j == pytest.approx(0.15, rel=1e-6)
    assert node.coverage == pytest.approx(1.0)


def test_a_counter_of_a_campaign_wraps_and_is_exact(build: Build) -> None:
    campaign = build()
    plain = only(campaign).nodes[0]
    total = [40.0]

    def count(_k: int, _t: float, power_w: float) -> dict[str, Any]:
        total[0] = (total[0] + power_w * 0.1) % 50
        return {"energy_j": f"{total[0]:.6f}"}

    rewrite(campaign, count)
    state(campaign, semantics="energy_counter", counter_modulus_j=50.0)
    node = only(campaign).nodes[0]
    assert node.energy_per_work_j == pytest.approx(0.15, rel=1e-5)
    assert (node.semantics, node.integrator) == ("energy_counter", None)
    assert node.tail_energy_j == pytest.approx(plain.tail_energy_j, abs=1e-4)


def test_a_counter_without_its_column_is_named(build: Build) -> None:
    from netjoule_energy import CampaignError

    campaign = build()
    state(campaign, semantics="energy_counter", counter_modulus_j=50.0)
    with pytest.raises(CampaignError, match="lacks the column energy_j"):
        only(campaign)


def test_integrator_beside_the_readings_is_compared(build: Build) -> None:
    campaign = build()
    total = [0.0]

    def honest(_k: int, _t: float, power_w: float) -> dict[str, Any]:
        total[0] += power_w * 0.1
        return {"power_w": f"{power_w:.6f}", "energy_j": f"{total[0]:.6f}"}

    rewrite(campaign, honest)
    check = only(campaign).nodes[0].integrator
    assert check is not None
    assert check.agrees
    assert check.counted_j == pytest.approx(check.logged_j, rel=1e-6)

    def faulty(k: int, t_s: float, power_w: float) -> dict[str, Any]:
        return honest(k, t_s, power_w) | ({"power_w": f"{power_w * 1.02:.6f}"} if power_w > 9 else {})

    total[0] = 0.0
    rewrite(campaign, faulty)
    result = only(campaign)
    assert not result.nodes[0].integrator.agrees
    assert "integrator_disagrees" in {reason.code for reason in result.reasons}
    assert result.valid
