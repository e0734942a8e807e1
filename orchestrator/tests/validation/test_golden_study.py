# SPDX-License-Identifier: Apache-2.0
"""The shipped campaigns of the study: run whole on the emulated testbed, as docs/findings.md tells them."""

import json
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import findings_tables
import pytest
from bundles import differing_anew, unpacked

from netjoule import loads
from netjoule.cli.launch import load_inputs
from netjoule.coursework import cells
from netjoule.design.run_table import last_attempts
from netjoule.store.planfile import read_plan
from netjoule.validation.check import check_campaign

ROOT = Path(__file__).parents[3]
MOST_BYTES = 8_000_000
TESTBEDS = {"ideal-216": None, "seed-like": ROOT / "testbed/topologies/seed-like.yaml"}


Shipped = Callable[[str], Path]


def bundle(name: str) -> Path:
    return ROOT / "results/golden" / f"{name}.tar.xz"


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """Unpacks a bundle once."""
    return cache(lambda name: unpacked(bundle(name), tmp_path_factory.mktemp(name)))


@pytest.fixture(scope="module", params=TESTBEDS)
def preset(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def campaign(preset: str, shipped: Shipped) -> Path:
    return shipped(f"study-{preset}")


def results(campaign: Path) -> Iterator[Path]:
    yield from sorted(campaign.glob("runs/*/result.json"))


def test_it_is_compact(preset: str) -> None:
    assert bundle(f"study-{preset}").stat().st_size < MOST_BYTES


def asked_in(document: dict[str, Any]) -> dict[str, Any]:
    """The workload of a campaign.json of any version, as it would be asked now."""
    return loads.made(document["workload"], where="campaign.json").document


def test_it_is_sound_whole_and_of_the_shipped_workload_and_testbed(preset: str, campaign: Path) -> None:
    assert [str(defect) for defect in check_campaign(campaign)] == []
    document = json.loads((campaign / "campaign.json").read_text())
    asked = load_inputs("study", TESTBEDS[preset])
    assert asked_in(document) == {**asked.workload.document, "seed": document["seed"]}
    assert document["topology"]["link"]["preset"] == preset
    assert document["status"] == "complete"
    rows = read_plan(campaign)
    last = last_attempts(rows)
    assert {row.status for row in last} == {"valid"}
    assert len(last) == 9 * 12 * 2 * 5


def test_it_says_that_it_is_modelled_at_both_meters(campaign: Path) -> None:
    for path in results(campaign):
        nodes = json.loads(path.read_text())["nodes"]
        assert [node["device_form"] for node in nodes] == ["cpu", "cross_factor"]
        assert {(node["power_source"], node["radio_source"]) for node in nodes} == {
            ("modelled", "link-model")
        }


def test_its_results_are_computed_anew(campaign: Path) -> None:
    assert differing_anew(campaign) == {}


@pytest.fixture(scope="module")
def section(preset: str) -> str:
    """What docs/findings.md says of the campaign."""
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    return page.split(f"\n## {preset}")[1].split("\n## ")[0]


def test_the_tables_of_the_findings_are_its_own(preset: str, campaign: Path, section: str) -> None:
    made = findings_tables.tables(campaign)
    shown = {name for name, table in made.items() if table in section}
    wanted = {"ea-64", "ea-1440", "floor", "cpu-64" if preset == "ideal-216" else "arrival-64"}
    assert wanted <= shown, f"of {sorted(made)} only {sorted(shown)} are as the campaign has them"


def test_no_other_table_is_in_the_findings(campaign: Path, section: str) -> None:
    rows = {line for table in findings_tables.tables(campaign).values() for line in table.splitlines()}
    assert [line for line in section.splitlines() if line.startswith("|") and line not in rows] == []


SMALLER = [
    ("skype-short", "ideal-216", 8 * 3),
    ("youtube-short", "ideal-216", 8 * 3),
    ("study-cubic", "seed-like", 8 * 3 * 3),
]


@pytest.mark.parametrize(("name", "preset", "runs"), SMALLER)
def test_the_smaller_ones_are_sound_and_of_the_shipped_workloads(
    name: str, preset: str, runs: int, shipped: Shipped
) -> None:
    found = shipped(name)
    assert [str(defect) for defect in check_campaign(found)] == []
    document = json.loads((found / "campaign.json").read_text())
    asked = load_inputs(name, TESTBEDS[preset]).workload.document
    assert asked_in(document) == {**asked, "seed": document["seed"]}
    assert document["topology"]["link"]["preset"] == preset
    last = last_attempts(read_plan(found))
    assert (len(last), {row.status for row in last}) == (runs, {"valid"})
    assert differing_anew(found) == {}


def test_the_findings_have_what_the_same_congestion_control_changes(shipped: Shipped) -> None:
    study, cubic = (cells.read(shipped(name)) for name in ("study-seed-like", "study-cubic"))
    page = (ROOT / "docs/findings.md").read_text(encoding="utf-8")
    assert findings_tables.same_congestion_control(study, cubic) in page
    pairs = (("tcp", "udp"), ("quic", "udp"), ("quic", "tcp"))
    less = [[findings_tables.less_percent(of, *pair) for pair in pairs] for of in (study, cubic)]
    assert (
        "TCP takes {:.0f} % and QUIC {:.0f} % less than UDP, QUIC {:.0f} % less than TCP; "
        "with CUBIC for both, {:.0f}, {:.0f} and {:.0f} %".format(*less[0], *less[1])
    ) in page
