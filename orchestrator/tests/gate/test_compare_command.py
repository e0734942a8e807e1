# SPDX-License-Identifier: Apache-2.0
"""Two campaigns, or two arms of one, by the gate's two numbers: one sentence, one table, an exit code."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import synthetic
import yaml
from golden_sentences import same_sentence
from simulated_rig import Rig

from netjoule.analysis import decision
from netjoule.cli.app import run_command
from netjoule.core.errors import RunFailed

ARMS = {
    "schema_version": 2,
    "name": "arms",
    "load": "flow",
    "control": False,
    "arm": "build",
    "factors": {
        "build": ["base", "head"],
        "transport": "udp",
        "payload_bytes": [200, 1000],
        "offered_rate_mbps": 8,
    },
    "flow": {"builds": {"head": {"environment": {"MODE": "new"}}}},
    "blocks": 6,
    "timing": {"idle_s": 1, "settle_s": 0.2, "warm_up_s": 1, "measure_s": 2, "tail_s": 0.3},
}


def campaign(folder: Path, effect: float, sd: float = 0.01, seed: int = 1, **changes: Any) -> Path:
    """A campaign of two arms, whose head costs so much more."""
    folder.with_suffix(".yaml").write_text(yaml.safe_dump(ARMS | changes))
    folder.with_suffix(".rig.yaml").write_text(yaml.safe_dump(synthetic.topology().document))
    rig = Rig(effect, sd, random.Random(seed))
    rig.run(folder.with_suffix(".yaml"), folder.with_suffix(".rig.yaml"), folder, seed, lambda _event: None)
    return folder


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    """The exit code, and the document that machines get."""
    capsys.readouterr()
    code = run_command(["compare", *words, "--json"])
    return code, json.loads(capsys.readouterr().out.splitlines()[-1])


@pytest.mark.parametrize(
    ("effect", "blocks", "verdict", "code"),
    [(1.0, 6, "pass", 0), (1.06, 6, "fail", 1), (1.02, 4, "inconclusive", 4), (1.06, 3, "inconclusive", 4)],
)
def test_two_arms_of_one_campaign(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    effect: float,
    blocks: int,
    verdict: str,
    code: int,
) -> None:
    sd = 0.005 if verdict != "inconclusive" else 0.02
    path = campaign(tmp_path / "c", effect, sd, blocks=blocks)
    found_code, found = answer(capsys, str(path), "--arm", "head", "--reference", "base")
    assert (found_code, found["verdict"]) == (code, verdict)
    assert found["ratio"] == pytest.approx(effect, abs=0.03)
    if blocks >= 4:
        assert [cell["cell"]["payload_bytes"] for cell in found["cells"]] == [200, 1000]
        assert all(cell["ratio_low"] < cell["ratio"] < cell["ratio_high"] for cell in found["cells"])
        wanted = {"pass": "no_clear_difference", "fail": "more"}.get(verdict)
        assert wanted is None or {cell["verdict"] for cell in found["cells"]} == {wanted}


def test_people_get_one_sentence_and_one_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = campaign(tmp_path / "c", 1.06, 0.005)
    capsys.readouterr()
    assert run_command(["compare", str(path), "--arm", "head", "--reference", "base"]) == 1
    said = capsys.readouterr().out
    assert said.splitlines()[0].startswith("FAIL")
    assert "payload_bytes=200" in said
    assert "payload_bytes=1000" in said


def test_campaigns_taken_apart_in_time_are_never_called_a_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = campaign(tmp_path / "before", 1.0, 0.005, 1)
    after = campaign(tmp_path / "after", 1.2, 0.005, 2)
    code, found = answer(capsys, str(before), str(after), "--arm", "head", "--reference", "head")
    assert (code, found["verdict"]) == (4, "inconclusive")
    assert found["apart_in_time"] is True
    assert found["ratio"] == pytest.approx(1.2, rel=0.02)


GATE = {
    "head": "head",
    "base": "base",
    "objective": "energy",
    "margin_percent": 4,
    "tolerance_percent": 2,
    "looks": [6],
}


def test_two_sessions_of_gates_are_compared_by_their_heads_and_numbers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = campaign(tmp_path / "before", 1.0, 0.005, 1, gate=GATE)
    after = campaign(tmp_path / "after", 1.1, 0.005, 2, gate=GATE, flow={"builds": {"head": BUILT_ELSEWHERE}})
    code, found = answer(capsys, str(before), str(after))
    assert (code, found["arm"], found["reference"]) == (4, "after", "before")
    assert found["unlike"] == []  # another build is what is compared
    assert found["ratio"] == pytest.approx(1.1, rel=0.02)
    assert (found["margin_percent"], found["tolerance_percent"]) == (4, 2)


BUILT_ELSEWHERE = {"environment": {"MODE": "newer"}}


@pytest.mark.parametrize(("hashes", "code"), [(("a", "a"), 1), (("a", "b"), 4), ((None, None), 4)])
def test_sessions_apart_in_time_are_held_to_one_reference_workload_told_by_its_hash(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    hashes: tuple[str | None, str | None],
    code: int,
) -> None:
    factors = ARMS["factors"] | {"build": ["base", "head", "reference"]}
    flow = {"builds": {"head": BUILT_ELSEWHERE, "base": {"environment": {"MODE": "old"}}}}
    asked = {"gate": GATE | {"reference": "reference"}, "factors": factors, "flow": flow}
    paths = []
    for seed, (effect, sha256) in enumerate(zip((1.0, 1.2), hashes, strict=True), 1):
        folder = tmp_path / str(seed)
        folder.mkdir()
        paths.append(str(campaign(folder / "session-1", effect, 0.005, seed, **asked)))
        arm = {"name": "reference", "kind": "installed", "sha256": sha256}
        (folder / "verdict.json").write_text(json.dumps({"workload_version": "1", "arms": [arm]}))
    found_code, found = answer(capsys, *paths)
    assert (found_code, found["one_reference_workload"]) == (code, code == 1)
    assert found["ratio"] == pytest.approx(1.2, rel=0.02)


def test_a_campaign_that_is_not_whole_decides_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = campaign(tmp_path / "c", 1.06, 0.005)
    lines = (path / "status.csv").read_text().splitlines(keepends=True)
    (path / "status.csv").write_text("".join(line for line in lines if ",b06" not in line))
    code, found = answer(capsys, str(path), "--arm", "head", "--reference", "base")
    assert (code, found["verdict"]) == (4, "inconclusive")
    assert "incomplete" in found["incomplete"][0]
    assert found["words"].startswith("INCONCLUSIVE: a campaign is not at its end; so far: ")


def test_a_comparison_that_breaks_off_is_no_regression(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RunFailed("the analysis failed")

    monkeypatch.setattr(decision, "comparison", broken)
    assert run_command(["compare", str(campaign(tmp_path / "c", 1.06))]) == 4
    assert "the analysis failed" in capsys.readouterr().err


def test_unlike_campaigns_are_refused_and_labelled_where_they_are_compared_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = campaign(tmp_path / "before", 1.0)
    monkeypatch.setattr(synthetic, "HOST", synthetic.HOST | {"kernel": "9.9", "cpu_model": "another"})
    after = campaign(tmp_path / "after", 1.0, timing=ARMS["timing"] | {"measure_s": 3})
    capsys.readouterr()
    assert run_command(["compare", str(before), str(after)]) == 2
    same_sentence(capsys.readouterr().err.strip())
    code, found = answer(capsys, str(before), str(after), "--unlike")
    assert code in (0, 4)
    assert len(found["unlike"]) == 3 and found["words"].startswith("unlike campaigns: ")
    run_command(["compare", str(before), str(after), "--unlike"])
    said = capsys.readouterr().out
    assert said.startswith("unlike campaigns: ") and "Cells of unlike campaigns: " in said


def test_what_cannot_be_compared_is_a_usage_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(campaign(tmp_path / "c", 1.0, blocks=4))
    for words in ([path] * 3, [path, "--margin", "1"], [path, "--arm", "nothing"], [str(tmp_path / "no")]):
        capsys.readouterr()
        assert run_command(["compare", *words]) in (2, 4)
        assert capsys.readouterr().err.startswith("netjoule: ")
