# SPDX-License-Identifier: Apache-2.0
import pytest
import verdict_documents as made
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from netjoule.gate.outputs import openmetrics


def read(verdict: dict) -> dict[str, list]:
    """Samples by the family's name."""
    text = openmetrics.text(verdict)
    assert text.endswith("# EOF\n")
    families = list(text_string_to_metric_families(text))
    assert len({family.name for family in families}) == len(families)
    assert all(family.name.endswith(family.unit) for family in families)
    return {family.name: family.samples for family in families}


def value(samples: list) -> float:
    (sample,) = samples
    return sample.value


@pytest.mark.parametrize("kind", ["pass", "fail", "inconclusive", "skipped"])
def test_a_parser_reads_the_verdict(kind):
    found = read(made.verdict(kind))
    states = {one.labels["netjoule_gate_verdict"]: one.value for one in found["netjoule_gate_verdict"]}
    assert states == {name: float(name == kind) for name in openmetrics.VERDICTS}
    assert ("netjoule_gate_ratio" in found) == (kind != "skipped")
    assert value(found["netjoule_gate_margin_ratio"]) == 0.03
    assert value(found["netjoule_gate_finished_timestamp_seconds"]) == 1795725690.5


def test_figures_are_in_base_units_with_bounds():
    found = read(made.verdict("fail"))
    names = ("netjoule_gate_ratio", "netjoule_gate_low_ratio", "netjoule_gate_high_ratio")
    assert [value(found[name]) for name in names] == [1.049, 1.021, 1.078]
    arms = {one.labels["arm"]: one.value for one in found["netjoule_gate_arm_joules_per_bit"]}
    assert arms == {"base": pytest.approx(0.02e-6), "head": pytest.approx(0.021e-6)}
    cells = {one.labels["cell"]: one.value for one in found["netjoule_gate_cell_ratio"]}
    assert cells["payload_bytes=1000, gso=true"] == 0.9
    assert len(cells) == 5
    assert value(found["netjoule_gate_cell_low_watts"]) == -0.001
    assert value(found["netjoule_gate_blocks"]) == 8


def test_a_unit_without_a_base_unit_is_a_label():
    found = read(made.verdict("pass", unit="J/file"))
    assert {one.labels["unit"] for one in found["netjoule_gate_arm_mean"]} == {"J/file"}


def test_hostile_names_stay_label_values():
    found = read(made.hostile())
    (sample,) = found["netjoule_gate_ratio"]
    assert sample.labels["rig"].startswith("a|b\\n::error::x]]>\\x1b[31m`&<\"'%0A,@all")
    (info,) = found["netjoule_gate"]
    assert info.labels["kernel"] == sample.labels["rig"]
    text = openmetrics.text(made.hostile())
    assert all(letter.isprintable() or letter == "\n" for letter in text)
